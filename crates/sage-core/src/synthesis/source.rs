//! Who was asked: a step, what it gave, who did it, and what it had seen.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    /// The step's path, with `[index]` for one item of a fan-out.
    pub name: String,
    /// The step's state; anything but `succeeded` means that nothing came back.
    pub state: String,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation that it shares with others; `None` if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Names of other sources whose results it could read.
    pub saw: Vec<String>,
}

impl Source {
    /// Why nothing of it can be compared, as far as its state tells.
    pub fn missing(&self) -> Option<String> {
        let told = self.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        match self.state.as_str() {
            "succeeded" | "" => match &self.result {
                None | Some(Value::Null) => Some(format!("it has no result{told}")),
                Some(_) => None,
            },
            "failed" => Some(format!("it failed{told}")),
            "skipped" => Some(format!("it was skipped{told}")),
            "blocked" => Some(format!("it was blocked by what it depends on{told}")),
            "cancelled" => Some(format!("it was cancelled{told}")),
            state => Some(format!("it is {state}{told}")),
        }
    }
}
