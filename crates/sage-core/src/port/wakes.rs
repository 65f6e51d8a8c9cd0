//! Reports of those who work without sage: a person, an agent in an editor. They get their order as a file and
//! tell what came of it by a wake with the id of their session.

use std::fmt::Debug;
use std::path::PathBuf;

use serde_json::Value;

use super::BoxFuture;

pub trait Wakes: Debug + Send + Sync {
    /// Where orders are put.
    fn orders(&self) -> PathBuf;

    /// Where reports are dropped.
    fn reports(&self) -> PathBuf;

    /// The last report of the session so far, if there is one.
    fn last(&self, session: &str) -> BoxFuture<'static, Result<Option<String>, String>>;

    /// The session's next report after the one that is known already, also if it came long ago. Waits for as
    /// long as it takes; an error is told in words.
    fn next(&self, session: &str, after: Option<&str>) -> BoxFuture<'static, Result<Report, String>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub id: String,
    pub kind: ReportKind,
    pub summary: String,
    pub files: Vec<String>,
    /// What the sender calls its result, if it says more than a summary.
    pub result: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// The work is done.
    Complete,
    /// It goes on when somebody has answered.
    Blocked,
    /// Something was found; the work goes on.
    Finding,
    Failed,
}
