//! What has changed between two definitions of a tool, in a line or two.

use serde_json::{Map, Value};

use crate::outcome::excerpt;

/// Parameters that are named one by one.
const NAMED: usize = 5;

pub fn difference(old: &Value, new: &Value) -> String {
    let mut told = Vec::new();
    if old["description"] != new["description"] {
        let (old, new) = (text(&old["description"]), text(&new["description"]));
        let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
        // From shortly before where they part: the beginning is often the same.
        let from = same.saturating_sub(20);
        let part = |text: &str| excerpt(&text.chars().skip(from).collect::<String>());
        told.push(format!("its description was `{}`, is `{}`", part(old), part(new)));
    }
    for (name, words) in [("inputSchema", "takes"), ("outputSchema", "gives")] {
        if old[name] != new[name] {
            told.push(format!("what it {words} has changed{}", parameters(&old[name], &new[name])));
        }
    }
    let hints = changed(&old["hints"], &new["hints"]);
    if !hints.is_empty() {
        let hints: Vec<String> = hints.iter().map(|name| format!("{name}: {}", new["hints"][name])).collect();
        told.push(format!("it now says of itself {}", hints.join(", ")));
    }
    told.join("; ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// ` (new: path; gone: file; other: mode)`
fn parameters(old: &Value, new: &Value) -> String {
    let (old, new) = (&old["properties"], &new["properties"]);
    let (mut added, mut gone, mut other) = (Vec::new(), Vec::new(), Vec::new());
    for name in changed(old, new) {
        match (old.get(&name).is_some(), new.get(&name).is_some()) {
            (false, _) => added.push(name),
            (true, false) => gone.push(name),
            (true, true) => other.push(name),
        }
    }
    let kinds = [("new", added), ("gone", gone), ("other", other)].into_iter();
    let told: Vec<String> = kinds
        .filter(|(_, names)| !names.is_empty())
        .map(|(kind, names)| format!("{kind}: {}", names[..names.len().min(NAMED)].join(", ")))
        .collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
}

/// Names whose values differ.
fn changed(old: &Value, new: &Value) -> Vec<String> {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let mut names: Vec<String> =
        old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R24
    #[test]
    fn changes_are_told_in_a_line() {
        let old = json!({
            "description": "Reads a file of the project. Nothing else.",
            "inputSchema": {"properties": {"path": {"type": "string"}, "n": {"type": "number"}}},
            "outputSchema": null,
            "hints": {"readOnly": true, "openWorld": false},
        });
        assert_eq!(difference(&old, &old), "");
        let mut new = old.clone();
        new["description"] = "Reads a file of the project. And sends it.".into();
        new["inputSchema"]["properties"] = json!({"path": {"type": "number"}, "to": {}});
        new["hints"]["readOnly"] = false.into();
        assert_eq!(
            difference(&old, &new),
            "its description was `ile of the project. Nothing else.`, is `ile of the project. And sends it.`; \
             what it takes has changed (new: to; gone: n; other: path); it now says of itself readOnly: false"
        );
    }
}
