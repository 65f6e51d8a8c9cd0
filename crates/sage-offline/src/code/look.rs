//! What every report on code starts from, and how it ends: the survey, the title's words, and an honest method.

use serde_json::Value;

use super::facts::FileFacts;
use super::survey::{Survey, survey};
use crate::finding::{Claim, Finding, Report};
use crate::request::{Request, Trouble};
use crate::walk::Tree;
use crate::words::{share, terms};

/// More findings are counted, not told.
const MAX_FINDINGS: usize = 40;

/// A project, read, and what is wanted of it.
pub(super) struct Look<'a> {
    pub request: &'a Request,
    pub tree: Tree,
    pub survey: Survey,
    /// The terms of the title.
    pub wanted: Vec<String>,
}

impl<'a> Look<'a> {
    pub fn new(request: &'a Request) -> Result<Look<'a>, Trouble> {
        let tree = Tree::read(&request.project)?;
        let survey = survey(&tree);
        let title = if request.title.is_empty() { &request.feature } else { &request.title };
        let mut wanted = terms(title);
        wanted.sort();
        wanted.dedup();
        Ok(Look { request, tree, survey, wanted })
    }

    pub fn title(&self) -> &str {
        if self.request.title.is_empty() { &self.request.feature } else { &self.request.title }
    }

    /// Which share of the title's words a text has.
    pub fn relevance(&self, text: &str) -> f64 {
        share(&self.wanted, &terms(text))
    }

    /// Files that are part of the product.
    pub fn products(&self) -> impl Iterator<Item = &FileFacts> {
        self.survey.files.iter().filter(|file| !file.is_test)
    }

    /// A confidence, lower where only a part was read.
    pub fn sure(&self, confidence: f64) -> f64 {
        rounded(confidence.clamp(0.0, 1.0) * (0.5 + 0.5 * self.survey.share()))
    }

    /// The end of every report: the most relevant first, and what it rests on.
    pub fn finish(&self, mut report: Report, how: &str) -> Report {
        report.findings.iter_mut().for_each(|finding| {
            finding.relevance = rounded(finding.relevance);
            finding.confidence = rounded(finding.confidence);
        });
        let rank = |finding: &Finding| finding.relevance + 0.2 * finding.confidence;
        report.findings.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        let more = report.findings.len().saturating_sub(MAX_FINDINGS);
        if more > 0 {
            report.findings.truncate(MAX_FINDINGS);
            report.summary.push_str(&format!(" {more} findings of less weight are left out."));
        }
        report.method = self.method(how);
        if self.survey.files.is_empty() {
            report
                .open_questions
                .push("No source file of a language that can be read here was found.".into());
        }
        let unread = listed(&self.survey.unread);
        if !unread.is_empty() {
            report.open_questions.push(format!("Not read, since there is no parser for it here: {unread}."));
        }
        report
    }

    fn method(&self, how: &str) -> String {
        let files = self.survey.files.len();
        let mut method =
            format!("offline: {how}, by parsing {} ({} lines)", count(files, "file"), self.survey.lines());
        if self.survey.left_out > 0 {
            let all = files + self.survey.left_out;
            method.push_str(&format!(
                "; an even sample of {files} out of {all} source files, so figures are estimates"
            ));
        }
        if self.survey.generated > 0 {
            method.push_str(&format!("; {} left aside", count(self.survey.generated, "generated file")));
        }
        method
    }
}

/// `Rust (3 files), Go (1 file)`
pub(super) fn listed(counts: &[(String, usize)]) -> String {
    let each = counts.iter().map(|(name, files)| format!("{name} ({})", count(*files, "file")));
    each.collect::<Vec<_>>().join(", ")
}

/// `1 file`, `2 files`
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = match what {
        _ if number == 1 => what.to_string(),
        _ if what.ends_with('y') => format!("{}ies", &what[..what.len() - 1]),
        _ if what.ends_with("ch") || what.ends_with('s') => format!("{what}es"),
        _ => format!("{what}s"),
    };
    format!("{number} {plural}")
}

pub(super) fn percent(part: usize, whole: usize) -> String {
    format!("{}%", (100 * part + whole / 2).checked_div(whole).unwrap_or(0))
}

pub(super) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

pub(super) fn claim(
    subject: &str,
    predicate: &str,
    value: impl Into<Value>,
    at: &[String],
    sure: f64,
) -> Claim {
    Claim {
        subject: subject.to_string(),
        predicate: predicate.to_string(),
        value: value.into(),
        evidence: at.iter().take(5).cloned().collect(),
        confidence: rounded(sure),
    }
}
