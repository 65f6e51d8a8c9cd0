//! What clients are told of the tools: one JSON file each, with the schemas of what goes in and comes out.

use std::sync::OnceLock;

use rmcp::model::Tool;

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(include_str!(concat!("schema/", $name, ".json"))),*] };
}

/// In the order in which they are listed: the six of workflows first.
const FILES: [&str; 13] = files!(
    "execute",
    "resume",
    "list",
    "status",
    "cancel",
    "validate",
    "inbox",
    "session",
    "handoff",
    "result",
    "tools_search",
    "code_run",
    "skill",
);

/// Read once, when somebody asks: a server starts without them.
pub fn all() -> &'static [Tool] {
    static ALL: OnceLock<Vec<Tool>> = OnceLock::new();
    // A test reads every one of these files, so none is left out here.
    ALL.get_or_init(|| FILES.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    // covers: R16
    #[test]
    fn every_tool_is_defined_as_clients_want_it() {
        assert_eq!(all().len(), FILES.len());
        for tool in all() {
            let (input, name) = (&tool.input_schema, &tool.name);
            assert_eq!(input["additionalProperties"], false, "{name}");
            assert!(input["properties"].is_object() && tool.output_schema.is_some(), "{name}");
            assert!(tool.title.is_some() && tool.description.is_some(), "{name}");
            let hints = tool.annotations.as_ref().unwrap();
            assert!(hints.read_only_hint.is_some() && hints.open_world_hint.is_some(), "{name}");
            let required = input.get("required").and_then(Value::as_array).into_iter().flatten();
            for field in required {
                assert!(input["properties"].get(field.as_str().unwrap()).is_some(), "{name}: {field}");
            }
        }
    }

    /// A client shows all of them to its model, in every conversation.
    #[test]
    fn the_definitions_are_short() {
        let bytes = serde_json::to_string(all()).unwrap().len();
        assert!(bytes < 16_000, "{bytes} bytes");
    }
}
