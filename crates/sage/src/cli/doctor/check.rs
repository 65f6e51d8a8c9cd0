//! One thing that was looked at.

use sage_core::diagnostic::printable;
use serde::Serialize;

use crate::command_line::here;

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub says: String,
    /// What to type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Good,
    /// Work goes on without it.
    Warn,
    /// Work does not.
    Bad,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Warn => "warn",
            State::Bad => "FAIL",
        }
    }
}

impl Check {
    pub fn good(name: &'static str, says: impl Into<String>) -> Check {
        Check { name, state: State::Good, says: printable(&says.into()), hints: Vec::new() }
    }

    pub fn warn(name: &'static str, says: impl Into<String>) -> Check {
        Check { state: State::Warn, ..Check::good(name, says) }
    }

    pub fn bad(name: &'static str, says: impl Into<String>) -> Check {
        Check { state: State::Bad, ..Check::good(name, says) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Check {
        self.hints.push(printable(&here(hint)));
        self
    }
}
