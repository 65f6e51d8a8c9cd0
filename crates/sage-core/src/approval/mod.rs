//! Which questions of agents need no person. Pure: an ask, the rules, what the role may do, what was spent.
//!
//! In this order:
//! 1. changes of protected files, and what the role may not do, are denied;
//! 2. what a rule denies by name is denied, what a rule wants to be asked is asked;
//! 3. what a rule or a kept answer names is allowed;
//! 4. what only reads, writes where it may, or runs commands that are known to be harmless is allowed;
//! 5. what the mode covers, or comes while little has been spent, is allowed;
//! 6. all else is asked.

pub mod command;
mod judge;
mod listed;
mod mode;
mod pattern;
mod rules;

pub use command::{Check, CheckKind, Checks, Site};
pub use judge::{Judge, Verdict};
pub use listed::{Listed, Lists};
pub use mode::Mode;
pub use rules::{Inherit, Otherwise, Rules};

use crate::role::Access;

/// The tool of an agent that asks for words. Read by people as "may it use your answer: which port?".
pub const YOUR_ANSWER: &str = "your answer";

/// What an agent is told beside a denial: what it may do without a person.
pub fn advice(access: Access, checks: &Checks) -> String {
    let mut free = vec!["read files with your own tools".to_string()];
    if access.run {
        free.push("run plain commands that only read (`ls`, `cat`, `grep`, `git diff`)".into());
        let tests: Vec<String> = checks.tests().take(3).map(|line| format!("`{line}`")).collect();
        if !tests.is_empty() {
            free.push(format!("run the project's own checks ({})", tests.join(", ")));
        }
    }
    if access.write {
        free.push("edit files of the project".into());
    }
    if access.write && access.run {
        free.push("`git add` and `git commit`".into());
    }
    format!(
        "Without a person you can {}. Keep commands plain: no variables, substitutions or loops. Go on without it, and \
         say in your answer what you could not do.",
        free.join(", ")
    )
}

#[cfg(test)]
mod tests;
