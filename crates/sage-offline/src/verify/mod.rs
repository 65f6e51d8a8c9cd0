//! Builds and tests the project with its own commands, and says what really happened.
//!
//! ```text
//!   params.commands, or what the project's files name  ->  child process  ->  exit code + output  ->  failures
//! ```
//! `passed` is true only if a program ran and said so. No command, a program that is not installed, no tests:
//! `passed` is null, with the reason.

mod child;
mod failures;
mod order;
mod related;
mod verdict;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::request::{Request, Trouble};
use crate::research;
use crate::walk::Tree;
use order::Order;
use verdict::{Ran, Verdict};

/// Without `params.timeoutMs`: what a whole workflow has by default.
const LIMIT: Duration = Duration::from_secs(10 * 60);

pub const OPERATIONS: &[&str] = &["build.verify", "test.run", "test.regression"];

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let tree = Tree::read(&request.project)?;
    let known = research::commands(&tree);
    let (what, found) = match request.operation.as_str() {
        "build.verify" => ("build", &known.build),
        _ => ("test", &known.test),
    };
    let orders = order::chosen(request, what, found)?;
    let (orders, note) = match request.operation.as_str() {
        "test.regression" => related::narrowed(request, &tree, orders),
        _ => (orders, String::new()),
    };
    let limit = request.params.get("timeoutMs").and_then(Value::as_u64).map_or(LIMIT, Duration::from_millis);
    let ran = run_all(&orders, &request.project, limit)?;
    let mut verdict = Verdict::of(what, ran, &request.project, order::none_reason(request, what));
    verdict.add_note(&note);
    if request.operation == "test.regression" {
        related::compare(&mut verdict, request);
    }
    verdict.into_result()
}

/// One after the other, within one limit for all: builds of one project fight over the same files.
fn run_all(orders: &[Order], project: &Path, limit: Duration) -> Result<Vec<Ran>, Trouble> {
    let end = Instant::now() + limit;
    let mut all = Vec::new();
    for order in orders {
        let ran = match order.missing_program(project) {
            Some(program) => Ran::not_run(order, format!("`{program}` is not installed")),
            None if Instant::now() >= end => Ran::not_run(order, "no time was left".to_string()),
            None => {
                let dir = project.join(&order.folder);
                let left = end.saturating_duration_since(Instant::now());
                let ended = child::run(&order.line, &dir, left);
                Ran::ended(order, ended.map_err(|source| Trouble::Unreadable { path: dir, source })?)
            }
        };
        all.push(ran);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
