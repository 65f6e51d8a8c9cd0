//! Private functions whose name stands nowhere but where they are defined.

use std::collections::HashMap;

use super::super::facts::{FileFacts, Function};
use super::super::issue::{Issue, Severity};
use super::super::look::Look;

/// Data files of this size do not call functions.
const MAX_BYTES: u64 = 100_000;

pub(super) fn issues(look: &Look) -> Vec<Issue> {
    // With files left out, a caller may be among them.
    if look.survey.left_out > 0 {
        return Vec::new();
    }
    let own = look
        .products()
        .filter(|file| !file.broken)
        .flat_map(|file| file.functions.iter().map(move |f| (file, f)));
    let candidates: Vec<(&FileFacts, &Function)> = own.filter(|(_, f)| may_be_unused(f)).collect();
    let mut mentions: HashMap<&str, usize> = candidates.iter().map(|(_, f)| (f.name.as_str(), 0)).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    for file in &look.survey.files {
        count(&file.text, &mut mentions);
    }
    let read: std::collections::HashSet<&str> =
        look.survey.files.iter().map(|file| file.path.as_str()).collect();
    let others = look.tree.files.iter().filter(|f| f.bytes < MAX_BYTES && !read.contains(f.path.as_str()));
    for text in others.take(2000).filter_map(|file| look.tree.text(file)) {
        count(&text, &mut mentions);
    }
    let unused = candidates.into_iter().filter(|(_, f)| mentions.get(f.name.as_str()) == Some(&1));
    unused.map(|(file, function)| issue(file, function)).collect()
}

fn may_be_unused(function: &Function) -> bool {
    let plain = function.name.chars().all(|c| c.is_alphanumeric() || c == '_');
    !function.is_public
        && !function.is_expected
        && !function.in_test
        && plain
        && !function.name.starts_with("__")
}

fn count(text: &str, mentions: &mut HashMap<&str, usize>) {
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if let Some(number) = mentions.get_mut(word) {
            *number += 1;
        }
    }
}

fn issue(file: &FileFacts, function: &Function) -> Issue {
    Issue {
        subject: function.full_name(),
        weakness: "unused".into(),
        title: format!("`{}` looks unused", function.full_name()),
        detail: format!("Its name stands nowhere else in the project ({} lines).", function.lines),
        severity: Severity::Low,
        confidence: 0.7,
        evidence: vec![file.at(function.line)],
    }
}
