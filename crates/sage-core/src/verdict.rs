//! How a run is judged. Never guessed from an agent's prose: only from the states of its steps.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Succeeded,
    /// Everything asked for was reached, but something failed on the way (k of n, tolerated items).
    Degraded,
    Failed,
    Cancelled,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Succeeded => "succeeded",
            Verdict::Degraded => "degraded",
            Verdict::Failed => "failed",
            Verdict::Cancelled => "cancelled",
        }
    }

    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Succeeded => 0,
            Verdict::Failed => 1,
            Verdict::Degraded => 3,
            Verdict::Cancelled => 130,
        }
    }
}
