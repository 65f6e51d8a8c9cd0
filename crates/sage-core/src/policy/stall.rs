//! `stall`: what happens to a step that shows no progress.
//!
//! A ladder, one rung per silent `after_ms`: nudge the agent, restart the attempt, then ask a person or fail.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub after_ms: u64,
    pub nudges: u32,
    pub restarts: u32,
    pub then: StallEnd,
}

/// What a step says about stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StallPolicy {
    /// Nothing: as its kind does.
    #[default]
    Default,
    /// `stall: false`: silence means nothing.
    Off,
    Custom(Stall),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StallEnd {
    /// A person decides whether it runs again; the rest of the run goes on.
    #[default]
    Ask,
    Fail,
}

/// One rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    Nudge,
    Restart,
    Ask,
    Fail,
}

impl Default for Stall {
    fn default() -> Stall {
        Stall { after_ms: 300_000, nudges: 1, restarts: 1, then: StallEnd::Ask }
    }
}

impl Stall {
    /// The rung after `nudges` nudges of this attempt and `restarts` restarts of the step.
    pub fn rung(&self, nudges: u32, restarts: u32) -> Rung {
        if nudges < self.nudges {
            Rung::Nudge
        } else if restarts < self.restarts {
            Rung::Restart
        } else {
            match self.then {
                StallEnd::Ask => Rung::Ask,
                StallEnd::Fail => Rung::Fail,
            }
        }
    }
}
