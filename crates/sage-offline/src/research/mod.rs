//! What the project's own documents, its dependencies' documents, its rules and its history say about a feature.
//!
//! No network and no model: everything found has a place in a file on this disk, and what only the world, a person
//! or a model can know is asked, not answered.

mod about;
mod alternatives;
mod commands;
mod competitive;
pub(crate) mod dependencies;
pub(crate) mod library;
mod market;
mod places;
mod practices;
mod purposes;
pub(crate) mod rank;
mod similar;
mod solutions;
mod standards;
#[cfg(test)]
pub(crate) mod tests;

pub use commands::{Command, Commands, all_commands, commands};
pub(crate) use commands::{
    JUSTFILES, MAKEFILES, MAX_FOLDERS, belongs_to_root, folders, python_build, recipe_of, test_paths,
};
pub use dependencies::{Package, packages};
pub use places::Places;
pub(crate) use places::children;

use serde_json::Value;

use crate::finding::Report;
use crate::logs;
use crate::request::{Request, Trouble};
use crate::walk::Tree;

use rank::Query;

/// What this module does.
pub(crate) const OPERATIONS: &[&str] = &[
    "research.market",
    "research.competitive",
    "research.practices",
    "research.solutions",
    "research.similar",
    "research.alternatives",
    "standards.discover",
    "errors.track",
];

/// What it is about.
#[derive(Clone, Debug, Default)]
struct Subject {
    /// As the user typed it.
    title: String,
    query: Query,
}

impl Subject {
    fn new(request: &Request) -> Subject {
        let words = request.feature.replace(['-', '_'], " ");
        let title = [&request.title, &words].into_iter().find(|text| !text.trim().is_empty());
        Subject { title: title.cloned().unwrap_or_default(), query: Query::new(&[&request.title, &words]) }
    }
}

/// One of `OPERATIONS`, as JSON.
pub(crate) fn perform(request: &Request) -> Result<Value, Trouble> {
    let report = report(request, &Places::of_this_machine())?;
    serde_json::to_value(report).map_err(|error| Trouble::Invalid(error.to_string()))
}

/// The same with folders of the caller's choice.
pub fn report(request: &Request, places: &Places) -> Result<Report, Trouble> {
    let tree = Tree::read(&request.project)?;
    let subject = Subject::new(request);
    let mut report = match request.operation.as_str() {
        "research.market" => market::market(&tree, places, &subject),
        "research.competitive" => competitive::competitive(&tree, places, &subject),
        "research.practices" => practices::practices(&tree, places, &subject),
        "research.solutions" => solutions::solutions(&tree, places, &subject),
        "research.similar" => similar::similar(&tree, &subject),
        "research.alternatives" => alternatives::alternatives(&tree, places, &subject),
        "standards.discover" => standards::discover(&tree, &subject),
        "errors.track" => logs::track(&tree, &subject.query, given(request)),
        other => return Err(Trouble::UnknownOperation(other.to_string())),
    };
    report.findings.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    if subject.query.terms.is_empty() {
        report
            .open_questions
            .insert(0, "What is it about? The run has no title with words to look for.".into());
    }
    if tree.left_out > 0 {
        report.method.push_str(&format!("; {} files were too large or too many", tree.left_out));
    }
    Ok(report)
}

/// A log that the user gave.
fn given(request: &Request) -> Option<&str> {
    let value = request.params.get("log").or_else(|| request.inputs.get("log"));
    value.and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
