//! `research.competitive`: alternatives that the project's own documents name, and dependencies that already do
//! something of the kind.

use crate::finding::{Finding, Report};
use crate::walk::Tree;

use super::about::about;
use super::library::excerpt::{cut, sentences};
use super::library::{Library, documents, is_changelog, prose, rounded};
use super::rank::Query;
use super::{Places, Subject, dependencies};

const MAX_NAMED: usize = 12;
/// Sentences with one of these compare, if they also name something.
const COMPARES: &[&str] = &[
    "alternative",
    "alternatives",
    "instead of",
    "unlike",
    " vs ",
    " vs. ",
    "versus",
    "compared to",
    "compared with",
    "comparison",
    "similar to",
    "inspired by",
    "replacement for",
    "competitor",
    "competitors",
    "prior art",
    "rather than",
];
/// Sections that are about others.
const SECTIONS: &[&str] = &[
    "alternative",
    "comparison",
    "compared",
    "related",
    "similar",
    "prior art",
    "competit",
    "see also",
    " vs ",
];

pub(super) fn competitive(tree: &Tree, places: &Places, subject: &Subject) -> Report {
    let packages = dependencies::packages(tree, places);
    let mut library = Library::new(&subject.query);
    library.add_packages(&packages, false);
    let named = named(tree, &subject.query, &about(tree).name);
    let hits = library.search(8, |_| true);
    let mut report = Report::default();
    for hit in &hits {
        let mut finding = library.finding(hit);
        finding.title = format!("already a dependency: {}", finding.title);
        report.findings.push(finding);
    }
    let (alternatives, dependent) = (named.len(), hits.len());
    report.findings.extend(named);
    report.method = format!(
        "offline: sentences of the project's documents that compare, and {}; no web, no model: other products are not known",
        library.searched()
    );
    report.summary = format!(
        "The project's documents compare it with others in {alternatives} places; {dependent} passages in the documents \
         of its {} direct dependencies speak about \"{}\".",
        packages.len(),
        subject.title
    );
    report.open_questions = vec![
        format!(
            "Which products offer \"{}\" today, and what do they do better? Needs the web or a person.",
            subject.title
        ),
        "What would make people choose this project instead?".into(),
    ];
    if alternatives == 0 {
        report
            .open_questions
            .push("Which alternatives do users know? No document of the project names one.".into());
    }
    report
}

/// Sentences that compare with something that has a name.
fn named(tree: &Tree, query: &Query, own: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in documents(tree).into_iter().filter(|file| !is_changelog(file.name())).take(200) {
        let Some(text) = tree.text(file) else { continue };
        for piece in prose::points(&text) {
            let head = piece.headings.last().map(|head| head.to_lowercase()).unwrap_or_default();
            let section = SECTIONS.iter().any(|word| head.contains(word));
            for sentence in sentences(&piece.text).into_iter().map(str::trim) {
                let lower = format!(" {} ", sentence.to_lowercase());
                let compares = COMPARES.iter().any(|word| lower.contains(word));
                // A row of a table may be about the project itself.
                let other = !sentence.to_lowercase().starts_with(&format!("{} \u{2013}", own.to_lowercase()));
                if (compares || section) && other && names_something(sentence, section) {
                    let under = piece.headings.last().map_or("compares", String::as_str);
                    let title = format!("{}: {under}", file.path);
                    let share = query.share(&format!("{head} {sentence}"));
                    found.push(Finding {
                        title,
                        detail: cut(sentence, 400),
                        relevance: rounded(if section { 0.3 } else { 0.15 } + 0.6 * share),
                        evidence: vec![format!("{}:{}", file.path, piece.line)],
                        kind: "document".into(),
                        confidence: if section { 0.7 } else { 0.4 },
                    });
                }
            }
        }
    }
    found.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    found.truncate(MAX_NAMED);
    found
}

/// A word that begins large outside of code: a name, unless it begins the sentence.
fn names_something(sentence: &str, section: bool) -> bool {
    let prose: Vec<&str> = sentence.split('`').step_by(2).collect();
    let prose = prose.join(" ");
    let words = prose.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let mut words = words.skip(usize::from(!section));
    words.any(|word| {
        word.len() > 1 && word.starts_with(char::is_uppercase) && word.chars().any(char::is_lowercase)
    })
}
