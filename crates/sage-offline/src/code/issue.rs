//! A weakness at a place, as reviews and audits tell it.

use super::look::{Look, claim};
use crate::finding::{Claim, Finding};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Low,
    Medium,
    High,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }

    /// How relevant it is whatever the feature.
    fn weight(self) -> f64 {
        match self {
            Severity::Low => 0.3,
            Severity::Medium => 0.5,
            Severity::High => 0.75,
        }
    }
}

#[derive(Debug)]
pub(super) struct Issue {
    /// The file or function that has it.
    pub subject: String,
    /// `string-built SQL`
    pub weakness: String,
    pub title: String,
    pub detail: String,
    pub severity: Severity,
    pub confidence: f64,
    pub evidence: Vec<String>,
}

impl Issue {
    pub fn finding(&self, look: &Look, kind: &str) -> Finding {
        let place = self.evidence.first().map_or("", String::as_str);
        let closeness = look.relevance(&format!("{} {place}", self.subject));
        let weight = self.severity.weight();
        Finding {
            title: self.title.clone(),
            detail: self.detail.clone(),
            relevance: weight + (1.0 - weight) * 0.6 * closeness,
            evidence: self.evidence.clone(),
            kind: kind.to_string(),
            confidence: look.sure(self.confidence),
        }
    }

    pub fn claim(&self, look: &Look) -> Claim {
        let sure = look.sure(self.confidence);
        claim(&self.subject, &self.weakness, self.severity.name(), &self.evidence, sure)
    }
}

/// `2 high, 1 low`; nothing if there are none.
pub(super) fn by_severity(issues: &[Issue]) -> String {
    let each = [Severity::High, Severity::Medium, Severity::Low].into_iter().filter_map(|severity| {
        let number = issues.iter().filter(|issue| issue.severity == severity).count();
        (number > 0).then(|| format!("{number} {}", severity.name()))
    });
    each.collect::<Vec<_>>().join(", ")
}
