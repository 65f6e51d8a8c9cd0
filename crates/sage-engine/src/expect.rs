//! `expect`: what must be true after an attempt that says it succeeded.
//!
//! ```text
//! files, headMoved, changes, command: not so -> failed (invalid)
//! passed: true -> goes on   false -> failed   anything else -> unknown; `applies: false` -> skipped
//! ```

use std::path::Path;

use sage_core::event::{End, Payload};
use sage_core::policy::FailureClass;
use sage_core::port::{Changes, Head, StepCx, StepOutcome, Watch};
use sage_core::template::{Isolation, Kind};
use serde_json::{Map, Value, json};

use crate::perform::{Attempt, Checks, failed, inside};
use crate::results::pack;

impl Checks {
    fn expects(&self, name: &str) -> Option<bool> {
        self.expect.as_ref()?.get(name)?.as_bool()
    }

    /// What the executor has to look at.
    pub fn watch(&self) -> Option<Watch> {
        let head = self.expects("headMoved") == Some(true);
        let files = self.changes || self.expects("changes") == Some(true);
        (head || files).then(|| Watch::new(head))
    }
}

/// Why `passed: true` cannot be believed.
fn contradiction(result: &Value) -> Option<&'static str> {
    if result["ran"] == false {
        return Some("the result says `passed: true` and `ran: false`");
    }
    let listed = result["failures"].as_array().is_some_and(|failures| !failures.is_empty());
    listed.then_some("the result says `passed: true` and lists failures")
}

impl Attempt {
    /// The end of an attempt that does not keep what is expected of it.
    pub(crate) async fn unmet(&self, result: &Value) -> Option<End> {
        match self.missing_change() {
            Some(message) => Some(self.invalid(message, result)),
            None => self.unheld(result).await,
        }
    }

    fn invalid(&self, message: String, result: &Value) -> End {
        End::Failed { class: FailureClass::Invalid, message, partial: pack(result, &self.blobs).ok() }
    }

    /// What can be asked at any time: files that must be there, a command that must pass.
    pub(crate) async fn unheld(&self, result: &Value) -> Option<End> {
        let refused = |message| self.invalid(message, result);
        if let Some(message) = self.missing_file().await {
            return Some(refused(message));
        }
        let command = self.checks.expect.as_ref()?.get("command").and_then(Value::as_str)?;
        match self.shell(&self.unwatched(), command).await {
            StepOutcome::Succeeded { .. } => None,
            StepOutcome::Stopped { .. } => Some(End::Stopped),
            StepOutcome::Failed { message, .. } => {
                Some(refused(format!("expected command `{command}` to pass: {message}")))
            }
        }
    }

    /// A check says no, could not be made, or has nothing to check here.
    pub(crate) fn not_passed(&self, result: &Value) -> Option<End> {
        let contradiction = contradiction(result);
        if self.checks.expects("passed") != Some(true)
            || (result["passed"] == true && contradiction.is_none())
        {
            return None;
        }
        let packed = |keep: fn(Payload) -> End| match pack(result, &self.blobs) {
            Ok(result) => keep(result),
            Err(error) => failed(FailureClass::Transient, error.to_string()),
        };
        if result["passed"].is_null() && result["applies"] == false {
            return Some(packed(|result| End::Skipped { result }));
        }
        let said = result["summary"].as_str().map(str::trim).filter(|said| !said.is_empty());
        let silent = "the result does not say whether the check passed";
        let (class, message) = match (result.get("passed"), said) {
            (Some(Value::Bool(true)), _) => {
                (FailureClass::Unchecked, contradiction.unwrap_or(silent).to_string())
            }
            (Some(Value::Bool(false)), said) => {
                (FailureClass::Failed, said.unwrap_or("the result says `passed: false`").to_string())
            }
            (Some(Value::Null), Some(said)) => (FailureClass::Unchecked, said.to_string()),
            (_, Some(said)) => (FailureClass::Unchecked, format!("{silent}: {said}")),
            (_, None) => (FailureClass::Unchecked, silent.to_string()),
        };
        Some(End::Failed { class, message, partial: pack(result, &self.blobs).ok() })
    }

    async fn missing_file(&self) -> Option<String> {
        let files = self.checks.expect.as_ref()?.get("files")?.as_array()?;
        for file in files.iter().filter_map(Value::as_str) {
            match inside(&self.cx.project, file) {
                Ok(path) if self.exists(&path, file).await => {}
                Ok(_) => return Some(format!("expected file `{file}` does not exist")),
                Err(why) => return Some(why),
            }
        }
        None
    }

    fn missing_change(&self) -> Option<String> {
        let changes = self.changes();
        if self.checks.expects("headMoved") == Some(true) && changes.head != Some(Head::New) {
            let why = match changes.head {
                Some(Head::Old(at)) => format!("there is none: HEAD is at {}", at.get(..12).unwrap_or(&at)),
                Some(Head::Unborn) => "the repository has no commit".to_string(),
                Some(Head::NoRepository) => "the step did not work in a git repository".to_string(),
                Some(Head::New) | None => "git could not tell where HEAD is".to_string(),
            };
            return Some(format!("expected a new commit, but {why}"));
        }
        let wanted = self.checks.expects("changes") == Some(true);
        (wanted && changes.files != Some(true))
            .then(|| "expected a changed file, but no file changed".to_string())
    }

    /// What the executor saw.
    pub(crate) fn changes(&self) -> Changes {
        self.cx.watch.as_ref().map(Watch::seen).unwrap_or_default()
    }

    /// A look at what the attempt left is no part of it.
    fn unwatched(&self) -> StepCx {
        StepCx { watch: None, ..self.cx.clone() }
    }

    pub(crate) async fn shell(&self, cx: &StepCx, command: &str) -> StepOutcome {
        let mut call = self.call.clone();
        call.kind = Kind::Shell;
        call.params = Map::from_iter([("run".to_string(), json!(command))]);
        self.executor.execute(cx.clone(), call).await
    }

    /// An isolated step leaves its files where it works, and only the executor knows where that is.
    async fn exists(&self, path: &Path, file: &str) -> bool {
        if self.call.isolation == Isolation::None {
            return path.exists();
        }
        let mut call = self.call.clone();
        call.kind = Kind::Shell;
        call.params = Map::from_iter([("argv".to_string(), json!(["test", "-e", file]))]);
        matches!(self.executor.execute(self.unwatched(), call).await, StepOutcome::Succeeded { .. })
    }
}
