//! The one argument of a tool call that tells a person what it is about.

use std::path::Path;

use sage_core::shell::{self, Body};
use sage_core::text::cut;
use serde_json::Value;

/// More does not fit in a line.
const ARGUMENT_CHARS: usize = 300;
/// The most telling first; agents use different names for the same thing.
const NAMES: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "name",
];
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// In one line; paths below `root` are relative to it. Input without any text is shown as JSON.
pub fn main_argument(input: &Value, root: &Path) -> String {
    let text = match input {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(words) => joined(words).unwrap_or_else(|| input.to_string()),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(fields) => {
            let named = NAMES.iter().find_map(|name| fields.get(*name).and_then(text_of));
            let any = || fields.values().find_map(text_of);
            named.or_else(any).unwrap_or_else(|| input.to_string())
        }
        other => other.to_string(),
    };
    let text = inner_command(&text).unwrap_or(text);
    let text = relative(text.trim(), root).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&text, ARGUMENT_CHARS)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(words) if !words.is_empty() => joined(words),
        _ => None,
    }
}

fn joined(words: &[Value]) -> Option<String> {
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    words.map(|words| words.join(" "))
}

/// `/bin/bash -lc 'cargo test'` is `cargo test`.
fn inner_command(text: &str) -> Option<String> {
    let list = shell::parse(text).ok()?;
    let [(_, pipeline)] = list.0.as_slice() else { return None };
    let [command] = pipeline.0.as_slice() else { return None };
    let Body::Simple { variables, words } = &command.body else { return None };
    let [program, flags, script] = words.as_slice() else { return None };
    let literal = |word: &shell::Word| word.is_literal().then(|| word.text.clone());
    let (program, flags) = (literal(program)?, literal(flags)?);
    let is_shell = SHELLS.contains(&program.rsplit('/').next()?);
    let plain = variables.is_empty() && command.redirects.is_empty();
    if is_shell && plain && matches!(flags.as_str(), "-c" | "-lc") { literal(script) } else { None }
}

fn relative<'a>(text: &'a str, root: &Path) -> std::borrow::Cow<'a, str> {
    match root.to_str().filter(|root| root.len() > 1) {
        Some(root) => text.replace(&format!("{root}/"), "").into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R8
    #[test]
    fn the_argument_that_matters_is_shown() {
        let root = Path::new("/p/shop");
        let of = |input: Value| main_argument(&input, root);
        assert_eq!(
            of(json!({"description": "run tests", "command": "cargo test\n  --all"})),
            "cargo test --all"
        );
        assert_eq!(of(json!({"file_path": "/p/shop/src/x.rs", "old_string": "a"})), "src/x.rs");
        assert_eq!(of(json!({"command": "cd /p/shop/sub && ls /p/shopping"})), "cd sub && ls /p/shopping");
        assert_eq!(of(json!("/bin/bash -lc 'echo x > y.txt'")), "echo x > y.txt");
        assert_eq!(of(json!("bash -c 'a' && b")), "bash -c 'a' && b");
        assert_eq!(of(json!(["git", "status"])), "git status");
        assert_eq!(of(json!({"command": ["bash", "-lc", "ls"]})), "ls");
        assert_eq!(of(json!({"todos": [{"a": 1}]})), r#"{"todos":[{"a":1}]}"#);
        assert_eq!(of(json!({})) + &of(Value::Null), "");
        assert!(of(json!("x".repeat(1_000))).ends_with('…'));
    }
}
