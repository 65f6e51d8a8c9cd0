//! Double-entry bookkeeping in plain text.
//!
//! ```text
//! text ── parse ──▶ Journal of balanced entries ── report ──▶ balances, register
//! ```
//!
//! What must stay true: the postings of an entry sum to zero, so all balances together do too.

pub mod account;
pub mod journal;
pub mod money;
pub mod parse;
pub mod report;

use std::fmt;

use money::Amount;

/// What can be wrong with books. `Line` says where in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    BadAmount(String),
    BadAccount(String),
    BadDate(String),
    TooFewPostings,
    Unbalanced(Amount),
    Overflow,
    UnknownEntry(usize),
    Syntax(String),
    Line(usize, Box<Error>),
}

impl Error {
    pub fn at(self, line: usize) -> Self {
        Error::Line(line, Box::new(self))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadAmount(text) => write!(f, "`{text}` is no amount (such as 12.50 or -3)"),
            Error::BadAccount(text) => {
                write!(f, "`{text}` is no account (such as assets:cash)")
            }
            Error::BadDate(text) => write!(f, "`{text}` is no date (such as 2025-01-31)"),
            Error::TooFewPostings => write!(f, "an entry needs at least two postings"),
            Error::Unbalanced(rest) => write!(f, "the postings do not sum to zero, but to {rest}"),
            Error::Overflow => write!(f, "the sum is too large"),
            Error::UnknownEntry(number) => write!(f, "there is no entry {number}"),
            Error::Syntax(what) => write!(f, "{what}"),
            Error::Line(line, error) => write!(f, "line {line}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
