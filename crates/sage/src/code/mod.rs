//! Code mode for a project: what `sage code`, the MCP server and `llm` agents call.
//!
//! ```text
//! CodeMode --search--> the catalogue of all servers
//!          --run-----> session s1, s2, ..  (handles and hidden values stay in it) --> sage-script
//!                         \-- imports skills/<name>: approved ones, and those that this process has saved
//!          --save----> .sage/skills/<name>/SKILL.md + skill.ts, not approved
//! ```

mod guard;
mod save;
mod servers;
mod sessions;
mod skills;
mod toolbox;
pub mod types;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sage_script::code::{self, CodeLimits, CodeSession, FailureKind, Tools};
use sage_script::tools::{Detail, ToolDef, search};
use serde_json::{Value, json};

pub use guard::Guard;
pub use save::{Save, SavedSkill};
pub use servers::{Author, HubTools, definition};
pub use skills::ProjectSkills;
pub use toolbox::CodeTools;

use sessions::Sessions;

/// The executable that runs code: this very one, also after an upgrade has replaced it.
pub fn program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sage")),
    }
}

#[derive(Clone, Debug, Default)]
pub struct CodeRun {
    pub code: String,
    /// The one that earlier code ran in; a new one without it.
    pub session: Option<String>,
    pub timeout_ms: Option<u64>,
    /// Keep the code as a skill if it succeeds.
    pub save: Option<Save>,
    /// What `input` is in the code.
    pub input: Value,
    /// For messages; `code.ts` without it.
    pub name: Option<String>,
}

/// What the code returned, and what became of it.
#[derive(Clone, Debug)]
pub struct CodeAnswer {
    pub session: String,
    pub ran: code::CodeAnswer,
    pub saved: Option<Result<SavedSkill, String>>,
    /// What a reader should know: servers that could not be asked.
    pub notes: Vec<String>,
}

impl CodeAnswer {
    /// For a model: what it asked for, and little else.
    pub fn told(&self) -> Value {
        let counts = &self.ran.counts;
        let mut told = json!({"value": self.ran.value, "session": self.session, "calls": counts.calls,
            "bytesKeptOut": counts.bytes_kept_out});
        let console = self.ran.console.told();
        if !console.is_empty() {
            told["console"] = console.into();
        }
        let mut notes = self.notes.clone();
        if self.ran.nothing {
            notes.push("the code returned nothing; end it with `return value`".into());
        }
        match &self.saved {
            Some(Ok(saved)) => told["saved"] = json!(saved),
            Some(Err(why)) => notes.push(format!("the skill was not saved: {why}")),
            None => {}
        }
        if !notes.is_empty() {
            told["notes"] = json!(notes);
        }
        told
    }
}

/// Why there is no value.
pub type CodeFailure = code::CodeFailure;

/// For a model that mends its code.
pub fn told_failure(failure: &CodeFailure) -> Value {
    let mut told = json!({"error": failure.kind.name(), "message": failure.message});
    if let Some(hint) = &failure.hint {
        told["hint"] = json!(hint);
    }
    let console = failure.console.told();
    if !console.is_empty() {
        told["console"] = console.into();
    }
    told
}

/// A module that is not there may be of a server that was left out.
fn with_notes(mut failure: CodeFailure, notes: &[String]) -> CodeFailure {
    if failure.kind == FailureKind::Import && !notes.is_empty() {
        failure.message = format!("{}\n{}", failure.message, notes.join("\n"));
    }
    failure
}

pub struct CodeMode {
    program: PathBuf,
    limits: CodeLimits,
    tools: Arc<dyn Tools>,
    skills: Arc<ProjectSkills>,
    sessions: Mutex<Sessions>,
}

impl std::fmt::Debug for CodeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeMode").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CodeMode {
    pub fn new(tools: Arc<dyn Tools>, skills: ProjectSkills) -> CodeMode {
        CodeMode {
            program: program(),
            limits: CodeLimits::default(),
            tools,
            skills: Arc::new(skills),
            sessions: Mutex::default(),
        }
    }

    /// With other limits than a model's.
    #[must_use]
    pub fn with_limits(self, limits: CodeLimits) -> CodeMode {
        CodeMode { limits, ..self }
    }

    /// Asks the servers for their tools; what could not be asked, in words.
    pub async fn refresh(&self) -> Vec<String> {
        self.tools.refresh().await
    }

    pub fn catalogue(&self) -> Arc<[ToolDef]> {
        self.tools.catalogue()
    }

    /// Tools that fit, as text: `{"tools": "...", "total": 12}`.
    pub async fn search(&self, query: &str, detail: Detail, limit: usize) -> Value {
        let notes = self.tools.refresh().await;
        let found = search(&self.tools.catalogue(), query, detail, limit);
        let mut told = json!({"tools": found.text(), "total": found.total});
        if !notes.is_empty() {
            told["notes"] = json!(notes);
        }
        told
    }

    pub async fn run(&self, run: CodeRun) -> Result<CodeAnswer, CodeFailure> {
        if let Some(save) = &run.save {
            save.check().map_err(|why| CodeFailure::refused(FailureKind::Invalid, why))?;
        }
        // Servers are started only for code that could call them, or must be told that it cannot import something.
        let notes = if run.code.contains("import") { self.tools.refresh().await } else { Vec::new() };
        let (session, name) = self.session(run.session.as_deref());
        let mut order = code::CodeRun { wall_ms: run.timeout_ms, ..code::CodeRun::new(run.code.clone()) };
        order.name = run.name.unwrap_or(order.name);
        order.input = if run.input.is_null() { json!({}) } else { run.input };
        let ran = session.run(&order).await.map_err(|failure| with_notes(failure, &notes))?;
        let saved = run.save.map(|save| self.skills.save(&save, &run.code));
        Ok(CodeAnswer { session: name, ran, saved, notes })
    }

    /// The session of a name, new if there is none.
    pub fn session(&self, name: Option<&str>) -> (Arc<CodeSession>, String) {
        let make = || {
            let (tools, skills) = (Arc::clone(&self.tools), Arc::clone(&self.skills));
            CodeSession::new(self.program.clone(), tools, skills, self.limits)
        };
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(name, make)
    }
}
