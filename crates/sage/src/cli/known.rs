//! What is known of a project when an agent asks: its own checks, and answers that were kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sage_core::approval::{Check, CheckKind, Checks, Listed};
use sage_engine::approvals::Known;
use sage_offline::Tree;
use sage_offline::research::{self, Command};

use super::config::File;
use crate::trust::Kept;

/// A project's files are looked through again after this: an agent may have added tests.
const FRESH: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct OfProject {
    /// `[checks]` of sage.toml.
    named: Vec<Check>,
    kept: Kept,
    found: Mutex<HashMap<PathBuf, (Instant, Checks)>>,
}

impl OfProject {
    pub fn new(file: &File, root: &Path) -> OfProject {
        OfProject { named: named(file), kept: Kept::of(root), found: Mutex::default() }
    }
}

impl Known for OfProject {
    fn checks(&self, root: &Path) -> Checks {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, checks)) = found.get(root).filter(|(at, _)| at.elapsed() < FRESH) {
            return checks.clone();
        }
        let mut checks = self.named.clone();
        checks.extend(Tree::read(root).map(|tree| of_files(&tree)).unwrap_or_default());
        let checks = Checks(checks);
        found.insert(root.to_path_buf(), (Instant::now(), checks.clone()));
        checks
    }

    fn kept(&self) -> Vec<Listed> {
        self.kept.rules()
    }
}

fn named(file: &File) -> Vec<Check> {
    let mut named = Vec::new();
    for (what, kind) in [("test", CheckKind::Test), ("build", CheckKind::Build)] {
        for part in ["all", "backend", "frontend"] {
            let lines = file.check_commands(what, part).unwrap_or_default();
            named.extend(lines.into_iter().map(|line| Check { kind, line }));
        }
    }
    named
}

/// As the project's files say, in its own folder and in others.
fn of_files(tree: &Tree) -> Vec<Check> {
    let commands = research::all_commands(tree);
    let check = |kind: CheckKind| {
        move |command: Command| {
            let whole = Check { kind, line: command.shell() };
            [Check { kind, line: command.line }, whole]
        }
    };
    let tests = commands.test.into_iter().flat_map(check(CheckKind::Test));
    let builds = commands.build.into_iter().chain(commands.lint).flat_map(check(CheckKind::Build));
    let mut all: Vec<Check> = tests.chain(builds).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P4
    #[test]
    fn checks_are_those_of_sage_toml_and_of_the_projects_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("web")).unwrap();
        std::fs::write(dir.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        std::fs::write(dir.path().join("web/package.json"), r#"{"scripts": {"test": "jest"}}"#).unwrap();
        let file: File = toml::from_str("[checks]\ntest = './all.sh'\nbuild = ['a', 'b']\n").unwrap();
        let checks = OfProject::new(&file, dir.path()).checks(dir.path());
        for line in ["./all.sh", "make test", "cd 'web' && npm test", "npm test"] {
            assert_eq!(checks.of_line(line), Some(CheckKind::Test), "{line}: {checks:?}");
        }
        assert_eq!(checks.of_line("b"), Some(CheckKind::Build));
    }
}
