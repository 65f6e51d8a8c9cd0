//! Where the work of isolated steps is: told at the end of a run, and by `sage status`.
//!
//! Worktrees in which nothing changed are gone by then.

use std::fmt::Write;

use sage_agents::worktree::{self, LeaseState, Record};
use sage_core::diagnostic::printable;
use sage_core::run::Run;
use sage_core::seal::Key;
use sage_core::template::{Isolation, Operation};
use sage_engine::project::Project;
use serde_json::{Value, json};

use super::notes::Note;

/// Lines that a person reads; the others are in the folder.
const SHOWN: usize = 10;

/// Of steps that have ended. A folder that cannot be read is told by `sage gc`.
fn of(project: &Project, run: &str, key: Option<&Key>) -> Vec<Record> {
    let dir = project.dir.join("worktrees");
    let mut leases = worktree::list_of(&dir, run, key).unwrap_or_default().found;
    let ended = |state: LeaseState| matches!(state, LeaseState::Committed | LeaseState::Failed);
    leases.retain(|lease| ended(lease.state));
    leases
}

/// A worktree starts from a commit: changes of the checkout that are not committed are not in it.
pub fn uncommitted(project: &Project, run: &Run) -> Vec<Note> {
    let isolated = |operation: &Operation| operation.isolation == Isolation::Worktree;
    let plans = run.named_plans();
    let mut templates =
        std::iter::once(&run.plan().template).chain(plans.iter().map(|(_, plan)| &plan.template));
    let any =
        templates.any(|template| template.phases.iter().any(|phase| phase.operations.iter().any(isolated)));
    let files = if any { sage_offline::uncommitted(&project.root).unwrap_or_default() } else { Vec::new() };
    let Some(first) = files.first() else { return Vec::new() };
    let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    let text =
        "worktrees start from the last commit; uncommitted changes are not in them and not tested there";
    vec![Note::warning(format!("{text}: `{}`{more}", printable(first))).hint("git commit -a")]
}

/// On stderr, if there is anything.
pub fn tell(project: &Project, run: &str, key: Option<&Key>) {
    let leases = of(project, run, key);
    if !leases.is_empty() {
        eprint!("{}", text(project, &leases));
    }
}

pub fn json(project: &Project, run: &str, key: Option<&Key>) -> Option<Value> {
    let leases = of(project, run, key);
    let one = |lease: &Record| {
        json!({"step": lease.step, "state": lease.state, "branch": lease.branch, "commit": lease.commit,
            "path": lease.path})
    };
    (!leases.is_empty()).then(|| leases.iter().map(one).collect())
}

fn text(project: &Project, leases: &[Record]) -> String {
    let mut out = match leases.len() {
        1 => "note: 1 step has work in a worktree of its own\n".to_string(),
        many => format!("note: {many} steps have work in worktrees of their own\n"),
    };
    for lease in leases.iter().take(SHOWN) {
        let path = lease.path.strip_prefix(&project.root).unwrap_or(&lease.path).display();
        // Writing to a string cannot fail.
        let _ = match (&lease.commit, lease.state) {
            (Some(_), LeaseState::Committed) => writeln!(out, "  {}: branch {}", lease.step, lease.branch),
            (None, LeaseState::Committed) => {
                writeln!(out, "  {}: only files that git ignores, in {path}", lease.step)
            }
            _ => writeln!(out, "  {}: not committed, it failed; in {path}", lease.step),
        };
    }
    if leases.len() > SHOWN {
        let _ = writeln!(out, "  and {} more", leases.len() - SHOWN);
    }
    let ready = leases.iter().find(|lease| lease.commit.is_some() && lease.state == LeaseState::Committed);
    if let Some(lease) = ready {
        let _ = writeln!(out, "hint: git merge {}    # takes it over", lease.branch);
    }
    out
}
