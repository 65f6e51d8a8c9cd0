//! Tests that ran: how many, how many were left aside, and their names where the output has them.
//!
//! ```text
//! before the change   12 ran, 1 skipped, {test_total, ..}
//! now                 11 ran, 1 skipped, {..}              -> not a pass: 1 test did not run
//! ```
//! However a test was kept from running, it is not among those that ran. Names are compared for tests that the sources
//! name as well: others may be made up anew each time.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Names that the output shows.
    #[serde(default)]
    shown: usize,
    /// How many tests of each name; nothing if the output does not name all that ran.
    #[serde(default)]
    names: BTreeMap<String, usize>,
    /// The check that passed with them; empty if they ran before the change.
    #[serde(default)]
    pub step: String,
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
        let shown = names.values().sum();
        Some(Executed {
            line: ran.order.line.clone(),
            folder: ran.order.folder.clone(),
            ran: ran_units,
            aside: counts.aside,
            passed: ended.exit_code == Some(0),
            shown,
            names: if shown == ran_units { names } else { BTreeMap::new() },
            ..Executed::default()
        })
    }

    /// It failed, and shows no test.
    pub fn is_blind(&self) -> bool {
        !self.passed && self.ran == 0
    }

    fn is_of(&self, order: &Order) -> bool {
        (&self.folder, &self.line) == (&order.folder, &order.line)
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
        self.shown = if self.names.is_empty() { 0 } else { self.ran };
    }
}

/// What ran before, as far as a check is compared with it: that before the change, and what the same check ran when it
/// passed.
pub fn earlier<'a>(all: &'a [Executed], order: &Order, step: &str) -> Vec<&'a Executed> {
    let own = |then: &&Executed| then.step.is_empty() || then.step == step;
    let known: Vec<&Executed> = all.iter().filter(own).collect();
    let same: Vec<&Executed> = known.iter().copied().filter(|then| then.is_of(order)).collect();
    // Python's runners find each other's tests.
    let python = |then: &&&Executed| order.replaces(&then.folder, &then.line);
    if same.is_empty() { known.iter().filter(python).copied().collect() } else { same }
}

/// Why a command that passes did not run all that it ran before. `literal` are the tests that the sources name.
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
    let when = then.when();
    let which = if missing.is_empty() { String::new() } else { format!(": {}", listed(&missing)) };
    if now.ran < then.ran {
        return Some(format!("{} ran {when}, {} now{which}.", tests(then.ran), now.ran));
    }
    if !missing.is_empty() {
        return Some(format!("Tests that ran {when} do not run now{which}."));
    }
    if now.aside > then.aside && (then.passed || now.ran == then.ran) {
        let before = if then.aside == 0 { "none".to_string() } else { then.aside.to_string() };
        let (now, is) = (tests(now.aside), if now.aside == 1 { "is" } else { "are" });
        return Some(format!("{now} {is} skipped, {before} {when}."));
    }
    let unnamed = then.ran > 0 && then.shown == then.ran && now.shown == 0;
    unnamed.then(|| format!("`{}` named the tests that it ran {when}, and names none now.", then.line))
}

impl Executed {
    fn when(&self) -> &'static str {
        if self.step.is_empty() { "before the change" } else { "when this check passed before" }
    }
}

fn tests(count: usize) -> String {
    if count == 1 { "1 test".to_string() } else { format!("{count} tests") }
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    let told: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    format!("{}{more}", told.join(", "))
}
