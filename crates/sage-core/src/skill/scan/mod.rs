//! What must not be in a text that is kept, shared and read by agents: secrets, and orders to agents.
//!
//! ```text
//! text -> secrets: keys of providers, key blocks, assignments, values of the environment
//!      -> hidden:  characters that nobody sees
//!      -> orders:  "ignore previous instructions", comments that give orders
//!      -> commands: curl | sh, encoded commands, places that data is sent to
//! ```
//! Whole words and shapes, one pass each, no regular expressions. A finding says where and why, never what:
//! its text can be printed and logged.

mod base64;
mod commands;
mod hidden;
mod orders;
mod secrets;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use secrets::{key_at, looks_secret};

/// More findings of one text help nobody.
const MAX_FINDINGS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingKind {
    Secret,
    Injection,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Secret => "secret",
            FindingKind::Injection => "injection",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// From 1.
    pub line: u32,
    pub kind: FindingKind,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    pub findings: Vec<Finding>,
}

impl Scan {
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}

/// A value that must not appear, and the variable that holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    pub value: String,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Looks through a text. `known` are the values of variables whose names look secret.
pub fn scan(text: &str, known: &[Known]) -> Scan {
    let mut found = Found::default();
    secrets::look(text, known, &mut found);
    hidden::look(text, &mut found);
    orders::look(text, &mut found);
    commands::look(text, &mut found);
    let mut findings = found.0;
    findings.sort();
    findings.dedup();
    findings.truncate(MAX_FINDINGS);
    Scan { findings }
}

#[derive(Debug, Default)]
struct Found(Vec<Finding>);

impl Found {
    fn secret(&mut self, line: usize, why: impl Into<String>) {
        self.add(line, FindingKind::Secret, why.into());
    }

    fn injection(&mut self, line: usize, why: impl Into<String>) {
        self.add(line, FindingKind::Injection, why.into());
    }

    fn add(&mut self, line: usize, kind: FindingKind, why: String) {
        // Bounded also before they are sorted: a hostile text may have one on every byte.
        if self.0.len() < 100 * MAX_FINDINGS {
            self.0.push(Finding { line: line as u32, kind, why });
        }
    }
}

/// Lines with their numbers, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}
