//! One of Claude Code's own agents: those of the project are given by value, because a run does not load the
//! project's settings.

use std::path::Path;

use sage_fence::Fence;
use serde_json::{Map, Value, json};

/// More is no description of an agent.
const MAX_BYTES: u64 = 1 << 20;

/// The value of `--agents`, if the project has an agent of this name.
pub(super) fn of_project(name: &str, project: &Path) -> Option<String> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let path = Path::new(".claude/agents").join(format!("{name}.md"));
    let bytes = Fence::new(project).read(&path, MAX_BYTES).ok().filter(|_| plain)?;
    let text = String::from_utf8(bytes).ok()?;
    let (fields, prompt) = read(&text);
    let mut agent = Map::from_iter([("prompt".to_string(), Value::from(prompt))]);
    for (key, value) in fields {
        match key {
            "description" | "model" => drop(agent.insert(key.into(), value.into())),
            "tools" | "disallowedTools" => {
                let names: Vec<&str> =
                    value.split([',', ' ', '[', ']']).filter(|name| !name.is_empty()).collect();
                agent.insert(key.into(), names.into());
            }
            _ => {}
        }
    }
    agent.entry("description").or_insert_with(|| name.into());
    Some(json!({name: agent}).to_string())
}

/// The plain lines of the front matter, and the body.
fn read(text: &str) -> (Vec<(&str, &str)>, &str) {
    let parts = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    let Some((front, body)) = parts else { return (Vec::new(), text.trim()) };
    let fields = front.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\''])));
    (fields.collect(), body.trim_start_matches('-').trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R16
    #[test]
    fn an_agent_of_the_project_is_given_by_value() {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join(".claude/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = "---\nname: critic\ndescription: \"Finds faults\"\ntools: Read, Grep\ncolor: red\n---\nBe strict.\n";
        std::fs::write(agents.join("critic.md"), text).unwrap();
        let given: Value = serde_json::from_str(&of_project("critic", dir.path()).unwrap()).unwrap();
        let agent = json!({"prompt": "Be strict.", "description": "Finds faults", "tools": ["Read", "Grep"]});
        assert_eq!(given, json!({"critic": agent}));
        assert_eq!(of_project("nobody", dir.path()), None);
        assert_eq!(of_project("../agents/critic", dir.path()), None);
    }
}
