//! How the project is built and tested, as its own files or a person say.

use crate::shell::{self, Body};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    Test,
    /// A build, a linter, a formatter.
    Build,
}

/// One command line of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub kind: CheckKind,
    pub line: String,
}

/// All of them, in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks(pub Vec<Check>);

impl Checks {
    /// The kind of a whole command line, if it is one of the project's to the letter.
    pub fn of_line(&self, line: &str) -> Option<CheckKind> {
        self.0.iter().find(|check| check.line.trim() == line.trim()).map(|check| check.kind)
    }

    /// Those that are a single program, with the words that it is started with.
    pub(super) fn programs(&self) -> impl Iterator<Item = (CheckKind, Vec<String>)> {
        self.0.iter().filter_map(|check| Some((check.kind, words(&check.line)?)))
    }

    /// Whether one of these programs is part of the project's checks.
    pub(super) fn uses(&self, names: &[&str]) -> bool {
        let named = |line: &str| {
            line.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).any(|word| names.contains(&word))
        };
        self.0.iter().any(|check| named(&check.line))
    }

    /// The test commands, for people and models to read.
    pub fn tests(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|check| check.kind == CheckKind::Test).map(|check| check.line.as_str())
    }
}

/// The words of a line that runs one program and nothing else.
fn words(line: &str) -> Option<Vec<String>> {
    let list = shell::parse(line).ok()?;
    let [(_, pipeline)] = list.0.as_slice() else { return None };
    let [command] = pipeline.0.as_slice() else { return None };
    let Body::Simple { variables, words } = &command.body else { return None };
    let plain =
        variables.is_empty() && command.redirects.is_empty() && words.iter().all(|word| word.is_literal());
    plain.then(|| words.iter().map(|word| word.text.clone()).collect())
}
