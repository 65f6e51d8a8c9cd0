//! The project's own settings, skills and agents for Claude Code: definitions that a step can switch on.
//!
//! What counts is all that is in the files, and the programs of the project that hooks start.

use std::collections::BTreeMap;
use std::path::Path;

use sage_agents::agent::ProjectPart;
use sage_core::digest::Digest;
use serde_json::{Value, json};

use super::Definition;
use super::launcher::Started;

const FOLDER: &str = ".claude";
/// Files and folders of each part.
const SETTINGS: [&str; 5] = ["settings.json", "settings.local.json", "commands", "hooks", "output-styles"];
/// A folder with more is no configuration: it is not read, and cannot be trusted.
const MOST_FILES: usize = 2_000;
const MAX_BYTES: u64 = 16 << 20;

/// The definition of a part; `None` if the project has nothing of it.
pub fn definition(root: &Path, part: ProjectPart) -> Option<Definition> {
    let mut files = BTreeMap::new();
    let places: &[&str] = match part {
        ProjectPart::Settings => &SETTINGS,
        ProjectPart::Skills => &["skills"],
        ProjectPart::Agents => &["agents"],
    };
    for place in places {
        collect(root, &root.join(FOLDER).join(place), &mut files);
    }
    if files.is_empty() {
        return None;
    }
    let hooks = if part == ProjectPart::Settings { hooks(root) } else { Vec::new() };
    let started = hooks.iter().cloned().fold(Started::default(), Started::command).files(root);
    let name = format!("claude.{}", part.name());
    Some(Definition::of_files(&name, FOLDER, does(part, &files, &hooks), &json!([files, started])))
}

/// What is missing for a step that wants these parts.
pub fn untrusted(root: &Path, trust: &super::Trust, parts: &[ProjectPart]) -> Vec<Definition> {
    let wanted = parts.iter().filter_map(|part| definition(root, *part));
    wanted.filter(|definition| !trust.holds(definition)).collect()
}

fn does(part: ProjectPart, files: &BTreeMap<String, Digest>, hooks: &[Vec<String>]) -> String {
    let count = files.len();
    let what = match part {
        ProjectPart::Settings => "sets permissions and variables of Claude Code",
        ProjectPart::Skills => "gives skills to Claude Code",
        ProjectPart::Agents => "gives agents to Claude Code",
    };
    let runs: Vec<String> = hooks.iter().map(|words| words.join(" ")).collect();
    let runs = if runs.is_empty() { String::new() } else { format!(", runs {}", runs.join("; ")) };
    format!("{what} ({count} {}){runs}", if count == 1 { "file" } else { "files" })
}

/// Content by path; a link counts by what it leads to, if that is in the project.
fn collect(root: &Path, path: &Path, files: &mut BTreeMap<String, Digest>) {
    if files.len() >= MOST_FILES {
        return;
    }
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if path.is_dir() {
        let mut entries: Vec<_> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| collect(root, entry, files));
        return;
    }
    let inside = path.strip_prefix(root).ok().map(Path::to_path_buf);
    let content = inside.and_then(|inside| sage_fence::Fence::new(root).read(&inside, MAX_BYTES).ok());
    if let Some(content) = content {
        files.insert(shown, Digest::of(&content));
    } else if path.exists() {
        // Whatever cannot be read is another one each time: it is never trusted.
        files.insert(shown, Digest::of(format!("{:?}", std::time::SystemTime::now()).as_bytes()));
    }
}

/// Commands that hooks of the settings run, word by word.
fn hooks(root: &Path) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for file in ["settings.json", "settings.local.json"] {
        let path = Path::new(FOLDER).join(file);
        let text = sage_fence::Fence::new(root).read(&path, MAX_BYTES).unwrap_or_default();
        let settings: Value = serde_json::from_slice(&text).unwrap_or_default();
        commands(&settings["hooks"], &mut found);
    }
    found
}

fn commands(value: &Value, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(fields) => {
            let command = fields.get("command").and_then(Value::as_str);
            found.extend(command.map(|line| line.split_whitespace().map(str::to_string).collect()));
            fields.values().for_each(|value| commands(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn a_change_in_any_file_or_hook_is_another_definition() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(definition(root, ProjectPart::Settings), None);
        std::fs::create_dir_all(root.join(".claude/skills/deploy")).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).unwrap();
        write("hook.sh", "1");
        write(".claude/settings.json", r#"{"hooks": {"Stop": [{"hooks": [{"command": "./hook.sh now"}]}]}}"#);
        write(".claude/skills/deploy/SKILL.md", "1");
        let digest = |part| definition(root, part).unwrap().digest;
        let settings = definition(root, ProjectPart::Settings).unwrap();
        assert_eq!(settings.name, "claude.settings");
        assert!(settings.does[0].ends_with("(1 file), runs ./hook.sh now"), "{:?}", settings.does);
        let skills = digest(ProjectPart::Skills);
        write("hook.sh", "2");
        assert_ne!(digest(ProjectPart::Settings), settings.digest);
        assert_eq!(digest(ProjectPart::Skills), skills);
        write(".claude/skills/deploy/more.md", "1");
        assert_ne!(digest(ProjectPart::Skills), skills);
        assert_eq!(definition(root, ProjectPart::Agents), None);
    }
}
