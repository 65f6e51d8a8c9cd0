//! Manifests whose dependencies are not pinned by a lock file.

use super::super::issue::{Issue, Severity};
use super::super::look::Look;

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let wanted: &[(&str, &[&str])] = &[
        (
            "package.json",
            &[
                "package-lock.json",
                "yarn.lock",
                "pnpm-lock.yaml",
                "bun.lockb",
                "bun.lock",
                "npm-shrinkwrap.json",
            ],
        ),
        ("Cargo.toml", &["Cargo.lock"]),
        ("go.mod", &["go.sum"]),
        ("Pipfile", &["Pipfile.lock"]),
        ("pyproject.toml", &["poetry.lock", "uv.lock", "pdm.lock", "requirements.txt"]),
        ("Gemfile", &["Gemfile.lock"]),
        ("composer.json", &["composer.lock"]),
    ];
    let mut issues = Vec::new();
    for file in look.tree.files.iter().filter(|file| file.path.matches('/').count() <= 1) {
        let Some((manifest, locks)) = wanted.iter().find(|(name, _)| *name == file.name()) else { continue };
        let text = look.tree.text(file).unwrap_or_default();
        let folder = file.path.strip_suffix(manifest).unwrap_or_default();
        // A package of a workspace is locked with the whole.
        let locked = [folder, ""]
            .iter()
            .any(|folder| locks.iter().any(|lock| look.tree.root.join(folder).join(lock).exists()));
        if is_program(look, folder, manifest, &text) && has_dependencies(manifest, &text) && !locked {
            issues.push(issue(&file.path, locks[0]));
        }
    }
    issues
}

/// Libraries leave the choice of versions to who uses them.
fn is_program(look: &Look, folder: &str, manifest: &str, text: &str) -> bool {
    match manifest {
        "pyproject.toml" => {
            ["[tool.poetry]", "[tool.pdm]", "[tool.uv]"].iter().any(|tool| text.contains(tool))
        }
        "Cargo.toml" => {
            text.contains("[[bin]]")
                || text.contains("[workspace]")
                || look.tree.find(&format!("{folder}src/main.rs")).is_some()
        }
        _ => true,
    }
}

fn has_dependencies(manifest: &str, text: &str) -> bool {
    let mark = match manifest {
        "package.json" => "ependencies\"",
        "Cargo.toml" => "ependencies]",
        "go.mod" => "require",
        "composer.json" => "\"require\"",
        "Gemfile" => "gem ",
        "Pipfile" => "[packages]",
        _ => "dependencies",
    };
    text.contains(mark)
}

fn issue(path: &str, lock: &str) -> Issue {
    Issue {
        subject: path.to_string(),
        weakness: "dependencies without a lock file".into(),
        title: format!("`{path}` has no lock file"),
        detail: format!(
            "Without `{lock}` each build may take other versions, also ones that somebody took over."
        ),
        severity: Severity::Low,
        confidence: 0.7,
        evidence: vec![path.to_string()],
    }
}
