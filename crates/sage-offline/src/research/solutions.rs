//! `research.solutions`: where documents, changelogs and the project's own error texts speak of a symptom.

use crate::finding::{Finding, Report};
use crate::walk::Tree;

use super::library::comments::is_code;
use super::library::excerpt::cut;
use super::library::{Library, is_test, rounded, within};
use super::rank::Counter;
use super::{Places, Subject, dependencies};

const MAX_TEXTS: usize = 8;
const MAX_CODE_FILES: usize = 3_000;
/// A text in quotes with fewer words is a name, not a message.
const LEAST_WORDS: usize = 3;

pub(super) fn solutions(tree: &Tree, places: &Places, subject: &Subject) -> Report {
    let packages = dependencies::packages(tree, places);
    let mut library = Library::new(&subject.query);
    library.add_documents(tree);
    library.add_comments(tree);
    library.add_packages(&packages, true);
    let own = library.search(8, |passage| !passage.origin.is_foreign());
    let foreign = library.search(8, |passage| passage.origin.is_foreign());
    let texts = texts(tree, subject);
    let summary = format!(
        "About \"{}\": {} texts in the code, {} passages of the project, {} of its dependencies.",
        subject.title,
        texts.len(),
        own.len(),
        foreign.len()
    );
    let mut report = Report { summary, ..Report::default() };
    let place = texts.first().and_then(|finding| finding.evidence.first());
    if let Some(place) = place {
        report.summary.push_str(&format!(" The nearest text in the code is at {place}."));
    }
    report.findings = texts;
    report.findings.extend(own.iter().chain(&foreign).map(|hit| library.finding(hit)));
    report.method = format!(
        "offline: {}, changelogs included, and texts in quotes of the code; no issue trackers, no web, no model",
        library.searched()
    );
    report.open_questions = vec![
        "Is this a known problem with a known fix? Issue trackers and the web were not asked.".into(),
        "Does a newer version of a dependency fix it? Only the installed versions are on disk.".into(),
    ];
    if report.findings.is_empty() {
        report
            .open_questions
            .push("How exactly does it fail? Neither documents nor code use the words of the title.".into());
    }
    report
}

/// Texts in quotes that share words with the title: where the message that the user saw is made.
fn texts(tree: &Tree, subject: &Subject) -> Vec<Finding> {
    let quoted = quoted(&subject.title);
    let mut counter = Counter::new(&subject.query);
    let mut found = Vec::new();
    let code = tree.files.iter().filter(|file| is_code(file.extension()) && !is_test(&file.path));
    for file in within(code.take(MAX_CODE_FILES)) {
        let Some(text) = tree.text(file) else { continue };
        for (at, line) in text.lines().enumerate().filter(|(_, line)| line.contains(['"', '\'', '`'])) {
            for literal in literals(line) {
                let relevance = relevance(literal, &quoted, &mut counter);
                if relevance >= 0.3 {
                    found.push(Finding {
                        title: format!("text in {}: {}", file.path, cut(literal, 80)),
                        detail: cut(line.trim(), 300),
                        relevance: rounded(relevance),
                        evidence: vec![format!("{}:{}", file.path, at + 1)],
                        kind: "errors".into(),
                        confidence: rounded(relevance),
                    });
                }
            }
        }
    }
    found.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    found.truncate(MAX_TEXTS);
    found
}

/// What the title quotes is surely meant; otherwise at least two words must meet.
fn relevance(literal: &str, quoted: &[&str], counter: &mut Counter) -> f64 {
    if quoted.iter().any(|text| literal.contains(text)) {
        return 1.0;
    }
    if literal.split_whitespace().count() < LEAST_WORDS {
        return 0.0;
    }
    let counted = counter.count(&[literal]);
    let has = counted.counts.iter().filter(|count| **count > 0).count();
    if has >= counted.counts.len().min(2) { 0.8 * counted.share() } else { 0.0 }
}

/// Parts of a title in quotes, at least two letters long.
fn quoted(title: &str) -> Vec<&str> {
    ['"', '`']
        .iter()
        .flat_map(|quote| title.split(*quote).skip(1).step_by(2))
        .filter(|text| text.len() > 2)
        .collect()
}

/// Texts in quotes on one line.
fn literals(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for quote in ['"', '`', '\''] {
        let mut parts = line.split(quote).skip(1);
        while let Some(text) = parts.next() {
            found.push(text);
            parts.next();
        }
    }
    found.retain(|text| text.len() > 2);
    found
}
