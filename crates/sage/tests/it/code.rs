//! Workflows in TypeScript through the binary: with shell steps and the scripted agent, counted by their effects.
//!
//! Whatever really runs appends a line to the file `ran`: what a resume repeats is seen there, whatever the
//! journal says.

mod again;
mod calls;
mod cancel;
mod edits;
mod kill_storm;
mod large;
mod limits;
mod lost;
mod modules;
mod nested;
mod promises;
mod refused;
mod resume;
mod shown;

use serde_json::Value;

use crate::dsl::Sage;

/// A project with the workflow `t`, around a body that sees `sage` and `input`.
pub fn flow(body: &str) -> Sage {
    Sage::new().code("t", &whole(body))
}

/// A whole module, so that lines of `body` begin in line 2.
pub fn whole(body: &str) -> String {
    format!("export default async (sage, input) => {{\n{body}\n}};\n")
}

/// What the workflow of feature `x` returned.
#[track_caller]
pub fn value(sage: &Sage) -> Value {
    sage.sage("result x main/script").exit(0).json()
}

/// Runs `body` to its end and gives what it returned.
#[track_caller]
pub fn returned(body: &str) -> Value {
    let sage = flow(body);
    sage.sage("run x -t t").exit(0);
    value(&sage)
}

/// What has really run, sorted.
pub fn ran(sage: &Sage) -> Vec<String> {
    let mut lines = sage.lines("ran");
    lines.sort();
    lines
}

/// Paths of all steps of feature `x`, in the order of the status.
pub fn paths(sage: &Sage) -> Vec<String> {
    let status = sage.status("x");
    let steps = status["steps"].as_array().unwrap();
    steps.iter().map(|step| step["path"].as_str().unwrap().to_owned()).collect()
}
