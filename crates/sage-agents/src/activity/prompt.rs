//! What an agent was asked, as it was sent: `prompt.json` of the attempt.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// In the directory of an attempt.
const FILE: &str = "prompt.json";
/// No context is larger.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// What stands above the conversation, where the agent has a place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub prompt: String,
}

impl Prompt {
    /// Of the attempt's last turn; `None` if no agent was asked.
    pub fn read(scratch: &Path) -> Option<Prompt> {
        let text = crate::text_file::read(&scratch.join(FILE), MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// A prompt that cannot be kept is sent all the same.
    pub fn write(&self, scratch: &Path) {
        let _ = serde_json::to_vec(self).map(|text| sage_fence::private::write(&scratch.join(FILE), &text));
    }
}
