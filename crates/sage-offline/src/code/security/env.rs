//! Files with the settings of one machine that git would take along.

use std::path::Path;

use super::super::issue::{Issue, Severity};
use super::super::look::Look;
use crate::plain;
use crate::walk::has_plain_rules;

/// More is no file of settings.
const MAX_BYTES: u64 = 1 << 20;
const FILES: &[&str] = &[".env", ".env.local", ".env.production"];

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    let root = &look.tree.root;
    let ignored = match has_plain_rules(root) {
        true => ignore::gitignore::Gitignore::new(root.join(".gitignore")).0,
        false => ignore::gitignore::Gitignore::empty(),
    };
    let open = |name: &&&str| !ignored.matched(Path::new(name), false).is_ignore();
    FILES.iter().filter(open).filter(|name| holds_values(root, name)).map(|name| issue(name)).collect()
}

/// At least one `NAME=value`.
fn holds_values(root: &Path, name: &str) -> bool {
    let text = plain::text(root, Path::new(name), MAX_BYTES).unwrap_or_default();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.any(|line| line.split_once('=').is_some_and(|(_, value)| !value.trim().is_empty()))
}

fn issue(name: &str) -> Issue {
    Issue {
        subject: name.to_string(),
        weakness: "settings in version control".into(),
        title: format!("`{name}` is not ignored by git"),
        detail: "Such a file holds the secrets of one machine. Name it in `.gitignore`; keep a `.env.example` without values.".into(),
        severity: Severity::Medium,
        confidence: 0.7,
        evidence: vec![name.to_string()],
    }
}
