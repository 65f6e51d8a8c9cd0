//! `research.market`: no market data without a network, and it says so; what the project itself says about its users
//! and about the feature is real.

use crate::finding::{Claim, Report};
use crate::walk::Tree;

use super::about::about;
use super::library::Library;
use super::library::excerpt::sentences;
use super::{Places, Subject, dependencies};

pub(super) fn market(tree: &Tree, places: &Places, subject: &Subject) -> Report {
    let about = about(tree);
    let packages = dependencies::packages(tree, places);
    let mut library = Library::new(&subject.query);
    library.add_documents(tree);
    library.add_comments(tree);
    let hits = library.search(8, |_| true);
    let mut findings = about.findings(&subject.query);
    for finding in hits.iter().map(|hit| library.finding(hit)) {
        if !findings.iter().any(|known| known.evidence == finding.evidence) {
            findings.push(finding);
        }
    }
    let mut report = Report { findings, ..Report::default() };
    report.method = format!("offline: {}; no market data, no web, no model", library.searched());
    let claim = |predicate: &str, value: &str, evidence: &str| Claim {
        subject: about.name.clone(),
        predicate: predicate.into(),
        value: value.into(),
        evidence: vec![evidence.into()],
        confidence: 0.9,
    };
    let is = about.description.as_ref().or(about.opening.as_ref());
    report.claims.extend(is.map(|said| claim("is", &said.text, &said.evidence)));
    report.claims.extend(about.users.iter().map(|said| claim("usedBy", &said.text, &said.evidence)));
    let first = |text: &str| {
        sentences(text).first().map(|sentence| sentence.trim().trim_end_matches('.').to_string())
    };
    let what =
        is.and_then(|said| first(&said.text)).unwrap_or_else(|| "nothing in it says what it is".into());
    report.summary = format!(
        "No market data offline. {}: {what}. {} passages of its own documents and comments speak about \"{}\"; it has \
         {} direct dependencies.",
        about.name,
        hits.len(),
        subject.title,
        packages.len()
    );
    report.open_questions = vec![
        format!("Who asked for \"{}\", how many of them are there, and what do they do today?", subject.title),
        "How large is the demand, what would people pay, and what do users of other products say? Needs the web or a person.".into(),
    ];
    if about.users.is_empty() {
        report.open_questions.push("Who are the users? No document of the project says it.".into());
    }
    if hits.is_empty() {
        report.open_questions.push(format!(
            "What does \"{}\" mean here? No document or comment uses these words.",
            subject.title
        ));
    }
    report
}
