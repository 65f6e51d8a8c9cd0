//! Whether the checks themselves were made weaker while the run was under way: tests that are gone or switched off, a
//! command that does something else now. Compared with the project as it was when the run began, or in a worktree
//! with the commit that it was at.
//!
//! Such a change can be right. Then a person says so; that the remaining tests pass does not.

use std::collections::BTreeMap;

use super::baseline::{self, Tests};
use super::order::Order;
use crate::git::git;
use crate::request::{Before, Request};
use crate::walk::Tree;

/// More changed files than these are not compared one by one.
const MOST_FILES: usize = 300;
const NAMED: usize = 3;
const PERSON: &str = "A person must say whether that is right.";

/// Fewer tests than before, or it is not known how many there were.
pub fn tests(request: &Request) -> Option<String> {
    let (then, now, since) = match &request.before {
        Before::Known(known) if known.tests.is_some() => {
            let now = Tree::read(&request.project).ok().and_then(|tree| baseline::all(&tree));
            (known.tests.clone(), now, "the run began".to_string())
        }
        before => match committed(request) {
            Some((then, now, commit)) => (Some(then), Some(now), format!("commit {commit}")),
            None if *before == Before::Unasked => return None,
            None => (None, None, String::new()),
        },
    };
    let (Some(then), Some(now)) = (then, now) else {
        return Some(format!("It is not known which tests there were when the run began. {PERSON}"));
    };
    fewer(&then, &now, &since)
}

/// The tests of the files that differ from the commit of the run's beginning: then and now.
fn committed(request: &Request) -> Option<(Tests, Tests, String)> {
    let project = &request.project;
    let base = base(request)?;
    let changed = git(project, &["diff", "--name-only", "-z", "--no-renames", "--relative", &base]).ok()?;
    let new = git(project, &["ls-files", "-z", "--others", "--exclude-standard"]).unwrap_or_default();
    let paths = |text: &str| -> Vec<String> {
        text.split('\0').filter(|path| baseline::is_source(path)).map(str::to_string).collect()
    };
    let (changed, new) = (paths(&changed), paths(&new));
    (changed.len() <= MOST_FILES).then_some(())?;
    let read = |path: &String| std::fs::read_to_string(project.join(path)).unwrap_or_default();
    let show = |path: &String| git(project, &["show", &format!("{base}:./{path}")]).unwrap_or_default();
    let then = changed.iter().map(|path| (path.clone(), baseline::tests(path, &show(path)))).collect();
    // Tests may have moved to a file that git does not know yet.
    let now = changed.iter().chain(&new).map(|path| (path.clone(), baseline::tests(path, &read(path))));
    Some((then, now.collect(), short(&base).to_string()))
}

/// Tests that moved are still there; one with another name is another one.
fn fewer(then: &Tests, now: &Tests, since: &str) -> Option<String> {
    let mut left = counted(now);
    let mut gone = Vec::new();
    for (path, file) in then {
        for name in &file.names {
            match left.get_mut(name.as_str()).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => gone.push(format!("`{name}` in `{path}`")),
            }
        }
    }
    let off = |tests: &Tests| tests.values().map(|file| file.off).sum::<usize>();
    let switched = off(now).saturating_sub(off(then));
    let count = gone.len() + switched;
    if switched > 0 {
        let before = |path: &String| then.get(path).map_or(0, |file| file.off);
        let more = now.iter().filter(|(path, file)| file.off > before(path));
        gone.extend(more.map(|(path, _)| format!("switched off in `{path}`")));
    }
    (count > 0).then(|| {
        let more =
            if gone.len() > NAMED { format!(" and {} more", gone.len() - NAMED) } else { String::new() };
        gone.truncate(NAMED);
        let tests = if count == 1 { "test was" } else { "tests were" };
        format!("{count} {tests} removed or switched off since {since}: {}{more}. {PERSON}", gone.join(", "))
    })
}

fn counted(tests: &Tests) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in tests.values().flat_map(|file| &file.names) {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    counts
}

/// A command that is not what it was.
pub fn commands(request: &Request, orders: &[Order]) -> Option<String> {
    let (order, since) = match &request.before {
        Before::Known(known) => {
            let is_other = |order: &&Order| {
                let then = known.commands.get(&baseline::key(&order.folder, &order.line));
                then.is_some_and(|then| *then != order.definition)
            };
            (orders.iter().find(is_other)?, "the run began".to_string())
        }
        _ => {
            let base = base(request)?;
            (changed_since(request, orders, &base)?, format!("commit {}", short(&base)))
        }
    };
    Some(format!("What `{}` does was changed since {since} ({}). {PERSON}", order.line, order.evidence))
}

fn changed_since<'a>(request: &Request, orders: &'a [Order], base: &str) -> Option<&'a Order> {
    let is_other = |order: &&Order| {
        let file = order.evidence.rsplit_once(':').map_or("", |(file, _)| file);
        let then = git(&request.project, &["show", &format!("{base}:./{file}")]);
        let lines = order.definition.lines().map(str::trim).filter(|line| !line.is_empty());
        then.is_ok_and(|then| {
            lines.into_iter().any(|line| !then.contains(line) && !then.contains(&quoted(line)))
        })
    };
    orders.iter().filter(|order| !order.definition.is_empty()).find(is_other)
}

/// Files that commits of the run changed.
pub fn committed_since(request: &Request) -> Vec<String> {
    let changed = |base: String| {
        git(&request.project, &["diff", "--name-only", "-z", "--no-renames", "--relative", &base, "HEAD"])
            .ok()
    };
    let text = base(request).and_then(changed).unwrap_or_default();
    text.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect()
}

fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// As JSON writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().trim_matches('"').to_string()
}

/// The commit that HEAD was at when the run began, by git's own record of where it has been.
fn base(request: &Request) -> Option<String> {
    // Git counts in seconds: what was committed in the run's first one is the run's.
    let then = request.run_began_s.map(|began_s| format!("HEAD@{{{}}}", began_s.saturating_sub(1)));
    let ask = |name: &str| git(&request.project, &["rev-parse", "--verify", "--quiet", name]).ok();
    let found = then.and_then(|then| ask(&then)).or_else(|| ask("HEAD"))?;
    Some(found.trim().to_string()).filter(|commit| !commit.is_empty())
}
