//! `research.practices`: what the project and its dependencies recommend about the feature, with the project's rules.

use crate::finding::{Finding, Report};
use crate::walk::Tree;

use super::library::Library;
use super::standards::rules;
use super::{Places, Subject, dependencies};

const MAX_RULES: usize = 10;
/// Words of advice.
const ADVICE: &[&str] = &[
    "should",
    "must",
    "never",
    "always",
    "recommend",
    "best practice",
    "avoid",
    "prefer",
    "make sure",
    "instead of",
];

pub(super) fn practices(tree: &Tree, places: &Places, subject: &Subject) -> Report {
    let packages = dependencies::packages(tree, places);
    let mut library = Library::new(&subject.query);
    library.add_documents(tree);
    library.add_comments(tree);
    library.add_packages(&packages, false);
    let own = library.search(8, |passage| !passage.origin.is_foreign());
    let foreign = library.search(6, |passage| passage.origin.is_foreign());
    let mut findings: Vec<Finding> = own.iter().chain(&foreign).map(|hit| library.finding(hit)).collect();
    let advice = findings.iter_mut().filter(|finding| {
        let lower = finding.detail.to_lowercase();
        ADVICE.iter().any(|word| lower.contains(word))
    });
    let mut advised = 0;
    for finding in advice {
        // What recommends something is what was asked for.
        finding.relevance = super::library::rounded((finding.relevance * 1.2).min(1.0));
        advised += 1;
    }
    // Settings are checked by tools; here they matter only where they are about it.
    let mut rules = rules(tree, &subject.query);
    let about = |rule: &Finding| rule.confidence < 1.0 || subject.query.share(&rule.title) > 0.0;
    rules.retain(about);
    for rule in &mut rules {
        // Most rules hold for everything; here those come first that are about it.
        let share = subject.query.share(&rule.title);
        rule.relevance = super::library::rounded(rule.relevance * (0.6 + 0.4 * share));
    }
    rules.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let known = rules.len();
    // A rule is shown as a rule, not as a passage as well.
    findings.retain(|finding| !rules.iter().any(|rule| rule.evidence == finding.evidence));
    findings.extend(rules.into_iter().take(MAX_RULES));
    let summary = format!(
        "{} passages of the project and {} of its dependencies speak about \"{}\", {advised} of them with advice; the \
         project has {known} written rules.",
        own.len(),
        foreign.len(),
        subject.title
    );
    let method = format!("offline: {}, and the project's rules; no web, no model", library.searched());
    let mut open_questions = vec![format!(
        "What do others consider good practice for \"{}\"? Needs the web or a model.",
        subject.title
    )];
    if own.is_empty() {
        open_questions.push(format!(
            "How should \"{}\" work here? The project's documents do not speak of it.",
            subject.title
        ));
    }
    Report { summary, findings, claims: Vec::new(), open_questions, method }
}
