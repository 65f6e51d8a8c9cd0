//! Amounts and caps of tokens and money.

use serde::{Deserialize, Serialize};

/// So much of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amount {
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub micro_usd: u64,
}

/// At most so much; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cap {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a budget: {why}")]
pub struct CapError {
    pub text: String,
    pub why: &'static str,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl std::fmt::Display for Cap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.tokens, self.micro_usd)
    }
}
