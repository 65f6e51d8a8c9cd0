//! One of Claude Code's own agents: those of the project are given by value, because a run does not load the
//! project's settings.

use std::path::Path;

use sage_fence::Fence;
use serde_json::{Map, Value};

/// More is no description of an agent.
const MAX_BYTES: u64 = 1 << 20;

const FOLDER: &str = ".claude/agents";

/// Names of the project's agents.
pub(super) fn names(project: &Path) -> Vec<String> {
    let Ok(folder) = Fence::new(project).locate(Path::new(FOLDER)) else { return Vec::new() };
    let files = std::fs::read_dir(project.join(folder)).into_iter().flatten().flatten();
    let names =
        files.filter_map(|file| Some(file.path().with_extension("")).filter(|_| is_markdown(&file.path())));
    let mut names: Vec<String> =
        names.filter_map(|it| it.file_name()?.to_str().map(str::to_string)).collect();
    names.sort();
    names
}

/// Why an agent is none of those that Claude Code has; one of a plugin is `plugin:name`.
pub(super) fn unknown(wanted: &str, known: &[String]) -> Option<String> {
    let is = |name: &String| {
        let own = name.rsplit(':').next().unwrap_or_default();
        name.eq_ignore_ascii_case(wanted) || own.eq_ignore_ascii_case(wanted)
    };
    // Old versions do not say which they have.
    (!known.is_empty() && !known.iter().any(is))
        .then(|| format!("Claude Code has no agent `{wanted}` (`agentType`); it has {}", known.join(", ")))
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

/// An agent of the project as `--agents` takes it.
pub(super) fn of_project(name: &str, project: &Path) -> Option<Value> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let path = Path::new(FOLDER).join(format!("{name}.md"));
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
    Some(Value::Object(agent))
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
    use serde_json::json;

    use super::*;

    // covers: R16
    #[test]
    fn an_agent_that_is_not_there_is_told_with_those_that_are() {
        let known = ["Explore".to_string(), "tools:critic".to_string()];
        assert_eq!(
            (unknown("explore", &known), unknown("critic", &known), unknown("x", &[])),
            (None, None, None)
        );
        let why = unknown("nobody", &known).unwrap();
        assert_eq!(why, "Claude Code has no agent `nobody` (`agentType`); it has Explore, tools:critic");
    }

    // covers: R16
    #[test]
    fn an_agent_of_the_project_is_given_by_value() {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join(".claude/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = "---\nname: critic\ndescription: \"Finds faults\"\ntools: Read, Grep\ncolor: red\n---\nBe strict.\n";
        std::fs::write(agents.join("critic.md"), text).unwrap();
        let agent = json!({"prompt": "Be strict.", "description": "Finds faults", "tools": ["Read", "Grep"]});
        assert_eq!(of_project("critic", dir.path()), Some(agent));
        std::fs::write(agents.join("notes.txt"), "").unwrap();
        assert_eq!(names(dir.path()), ["critic"]);
        assert_eq!(names(&agents), [""; 0]);
        assert_eq!(of_project("nobody", dir.path()), None);
        assert_eq!(of_project("../agents/critic", dir.path()), None);
    }
}
