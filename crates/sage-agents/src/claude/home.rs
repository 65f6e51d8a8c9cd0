//! Where Claude Code keeps its own things: conversations, the login.

use std::path::PathBuf;

use crate::agent::AgentConfig;

/// `None` if nobody knows where the user is at home.
pub fn home(config: &AgentConfig) -> Option<PathBuf> {
    let own = config.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(config.variable("HOME")?).join(".claude")))
}

/// A conversation is a file in the folder of the project where it began; it can go on from anywhere.
pub fn knows(config: &AgentConfig, conversation: &str) -> bool {
    let Some(home) = home(config) else { return true };
    let name = format!("{conversation}.jsonl");
    let projects = std::fs::read_dir(home.join("projects")).into_iter().flatten();
    projects.flatten().any(|project| {
        let file = project.path().join(&name).metadata();
        file.is_ok_and(|file| file.is_file() && file.len() > 0)
    })
}

#[cfg(test)]
mod tests {
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
}
