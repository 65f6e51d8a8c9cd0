//! What a failure is about, where its class does not say it.

use serde::{Deserialize, Serialize};

/// Decides whether another try can help, what the agent is told about it, and whether its provider is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// The agent did its work, and the outcome is not accepted: an answer that does not fit its schema, an empty
    /// answer, a refusal by the model, its own limit of turns. Its provider is healthy.
    Answer,
    /// The endpoint rejects the request and would reject it again: an unknown model, a prompt that is too long.
    Endpoint,
    /// The step cannot run as it is set up: a flag that the program does not know, a missing file, a bad setting.
    Setup,
}

impl Cause {
    /// What a person can do, where the class of the failure says less.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Cause::Answer => None,
            Cause::Endpoint => {
                Some("check `model` and the size of the prompt, then resume; it was not retried")
            }
            Cause::Setup => {
                Some("fix the settings of the step or its agent, then resume; it was not retried")
            }
        }
    }

    /// Another try would fail in the same way.
    pub fn is_terminal(self) -> bool {
        matches!(self, Cause::Endpoint | Cause::Setup)
    }
}
