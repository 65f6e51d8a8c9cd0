//! What the commands amount to. Never better than the facts.

use std::path::Path;

use serde_json::{Value, json};

use super::child::Ended;
use super::failures::{self, Counts, Failure};
use super::order::Order;
use crate::request::Trouble;

/// What a person needs to see of an output.
const TAIL_LINES: usize = 40;
const TAIL_CHARS: usize = 4_000;

/// One command: how it ended, or why it did not begin.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub order: Order,
    pub ended: Option<Ended>,
    pub why_not: String,
}

impl Ran {
    pub fn not_run(order: &Order, why: String) -> Ran {
        Ran { order: order.clone(), ended: None, why_not: why }
    }

    pub fn ended(order: &Order, ended: Ended) -> Ran {
        let why_not = not_installed(&ended).unwrap_or_default();
        Ran { order: order.clone(), ended: Some(ended), why_not }
    }

    /// True or false if a program said so.
    fn passed(&self) -> Option<bool> {
        let ended = self.ended.as_ref().filter(|_| self.why_not.is_empty())?;
        if ended.exit_code == Some(0) {
            let none = self.counts().is_some_and(|counts| counts.ran == 0);
            return (!none).then_some(true);
        }
        // pytest and unittest: no tests were found.
        let found_none = ended.exit_code == Some(5) && self.counts().is_some_and(|counts| counts.ran == 0);
        (!found_none).then_some(false)
    }

    fn counts(&self) -> Option<Counts> {
        self.ended.as_ref().and_then(|ended| failures::counts(&ended.output))
    }

    fn failures(&self, project: &Path) -> Vec<Failure> {
        let Some(ended) = self.ended.as_ref().filter(|_| self.passed() == Some(false)) else {
            return Vec::new();
        };
        let mut found = failures::read(&ended.output, project, &self.order.folder);
        if ended.timed_out || found.is_empty() {
            let detail = tail(&ended.output, 12, 1_000);
            let how = match (ended.timed_out, ended.exit_code) {
                (true, _) => format!("was stopped after {:.1} s", ended.duration_ms as f64 / 1000.0),
                (_, Some(code)) => format!("ended with exit code {code}"),
                (_, None) => "was killed by a signal".to_string(),
            };
            let name = format!("`{}` {how}", self.order.line);
            found.insert(0, Failure { name, detail, evidence: Vec::new() });
        }
        found
    }

    fn to_json(&self) -> Value {
        let ended = self.ended.clone().unwrap_or_default();
        let mut command = json!({"command": self.order.line, "exitCode": ended.exit_code,
            "durationMs": ended.duration_ms, "tail": tail(&ended.output, TAIL_LINES, TAIL_CHARS)});
        for (key, text) in
            [("folder", &self.order.folder), ("evidence", &self.order.evidence), ("whyNot", &self.why_not)]
        {
            if !text.is_empty() {
                command[key] = json!(text);
            }
        }
        if ended.timed_out {
            command["timedOut"] = json!(true);
        }
        command
    }
}

/// 127 is the shell's word for a program that is not there; Python says it in a sentence.
fn not_installed(ended: &Ended) -> Option<String> {
    if ended.exit_code == Some(127) {
        let line = ended.output.lines().rfind(|line| line.contains("not found"));
        return Some(line.map_or("a program is not installed".to_string(), |line| line.trim().to_string()));
    }
    let runner = |line: &&str| {
        let module = line.split("No module named ").nth(1).map(|name| name.trim_matches(['\'', '"', ' ']));
        ended.exit_code == Some(1) && module.is_some_and(|name| ["pytest", "tox", "nox"].contains(&name))
    };
    ended.output.lines().find(runner).map(|line| line.trim().to_string())
}

/// The result of the operation.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub ran: bool,
    pub passed: Option<bool>,
    pub summary: String,
    pub failures: Vec<Failure>,
    pub commands: Vec<Value>,
}

impl Verdict {
    pub fn of(what: &str, ran: Vec<Ran>, project: &Path, none_reason: String) -> Verdict {
        let outcomes: Vec<Option<bool>> = ran.iter().map(Ran::passed).collect();
        let passed = match () {
            () if outcomes.contains(&Some(false)) => Some(false),
            () if outcomes.is_empty() || outcomes.contains(&None) => None,
            () => Some(true),
        };
        let failures: Vec<Failure> = ran.iter().flat_map(|ran| ran.failures(project)).collect();
        let summary = if ran.is_empty() { none_reason } else { sentence(what, &ran, &outcomes, &failures) };
        Verdict {
            ran: ran.iter().any(|ran| ran.ended.is_some() && ran.why_not.is_empty()),
            passed,
            summary,
            failures,
            commands: ran.iter().map(Ran::to_json).collect(),
        }
    }

    pub fn add_note(&mut self, note: &str) {
        if !note.is_empty() {
            self.summary = format!("{} {note}", self.summary);
        }
    }

    /// A step whose tests fail has failed; what was found out goes with it.
    pub fn into_result(self) -> Result<Value, Trouble> {
        let partial = json!({"ran": self.ran, "passed": self.passed, "commands": self.commands,
            "summary": self.summary, "failures": self.failures,
            "method": "offline: the project's own commands, run as they are; failures read from their output"});
        match self.passed {
            Some(false) => Err(Trouble::Failed { message: self.summary, partial }),
            _ => Ok(partial),
        }
    }
}

/// `12 tests ran, 1 failed: test_a (tests/test_a.py:3). Commands: `pytest` (1.2 s, exit code 1).`
fn sentence(what: &str, ran: &[Ran], outcomes: &[Option<bool>], failures: &[Failure]) -> String {
    let counts: Vec<Counts> = ran.iter().filter_map(Ran::counts).collect();
    let tests: usize = counts.iter().map(|counts| counts.ran).sum();
    let failed: usize = counts.iter().map(|counts| counts.failed).sum();
    let mut said = Vec::new();
    if what == "test" && !counts.is_empty() {
        let s = if tests == 1 { "" } else { "s" };
        said.push(format!("{tests} test{s} ran, {failed} failed."));
    }
    if !failures.is_empty() {
        let names = failures.iter().take(3).map(|failure| match failure.evidence.first() {
            Some(place) if !failure.name.contains(place.as_str()) => format!("{} ({place})", failure.name),
            _ => failure.name.clone(),
        });
        let more =
            if failures.len() > 3 { format!(" and {} more", failures.len() - 3) } else { String::new() };
        said.push(format!("Failed: {}{more}.", names.collect::<Vec<_>>().join(", ")));
    }
    said.extend(ran.iter().zip(outcomes).map(|(ran, passed)| command_sentence(ran, *passed)));
    said.join(" ")
}

fn command_sentence(ran: &Ran, passed: Option<bool>) -> String {
    let line = &ran.order.line;
    let within =
        if ran.order.folder.is_empty() { String::new() } else { format!(" in `{}`", ran.order.folder) };
    let Some(ended) = ran.ended.as_ref().filter(|_| ran.why_not.is_empty()) else {
        return format!("Not run: `{line}`{within}: {}.", ran.why_not);
    };
    let seconds = ended.duration_ms as f64 / 1000.0;
    match (passed, ended.exit_code) {
        (Some(true), _) => format!("`{line}`{within} passed in {seconds:.1} s."),
        (None, _) => format!("`{line}`{within} found no tests."),
        (_, _) if ended.timed_out => format!("`{line}`{within} was stopped after {seconds:.1} s."),
        (_, Some(code)) => format!("`{line}`{within} ended with exit code {code} after {seconds:.1} s."),
        (_, None) => format!("`{line}`{within} was killed by a signal."),
    }
}

/// The last lines, at most `chars` of them.
fn tail(output: &str, lines: usize, chars: usize) -> String {
    let all: Vec<&str> = output.trim_end().lines().collect();
    let text = all[all.len().saturating_sub(lines)..].join("\n");
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(chars)).collect()
}
