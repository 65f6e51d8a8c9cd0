//! Commands that the project's automation runs on every change: what it takes to be accepted.

use crate::finding::{Claim, Finding};
use crate::research::places::children;
use crate::walk::Tree;

use super::{claim, text};

const MAX_COMMANDS: usize = 20;
const MAX_FILES: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Automation {
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
}

pub(super) fn commands(tree: &Tree) -> Automation {
    let mut paths =
        vec![".gitlab-ci.yml".to_string(), ".travis.yml".to_string(), ".circleci/config.yml".to_string()];
    for folder in [".github/workflows", ".ci"] {
        let files = children(&tree.root.join(folder)).into_iter().take(MAX_FILES);
        let inside =
            files.filter_map(|path| path.strip_prefix(&tree.root).ok()?.to_str().map(str::to_string));
        paths.extend(inside.filter(|path| path.ends_with(".yml") || path.ends_with(".yaml")));
    }
    let mut found = Automation::default();
    let mut known: Vec<String> = Vec::new();
    for path in paths {
        let Some(text) = text(tree, &path) else { continue };
        for (line, command) in run(&text) {
            let Some(kind) = kind(&command) else { continue };
            if known.contains(&command) || known.len() == MAX_COMMANDS {
                continue;
            }
            let evidence = format!("{path}:{line}");
            found.claims.push(claim(kind, &command, &evidence, 0.8));
            found.findings.push(Finding {
                title: format!("automation runs `{command}`"),
                detail: format!("a {kind} step of {path}: a change has to pass it"),
                relevance: 0.3,
                evidence: vec![evidence],
                kind: "standard".into(),
                confidence: 0.9,
            });
            known.push(command);
        }
    }
    found
}

/// Command lines of `run:` (also blocks) and of lists below `script:`.
fn run(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block: Option<usize> = None;
    let mut script: Option<usize> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        block = block.filter(|start| indent > *start);
        // A list may stand as deep as the name above it.
        script = script.filter(|start| indent > *start || (indent == *start && trimmed.starts_with("- ")));
        let step = trimmed.trim_start_matches("- ");
        if block.is_some() {
            found.push((at + 1, trimmed.to_string()));
        } else if let Some(command) = step.strip_prefix("run:").map(str::trim) {
            if command.is_empty() || command.starts_with(['|', '>']) {
                block = Some(indent);
            } else {
                found.push((at + 1, command.trim_matches(['"', '\'']).to_string()));
            }
        } else if step == "script:" || step == "before_script:" {
            script = Some(indent);
        } else if script.is_some() && trimmed.starts_with("- ") {
            found.push((at + 1, step.trim_matches(['"', '\'']).to_string()));
        }
    }
    found
}

/// What a command is for, by its words; nothing for what only prepares.
fn kind(command: &str) -> Option<&'static str> {
    let has = |words: &[&str]| command.split([' ', ':', '/']).any(|word| words.contains(&word));
    let prepares =
        has(&["install", "ci", "checkout", "apt-get", "apt", "curl", "echo", "cd", "export", "rustup"]);
    match () {
        () if prepares && !command.contains("&&") => None,
        () if has(&[
            "lint",
            "clippy",
            "eslint",
            "ruff",
            "flake8",
            "mypy",
            "fmt",
            "vet",
            "prettier",
            "golangci-lint",
            "black",
        ]) =>
        {
            Some("lint")
        }
        () if has(&[
            "test", "tests", "pytest", "nextest", "vitest", "jest", "unittest", "tox", "verify", "./test",
        ]) =>
        {
            Some("test")
        }
        () if has(&["build", "compile", "tsc", "assemble", "package"]) => Some("build"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::research::tests::project;

    // covers: R6
    #[test]
    fn steps_of_workflows_and_scripts() {
        let dir = project(&[
            (
                ".github/workflows/ci.yml",
                "jobs:\n  a:\n    steps:\n      - uses: x\n      - run: cargo test\n      - name: b\n        run: |\n          npm ci\n          npm run lint\n      - run: \"make build\"\n",
            ),
            (
                ".gitlab-ci.yml",
                "test:\n  script:\n    - pip install x\n    - pytest -q\n  tags:\n    - build\n",
            ),
        ]);
        let found = commands(&Tree::read(dir.path()).unwrap());
        let told: Vec<String> =
            found.claims.iter().map(|c| format!("{} {} {}", c.evidence[0], c.predicate, c.value)).collect();
        assert_eq!(
            told,
            [
                ".gitlab-ci.yml:4 test \"pytest -q\"",
                ".github/workflows/ci.yml:5 test \"cargo test\"",
                ".github/workflows/ci.yml:9 lint \"npm run lint\"",
                ".github/workflows/ci.yml:10 build \"make build\"",
            ]
        );
        assert_eq!(found.findings.len(), 4);
    }
}
