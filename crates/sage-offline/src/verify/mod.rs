//! Builds and tests the project with its own commands, and says what really happened.
//!
//! ```text
//!   params.commands, [checks] of sage.toml, or the project's files  ->  child process  ->  output  ->  verdict
//! ```
//! `passed` is true only if all of it ran and said so, and false only if a program said no. No command, a program that is
//! not installed, no sign of a test, tests that no command runs, a command that is not what it was when the run began,
//! no end in time: `passed` is null, with the reason. Of commands that a person named, the exit code tells.

mod baseline;
mod child;
mod commit;
mod decides;
mod executed;
mod failures;
mod family;
mod follow;
mod order;
mod reach;
mod related;
mod signs;
mod uncovered;
mod verdict;
mod weakened;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::parts::{self, Side};
use crate::request::{Request, Trouble};
use crate::walk::Tree;
pub use baseline::Baseline;
pub use executed::Executed;
pub use follow::Stretch;
use order::{Chosen, Order};
pub use related::uncommitted;
use verdict::{Ran, Verdict};
use weakened::Earlier;

/// Without `params.timeoutMs`: what a whole workflow has by default.
const LIMIT: Duration = Duration::from_secs(10 * 60);

pub const OPERATIONS: &[&str] = &["build.verify", "test.baseline", "test.run", "test.regression"];

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let tree = Tree::read(&request.project)?;
    let what = if request.operation == "build.verify" { "build" } else { "test" };
    let part = order::part(request)?;
    if let Some(why) = &request.absent {
        return Ok(Verdict::nothing(format!("Nothing to run: {why}.")).into_result());
    }
    let chosen = order::chosen(request, what, &tree)?;
    let doubt = request.doubt.as_ref().filter(|_| !order::names_its_own(request));
    if let Some(why) = request.unplaced.as_ref().or(doubt) {
        return Ok(Verdict::not_made(why.clone()).into_result());
    }
    if request.operation == "test.baseline" {
        return Ok(measured(request, chosen)?.into_result());
    }
    let earlier = Earlier::of(request);
    let (verdict, ran) = match chosen {
        Chosen::Nothing => (declined(what), Vec::new()),
        Chosen::Named(orders) => {
            let ran = run_all(&orders, &request.project, limit(request))?;
            let mut verdict = Verdict::of(what, &ran, &request.project);
            verdict.doubt_all(&earlier.changed_commands(&tree, what, &orders, &[]));
            (verdict, ran)
        }
        Chosen::Found(orders) if part.is_some_and(|part| is_absent(&tree, part, &orders)) => {
            let why = format!("Nothing to run: the project has no {}.", order::part_name(request));
            (Verdict::nothing(why), Vec::new())
        }
        Chosen::Found(orders) => found(request, what, &tree, orders, &earlier)?,
    };
    Ok(judged(request, what, verdict, &ran, &earlier).into_result())
}

fn declined(what: &str) -> Verdict {
    Verdict::declined(format!("Nothing to run: sage.toml says that there is no {what} command."))
}

/// The tests before anything is changed: which ran, and which failed. Nothing is asked of them.
fn measured(request: &Request, chosen: Chosen) -> Result<Verdict, Trouble> {
    let orders = match chosen {
        Chosen::Nothing => return Ok(declined("test")),
        Chosen::Named(orders) | Chosen::Found(orders) => orders,
    };
    if orders.is_empty() {
        return Ok(Verdict::nothing("Nothing to run: no test command was found.".to_string()));
    }
    let ran = run_all(&orders, &request.project, limit(request))?;
    let mut verdict = Verdict::of("test", &ran, &request.project);
    verdict.summary = format!("Before the change: {}", verdict.summary);
    verdict.executed = ran.iter().filter_map(Executed::of).collect();
    let commit = related::clean_commit(&request.project).unwrap_or_default();
    verdict.executed.iter_mut().for_each(|executed| executed.commit.clone_from(&commit));
    Ok(verdict)
}

/// The project has no such part. What can be run says more than what can be seen, but for a user interface, which would
/// only be built once more with the whole.
fn is_absent(tree: &Tree, part: Side, orders: &[Order]) -> bool {
    !parts::has(tree, part) && (part == Side::Frontend || orders.is_empty())
}

/// The commands of the project's files, those that were known when the run began among them, and what they leave out.
fn found(
    request: &Request,
    what: &str,
    tree: &Tree,
    mut orders: Vec<Order>,
    earlier: &Earlier,
) -> Result<(Verdict, Vec<Ran>), Trouble> {
    let (project, limit) = (&request.project, limit(request));
    let (all, part) = (order::all(tree, what), order::part(request)?);
    let then: Vec<Order> = earlier.commands(what).iter().map(Order::from).collect();
    let hidden = weakened::hidden(&order::select(&then, tree, what, part), &orders, &all);
    orders.extend(hidden);
    let (narrowed, mut note) = match request.operation.as_str() {
        "test.regression" => related::narrowed(request, tree, orders.clone()),
        _ => (orders.clone(), String::new()),
    };
    let mut ran = run_all(&narrowed, project, limit)?;
    if narrowed != orders && ran.iter().any(Ran::found_none) {
        note = format!("{note} They have no tests of their own, so all ran.");
        ran = run_all(&orders, project, limit)?;
    }
    let mut verdict = Verdict::of(what, &ran, project);
    if verdict.ran {
        verdict.add_note(&note);
    }
    if what == "test" {
        let uncovered = uncovered::uncovered(tree, &orders, part);
        verdict.doubt_all(&uncovered);
        if !uncovered.is_empty() {
            verdict.offer(&ran);
        }
    }
    verdict.doubt_all(&earlier.changed_commands(tree, what, &orders, &all));
    if orders.is_empty() {
        let of = if part_is_all(request) {
            String::new()
        } else {
            format!(" for the {}", order::part_name(request))
        };
        verdict.doubt(&format!("No {what} command was found{of}."));
    }
    // A part of its tests says nothing about how many there are.
    ran.retain(|ran| orders.contains(&ran.order));
    Ok((verdict, ran))
}

/// What is said at the end, whatever was run.
fn judged(request: &Request, what: &str, mut verdict: Verdict, ran: &[Ran], earlier: &Earlier) -> Verdict {
    // The tests may have written files; the tree that was read before does not matter here.
    if what == "test"
        && verdict.passed == Some(true)
        && let Ok(tree) = Tree::read(&request.project)
    {
        verdict.doubt_all(&earlier.weaker(&tree, ran));
    }
    if request.operation == "test.regression" {
        related::compare(&mut verdict, request);
    }
    if verdict.passed.is_none() && !verdict.is_nothing() {
        let hint = hint(request, what, &verdict);
        verdict.add_note(&hint);
    }
    verdict
}

/// How a person can name the command.
fn hint(request: &Request, what: &str, verdict: &Verdict) -> String {
    let table = if part_is_all(request) {
        "checks".to_string()
    } else {
        format!("checks.{}", order::part_name(request))
    };
    if let Some(lines) = verdict.offered() {
        let lines: Vec<String> = lines.iter().map(|line| Value::from(line.as_str()).to_string()).collect();
        let value = if lines.len() == 1 { lines[0].clone() } else { format!("[{}]", lines.join(", ")) };
        return format!(
            "To go by the exit code alone, name the command in sage.toml: [{table}] {what} = {value}."
        );
    }
    match (verdict.ran, verdict.names_commands()) {
        (true, _) if verdict.found_none() => {
            format!("If there is nothing to run, say so in sage.toml: [{table}] {what} = false.")
        }
        (true, _) => String::new(),
        (false, true) => {
            format!(
                "Install what is missing, or name another command in sage.toml: [{table}] {what} = \"<command>\"."
            )
        }
        (false, false) => format!("Name it in sage.toml: [{table}] {what} = \"<command>\"."),
    }
}

fn part_is_all(request: &Request) -> bool {
    order::part_name(request) == "all"
}

fn limit(request: &Request) -> Duration {
    request.params.get("timeoutMs").and_then(Value::as_u64).map_or(LIMIT, Duration::from_millis)
}

/// One after the other, within one limit for all: builds of one project fight over the same files.
fn run_all(orders: &[Order], project: &Path, limit: Duration) -> Result<Vec<Ran>, Trouble> {
    let mut all = Vec::new();
    let mut left = limit;
    for order in orders {
        let dir = project.join(&order.folder);
        let unreadable = |source| Trouble::Unreadable { path: dir.clone(), source };
        let ran = match order.missing_program(project) {
            Some(program) => Ran::not_run(order, format!("`{program}` is not installed")),
            None if order.is_comment() => Ran::not_run(order, "it is only a comment".to_string()),
            None if left.is_zero() => Ran::not_run(order, "no time was left".to_string()),
            None => match child::alone_in(&dir, limit).map_err(unreadable)? {
                None => Ran::not_run(order, "commands of another step still run in its folder".to_string()),
                Some(_alone) => {
                    let started = Instant::now();
                    let ended = child::run(&order.telling(), &dir, left).map_err(unreadable)?;
                    left = left.saturating_sub(started.elapsed());
                    Ran::ended(order, ended)
                }
            },
        };
        all.push(ran);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
