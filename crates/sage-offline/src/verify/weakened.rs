//! Whether the checks themselves were made weaker while the run was under way: tests that are gone or switched off, a
//! command that is gone, hidden behind another one, or decided about by other files. Compared with the project as it
//! was when the run began, or in a worktree with the commit that it began at.
//!
//! Such a change can be right. Then a person says so; that the remaining tests pass does not.

use std::collections::BTreeMap;

use super::baseline::{self, Baseline, Known, Tests};
use super::decides;
use super::executed::{self, Executed};
use super::order::{self, Order};
use super::verdict::Ran;
use super::{commit, family::Family};
use crate::git::git;
use crate::request::{Before, Request};
use crate::walk::Tree;

const NAMED: usize = 3;
const PERSON: &str = "A person must say whether that is right.";

/// How the project was before the run did something.
pub enum Earlier {
    /// There is no run.
    Unasked,
    Lost,
    Known {
        baseline: Box<Baseline>,
        /// `the run began`
        since: String,
    },
}

impl Earlier {
    pub fn of(request: &Request) -> Earlier {
        match &request.before {
            Before::Unasked => Earlier::Unasked,
            Before::Lost => Earlier::Lost,
            Before::Known(known) => {
                Earlier::Known { baseline: known.clone(), since: "the run began".to_string() }
            }
            Before::Commit(commit) => match commit::baseline(request, commit) {
                Some(mut baseline) => {
                    let ran = request.ran.iter().filter(|ran| ran.commit == *commit);
                    baseline.ran = ran.cloned().collect();
                    Earlier::Known {
                        baseline: Box::new(baseline),
                        since: format!("commit {}", short(commit)),
                    }
                }
                None => Earlier::Lost,
            },
        }
    }

    /// Commands for a check that were known then.
    pub fn commands(&self, what: &str) -> &[Known] {
        if let Earlier::Known { baseline, .. } = self { baseline.commands(what) } else { &[] }
    }

    /// Fewer tests than before, or it is not known how many there were.
    fn fewer_tests(&self, tree: &Tree) -> Option<String> {
        let lost = || Some(format!("It is not known which tests there were when the run began. {PERSON}"));
        match self {
            Earlier::Unasked => None,
            Earlier::Lost => lost(),
            Earlier::Known { baseline, since } => match (&baseline.tests, baseline::all(tree)) {
                (Some(then), Some(now)) => fewer(then, &now, since),
                _ => lost(),
            },
        }
    }

    /// What is not as it was with the commands that ran. `all` are those that the project's files name now.
    pub fn changed_commands(&self, tree: &Tree, what: &str, ran: &[Order], all: &[Order]) -> Vec<String> {
        let Earlier::Known { baseline, since } = self else { return Vec::new() };
        let mut told = Vec::new();
        for order in ran {
            let known = match order.is_named() {
                true => baseline.named.iter().find(|known| known.line == order.line),
                false => baseline.commands(what).iter().find(|known| order.stands_for(known)),
            };
            let Some(known) = known else { continue };
            let now = decides::of(tree, &order.folder, &order.line);
            let files = decides::changed(&known.decides, &now.decides);
            if !files.is_empty() {
                let files = listed(&files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>());
                told.push(format!("What `{}` does was changed since {since}: {files}. {PERSON}", order.line));
            }
        }
        let is_there = |known: &&Known| all.iter().any(|order| order.stands_for(known));
        let gone = baseline.commands(what).iter().filter(|known| !is_there(known));
        let is_looked_up = ran.iter().any(|order| !order.is_named()) || ran.is_empty();
        told.extend(gone.filter(|_| is_looked_up).map(|known| gone_since(known, all, since)));
        told
    }
}

impl Earlier {
    /// Why tests that pass now do not say as much as those before: fewer of them ran, or the sources have fewer.
    pub fn weaker(&self, tree: &Tree, ran: &[Ran]) -> Vec<String> {
        let Earlier::Known { baseline, since } = self else { return Vec::from_iter(self.fewer_tests(tree)) };
        let told = fewer_ran(baseline, tree, ran);
        if !told.is_empty() {
            // The sources tell where.
            return self.fewer_tests(tree).map_or(told, |why| vec![why]);
        }
        let measured: Option<Vec<&Executed>> = ran
            .iter()
            .map(|ran| executed::earlier(&baseline.ran, &ran.order).filter(|it| it.is_known()))
            .collect();
        let now = baseline::all(tree);
        let (Some(measured), Some(then), Some(now)) =
            (measured.filter(|it| !it.is_empty()), &baseline.tests, now)
        else {
            return Vec::from_iter(self.fewer_tests(tree));
        };
        // As many tests ran as before: one that passed then and is missing has another name.
        let failed = |name: &str| measured.iter().any(|it| it.red().contains(name));
        Vec::from_iter(fewer(&renamed(then, &now, &failed), &now, since))
    }
}

/// The tests of before with the names that they have now, as far as that can be.
fn renamed(then: &Tests, now: &Tests, failed: &dyn Fn(&str) -> bool) -> Tests {
    let count = |tests: &Tests| tests.values().map(|file| file.names.len()).sum::<usize>();
    let names = |tests: &Tests| tests.values().flat_map(|file| file.names.clone()).collect::<Vec<_>>();
    if count(now) < count(then) {
        return then.clone();
    }
    let kept = names(now);
    let mut left = then.clone();
    for file in left.values_mut() {
        file.names.retain(|name| kept.contains(name) || failed(name) || name.ends_with(')'));
    }
    left
}

/// Commands that ran fewer tests than before the change, or of which nothing tells whether they did.
fn fewer_ran(baseline: &Baseline, tree: &Tree, ran: &[Ran]) -> Vec<String> {
    let (literal, mut told) = (baseline.literal(), Vec::new());
    for ran in ran {
        let Some(then) = executed::earlier(&baseline.ran, &ran.order) else { continue };
        let why = executed::fewer(then, Executed::of(ran).as_ref(), &literal);
        let blind = || then.is_blind().then(|| opaque(tree, &ran.order)).flatten();
        told.extend(why.or_else(blind).map(|why| format!("{why} {PERSON}")));
    }
    told
}

fn opaque(tree: &Tree, order: &Order) -> Option<String> {
    let command = decides::of(tree, &order.folder, &order.line).opaque?;
    Some(format!(
        "`{}` failed before the change without naming a test, and what `{command}` in it starts is not known.",
        order.line
    ))
}

/// Commands that were there, are still known, and are not run now because something new hides them.
pub fn hidden(then: &[Order], now: &[Order], all: &[Order]) -> Vec<Order> {
    let is_run = |order: &&Order| now.iter().any(|other| other.is_same(order));
    let still = |order: &Order| all.iter().find(|other| other.is_same(order)).cloned();
    then.iter().filter(|order| !is_run(order)).filter_map(still).collect()
}

impl Order {
    /// The same command, or one of the same tool that runs at least as much.
    fn stands_for(&self, known: &Known) -> bool {
        let family = order::family(&known.line);
        let same_place = self.folder == known.folder && self.family() == family;
        if !same_place || family == Family::Wrapper {
            return same_place && self.line == known.line;
        }
        self.replaces(&known.folder, &known.line)
    }
}

fn gone_since(known: &Known, all: &[Order], since: &str) -> String {
    let file = known.evidence.rsplit_once(':').map_or(known.evidence.as_str(), |(file, _)| file);
    let family = order::family(&known.line);
    let other = all
        .iter()
        .find(|order| order.folder == known.folder && order.family() == family && family != Family::Wrapper);
    match other {
        Some(order) => {
            format!("`{}` has become `{}` since {since}. {PERSON}", known.line, order.line)
        }
        None => format!("`{}` (`{file}`) is gone since {since}. {PERSON}", known.line),
    }
}

/// Tests that moved are still there, if their new file is loaded as well; one with another name is another one.
fn fewer(then: &Tests, now: &Tests, since: &str) -> Option<String> {
    let mut left = counted(now);
    let mut gone = Vec::new();
    for (path, file) in then {
        let pools = if baseline::is_loaded(path) { &[true][..] } else { &[false, true] };
        let mut missing = Vec::new();
        for name in &file.names {
            let pool =
                pools.iter().find(|pool| left.get(&(**pool, name.as_str())).is_some_and(|count| *count > 0));
            match pool.and_then(|pool| left.get_mut(&(*pool, name.as_str()))) {
                Some(count) => *count -= 1,
                None => missing.push(name),
            }
        }
        // A class goes with its tests, and is no test itself.
        if missing.iter().any(|name| !name.ends_with(')')) {
            missing.retain(|name| !name.ends_with(')'));
        }
        gone.extend(missing.into_iter().map(|name| format!("`{name}` in `{path}`")));
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
        let tests = if count == 1 { "test was" } else { "tests were" };
        format!("{count} {tests} removed or switched off since {since}: {}. {PERSON}", listed(&gone))
    })
}

fn listed(names: &[String]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

/// How many tests of a name are in files that are loaded by their own name, and in others.
fn counted(tests: &Tests) -> BTreeMap<(bool, &str), usize> {
    let mut counts = BTreeMap::new();
    for (path, file) in tests {
        for name in &file.names {
            *counts.entry((baseline::is_loaded(path), name.as_str())).or_insert(0) += 1;
        }
    }
    counts
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

/// The commit that HEAD was at when the run began: of a worktree it is known, else git's own record tells.
fn base(request: &Request) -> Option<String> {
    if let Before::Commit(commit) = &request.before {
        return Some(commit.clone());
    }
    // Git counts in seconds: what was committed in the run's first one is the run's.
    let then = request.run_began_s.map(|began_s| format!("HEAD@{{{}}}", began_s.saturating_sub(1)));
    let ask = |name: &str| git(&request.project, &["rev-parse", "--verify", "--quiet", name]).ok();
    let found = then.and_then(|then| ask(&then)).or_else(|| ask("HEAD"))?;
    Some(found.trim().to_string()).filter(|commit| !commit.is_empty())
}
