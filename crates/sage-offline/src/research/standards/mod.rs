//! `standards.discover`: the rules that the project gives itself, in prose and in the settings of its tools, and the
//! commands that check them.

mod automation;
mod prose;
mod settings;

use std::path::Path;

use crate::finding::{Claim, Finding, Report};
use crate::plain;
use crate::walk::Tree;

use super::rank::Query;
use super::{Command, Subject, commands};

/// Shown of all rules.
const MAX_RULES: usize = 60;

/// Every rule, the ones in prose first.
pub(super) fn rules(tree: &Tree, query: &Query) -> Vec<Finding> {
    let mut found = prose::rules(tree, query);
    found.extend(settings::rules(tree, query));
    found
}

pub(super) fn discover(tree: &Tree, subject: &Subject) -> Report {
    let mut findings = rules(tree, &subject.query);
    let prose = findings.iter().filter(|finding| finding.confidence < 0.95).count();
    let set = findings.len() - prose;
    let automation = automation::commands(tree);
    findings.extend(automation.findings);
    findings.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let files = files(&findings);
    let left = findings.len().saturating_sub(MAX_RULES);
    findings.truncate(MAX_RULES);
    let commands = commands(tree);
    let mut claims = Vec::new();
    for (kind, list) in [("build", &commands.build), ("test", &commands.test), ("lint", &commands.lint)] {
        claims.extend(list.iter().map(|command| claim(kind, &command.shell(), &command.evidence, 0.9)));
    }
    claims.extend(automation.claims);
    let first = |list: &[Command]| {
        list.first().map_or("unknown".to_string(), |command| format!("`{}`", command.shell()))
    };
    let summary = format!(
        "{prose} rules in prose and {set} settings of tools in {files} files; build: {}, test: {}, lint: {}.",
        first(&commands.build),
        first(&commands.test),
        first(&commands.lint)
    );
    let mut open_questions = Vec::new();
    if prose == 0 {
        open_questions.push("Which conventions do people follow that nobody wrote down? There is no CONTRIBUTING, AGENTS or CLAUDE file with rules.".into());
    }
    if commands.test.is_empty() {
        open_questions.push("How is the project tested? No manifest says it.".into());
    }
    if left > 0 {
        open_questions.push(format!("{left} more rules were found and are not shown."));
    }
    let method =
        "offline: sentences that tell people what to do, settings of formatters, linters and compilers, and \
                  commands of manifests and automation; nothing was run"
            .to_string();
    Report { summary, findings, claims, open_questions, method }
}

fn claim(predicate: &str, value: &str, evidence: &str, confidence: f64) -> Claim {
    Claim {
        subject: "command".into(),
        predicate: predicate.into(),
        value: value.into(),
        evidence: vec![evidence.into()],
        confidence,
    }
}

fn files(findings: &[Finding]) -> usize {
    let paths: std::collections::BTreeSet<&str> = findings
        .iter()
        .flat_map(|finding| &finding.evidence)
        .filter_map(|place| place.split(':').next())
        .collect();
    paths.len()
}

/// A file by its name, hidden or not; not one that is no text or very large.
fn text(tree: &Tree, path: &str) -> Option<String> {
    plain::text(&tree.root, Path::new(path), 256 * 1024)
}
