//! A named operation that a tool of an MCP server carries out: the same name, the same shape of result, no agent.
//!
//! It is written as any other operation, front matter and all, so that a run freezes it like the others.

use serde_json::{Map, Value, json};

use super::library::NamedOperation;

/// What says the same about a result, whoever gives it.
const KEPT: [&str; 12] = [
    "schema",
    "filter",
    "output",
    "expect",
    "retry",
    "timeout",
    "idleTimeout",
    "cache",
    "pool",
    "target",
    "priority",
    "onUnknown",
];

/// Which tool does it, and what it is given.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    pub server: String,
    pub tool: String,
    /// Texts in it may be Jinja. Without any, the tool gets `feature`, `title` and `inputs`.
    pub arguments: Option<Map<String, Value>>,
    /// What to do if nobody knows whether it ran; a tool asks if nothing is said.
    pub on_unknown: Option<String>,
    /// Whether the result must have the shape that the operation has without the binding.
    pub is_checked: bool,
}

impl Binding {
    /// The text of the operation; `own` is what it is without the binding.
    pub fn text(&self, own: Option<&NamedOperation>) -> String {
        let arguments = self.arguments.clone().map_or_else(default_arguments, Value::Object);
        let params = json!({"server": self.server, "tool": self.tool, "arguments": arguments});
        let mut fields: Vec<(&str, Value)> = vec![("kind", "tool".into())];
        fields.extend(own.and_then(|own| own.description.clone()).map(|text| ("description", text.into())));
        let kept = KEPT.iter().filter(|name| self.is_checked || **name != "schema");
        fields.extend(kept.filter_map(|name| Some((*name, own?.field(name)?.to_json()))));
        if let Some(on_unknown) = &self.on_unknown {
            fields.retain(|(name, _)| *name != "onUnknown");
            fields.push(("onUnknown", on_unknown.clone().into()));
        }
        fields.push(("params", params));
        // JSON is YAML.
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("---\n{lines}---\n")
    }
}

fn default_arguments() -> Value {
    json!({"feature": "{{ feature }}", "title": "{{ title }}", "inputs": "{{ inputs }}"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Library;
    use crate::template::Kind;

    const MARKET: &str = "---\ndescription: \"who: why\"\nrole: researcher\nagent: claude\nparams: {depth: 3}\n\
        schema: {type: object, required: [a]}\nfilter: { top: 5 }\ncache: { ttl: 30d }\n---\nResearch it.\n";

    fn bound(binding: &Binding) -> (Library, String) {
        let mut library = Library::default();
        assert_eq!(library.add("research.market", MARKET), vec![]);
        let text = binding.text(library.get("research.market"));
        assert_eq!(library.add("research.market", &text), vec![], "{text}");
        (library, text)
    }

    // covers: R24
    #[test]
    fn a_bound_operation_keeps_what_is_said_about_its_result() {
        let binding = Binding {
            server: "s".into(),
            tool: "find \"it\"".into(),
            is_checked: true,
            ..Binding::default()
        };
        let (library, text) = bound(&binding);
        let operation = library.get("research.market").unwrap();
        assert_eq!((operation.kind, operation.description.as_deref()), (Kind::Tool, Some("who: why")));
        assert_eq!(
            operation.field("schema").unwrap().to_json(),
            json!({"type": "object", "required": ["a"]})
        );
        assert_eq!(operation.field("filter").unwrap().to_json(), json!({"top": 5}));
        assert!(operation.field("cache").is_some() && operation.field("role").is_none());
        let params = operation.field("params").unwrap().to_json();
        assert_eq!((&params["tool"], &params["depth"]), (&json!("find \"it\""), &Value::Null));
        assert_eq!(params["arguments"], default_arguments());
        // Bound once more, it is the same.
        assert_eq!(binding.text(Some(operation)), text);
    }

    // covers: R24
    #[test]
    fn a_binding_has_the_last_word() {
        let arguments = json!({"depth": 2, "about": "{{ title }}: all"}).as_object().cloned();
        let binding = Binding {
            server: "s".into(),
            tool: "t".into(),
            arguments: arguments.clone(),
            on_unknown: Some("retry".into()),
            is_checked: false,
        };
        let (library, _) = bound(&binding);
        let operation = library.get("research.market").unwrap();
        assert!(operation.field("schema").is_none());
        assert_eq!(operation.field("onUnknown").unwrap().as_str(), Some("retry"));
        let params = operation.field("params").unwrap().to_json();
        assert_eq!(params["arguments"].as_object(), arguments.as_ref());
        assert_eq!(Library::default().add("own", &binding.text(None)), vec![], "a name that nobody knew");
    }
}
