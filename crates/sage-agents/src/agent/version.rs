//! Versions of the agents' own programs that this Sage was tested with.
//!
//! Older ones lack flags and events that the adapters need: they are refused before a run. Newer ones are used.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::AgentConfig;
use crate::process::{Spec, ask};

/// For a program that is asked for its version before a run.
const PATIENCE: Duration = Duration::from_secs(3);
/// Folders above a program in which its package is looked for.
const PACKAGE_DEPTH: usize = 5;
const PACKAGE_BYTES: u64 = 1 << 20;

type Version = [u32; 3];

/// The newest version is the one of the tests. The oldest answers and uses tools; some of its errors are less precise.
#[derive(Debug)]
pub struct Tested {
    adapter: &'static str,
    program: &'static str,
    package: &'static str,
    /// In what the program says about its version, so that no other program is taken for it.
    label: &'static str,
    from: Version,
    to: Version,
}

const TESTED: &[Tested] = &[
    Tested {
        adapter: "claude",
        program: "claude",
        package: "@anthropic-ai/claude-code",
        label: "Claude Code",
        from: [2, 1, 200],
        to: [2, 1, 325],
    },
    Tested {
        adapter: "codex",
        program: "codex",
        package: "@openai/codex",
        label: "codex",
        from: [0, 160, 0],
        to: [0, 166, 0],
    },
    Tested {
        adapter: "acp",
        program: "gemini",
        package: "@google/gemini-cli",
        label: "",
        from: [0, 51, 0],
        to: [0, 61, 0],
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    TooOld,
    Tested,
    Newer,
}

impl Tested {
    /// `None` for agents whose program is another one, a script around it for instance.
    pub fn of(config: &AgentConfig) -> Option<&'static Tested> {
        let argv = config.argv(&config.adapter);
        let program = Path::new(argv.first()?).file_name()?;
        TESTED.iter().find(|tested| tested.adapter == config.adapter && program == tested.program)
    }

    /// `None` if it is no version.
    pub fn fit(&self, version: &str) -> Option<Fit> {
        let version = parsed(version)?;
        Some(match version {
            version if version < self.from => Fit::TooOld,
            version if version > self.to => Fit::Newer,
            _ => Fit::Tested,
        })
    }

    /// `2.1.0 to 2.1.325`
    pub fn range(&self) -> String {
        let text = |version: Version| version.map(|number| number.to_string()).join(".");
        format!("{} to {}", text(self.from), text(self.to))
    }

    /// What to type to get a version that fits.
    pub fn update(&self) -> String {
        format!("npm install -g {}@latest", self.package)
    }

    /// The version of the agent's program: that of its package, else what it says itself. `dir` is where it works.
    pub fn installed(&self, config: &AgentConfig, dir: &Path) -> Option<String> {
        let program = config.program(&config.adapter, dir)?;
        self.of_package(&program).or_else(|| self.said(&program, config))
    }

    /// Node takes seconds to start some of them.
    fn of_package(&self, program: &Path) -> Option<String> {
        let real = program.canonicalize().ok()?;
        real.ancestors().skip(1).take(PACKAGE_DEPTH).find_map(|folder| {
            let text = crate::text_file::read(&folder.join("package.json"), PACKAGE_BYTES).ok()?;
            let package: Value = serde_json::from_str(&text).ok()?;
            let version = package["version"].as_str().filter(|_| package["name"] == self.package);
            version.map(str::to_string)
        })
    }

    fn said(&self, program: &Path, config: &AgentConfig) -> Option<String> {
        let said = ask(&question(config, program, ["--version"]), PATIENCE).ok()?;
        self.in_answer(&said.text())
    }

    /// `2.1.325 (Claude Code)`, `codex-cli 0.166.0`, `0.61.0`
    fn in_answer(&self, text: &str) -> Option<String> {
        let line = text.lines().next()?;
        let is_own = line.contains(self.label) && (!self.label.is_empty() || !line.trim().contains(' '));
        let version = line.split_whitespace().find(|word| parsed(word).is_some());
        version.filter(|_| is_own).map(str::to_string)
    }
}

/// For the program of an agent, where this process is.
pub fn question<S: AsRef<OsStr>>(
    config: &AgentConfig,
    program: &Path,
    words: impl IntoIterator<Item = S>,
) -> Spec {
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    Spec::new(program, words, &here).with(&config.env)
}

/// `0.167.0-alpha.2` is `0.167.0`.
fn parsed(version: &str) -> Option<Version> {
    let version = version.trim_start_matches('v');
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut numbers = version[..end].split('.').map(str::parse);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some([major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn config(adapter: &str, command: &[&str]) -> AgentConfig {
        let command = command.iter().map(ToString::to_string).collect();
        AgentConfig { adapter: adapter.into(), command, ..AgentConfig::default() }
    }

    fn tested(adapter: &str, command: &[&str]) -> Option<&'static str> {
        Tested::of(&config(adapter, command)).map(|tested| tested.program)
    }

    // covers: R23
    #[test]
    fn only_the_agents_own_programs_have_versions_to_compare() {
        assert_eq!(tested("claude", &[]), Some("claude"));
        assert_eq!(tested("claude", &["/opt/bin/claude", "--x"]), Some("claude"));
        assert_eq!(tested("acp", &["gemini", "--acp"]), Some("gemini"));
        assert_eq!((tested("claude", &["/bin/sh", "-c", "claude"]), tested("acp", &[])), (None, None));
        assert_eq!((tested("command", &["claude"]), tested("codex", &["nice", "codex"])), (None, None));
    }

    #[test]
    fn the_newest_tested_versions_are_those_that_the_tests_install() {
        let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../test")).unwrap();
        for tested in TESTED {
            let range = tested.range();
            let newest = range.rsplit(' ').next().unwrap();
            assert!(script.contains(&format!("\"{}@{newest}\"", tested.package)), "{tested:?}");
        }
    }

    // covers: R23
    #[test]
    fn versions_are_compared_by_number() {
        let claude = &TESTED[0];
        let fit = |version: &str| claude.fit(version);
        assert_eq!((fit("1.0.3"), fit("2.1.99")), (Some(Fit::TooOld), Some(Fit::TooOld)));
        assert_eq!((fit("2.1.325"), fit("2.2.0-beta.1")), (Some(Fit::Tested), Some(Fit::Newer)));
        assert_eq!((fit("v3.0"), fit(""), fit("unknown"), fit("2")), (Some(Fit::Newer), None, None, None));
        assert_eq!(claude.in_answer("2.1.325 (Claude Code)\n").as_deref(), Some("2.1.325"));
        assert_eq!((claude.in_answer("sandbox 0.3.0"), claude.in_answer("")), (None, None));
        assert_eq!(TESTED[1].in_answer("codex-cli 0.166.0").as_deref(), Some("0.166.0"));
        assert_eq!(TESTED[2].in_answer("0.61.0\n").as_deref(), Some("0.61.0"));
        assert_eq!(TESTED[2].in_answer("wrapper 0.1.0"), None);
    }

    // covers: R23
    #[test]
    fn a_version_is_read_from_the_package_or_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/codex");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho codex-cli 0.9.0\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = config("codex", &[program.to_str().unwrap()]);
        let installed = || Tested::of(&config).unwrap().installed(&config, dir.path());
        assert_eq!(installed().as_deref(), Some("0.9.0"));
        let package = |name: &str| {
            let text = format!(r#"{{"name": "{name}", "version": "0.166.0"}}"#);
            std::fs::write(dir.path().join("package.json"), text).unwrap();
        };
        package("something-else");
        assert_eq!(installed().as_deref(), Some("0.9.0"));
        package("@openai/codex");
        assert_eq!(installed().as_deref(), Some("0.166.0"));
    }
}
