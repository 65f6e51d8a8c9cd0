//! What a command line does, part by part, as far as that is certain.
//!
//! ```text
//! text --shell::parse--> pipelines --walk--> Part { does, reads, writes }      (or Unclear)
//! ```
//! A part is one program with its arguments and redirections. Programs are known by tables: those that only look,
//! those that change named files, git, and tools that build and test. A program or an option that is in no table
//! makes its part `Unknown`. What must stay true: a part that is not `Unknown` does nothing beyond its kind and the
//! files that it names.

mod args;
mod checks;
mod files;
mod find;
mod git;
mod hint;
mod looks;
mod place;
mod runners;
mod scripts;
mod walk;
mod wrappers;

pub use checks::{Check, CheckKind, Checks};
pub use hint::pattern;
pub use place::{Site, is_public};
pub use walk::read;

/// One program of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The program and its arguments, without quotes.
    pub text: String,
    /// The words of `text`.
    pub words: Vec<String>,
    pub does: Does,
    /// Real paths of files that it is told to read; what cannot be told is `..`.
    pub reads: Vec<String>,
    /// Real paths of files that it is told to change.
    pub writes: Vec<String>,
    /// The directories that it may run in.
    pub dirs: Vec<String>,
}

impl Part {
    /// It runs another program that it names.
    pub fn wraps(&self) -> bool {
        self.words.first().is_some_and(|first| wrappers::NAMES.contains(&first.as_str()))
    }

    /// What it does depends on where it runs: it starts programs, or takes its settings from there.
    pub fn is_bound(&self) -> bool {
        self.does != Does::Looks || self.words.iter().any(|word| word == "git")
    }
}

/// The kind of thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// Reads and prints.
    Looks,
    /// Runs the project's tests.
    Tests,
    /// Builds, formats or checks the project.
    Builds,
    /// Records changes in the local repository.
    Records,
    /// Changes the files that it names, one by one.
    Changes,
    /// Changes many files at once, or removes what cannot be had back.
    Rearranges,
    /// Not known; the reason.
    Unknown(String),
}

/// What one program would do, before its paths are looked up.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub does: Does,
    pub reads: Vec<crate::shell::Word>,
    pub writes: Vec<crate::shell::Word>,
    /// A directory that it changes to.
    pub within: Option<crate::shell::Word>,
}

impl Effect {
    fn new(does: Does) -> Effect {
        Effect { does, reads: Vec::new(), writes: Vec::new(), within: None }
    }

    fn unknown(why: impl Into<String>) -> Effect {
        Effect::new(Does::Unknown(why.into()))
    }

    fn reading<'a>(mut self, words: impl IntoIterator<Item = &'a crate::shell::Word>) -> Effect {
        self.reads.extend(words.into_iter().cloned());
        self
    }

    fn writing<'a>(mut self, words: impl IntoIterator<Item = &'a crate::shell::Word>) -> Effect {
        self.writes.extend(words.into_iter().cloned());
        self
    }
}
