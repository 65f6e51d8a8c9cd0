//! What the commands amount to. Never better than the facts.

use std::path::Path;

use serde_json::{Value, json};

use super::child::Ended;
use super::executed::Executed;
use super::failures::{self, Counts, Failure};
use super::order::Order;
use super::signs;

/// What a person needs to see of an output.
const TAIL_LINES: usize = 40;
const TAIL_CHARS: usize = 4_000;
const NONE: &str = "it found no tests to run";
const SILENT: &str = "it ended with exit code 0, but its output shows no test that ran";

/// One command: how it ended, or why it did not begin.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub order: Order,
    pub ended: Option<Ended>,
    why_not: String,
}

/// What a command says about the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// Nothing: it did not run, did not finish, ran no test, or contradicts itself.
    Unknown(String),
}

impl Ran {
    pub fn not_run(order: &Order, why: String) -> Ran {
        Ran { order: order.clone(), ended: None, why_not: why }
    }

    pub fn ended(order: &Order, ended: Ended) -> Ran {
        Ran { order: order.clone(), ended: Some(ended), why_not: String::new() }
    }

    pub fn outcome(&self, what: &str, project: &Path) -> Outcome {
        let Some(ended) = &self.ended else { return Outcome::Unknown(format!("not run: {}", self.why_not)) };
        let (counts, output) = (self.counts(), ended.output.as_str());
        let failed = counts.is_some_and(|counts| counts.failed > 0);
        let ran_some = counts.is_some_and(|counts| counts.any());
        let seconds = ended.duration_ms as f64 / 1000.0;
        if ended.timed_out {
            let why = format!("it did not finish: it was stopped after {seconds:.1} s");
            return if failed { Outcome::Failed } else { Outcome::Unknown(why) };
        }
        if let Some(why) = signs::missing(ended.exit_code, output).filter(|_| !ran_some) {
            return Outcome::Unknown(format!("not run: {why}"));
        }
        let none = counts.is_some_and(|counts| !counts.any()) || signs::no_tests(output);
        if what == "test" && none && !ran_some && !self.names_failures(project) {
            return Outcome::Unknown(NONE.to_string());
        }
        match (ended.exit_code, ended.signal) {
            (Some(0), _) => match self.contradiction(what, project) {
                Some(why) => Outcome::Unknown(why),
                None if what == "test" && self.is_silent() => Outcome::Unknown(SILENT.to_string()),
                None => Outcome::Passed,
            },
            // Somebody else ended it: memory, or a person.
            (None, Some(9 | 15)) if !failed => Outcome::Unknown("it was killed".to_string()),
            _ => Outcome::Failed,
        }
    }

    /// It was looked up, and nothing that it printed tells of a test.
    fn is_silent(&self) -> bool {
        let shows = |ended: &Ended| failures::shows_tests(&ended.output);
        !self.order.is_named() && !self.ended.as_ref().is_some_and(shows)
    }

    /// It ended well and says that something did not.
    fn contradiction(&self, what: &str, project: &Path) -> Option<String> {
        let output = &self.ended.as_ref()?.output;
        let counts = self.counts();
        if let Some(failed) = counts.map(|counts| counts.failed).filter(|failed| *failed > 0) {
            return Some(format!("it ended with exit code 0, but reports {failed} failed"));
        }
        if let Some(line) = signs::not_found(&self.order.line, output) {
            return Some(format!("it ended with exit code 0, but a program is missing: {line}"));
        }
        let sign = signs::ignored(output).or_else(|| signs::reported(output));
        if let Some(line) = sign.or_else(|| signs::failed(output)) {
            return Some(format!("it ended with exit code 0, but a part of it failed: {line}"));
        }
        if self.ended.as_ref().is_some_and(|ended| ended.is_cut) {
            return Some("its output is too long to be read whole".to_string());
        }
        // Where tests were counted, their own words decide: they may print errors on purpose.
        let unread = what == "build" || counts.is_none();
        let named = match unread {
            true => self.names_failures(project),
            false => !failures::of_tests(output, project, &self.order.folder).is_empty(),
        };
        named.then(|| "it ended with exit code 0, but its output has failures".to_string())
    }

    fn names_failures(&self, project: &Path) -> bool {
        let output = self.ended.as_ref().map(|ended| ended.output.as_str()).unwrap_or_default();
        !failures::read(output, project, &self.order.folder).is_empty()
    }

    /// It ran no test of those that were chosen.
    pub fn found_none(&self) -> bool {
        let output = self.ended.as_ref().map(|ended| ended.output.as_str()).unwrap_or_default();
        let none = self.counts().map_or_else(|| signs::no_tests(output), |counts| !counts.any());
        none || !failures::shows_tests(output)
    }

    fn counts(&self) -> Option<Counts> {
        self.ended.as_ref().and_then(|ended| failures::counts(&ended.output))
    }

    fn failures(&self, project: &Path) -> Vec<Failure> {
        let Some(ended) = &self.ended else { return Vec::new() };
        let mut found = failures::read(&ended.output, project, &self.order.folder);
        if ended.timed_out || found.is_empty() {
            let detail = tail(&ended.output, 12, 1_000);
            let name = format!("`{}` {}", self.order.line, how_it_ended(ended));
            found.insert(0, Failure { name, detail, evidence: Vec::new() });
        }
        found
    }

    fn to_json(&self, outcome: &Outcome) -> Value {
        let ended = self.ended.clone().unwrap_or_default();
        let mut command = json!({"command": self.order.line, "exitCode": ended.exit_code,
            "durationMs": ended.duration_ms, "tail": tail(&ended.output, TAIL_LINES, TAIL_CHARS)});
        let why_not = if let Outcome::Unknown(why) = outcome { why.as_str() } else { "" };
        let folder = (self.order.folder.as_str(), self.order.evidence.as_str());
        for (key, text) in [("folder", folder.0), ("evidence", folder.1), ("whyNot", why_not)] {
            if !text.is_empty() {
                command[key] = json!(text);
            }
        }
        if ended.timed_out {
            command["timedOut"] = json!(true);
        }
        if let Some(counts) = self.counts() {
            command["tests"] = json!({"ran": counts.ran, "failed": counts.failed, "skipped": counts.aside});
        }
        command
    }
}

fn how_it_ended(ended: &Ended) -> String {
    let seconds = ended.duration_ms as f64 / 1000.0;
    match (ended.timed_out, ended.exit_code) {
        (true, _) => format!("was stopped after {seconds:.1} s"),
        (_, Some(code)) => format!("ended with exit code {code}"),
        (_, None) => "was killed by a signal".to_string(),
    }
}

/// The result of the operation.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub ran: bool,
    pub passed: Option<bool>,
    pub summary: String,
    pub failures: Vec<Failure>,
    /// What ran, of commands that ran as they are.
    pub executed: Vec<Executed>,
    commands: Vec<Value>,
    /// Command lines that a person may name instead: one of them ended well and that was not enough.
    offer: Option<Vec<String>>,
    /// A command says itself that there were no tests.
    found_none: bool,
    /// There is nothing that could be checked here.
    nothing: bool,
    /// A person said so.
    declined: bool,
}

impl Verdict {
    pub fn of(what: &str, ran: &[Ran], project: &Path) -> Verdict {
        let outcomes: Vec<Outcome> = ran.iter().map(|ran| ran.outcome(what, project)).collect();
        let unknown = |outcome: &Outcome| matches!(outcome, Outcome::Unknown(_));
        let passed = match () {
            () if outcomes.contains(&Outcome::Failed) => Some(false),
            () if outcomes.is_empty() || outcomes.iter().any(unknown) => None,
            () => Some(true),
        };
        let failed = |(_, outcome): &(&Ran, &Outcome)| **outcome == Outcome::Failed;
        let pairs = || ran.iter().zip(&outcomes);
        let failures: Vec<Failure> =
            pairs().filter(failed).flat_map(|(ran, _)| ran.failures(project)).collect();
        let started = |(ran, outcome): (&Ran, &Outcome)| {
            let not = matches!(outcome, Outcome::Unknown(why) if why.starts_with("not run"));
            ran.ended.is_some() && !not
        };
        Verdict {
            ran: pairs().any(started),
            passed,
            summary: sentence(what, ran, &outcomes, &failures),
            failures,
            commands: pairs().map(|(ran, outcome)| ran.to_json(outcome)).collect(),
            offer: outcomes.contains(&Outcome::Unknown(SILENT.to_string())).then(|| lines(ran)),
            found_none: outcomes.contains(&Outcome::Unknown(NONE.to_string())),
            ..Verdict::default()
        }
    }

    /// There is nothing to check, for a reason that can be seen.
    pub fn nothing(summary: String) -> Verdict {
        Verdict { summary, nothing: true, ..Verdict::default() }
    }

    /// There is nothing to check: a person said so.
    pub fn declined(summary: String) -> Verdict {
        Verdict { declined: true, ..Verdict::nothing(summary) }
    }

    /// Nothing was run, and something should have been.
    pub fn not_made(summary: String) -> Verdict {
        Verdict { summary, ..Verdict::default() }
    }

    pub fn names_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    pub fn offer(&mut self, ran: &[Ran]) {
        self.offer = (!ran.is_empty()).then(|| lines(ran));
    }

    pub fn offered(&self) -> Option<&[String]> {
        self.offer.as_deref()
    }

    pub fn found_none(&self) -> bool {
        self.found_none
    }

    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    pub fn add_note(&mut self, note: &str) {
        if !note.is_empty() {
            self.summary = format!("{} {note}", self.summary).trim().to_string();
        }
    }

    /// What it came to is not enough to say that it passed.
    pub fn doubt(&mut self, why: &str) {
        self.passed = self.passed.filter(|passed| !passed);
        self.add_note(why);
    }

    pub fn doubt_all(&mut self, why: &[String]) {
        why.iter().for_each(|why| self.doubt(why));
    }

    pub fn into_result(self) -> Value {
        let mut result = json!({"ran": self.ran, "passed": self.passed, "commands": self.commands,
            "summary": self.summary, "failures": self.failures,
            "method": "offline: the project's own commands; failures and counts read from their output"});
        if self.nothing {
            result["applies"] = json!(false);
        }
        if self.declined {
            result["declined"] = json!(true);
        }
        if !self.executed.is_empty() {
            result["tests"] = json!(self.executed);
        }
        result
    }
}

fn lines(ran: &[Ran]) -> Vec<String> {
    ran.iter().map(|ran| ran.order.shell()).collect()
}

/// `12 tests ran, 1 failed: test_a (tests/test_a.py:3). Commands: `pytest` (1.2 s, exit code 1).`
fn sentence(what: &str, ran: &[Ran], outcomes: &[Outcome], failures: &[Failure]) -> String {
    let counts: Vec<Counts> = ran.iter().filter_map(Ran::counts).collect();
    let tests: usize = counts.iter().map(|counts| counts.ran.max(counts.failed)).sum();
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
    said.extend(ran.iter().zip(outcomes).map(|(ran, outcome)| command_sentence(ran, outcome)));
    said.join(" ")
}

fn command_sentence(ran: &Ran, outcome: &Outcome) -> String {
    let line = &ran.order.line;
    let within =
        if ran.order.folder.is_empty() { String::new() } else { format!(" in `{}`", ran.order.folder) };
    let seconds = ran.ended.as_ref().map_or(0.0, |ended| ended.duration_ms as f64 / 1000.0);
    match (outcome, &ran.ended) {
        (Outcome::Passed, _) => format!("`{line}`{within} passed in {seconds:.1} s."),
        (Outcome::Failed, Some(ended)) => {
            let after = if ended.timed_out { String::new() } else { format!(" after {seconds:.1} s") };
            format!("`{line}`{within} {}{after}.", how_it_ended(ended))
        }
        (Outcome::Failed, None) => format!("`{line}`{within} failed."),
        (Outcome::Unknown(why), _) => format!("`{line}`{within}: {why}."),
    }
}

/// The last lines, at most `chars` of them.
fn tail(output: &str, lines: usize, chars: usize) -> String {
    let all: Vec<&str> = output.trim_end().lines().collect();
    let text = all[all.len().saturating_sub(lines)..].join("\n");
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(chars)).collect()
}
