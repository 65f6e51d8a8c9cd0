//! Where Claude Code keeps its own things: conversations, the login.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tab::Counted;
use crate::agent::AgentConfig;

/// A line that is longer holds a file or the output of a tool, and tells no usage.
const LINE_BYTES: u64 = 16 << 20;

/// `None` if nobody knows where the user is at home.
pub fn home(config: &AgentConfig) -> Option<PathBuf> {
    let own = config.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(config.variable("HOME")?).join(".claude")))
}

/// A conversation is a file in the folder of the project where it began; it can go on from anywhere.
pub fn knows(config: &AgentConfig, conversation: &str) -> bool {
    let Some(projects) = projects(config) else { return true };
    let name = format!("{conversation}.jsonl");
    projects.iter().any(|project| {
        let file = project.join(&name).metadata();
        file.is_ok_and(|file| file.is_file() && file.len() > 0)
    })
}

/// The files of a conversation's subagents, as they grow. Their own answers are told without what they used.
#[derive(Debug)]
pub struct Subagents {
    projects: Option<PathBuf>,
    conversation: String,
    since: String,
    /// How far each file was read.
    read: BTreeMap<PathBuf, u64>,
}

impl Subagents {
    pub fn of(config: &AgentConfig, conversation: &str, since_ms: u64) -> Subagents {
        Subagents {
            projects: home(config).map(|home| home.join("projects")),
            conversation: conversation.to_string(),
            since: sage_core::wire::rfc3339(since_ms),
            read: BTreeMap::new(),
        }
    }

    /// What is new in them.
    pub fn news(&mut self) -> Vec<Counted> {
        let mut found = Vec::new();
        let folders = self.projects.iter().flat_map(|projects| entries(projects));
        for file in folders.flat_map(|folder| entries(&folder.join(&self.conversation).join("subagents"))) {
            let at = self.read.entry(file.clone()).or_default();
            *at += read(&file, *at, &mut |line| {
                if line["type"] == "assistant" && line["timestamp"].as_str() >= Some(self.since.as_str()) {
                    found.push(Counted::of(&line["message"]));
                }
            });
        }
        found
    }
}

/// What the responses used that the conversation's own files tell of, in a time from `since_ms` on (before
/// `until_ms`, if there is an end), with those of subagents.
pub fn recorded(
    config: &AgentConfig,
    conversation: &str,
    since_ms: u64,
    until_ms: Option<u64>,
) -> Vec<Counted> {
    let time = sage_core::wire::rfc3339;
    let (since, until) = (time(since_ms), until_ms.map(time));
    let mut found = Vec::new();
    for project in projects(config).unwrap_or_default() {
        let own = project.join(format!("{conversation}.jsonl"));
        let subagents = entries(&project.join(conversation).join("subagents"));
        for file in std::iter::once(own).chain(subagents) {
            read(&file, 0, &mut |line| {
                let at = line["timestamp"].as_str().unwrap_or_default();
                let within = at >= since.as_str() && until.as_deref().is_none_or(|until| at < until);
                if within && line["type"] == "assistant" {
                    found.push(Counted::of(&line["message"]));
                }
            });
        }
    }
    found
}

fn projects(config: &AgentConfig) -> Option<Vec<PathBuf>> {
    Some(entries(&home(config)?.join("projects")))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Reads whole lines from a place on, and tells how many bytes those were. A file that cannot be read, or a line that is
/// not understood, tells nothing.
fn read(path: &Path, from: u64, take: &mut dyn FnMut(&Value)) -> u64 {
    let Ok(mut file) = File::open(path).map(BufReader::new) else { return 0 };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return 0;
    }
    let (mut line, mut bytes) = (Vec::new(), 0);
    while let Ok(length @ 1..) = (&mut file).take(LINE_BYTES).read_until(b'\n', &mut line) {
        if let Ok(value) = serde_json::from_slice(&line) {
            take(&value);
        } else if !line.ends_with(b"\n") && (length as u64) < LINE_BYTES {
            // Not whole yet.
            break;
        }
        bytes += length as u64;
        line.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: S3
    #[test]
    fn a_conversation_is_known_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = AgentConfig::default();
        config.env.insert("CLAUDE_CONFIG_DIR".into(), String::new());
        config.env.insert("HOME".into(), dir.path().to_str().unwrap().into());
        assert!(!knows(&config, "abc"));
        let folder = dir.path().join(".claude/projects/-x-y");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("empty.jsonl"), "").unwrap();
        std::fs::write(folder.join("abc.jsonl"), "{}\n").unwrap();
        assert!(knows(&config, "abc") && !knows(&config, "abd") && !knows(&config, "empty"));
        config.env.insert("CLAUDE_CONFIG_DIR".into(), dir.path().join("other").to_str().unwrap().into());
        assert!(!knows(&config, "abc"));
    }

    // covers: R18, S3
    #[test]
    fn what_a_turn_used_is_in_its_own_files_and_those_of_its_subagents() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = AgentConfig::default();
        config.env.insert("CLAUDE_CONFIG_DIR".into(), dir.path().to_str().unwrap().into());
        let folder = dir.path().join("projects/-x-y");
        std::fs::create_dir_all(folder.join("abc/subagents")).unwrap();
        let said = |ms: u64, id: &str| {
            let message = json!({"id": id, "model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}});
            json!({"type": "assistant", "timestamp": sage_core::wire::rfc3339(ms), "message": message})
                .to_string()
        };
        let lines =
            [said(999, "before"), said(1_000, "a"), "{\"torn".into(), said(1_500, "b"), said(2_000, "c")];
        std::fs::write(folder.join("abc.jsonl"), lines.join("\n")).unwrap();
        std::fs::write(folder.join("abc/subagents/agent-1.jsonl"), said(1_200, "sub")).unwrap();
        std::fs::write(folder.join("other.jsonl"), said(1_200, "other")).unwrap();
        let ids = |until| -> Vec<String> {
            recorded(&config, "abc", 1_000, until).into_iter().filter_map(|counted| counted.id).collect()
        };
        assert_eq!(ids(None), ["a", "b", "c", "sub"]);
        assert_eq!(ids(Some(2_000)), ["a", "b", "sub"]);
        let mut subagents = Subagents::of(&config, "abc", 1_000);
        let mut news =
            || -> Vec<String> { subagents.news().into_iter().filter_map(|counted| counted.id).collect() };
        assert_eq!((news(), news()), (vec!["sub".to_string()], vec![]));
        let more = format!("\n{}\n{}", said(1_300, "more"), &said(1_400, "torn")[..20]);
        let file = folder.join("abc/subagents/agent-1.jsonl");
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &more).unwrap();
        assert_eq!((news(), news()), (vec!["more".to_string()], vec![]));
    }
}
