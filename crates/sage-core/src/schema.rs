//! The JSON Schema of templates, for editors and other programs. Written by hand; tests keep it in step
//! with what the reader knows.

/// JSON Schema 2020-12.
pub const TEMPLATE_SCHEMA: &str = include_str!("schema.json");

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::{FailureClass, FallbackOn};
    use crate::read::tests::DESIGN_EXAMPLE;
    use crate::read::{self, FIELD_LISTS};
    use crate::role::Role;
    use crate::source::{Format, parse};
    use crate::template::Kind;

    fn schema() -> Value {
        serde_json::from_str(TEMPLATE_SCHEMA).unwrap()
    }

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort();
        names
    }

    fn keys(object: &Value) -> Vec<String> {
        sorted(object.as_object().unwrap_or_else(|| panic!("{object}")).keys().cloned().collect())
    }

    // covers: R6
    #[test]
    fn the_schema_knows_exactly_the_fields_that_the_reader_knows() {
        let schema = schema();
        for (pointer, names) in FIELD_LISTS {
            let properties = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
            let names = sorted(names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(keys(properties), names, "{pointer}");
        }
        for kind in Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Script | Kind::Verify)) {
            let pointer = format!("/$defs/{}/properties", kind.name());
            let names = sorted(read::param_names(kind).iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(keys(schema.pointer(&pointer).unwrap()), names, "{pointer}");
        }
        let classes: Vec<&str> = FailureClass::ALL.into_iter().map(FailureClass::name).collect();
        let on = schema.pointer("/$defs/retry/oneOf/2/properties/on/items/enum").unwrap();
        assert_eq!(*on, json!(classes));
        let occasions = FallbackOn::ALL.map(FallbackOn::name);
        let on = schema.pointer("/$defs/fallback/oneOf/2/properties/on/items/enum").unwrap();
        assert_eq!(*on, json!(occasions));
        let target = schema.pointer("/$defs/target/pattern").unwrap().as_str().unwrap();
        assert!(target.contains(&read::TARGET_KINDS.join("|")), "{target}");
        let mut roles: Vec<Value> = Role::ALL.map(|role| json!(role.name())).to_vec();
        roles.push(Value::Null);
        assert_eq!(schema.pointer("/$defs/operation/properties/role/enum"), Some(&Value::Array(roles)));
        let described =
            schema.pointer("/$defs/operation/properties/type/description").unwrap().as_str().unwrap();
        assert!(Kind::ALL.into_iter().all(|kind| described.contains(kind.name())), "{described}");
    }

    #[test]
    fn every_reference_of_the_schema_leads_somewhere() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let (schema, mut found) = (schema(), Vec::new());
        references(&schema, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            assert!(schema.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    }

    fn problems(text: &str) -> Vec<String> {
        let (node, problems) = parse(text, Format::Yaml);
        assert!(problems.is_empty(), "{problems:?}");
        let validator = jsonschema::draft202012::new(&schema()).unwrap();
        let value = node.unwrap().to_json();
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    // covers: R6
    #[test]
    fn the_example_of_the_design_fits_the_schema() {
        assert_eq!(problems(DESIGN_EXAMPLE), [""; 0]);
        let full = "
name: full
inputs: {depth: 3, level: {type: integer, default: 1, enum: [1, 2]}, who: {required: true, description: x}, raw: {a: 1}}
phases:
  - id: a
    join: any
    repeat: {from: a, while: false, max: 2}
    operations:
      - {id: s, type: shell, params: {argv: [echo, 1], env: {A: 1}, cwd: x, json: true}, retry: 3, priority: P1}
      - {type: sleep, params: {for: 2s}, when: true, onUnknown: {reconcile: x}, timeout: 5s}
      - {type: approval, params: {message: ok, choices: [a, b], deadline: 1h, default: a}}
      - {type: workflow, params: {template: x, inputs: {}}, foreach: '[1]', tolerate: 0.5, maxParallel: 2}
      - {type: tool, params: {server: s, tool: t, arguments: {a: '{{ feature }}', b: 1}}}
      - {type: synthesize, params: {from: [a/s, sleep], threshold: 0.6}}
      - {type: agent, prompt: hi, retry: {attempts: 2, on: [timeout]}, filter: .x, schema: {type: object}}
";
        assert_eq!(problems(full), [""; 0]);
    }

    fn operation(field: &str) -> Vec<String> {
        problems(&format!("name: x\nphases: [{{id: a, operations: [{{type: agent, prompt: p, {field}}}]}}]"))
    }

    /// What the reader takes and refuses (`read::tests::limits`), seen by an editor.
    // covers: R6, R7
    #[test]
    fn limits_fit_the_schema() {
        for field in [
            "retry: {jitter: full}",
            "retry: {jitter: true}",
            "timeout: 5m",
            "timeout: {attempt: 5m, step: 1h, idle: 30s, queue: 1d}",
            "pool: gpu",
            "pool: {gpu: 2, a.b: 10000}",
            "target: host:api.example.com",
            "target: [model:m, command:make]",
            "fallback: cache",
            "fallback: [codex, {model: m}, {agent: a, model: m}, cache, {value: null}]",
            "fallback: {to: codex, on: [quota]}",
            "fallback: {to: [cache, {value: [1]}], on: breaker}",
            "hedge: 30s",
            "hedge: {after: 500ms, max: 5}",
            "stall: false",
            "stall: 10m",
            "stall: {after: 1m, nudges: 0, restarts: 10, then: fail}",
            "budget: 5usd+200k",
            "budget: 5",
            "budget: {tokens: 200k, usd: 0.5}",
            "budget: {tokens: 5}",
            "role: auditor, session: 's-{{ feature }}', isolation: worktree",
        ] {
            assert_eq!(operation(field), [""; 0], "{field}");
        }
        let whole = "name: x\nbudget: 5usd\nonBudget: fail\nretryBudget: 0.5\npriority: P2\nphases: [{id: a, budget: 200k, join: {atLeast: 1, cancel: true}, operations: {type: sleep}}]";
        assert_eq!(problems(whole), [""; 0]);
    }

    // covers: R6, R7
    #[test]
    fn limits_that_are_wrong_do_not_fit_the_schema() {
        for field in [
            "retry: {jitter: some}",
            "timeout: {each: 5m}",
            "timeout: [5m]",
            "timeout: 5",
            "hedge: 500",
            "pool: {}",
            "pool: global",
            "pool: a b",
            "pool: {gpu: 0}",
            "pool: {gpu: 10001}",
            "target: api.example.com",
            "target: 'hosts:x'",
            "target: 'host:a b'",
            "target: 'host:'",
            "fallback: []",
            "fallback: {}",
            "fallback: {value: 1, agent: a}",
            "fallback: {on: [quota]}",
            "fallback: {to: cache, on: [never]}",
            "hedge: {max: 2}",
            "hedge: {after: 1s, max: 6}",
            "hedge: true",
            "stall: true",
            "stall: {nudges: 11}",
            "stall: {then: shrug}",
            "budget: {}",
            "budget: 0",
            "budget: 1.5",
            "budget: [5usd]",
            "budget: {usd: 0}",
            "affinity: x",
            "role: audtor",
            "session: 7",
            "isolation: jail",
        ] {
            assert_ne!(operation(field), [""; 0], "{field}");
        }
        for text in ["retryBudget: 1.5", "onBudget: stop", "priority: P4", "budget: true"] {
            let text = format!("name: x\n{text}\nphases: [{{id: a, operations: {{type: sleep}}}}]");
            assert_ne!(problems(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_wrong_does_not_fit_the_schema() {
        for (text, place) in [
            ("name: x", ""),
            ("name: ''\nphases: [{id: a, operations: {type: sleep}}]", "/name"),
            ("name: x\nphases: []", "/phases"),
            ("name: x\nphases: [{id: A, operations: {type: sleep}}]", "/phases/0/id"),
            ("name: x\nphases: [{id: a, operations: []}]", "/phases/0/operations"),
            ("name: x\nphases: [{id: a, join: {atLeast: 0}, operations: {type: sleep}}]", "/phases/0/join"),
            (
                "name: x\nphases: [{id: a, operations: [{type: shell, params: {cmd: x}}]}]",
                "/phases/0/operations",
            ),
        ] {
            let found = problems(text);
            assert!(found.iter().any(|line| line.starts_with(&format!("{place}:"))), "{text}: {found:?}");
        }
    }
}
