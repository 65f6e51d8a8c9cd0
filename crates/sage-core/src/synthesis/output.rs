//! What a synthesis gives: the shape that templates and people read. Its order is fixed: by subject, then by
//! predicate; sources in the order in which they were declared.

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Synthesis {
    pub summary: String,
    /// What two or more sources say and nobody denies.
    pub agreements: Vec<Agreement>,
    /// All sides of what cannot be true at once.
    pub conflicts: Vec<Conflict>,
    /// What one source alone says.
    pub minority: Vec<Minority>,
    /// What some say and others are silent about.
    pub partial: Vec<Partial>,
    pub gaps: Vec<Remark>,
    /// Sources that looked and found nothing, with what they say about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<Remark>,
    pub insights: Vec<Insight>,
    pub confidence: Confidence,
    pub escalate: bool,
    pub escalate_why: Option<String>,
    /// Sources that are no evidence of their own.
    pub dependent: Vec<Remark>,
    pub notes: Vec<Remark>,
    /// All of it as Markdown.
    pub document: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agreement {
    pub subject: String,
    pub predicate: String,
    pub value: Value,
    pub sources: Vec<String>,
    pub independent_sources: usize,
    pub evidence: Vec<String>,
    pub confidence: f64,
    pub range: [f64; 2],
    /// Sources with claims, but none about this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Why there are fewer independent sources than sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependent: Vec<String>,
    /// Other ways in which the same was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_written: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    pub subject: String,
    pub predicate: String,
    /// The one with the most independent sources first.
    pub sides: Vec<ConflictSide>,
    /// Of the first side, after what the others say.
    pub confidence: f64,
    pub critical: bool,
    pub resolved: bool,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConflictSide {
    pub value: Value,
    pub sources: Vec<String>,
    pub independent_sources: usize,
    pub evidence: Vec<String>,
    /// As its sources claim.
    pub confidence: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_written: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Minority {
    pub subject: String,
    pub predicate: String,
    pub value: Value,
    pub source: String,
    pub evidence: Vec<String>,
    pub confidence: f64,
    pub mark: Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mark {
    /// More sources say something else.
    Contradicted,
    /// Nobody else speaks of it.
    Alone,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Partial {
    pub subject: String,
    pub predicate: String,
    pub value: Value,
    pub sources: Vec<String>,
    /// Sources with claims, but none about this.
    pub silent: Vec<String>,
    pub evidence: Vec<String>,
    pub confidence: f64,
}

/// Something about one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    pub source: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    pub kind: InsightKind,
    pub text: String,
    /// Two or more sources, none of which says all of it.
    pub from: Vec<String>,
    pub evidence: Vec<String>,
    pub confidence: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InsightKind {
    /// One subject, seen from several sides.
    Subject,
    /// One place that several sources point at for different reasons.
    Place,
    /// What one source says of a thing leads to what another one says.
    Chain,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Confidence {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Independent sources that made claims.
    pub independent: usize,
}
