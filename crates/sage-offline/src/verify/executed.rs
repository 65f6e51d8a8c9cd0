//! Tests that ran: how many, how many were left aside, and their names where the output has them.
//!
//! ```text
//! before the change   12 ran, 1 skipped, {test_total, ..}
//! now                 11 ran, 1 skipped, {..}              -> not a pass: 1 test did not run
//! ```
//! However a test was kept from running, it is not among those that ran. Names are compared for tests that the sources
//! name as well: others may be made up anew each time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::failures;
use super::order::Order;
use super::verdict::Ran;

const NAMED: usize = 3;

/// What one command ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    pub line: String,
    /// Relative to the project.
    pub folder: String,
    pub ran: usize,
    /// Skipped, ignored, expected to fail.
    pub aside: usize,
    /// It ended with exit code 0. One that did not may have stopped halfway.
    #[serde(default)]
    passed: bool,
    /// How many tests of each name; nothing if the output does not name all that ran.
    #[serde(default)]
    names: BTreeMap<String, usize>,
    /// Tests that failed.
    #[serde(default)]
    red: BTreeSet<String>,
    /// The commit that the files were at, if they were.
    #[serde(default)]
    pub commit: String,
}

impl Executed {
    /// Nothing of a command that did not come to its end.
    pub fn of(ran: &Ran) -> Option<Executed> {
        let ended = ran.ended.as_ref().filter(|ended| !ended.timed_out && ended.exit_code.is_some())?;
        let counts = failures::counts(&ended.output).unwrap_or_default();
        let ran_units = if counts.ran == 0 { failures::units(&ended.output) } else { counts.ran };
        let mut names = BTreeMap::new();
        for name in failures::names(&ended.output) {
            *names.entry(name).or_insert(0) += 1;
        }
        let shown: usize = names.values().sum();
        let failed = failures::of_tests(&ended.output, Path::new(""), "");
        Some(Executed {
            line: ran.order.line.clone(),
            folder: ran.order.folder.clone(),
            ran: ran_units,
            aside: counts.aside,
            passed: ended.exit_code == Some(0),
            names: if shown == ran_units { names } else { BTreeMap::new() },
            red: failed.iter().map(|failure| short(&failure.name).to_string()).collect(),
            ..Executed::default()
        })
    }

    /// It failed, and shows no test.
    pub fn is_blind(&self) -> bool {
        !self.passed && self.ran == 0
    }

    /// It told how many tests ran, and which of them failed if any did.
    pub fn is_known(&self) -> bool {
        self.ran > 0 && (self.passed || !self.red.is_empty())
    }

    pub fn red(&self) -> &BTreeSet<String> {
        &self.red
    }

    fn is_of(&self, order: &Order) -> bool {
        (&self.folder, &self.line) == (&order.folder, &order.line)
    }

    /// A person added tests, so that as many as before may run although one is missing: names count again.
    pub fn forget_ends(&mut self) {
        self.passed = false;
        self.red.clear();
    }

    /// A person removed tests of these names, and switched some off.
    pub fn without(&mut self, names: &BTreeMap<String, usize>, off: usize) {
        let is_named = !self.names.is_empty();
        for (name, count) in names {
            let own = self.names.get(name).copied().unwrap_or(0);
            // Where names are not known, each of them may have been one of these.
            let gone = if is_named { own.min(*count) } else { *count };
            self.names.insert(name.clone(), own - own.min(gone));
            self.ran = self.ran.saturating_sub(gone);
        }
        self.ran = self.ran.saturating_sub(off);
        self.aside += off;
        if off > 0 || !is_named {
            self.names.clear();
        }
        self.red.retain(|name| !names.contains_key(name));
    }
}

/// The last part of a test's name, as its source has it: `CartTest::test_total[1]`, `Cart › adds up`, `TestTotal/zero`.
fn short(name: &str) -> &str {
    let name = name.split('[').next().unwrap_or(name);
    let last = |separator: &str| name.rsplit(separator).next().filter(|last| last.len() < name.len());
    let dotted = || last(".").filter(|_| !name.contains(' '));
    let parts = || name.split('/').next().unwrap_or(name);
    last("::").or_else(|| last(" › ")).or_else(|| last(" > ")).or_else(dotted).unwrap_or_else(parts).trim()
}

/// What a command ran before the change.
pub fn earlier<'a>(all: &'a [Executed], order: &Order) -> Option<&'a Executed> {
    // Python's runners find each other's tests.
    let stands_in = |then: &&Executed| order.replaces(&then.folder, &then.line);
    all.iter().find(|then| then.is_of(order)).or_else(|| all.iter().find(stands_in))
}

/// Why a command that passes did not run all that it ran before: fewer tests, more of them skipped, or not those that
/// failed. A test that passed may have another name now. `literal` are the tests that the sources name.
pub fn fewer(then: &Executed, now: Option<&Executed>, literal: &BTreeSet<&str>) -> Option<String> {
    let nothing = Executed::default();
    let now = now.unwrap_or(&nothing);
    let count = |name: &str| now.names.get(name).copied().unwrap_or(0);
    let compares = !then.names.is_empty() && !now.names.is_empty();
    let missing: Vec<&str> = then
        .names
        .iter()
        .filter(|(name, before)| compares && literal.contains(name.as_str()) && count(name) < **before)
        .map(|(name, _)| name.as_str())
        .collect();
    if now.ran < then.ran {
        let which = if missing.is_empty() { String::new() } else { format!(": {}", listed(&missing)) };
        return Some(format!("{} ran before the change, {} now{which}.", tests(then.ran), now.ran));
    }
    let red: Vec<&str> = missing.into_iter().filter(|name| then.red.contains(*name)).collect();
    if !red.is_empty() {
        return Some(format!("Tests that failed before the change do not run now: {}.", listed(&red)));
    }
    (now.aside > then.aside && (then.passed || now.ran == then.ran)).then(|| {
        let before = if then.aside == 0 { "none".to_string() } else { then.aside.to_string() };
        let (now, is) = (tests(now.aside), if now.aside == 1 { "is" } else { "are" });
        format!("{now} {is} skipped, {before} before the change.")
    })
}

fn tests(count: usize) -> String {
    if count == 1 { "1 test".to_string() } else { format!("{count} tests") }
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    let told: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    format!("{}{more}", told.join(", "))
}
