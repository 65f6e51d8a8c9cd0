//! What was counted about an attempt, besides what its agent told: what its filter took away, and what it may
//! have used where nobody told it. Figures for people; no decision is made from them.

use serde::{Deserialize, Serialize};

/// What a filter left of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filtered {
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Small results are not counted in tokens: there is nothing to be saved with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
}

impl Filtered {
    /// What the next prompt does not have to hold, counted once however many steps read the result.
    pub fn tokens_saved(&self) -> u64 {
        match (self.tokens_before, self.tokens_after) {
            (Some(before), Some(after)) => before.saturating_sub(after),
            _ => 0,
        }
    }
}

/// Tokens of a prompt and an answer, counted by us because the agent told nothing. Never added to what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub input: u64,
    pub output: u64,
}

/// Time that an attempt lost because others of its run had the processors: alone it would have been so much faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Crowded {
    LostMs(u64),
    /// It used a processor, and nobody could measure how it shared it.
    Unknown,
}

impl Crowded {
    /// What there is to tell about `lost` time; nothing if nothing was lost.
    pub fn of(lost: Option<std::time::Duration>) -> Option<Crowded> {
        match lost.map(|time| time.as_millis() as u64) {
            None => Some(Crowded::Unknown),
            Some(0) => None,
            Some(ms) => Some(Crowded::LostMs(ms)),
        }
    }
}
