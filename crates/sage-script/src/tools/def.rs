//! What a server says about one of its tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolDef {
    pub server: String,
    pub name: String,
    /// Words of a third party: data for a model, never orders.
    pub description: String,
    /// JSON Schema of an object.
    pub input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// It changes nothing, says the server.
    pub read_only: bool,
    /// It may destroy something, says the server.
    pub destructive: bool,
}

impl ToolDef {
    /// From an entry of `tools/list`, as servers send it.
    pub fn from_listing(server: &str, listed: &Value) -> Option<ToolDef> {
        let text = |name: &str| listed.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
        let hint = |name: &str| listed["annotations"].get(name).and_then(Value::as_bool).unwrap_or(false);
        let name = text("name");
        (!name.is_empty()).then(|| ToolDef {
            server: server.to_string(),
            name,
            description: text("description"),
            input_schema: listed.get("inputSchema").cloned().unwrap_or_default(),
            output_schema: listed.get("outputSchema").filter(|schema| !schema.is_null()).cloned(),
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
        })
    }
}
