//! A command line as a shell would run it, or the reason why that cannot be known for certain.
//!
//! ```text
//! text --word--> words, operators --parser--> List of Pipelines of Commands      (or Unclear)
//! ```
//! This is a recognizer for a subset on which bash, zsh and POSIX shells agree, not a shell. Expansions whose value is
//! not in the text (variables, command substitution, arithmetic) and control structures are `Unclear`, as is everything
//! that one of these shells reads differently. What must stay true: whatever runs is in the tree, with the words that
//! the program gets; only file names that a pattern (`*.py`) expands to are not known.

mod parser;
#[cfg(test)]
mod tests;
mod unclear;
mod word;

pub use parser::parse;
pub use unclear::Unclear;
pub use word::{Word, quoted};

/// Pipelines, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(pub Vec<(Join, Pipeline)>);

/// When a pipeline runs, depending on those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Always: `;`, a newline, the first one.
    Then,
    /// After a success: `&&`.
    And,
    /// After a failure: `||`.
    Or,
}

/// Commands that run at once, each reading what the one before it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline(pub Vec<Command>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub body: Body,
    pub redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A program or a builtin; `words` may be empty if only variables are set or files opened.
    Simple { variables: Vec<(String, Word)>, words: Vec<Word> },
    /// `( ... )`, or `{ ...; }` in the same shell.
    Group { list: List, subshell: bool },
}

/// Where input comes from or output goes to. Copies of descriptors (`2>&1`) and text given in place are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    Read(Word),
    Write(Word),
}
