//! A session: tools, hidden values and handles that stay while code comes and goes.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sage_core::port::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::{CodeAnswer, CodeFailure, FailureKind};
use super::handles::Handles;
use super::limits::{CodeLimits, MAX_WALL_MS};
use super::modules::Skills;
use super::process::Process;
use super::talk::{Ended, Talk};
use crate::pii::Vault;
use crate::tools::ToolDef;

/// What code can call.
pub trait Tools: Send + Sync {
    fn catalogue(&self) -> Arc<[ToolDef]>;

    /// Asks servers for their tools; the answer is what could not be asked, in words.
    fn refresh(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The result, or what the server said about the failure.
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>>;
}

/// Code to run.
#[derive(Clone, Debug)]
pub struct CodeRun {
    /// For messages: `code.ts`.
    pub name: String,
    pub code: String,
    /// What `input` is in the code.
    pub input: Value,
    /// Instead of the session's limit.
    pub wall_ms: Option<u64>,
}

impl CodeRun {
    pub fn new(code: impl Into<String>) -> CodeRun {
        CodeRun { name: "code.ts".into(), code: code.into(), input: json!({}), wall_ms: None }
    }
}

pub struct CodeSession {
    /// The executable that answers to `SCRIPT_ARG`.
    program: PathBuf,
    pub(super) limits: CodeLimits,
    pub(super) tools: Arc<dyn Tools>,
    pub(super) skills: Arc<dyn Skills>,
    pub(super) vault: Arc<Mutex<Vault>>,
    pub(super) handles: Mutex<Handles>,
    /// The clock of all code of this session.
    pub(super) began_ms: u64,
    pub(super) runs: AtomicU64,
}

impl std::fmt::Debug for CodeSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeSession").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CodeSession {
    pub fn new(
        program: PathBuf,
        tools: Arc<dyn Tools>,
        skills: Arc<dyn Skills>,
        limits: CodeLimits,
    ) -> CodeSession {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        CodeSession {
            program,
            limits,
            tools,
            skills,
            vault: Arc::default(),
            handles: Mutex::default(),
            began_ms: now.as_millis() as u64,
            runs: AtomicU64::new(0),
        }
    }

    /// With the hidden values in their places: for people, never for a model.
    pub fn reveal(&self, value: Value) -> Value {
        lock(&self.vault).show(value)
    }

    pub fn reveal_text(&self, text: String) -> String {
        lock(&self.vault).show_text(text)
    }

    /// Runs code to its end or its limit. Dropped before, the process and its calls end, too.
    pub async fn run(&self, run: &CodeRun) -> Result<CodeAnswer, CodeFailure> {
        let begun = Instant::now();
        let wall_ms = run.wall_ms.unwrap_or(self.limits.wall_ms).clamp(1, MAX_WALL_MS);
        let mut talk = Talk::new(self, run);
        let ended = match Process::start(&self.program) {
            Err(error) => {
                Ended::Failed(FailureKind::Broken, format!("the sandbox could not be started: {error}"))
            }
            Ok(mut process) => {
                let deadline = begun + Duration::from_millis(wall_ms);
                match tokio::time::timeout_at(deadline, talk.hold(&mut process)).await {
                    Ok(Some(ended)) => {
                        process.kill().await;
                        ended
                    }
                    Ok(None) => talk.died(process.obituary().await),
                    Err(_) => {
                        process.kill().await;
                        talk.late(wall_ms)
                    }
                }
            }
        };
        let duration_ms = begun.elapsed().as_millis() as u64;
        match ended {
            Ended::Done { nothing, value } => Ok(CodeAnswer { nothing, ..talk.answer(value, duration_ms) }),
            Ended::Failed(kind, message) => Err(talk.failure(kind, message, duration_ms)),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
