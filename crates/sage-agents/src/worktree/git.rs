//! Runs git for Sage itself: under a keeper like every other program, without hooks, filters and transports of the
//! repository's own configuration, without what the caller's environment says about repositories, and with a deadline.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::{StepCall, StepCx, StopSignal};

use super::filters::Filters;
use crate::executor::ExecutorConfig;
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::{self, Limits, Marker, Sinks, Spec};

/// A large checkout on a slow disk takes minutes; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(900);
/// All that is read of an answer: shas and paths.
const ANSWER_BYTES: usize = 1024 * 1024;

/// No hooks, no daemons, no housekeeping in a repository that others use; what is written is on the disk.
pub const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsync=all",
    "core.fsyncMethod=batch",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "advice.addEmbeddedRepo=false",
];

/// Nothing is asked, and nothing is fetched: from where, and by which program, is up to the repository.
pub const QUIET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // For versions that do not know the one before.
    ("GIT_ALLOW_PROTOCOL", "none"),
];

#[derive(Clone, Debug)]
pub struct Git {
    keeper: PathBuf,
    grace: Duration,
    marker: Marker,
    cx: StepCx,
    filters: Filters,
    variables: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
}

/// What git said, if it said no.
#[derive(Debug)]
pub struct Refused {
    pub message: String,
}

impl Git {
    /// Git's own logs and its starts are no business of the step: they go to a folder beside the step's.
    pub fn new(config: &ExecutorConfig, cx: &StepCx, call: &StepCall) -> Result<Git, Miss> {
        let scratch = cx.scratch.join("git");
        sage_fence::private::create_dir_all(&scratch).map_err(|error| {
            let message = format!("cannot make `{}`: {error}", scratch.display());
            Miss::of_io(&error, message)
        })?;
        let marker =
            Marker { run: call.run.clone(), step: Some(call.path.clone()), attempt: Some(call.attempt) };
        let cx = StepCx { scratch, progress: Arc::new(|_| {}), ..cx.clone() };
        let filters = Filters::default();
        let (keeper, grace, variables) = (config.keeper.clone(), config.grace, Vec::new());
        Ok(Git { keeper, grace, marker, cx, filters, variables, stdin: None })
    }

    /// A file that it reads.
    pub fn with_stdin(self, path: &Path) -> Git {
        Git { stdin: Some(path.to_path_buf()), ..self }
    }

    pub fn with_variables(self, variables: Vec<(OsString, OsString)>) -> Git {
        Git { variables, ..self }
    }

    /// Without the filters that the repository's own configuration has by now. Whoever reads or writes files of a
    /// checkout asks for it first.
    pub async fn unfiltered(self, cwd: &Path) -> Result<Git, Miss> {
        let cwd = cwd.to_path_buf();
        let read = tokio::task::spawn_blocking(move || Filters::of(&cwd)).await;
        let filters = read.unwrap_or_else(|error| Err(error.to_string())).map_err(|why| {
            Miss::failed(FailureClass::Failed, format!("the filters of the repository cannot be read: {why}"))
        })?;
        Ok(Git { filters, ..self })
    }

    /// A filter that files need and only the repository defines.
    pub async fn needed_filter(&self, top: &Path) -> Option<String> {
        let (filters, top) = (self.filters.clone(), top.to_path_buf());
        tokio::task::spawn_blocking(move || filters.needed(&top)).await.ok().flatten()
    }

    /// As long as git runs, this file stays open.
    pub fn holding(mut self, file: Arc<std::fs::File>) -> Git {
        self.cx.proofs.push(file);
        self
    }

    /// Deaf to the step's stop: what the step has made is worth the time that it takes to keep it.
    pub fn unstoppable(mut self) -> Git {
        self.cx.stop = StopSignal::default();
        self
    }

    pub fn cx(&self) -> &StepCx {
        &self.cx
    }

    /// Arguments that name an author, where the user's own configuration names none.
    pub async fn author(&self, cwd: &Path) -> Result<Vec<String>, Miss> {
        for name in ["user.name", "user.email"] {
            if self.ask(cwd, ["config", "--get", name]).await?.unwrap_or_default().is_empty() {
                return Ok(["-c", "user.name=sage", "-c", "user.email=sage@localhost"]
                    .map(Into::into)
                    .to_vec());
            }
        }
        Ok(Vec::new())
    }

    /// What git prints, without white space at its end. Only a miss of the attempt is an error by itself.
    pub async fn ask<S: AsRef<OsStr>>(
        &self,
        cwd: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Result<String, Refused>, Miss> {
        let mut all: Vec<OsString> = Vec::new();
        for setting in SETTINGS {
            all.extend(["-c".into(), setting.into()]);
        }
        all.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        let mut env: Vec<(OsString, OsString)> = vec![("SAGE_RUN".into(), self.marker.run.clone().into())];
        env.extend(QUIET.iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(self.filters.variables().into_iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(self.variables.iter().cloned());
        env.extend(self.marker.step.iter().map(|step| ("SAGE_STEP".into(), step.into())));
        env.extend(self.marker.attempt.iter().map(|it| ("SAGE_ATTEMPT".into(), it.to_string().into())));
        let spec = Spec {
            program: "git".into(),
            args: all,
            cwd: cwd.into(),
            env,
            unset: caller(),
            bare: false,
            stdin: self.stdin.clone(),
        };
        let limits = Limits {
            grace: self.grace,
            keep_stdout: ANSWER_BYTES,
            output_cap: ANSWER_BYTES,
            whole_stdout: false,
            redactor: Default::default(),
            timeout: Some(PATIENCE),
            idle_timeout: None,
        };
        let sinks = Sinks { stdout: &mut |_| {}, stderr: &mut |_| {} };
        let finished = process::run(&self.keeper, &spec, &limits, &self.marker, &self.cx, sinks).await;
        match exit_code(&finished.end)? {
            0 => Ok(Ok(finished.stdout.text.trim_end().to_string())),
            code => {
                let message = exit_message(code, &finished.stdout, &finished.stderr);
                Ok(Err(Refused { message }))
            }
        }
    }

    /// Whether `now` has a commit that none of `before` has; `None` where git does not say.
    pub async fn new_commits<S: AsRef<str>>(&self, cwd: &Path, before: &[S], now: &str) -> Option<bool> {
        let mut args = vec!["rev-list", "--ignore-missing", "--max-count=1", now, "--not"];
        args.extend(before.iter().map(S::as_ref));
        let found = self.ask(cwd, args).await.ok()?.ok()?;
        Some(!found.is_empty())
    }

    /// As `ask`, where a refusal ends the attempt. `what` it was that could not be done.
    pub async fn run<S: AsRef<OsStr>>(
        &self,
        what: &str,
        cwd: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, Miss> {
        self.ask(cwd, args).await?.map_err(|refused| refused.miss(what))
    }
}

impl Refused {
    pub fn miss(self, what: &str) -> Miss {
        if self.message.contains("No space left on device") {
            let message = format!("{what}: the disk is full ({})", self.message);
            return Miss::failed(FailureClass::System, message);
        }
        Miss::failed(FailureClass::Failed, format!("{what}: git said: {}", self.message))
    }
}

/// Everything that the caller's environment says to git, but for where it may look for a repository.
pub fn caller() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let steers =
        |name: &OsString| name.to_string_lossy().starts_with("GIT_") && name != "GIT_CEILING_DIRECTORIES";
    names.filter(steers).collect()
}
