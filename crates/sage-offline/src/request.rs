//! What is asked, and what can go wrong.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::verify::{Baseline, Executed};

/// One operation on one project.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `patterns.extract`
    pub operation: String,
    /// The project's directory; a worktree of it for isolated steps.
    pub project: PathBuf,
    /// `payment-processing`
    pub feature: String,
    /// `payment processing`, as the user typed it.
    pub title: String,
    /// Of the operation, rendered.
    pub params: Map<String, Value>,
    /// Of the run.
    pub inputs: Map<String, Value>,
    /// Results of the steps that it depends on, by path: `research/market`; filtered, as a prompt would see them.
    pub steps: Map<String, Value>,
    /// Of a fan-out.
    pub item: Option<Value>,
    /// The commands that sage.toml names for this check; an empty list says that there are none to run.
    pub named: Option<Vec<String>>,
    /// Why there is nothing to check.
    pub absent: Option<String>,
    /// When the run began, in seconds since the epoch.
    pub run_began_s: Option<u64>,
    /// The project when the run began.
    pub before: Before,
    /// In a worktree: tests that ran before the run changed something, and at which commit.
    pub ran: Vec<Executed>,
    /// Why the commands of sage.toml cannot be trusted.
    pub doubt: Option<String>,
    /// Why it is not known where to check.
    pub unplaced: Option<String>,
}

/// How the project was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// There is no run.
    #[default]
    Unasked,
    /// It should be known.
    Lost,
    Known(Box<Baseline>),
    /// In a worktree: as it was at this commit.
    Commit(String),
}

#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("the offline agent has no model and does not know the operation `{0}`")]
    UnknownOperation(String),
    #[error("{0}")]
    Invalid(String),
    #[error("cannot read `{path}`: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
}
