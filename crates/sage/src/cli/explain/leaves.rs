//! What exactly changed between two attempts of a step: the values that they were given, leaf by leaf.
//!
//! The journal has only hashes of what determines a result. The values are in the files that attempts leave in
//! their directories; where one is gone, the name of the part has to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sage_core::diagnostic::printable;
use sage_core::digest::Digest;
use sage_core::key::KeyParts;
use sage_engine::project::Project;
use serde::Serialize;
use serde_json::Value;

/// Larger files say too much.
const MAX_BYTES: u64 = 32 << 20;
/// Characters of a value around the place where it changed.
const SHOWN: usize = 48;
const BEFORE_CHANGE: usize = 16;

/// A value that is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub path: String,
    /// Absent before.
    pub before: Option<String>,
    /// Absent now.
    pub now: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".into());
        write!(f, "{}: {} -> {}", self.path, text(&self.before), text(&self.now))
    }
}

/// What an attempt was given, if a file is left of it. `again`: a later attempt of an edited run had the same number.
/// The parts that the journal has tell whether a file is the one.
pub fn given(
    run_dir: &Path,
    step: &str,
    attempt: u32,
    again: bool,
    parts: &BTreeMap<String, String>,
) -> Option<Value> {
    let dir = Project::scratch(run_dir, step, attempt);
    let mut names = ["input.json", "input.before.json"];
    if again {
        names.reverse();
    }
    names.iter().filter_map(|name| read(&dir.join(name))).find(|value| fits(value, parts))
}

fn read(path: &Path) -> Option<Value> {
    let small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES);
    small.then(|| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).flatten()
}

/// Whether these are the values that the key was made of.
fn fits(given: &Value, parts: &BTreeMap<String, String>) -> bool {
    let Value::Object(params) = &given["params"] else { return false };
    let mut made = KeyParts::default();
    made.rendered(params);
    let mut made = made.shortened();
    made.insert("inputs".into(), Digest::of_json(&given["inputs"]).short());
    for (step, shown) in given["steps"].as_object().into_iter().flatten() {
        made.insert(format!("result of {step}"), Digest::of_json(&shown["result"]).short());
    }
    parts.iter().all(|(name, digest)| made.get(name).is_none_or(|own| own == digest))
}

/// The leaves of a part of the key (`params`, `inputs`, `result of a/b`) that differ.
pub fn of_part(part: &str, before: &Value, now: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    match part {
        "params" => {
            let rest = |value: &Value| {
                let mut rest = value["params"].clone();
                rest.as_object_mut().map(|params| params.shift_remove("prompt"));
                rest
            };
            differ("params", &rest(before), &rest(now), &mut found);
        }
        "prompt" => differ("prompt", &before["params"]["prompt"], &now["params"]["prompt"], &mut found),
        "inputs" | "item" => differ(part, &before[part], &now[part], &mut found),
        _ => {
            let one = part.strip_prefix("result of ");
            let phase = part.strip_prefix("results of phase ").map(|phase| format!("{phase}/"));
            for step in steps(before).union(&steps(now)) {
                let wanted =
                    one == Some(without_index(step)) || phase.as_ref().is_some_and(|it| step.starts_with(it));
                if wanted {
                    let result = |value: &Value| value["steps"][step]["result"].clone();
                    differ(&format!("steps[\"{step}\"].result"), &result(before), &result(now), &mut found);
                }
            }
        }
    }
    found
}

fn steps(value: &Value) -> BTreeSet<String> {
    value["steps"].as_object().into_iter().flat_map(|steps| steps.keys().cloned()).collect()
}

/// Round 2 of `a/b` is `a@2/b`, and means the same here.
fn without_index(step: &str) -> &str {
    step.split_once('[').map_or(step, |(path, _)| path)
}

fn differ(path: &str, before: &Value, now: &Value, found: &mut Vec<Change>) {
    match (before, now) {
        _ if before == now => {}
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let value =
                    |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                differ(&format!("{path}.{name}"), &value(old), &value(new), found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differ(&format!("{path}[{index}]"), old, new, found);
            }
        }
        _ => {
            let (before, now) = shortened(&text(before), &text(now));
            found.push(Change { path: printable(path), before, now });
        }
    }
}

/// As people write it; `None` for nothing.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Around the first character that differs, on one line and without anything that a terminal obeys.
fn shortened(before: &Option<String>, now: &Option<String>) -> (Option<String>, Option<String>) {
    let (old, new) = (before.as_deref().unwrap_or_default(), now.as_deref().unwrap_or_default());
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let longest = old.chars().count().max(new.chars().count());
    let from = if longest <= SHOWN { 0 } else { same.saturating_sub(BEFORE_CHANGE) };
    let cut = |text: &String| {
        let piece: String = text.chars().skip(from).take(SHOWN).collect();
        let (start, end) = (if from > 0 { "…" } else { "" }, from + SHOWN < text.chars().count());
        format!("\"{start}{}{}\"", printable(&piece), if end { "…" } else { "" })
    };
    (before.as_ref().map(cut), now.as_ref().map(cut))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(part: &str, before: Value, now: Value) -> Vec<String> {
        of_part(part, &before, &now).iter().map(ToString::to_string).collect()
    }

    // covers: R5
    #[test]
    fn the_leaf_that_changed_is_named_with_both_values() {
        let before = json!({"params": {"run": "echo one", "env": {"A": "1"}, "prompt": "hi"}, "inputs": {"v": 1},
            "item": {"name": "a"}, "steps": {"p/x": {"result": {"stdout": "1\n"}}, "q/y": {"result": [1, 2]}}});
        let now = json!({"params": {"run": "echo two", "env": {"A": "1", "B": "2"}, "prompt": "ho"}, "inputs": {"v": 2},
            "item": {"name": "b"}, "steps": {"p/x": {"result": {"stdout": "2\n"}}, "q/y": {"result": [1, 3]}}});
        let of = |part: &str| told(part, before.clone(), now.clone());
        assert_eq!(
            of("params"),
            ["params.env.B: (none) -> \"2\"", "params.run: \"echo one\" -> \"echo two\""]
        );
        assert_eq!(of("prompt"), ["prompt: \"hi\" -> \"ho\""]);
        assert_eq!(of("inputs"), ["inputs.v: \"1\" -> \"2\""]);
        assert_eq!(of("item"), ["item.name: \"a\" -> \"b\""]);
        assert_eq!(of("result of q/y"), ["steps[\"q/y\"].result[1]: \"2\" -> \"3\""]);
        assert_eq!(of("results of phase p").len(), 1);
        assert!(of("agent").is_empty());
    }

    // covers: R5, R17
    #[test]
    fn long_values_are_cut_around_the_change_and_cleaned() {
        let long = |word: &str| format!("{} {word} \x1b[31m{}", "a".repeat(100), "z".repeat(100));
        let of = |word: &str| json!({"params": {"run": long(word)}});
        let told = told("params", of("one"), of("two"));
        assert!(told[0].contains("…aaa") && told[0].contains("one") && told[0].contains("two"), "{told:?}");
        assert!(!told[0].contains('\x1b') && told[0].chars().count() < 160, "{told:?}");
    }
}
