//! Who an agent is, for those who keep its answers: its settings, and which program it is at the moment.
//!
//! No program is asked for its version: that costs a second, and nobody would wait for it. What changes with the
//! version does: the file behind the program's name, and the `package.json` above a script. Small files count by
//! content, large ones by size and time. Answers are kept on one machine, so times need not mean anything elsewhere.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sage_core::digest::Digest;
use sage_core::secret::looks_secret;
use serde_json::{Value, json};

use super::AgentConfig;

/// A larger file counts by its size and time.
const READ_BYTES: u64 = 4 << 20;
/// How far above a script its package is looked for.
const PACKAGE_LEVELS: usize = 6;

impl AgentConfig {
    /// Another text when anything about the agent that can change its answers is another.
    pub fn fingerprint(&self, sage: &Path, project: &Path) -> String {
        let mut facts = vec![self.settings()];
        if matches!(self.adapter.as_str(), "offline" | "fake") {
            facts.push(format!("sage {} {}", env!("CARGO_PKG_VERSION"), file(sage)));
        } else if let Some(program) = self.program(&self.adapter, project) {
            let real = program.canonicalize().unwrap_or(program);
            facts.push(format!("{} {}", real.display(), file(&real)));
            let folders = real.ancestors().skip(1).take(PACKAGE_LEVELS).map(|dir| dir.join("package.json"));
            facts.extend(folders.into_iter().find(|path| path.is_file()).map(|path| file(&path)));
        }
        // A script that an interpreter, or the fake agent, is given.
        let script = self.script.as_ref().and_then(Value::as_str).into_iter();
        let arguments = self.command.iter().skip(1).map(String::as_str);
        let scripts = arguments.chain(script).map(|argument| project.join(argument));
        facts.extend(scripts.filter(|path| path.is_file()).map(|path| file(&path)));
        facts.join("\n")
    }

    /// Without what is only a key: another one gives no other answers.
    fn settings(&self) -> String {
        let env: Vec<_> = self.env.iter().filter(|(name, _)| !looks_secret(name)).collect();
        let all = json!([
            self.adapter,
            self.command,
            env,
            self.model,
            self.max_turns,
            self.api,
            self.url,
            self.mcp_servers,
            self.mcp,
            self.script
        ]);
        Digest::of_json(&all).short()
    }
}

fn file(path: &Path) -> String {
    let Ok(meta) = path.metadata() else { return "none".into() };
    let read = (meta.len() <= READ_BYTES).then(|| std::fs::read(path).ok()).flatten();
    match read {
        Some(bytes) => Digest::of(&bytes).short(),
        None => format!("{} bytes of {}.{}", meta.len(), meta.mtime(), meta.mtime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    // covers: R11
    #[test]
    fn another_program_or_other_settings_are_another_agent() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(&program, "one");
        write(&dir.path().join("package.json"), "{\"version\": 1}");
        write(&dir.path().join("script.py"), "one");
        let mut config = AgentConfig {
            adapter: "command".into(),
            command: vec!["./agent".into(), "script.py".into()],
            ..AgentConfig::default()
        };
        let now = |config: &AgentConfig| config.fingerprint(&program, dir.path());
        let mut seen = vec![now(&config)];
        assert_eq!(now(&config), seen[0]);
        write(&program, "two");
        seen.push(now(&config));
        write(&dir.path().join("script.py"), "two");
        seen.push(now(&config));
        write(&dir.path().join("package.json"), "{\"version\": 2}");
        seen.push(now(&config));
        config.model = Some("m".into());
        seen.push(now(&config));
        config.env.insert("MODE".into(), "fast".into());
        seen.push(now(&config));
        let last = seen.last().cloned().unwrap();
        config.env.insert("API_KEY".into(), "k".into());
        assert_eq!(now(&config), last, "a key changes nothing");
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all);
        let offline = AgentConfig::built_in("offline").unwrap();
        let before = now(&offline);
        write(&program, "three");
        assert_ne!(now(&offline), before, "another sage");
    }
}
