//! `research.alternatives`: other ways that are at hand: what dependencies already offer, switches of theirs that are
//! about it, and packages that do the same twice.

use crate::finding::{Claim, Finding, Report};
use crate::walk::Tree;

use super::dependencies::Package;
use super::library::{Library, rounded};
use super::rank::Query;
use super::{Places, Subject, dependencies, purposes};

const MAX_FEATURES: usize = 6;

pub(super) fn alternatives(tree: &Tree, places: &Places, subject: &Subject) -> Report {
    let packages = dependencies::packages(tree, places);
    let mut library = Library::new(&subject.query);
    library.add_packages(&packages, false);
    let hits = library.search(8, |_| true);
    let mut report = Report::default();
    report.findings.extend(hits.iter().map(|hit| library.finding(hit)));
    let switches = switches(&packages, &subject.query);
    let twice = purposes::twice(&packages);
    report.summary = format!(
        "{} passages in the documents of {} direct dependencies and {} of their features speak about \"{}\"; {} purposes \
         are served by more than one dependency.",
        hits.len(),
        packages.len(),
        switches.len(),
        subject.title,
        twice.len()
    );
    report.findings.extend(switches);
    for (purpose, by) in &twice {
        report.findings.push(double(purpose, by, &subject.query));
        report.claims.extend(by.iter().map(|package| Claim {
            subject: purpose.to_string(),
            predicate: "servedBy".into(),
            value: package.name.clone().into(),
            evidence: vec![package.declared.clone()],
            confidence: 0.9,
        }));
    }
    report.method = format!(
        "offline: {}; features of their manifests, and a list of packages that serve one purpose; no web, no model",
        library.searched()
    );
    report.open_questions = vec![
        format!(
            "Which ways to do \"{}\" exist beyond what is on this disk? Needs the web or a model.",
            subject.title
        ),
        "What would each way cost in time, size and risk here?".into(),
    ];
    for (purpose, by) in twice {
        let names: Vec<&str> = by.iter().map(|package| package.name.as_str()).collect();
        report.open_questions.push(format!("Are both {} needed for {purpose}?", names.join(" and ")));
    }
    report
}

/// Features of dependencies whose names have words of the title.
fn switches(packages: &[Package], query: &Query) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages {
        for feature in package.features.iter().filter(|feature| !feature.starts_with("__")) {
            let share = query.share(feature);
            if share > 0.0 {
                found.push(Finding {
                    title: format!("{} has a feature `{feature}`", package.title()),
                    detail: format!("declared at {}; its manifest offers `{feature}`", package.declared),
                    relevance: rounded(0.5 * share),
                    evidence: vec![package.declared.clone(), package.description_path.clone()],
                    kind: "dependency".into(),
                    confidence: 0.6,
                });
            }
        }
    }
    found.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    found.truncate(MAX_FEATURES);
    found
}

fn double(purpose: &str, by: &[&Package], query: &Query) -> Finding {
    let names: Vec<String> = by.iter().map(|package| package.title()).collect();
    Finding {
        title: format!("{} dependencies for {purpose}", by.len()),
        detail: format!(
            "{} serve the same purpose: a new use may pick one of them, and one may be enough",
            names.join(" and ")
        ),
        relevance: rounded(0.2 + 0.6 * query.share(purpose)),
        evidence: by.iter().map(|package| package.declared.clone()).collect(),
        kind: "dependency".into(),
        confidence: 0.7,
    }
}
