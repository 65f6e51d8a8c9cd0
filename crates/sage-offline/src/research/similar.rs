//! `research.similar`: what git remembers about the like.

use crate::finding::Report;
use crate::history;
use crate::walk::Tree;

use super::Subject;

pub(super) fn similar(tree: &Tree, subject: &Subject) -> Report {
    let question =
        "Was the like reported or fixed elsewhere? Issue trackers and pull requests were not asked.";
    let mut report = Report { open_questions: vec![question.into()], ..Report::default() };
    match history::commits(&tree.root) {
        Ok(commits) => {
            let found = history::similar(&commits, &subject.query);
            let since = commits.last().map(|commit| commit.date.as_str()).unwrap_or_default();
            report.method =
                format!("offline: `git log` of {} commits since {since}, messages and paths", commits.len());
            report.summary = format!(
                "Commits near \"{}\": {} of {}; fixes among all: {}.",
                subject.title,
                found.near,
                commits.len(),
                found.fixes
            );
            if found.near == 0 {
                report.open_questions.push(
                    "Under what other name might it have been changed? No commit uses these words.".into(),
                );
            }
            report.findings = found.findings;
            report.claims = found.claims;
        }
        Err(absent) => {
            report.summary = format!("No history to look at: {absent}.");
            report.method = format!("offline: git was asked for the history; {absent}");
        }
    }
    report
}
