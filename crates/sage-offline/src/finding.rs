//! What research comes back with: findings for people and prompts, claims for synthesis.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of every operation that looks at something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// One or two sentences, with figures.
    pub summary: String,
    /// The most relevant first.
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    /// What could not be found out without a model or a person.
    pub open_questions: Vec<String>,
    /// How it was made, so that nobody takes it for a model's work: `offline: ...`.
    pub method: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    pub title: String,
    pub detail: String,
    /// To the feature at hand, 0 to 1.
    pub relevance: f64,
    /// `path:line`, `path`, or a commit; relative to the project.
    pub evidence: Vec<String>,
    /// What sort it is. How things are done: `naming`, `typing`, `handling` (of errors), `tests`, `structure`,
    /// `documentation`, `standard`, `setting`. What is there: `near`, `document`, `dependency`, `history`. What is
    /// wrong: `errors`, `quality`, `performance`, `log`, `security`, `accessibility`.
    pub kind: String,
    /// How sure it is, 0 to 1; a share of the places looked at where that is what it is.
    pub confidence: f64,
}

impl Finding {
    /// How the project does things everywhere, rather than something about the feature.
    pub fn is_convention(&self) -> bool {
        let kinds =
            ["naming", "typing", "handling", "tests", "structure", "documentation", "standard", "setting"];
        kinds.contains(&self.kind.as_str())
    }
}

/// A statement that can be compared with other agents' statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Claim {
    pub subject: String,
    pub predicate: String,
    pub value: Value,
    pub evidence: Vec<String>,
    pub confidence: f64,
}
