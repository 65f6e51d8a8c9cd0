//! How a command fails: what, and what to type next. Exit codes are those of DESIGN §6.

use std::process::ExitCode;

use sage_engine::open::OpenError;
use sage_engine::run_loop::LoopError;

use crate::command_line::{here, sage};
use crate::display::template_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Failed = 1,
    Usage = 2,
    Paused = 4,
    Conflict = 5,
}

#[derive(Debug)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    pub hints: Vec<String>,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hints: Vec::new() }
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

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let message = error.to_string();
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
            OpenError::NotResumable { feature, template } => {
                let template = template_name(&template);
                Failure::failed(message).hint(sage("run").arg(feature).option("-t", template))
            }
            OpenError::NoStep { feature, .. } => Failure::usage(message).hint(sage("status").arg(feature)),
            OpenError::NoQuestion { .. }
            | OpenError::NoChoice { .. }
            | OpenError::NoBudget { .. }
            | OpenError::NotOpen { .. } => Failure::usage(message),
            OpenError::Unanswered(step) => Failure::new(Kind::Paused, message)
                .hint(sage("approve").arg("FEATURE").arg(step).comment("run it again; or sage reject")),
            OpenError::Lost { .. } => Failure::failed(message).hint("sage verify"),
            OpenError::Journal(_) => Failure::failed(message).hint("sage verify"),
            _ => Failure::failed(message),
        }
    }
}

impl From<LoopError> for Failure {
    fn from(error: LoopError) -> Failure {
        Failure::failed(error.to_string())
            .hint("what was acknowledged is safe; make room or mend the disk, then `sage resume`")
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
