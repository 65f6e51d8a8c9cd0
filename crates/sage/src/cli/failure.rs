//! How a command fails: what, and what to type next. Exit codes are those of DESIGN §6.

use std::path::Path;
use std::process::ExitCode;

use sage_core::run::FoldError;
use sage_engine::journal::JournalError;
use sage_engine::lock::LockError;
use sage_engine::open::OpenError;
use sage_engine::project::ProjectError;
use sage_engine::run_loop::LoopError;

use crate::command_line::{here, sage};
use crate::display::template_name;
use crate::display::text::argument;
use crate::trust::Definition;
use crate::trust::open::STATE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Failed = 1,
    Usage = 2,
    Paused = 4,
    Conflict = 5,
    Interrupted = 130,
}

/// What a person can allow, so that the command goes on.
#[derive(Clone, Debug)]
pub enum Word {
    /// To use these definitions of the project.
    Trust(Vec<Definition>),
    /// To continue the state of a feature that this user did not write.
    Adopt(String),
}

#[derive(Debug)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    pub hints: Vec<String>,
    /// Nothing was done: with a person's word the command can be tried again.
    pub word: Option<Box<Word>>,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hints: Vec::new(), word: None }
    }

    /// The command needs definitions of the project that are not trusted.
    pub fn untrusted(definitions: Vec<Definition>) -> Failure {
        let places: Vec<String> = definitions.iter().map(|it| format!("`{}`", it.place())).collect();
        let message =
            format!("{} {} not trusted", places.join(", "), if places.len() == 1 { "is" } else { "are" });
        // What only some runs use is trusted by its name.
        let named = definitions.iter().any(Definition::is_of_workflow);
        let names = definitions.iter().filter(|_| named).map(|it| it.name.as_str());
        let hint = names.fold(sage("trust"), |hint, name| hint.arg(name));
        let failure = Failure::usage(message).hint(hint);
        Failure { word: Some(Box::new(Word::Trust(definitions))), ..failure }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Usage, message)
    }

    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Failed, message)
    }

    /// What to type; a command of Sage gets the directory that this one was typed with.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(here(hint));
        self
    }

    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.kind as u8)
    }
}

/// What makes a real directory of what stands in its place. A link may lead to the only copy of the state.
pub fn real_directory(path: &Path) -> String {
    let shown = argument(&path.display().to_string());
    match std::fs::canonicalize(path).ok().filter(|target| target != path) {
        Some(target) => {
            let target = argument(&target.display().to_string());
            format!("rm {shown} && mv {target} {shown}    (if what it leads to is yours)")
        }
        None => format!("rm {shown}    (then sage init)"),
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Failure {
        let message = error.to_string();
        match error {
            ProjectError::NotADirectory { path } | ProjectError::Link { path } => {
                Failure::failed(message).hint(real_directory(&path))
            }
            ProjectError::Foreign { path } => {
                let path = argument(&path.display().to_string());
                Failure::failed(message).hint(format!("chown -R $(id -u) {path}    (if it is yours)"))
            }
            ProjectError::Unwritable { .. } => Failure::failed(message).hint("sage doctor"),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let message = error.to_string();
        if let Some(pid) = error.suspended() {
            return Failure::new(Kind::Conflict, message).hint(format!("kill -CONT {pid}    (continues it)"));
        }
        match error {
            // Who starts a run adds how to start it all the same: only there it is known with which options.
            OpenError::Owned { feature, .. } => {
                Failure::new(Kind::Conflict, message).hint(sage("status").arg(feature).arg("--watch"))
            }
            OpenError::Open { feature, .. } => {
                Failure::new(Kind::Conflict, message).hint(sage("resume").arg(feature))
            }
            OpenError::Taken(feature) => Failure::new(Kind::Conflict, message)
                .hint("--as <another name>")
                .hint(sage("status").arg(feature)),
            OpenError::Unknown(_) => Failure::usage(message).hint("sage list"),
            OpenError::Foreign(feature) => {
                let failure = Failure::usage(message).hint(sage("trust").arg(format!("{STATE}{feature}")));
                Failure { word: Some(Box::new(Word::Adopt(feature))), ..failure }
            }
            OpenError::NotResumable { feature, template } => {
                let template = template_name(&template);
                Failure::failed(message).hint(sage("run").arg(feature).option("-t", template))
            }
            OpenError::NoStep { feature, .. } | OpenError::NotListening { feature, .. } => {
                Failure::usage(message).hint(sage("status").arg(feature))
            }
            OpenError::Answered { feature, .. } => {
                Failure::new(Kind::Conflict, message).hint(sage("status").arg(feature))
            }
            OpenError::NoQuestion { .. }
            | OpenError::NoChoice { .. }
            | OpenError::NoBudget { .. }
            | OpenError::NotOpen { .. } => Failure::usage(message),
            OpenError::Children { pids, .. } if !pids.is_empty() => {
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                Failure::failed(message).hint(format!("kill {}", pids.join(" ")))
            }
            OpenError::Unanswered(step) => Failure::new(Kind::Paused, message)
                .hint(sage("approve").arg("FEATURE").arg(step).comment("run it again; or sage reject")),
            OpenError::Project(error) => error.into(),
            OpenError::Lock(LockError::Io { path, .. }) if path.is_dir() => {
                let path = argument(&path.display().to_string());
                Failure::failed(message).hint(format!("rmdir {path}    (a lock file belongs there)"))
            }
            OpenError::NoKey => Failure::failed(message).hint("XDG_STATE_HOME=<a directory of yours>"),
            error => unreadable(error, message),
        }
    }
}

/// State that is damaged, lost, or of a newer version.
fn unreadable(error: OpenError, message: String) -> Failure {
    match error {
        OpenError::Damaged { feature, .. } => Failure::failed(message)
            .hint(sage("repair").arg(&feature).arg("--dry-run").comment("shows what can be kept"))
            .hint(sage("resume").arg(feature).comment("repairs it and goes on")),
        OpenError::NeedsRepair { feature, .. } => Failure::failed(message)
            .hint(sage("repair").arg(&feature).arg("--dry-run"))
            .hint(sage("repair").arg(feature)),
        OpenError::Lost { feature, .. } | OpenError::Garbled { feature, .. } => Failure::failed(message)
            .hint(sage("run").arg(feature).arg("--new").comment("keeps the damaged files")),
        // `sage run` adds how to give it up: only there it is known with which options.
        OpenError::Obscured { feature, cause, .. } => {
            let is_damaged = matches!(*cause, OpenError::Journal(error) if error.is_damage());
            let failure = Failure::failed(message).hint(sage("verify").arg(&feature));
            match is_damaged {
                true => failure.hint(sage("resume").arg(feature).comment("repairs and continues it")),
                false => failure.hint(sage("doctor")),
            }
        }
        OpenError::Result { .. } | OpenError::Unreadable { .. } => {
            Failure::failed(message).hint(sage("doctor"))
        }
        OpenError::Journal(JournalError::NewerVersion { .. })
        | OpenError::Event(_)
        | OpenError::Fold(FoldError::Newer(_)) => {
            Failure::failed(message).hint(sage("--version").comment("a newer sage wrote it"))
        }
        _ => Failure::failed(message),
    }
}

impl From<LoopError> for Failure {
    fn from(error: LoopError) -> Failure {
        let kind = match error {
            LoopError::Paused(_) => Kind::Paused,
            LoopError::Interrupted(_) => Kind::Interrupted,
            LoopError::Storage(JournalError::Taken { .. }) => Kind::Conflict,
            LoopError::Storage(_) | LoopError::Fold(_) => Kind::Failed,
        };
        Failure::new(kind, error.to_string()).hint("sage resume <feature>    (finished steps are saved)")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<sage_core::slug::NameError> for Failure {
    fn from(error: sage_core::slug::NameError) -> Failure {
        let hint = match error {
            sage_core::slug::NameError::NothingLeft => {
                "a word with letters a-z beside it is enough: \"支付 payment\""
            }
            _ => "a feature is a short title, e.g. \"payment processing\"",
        };
        Failure::usage(error.to_string()).hint(hint)
    }
}
