//! Answers that a person gave for all time: `sage approve --always`, `--prefix`.
//!
//! `allowed.json` of the user's own directory, where no agent writes: which rules, in Claude Code's syntax, allow what
//! in which project.

use std::collections::BTreeMap;
use std::path::Path;

use sage_core::approval::Listed;
use serde::{Deserialize, Serialize};

use super::per_project::PerProject;
use super::user;

const NAME: &str = "allowed";

/// Who gave an answer, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub by: String,
    /// RFC 3339.
    pub at: String,
}

/// The kept answers of one project.
#[derive(Clone, Debug)]
pub struct Kept(PerProject<BTreeMap<String, Given>>);

impl Kept {
    pub fn of(root: &Path) -> Kept {
        Kept(PerProject::new(user::dir(), NAME, root))
    }

    /// By rule, as the file has them now.
    pub fn all(&self) -> BTreeMap<String, Given> {
        self.0.load()
    }

    pub fn rules(&self) -> Vec<Listed> {
        self.all().keys().filter_map(|rule| Listed::parse(rule)).collect()
    }

    /// Keeps these rules; gives those that are new.
    pub fn add(&self, rules: &[Listed], given: &Given) -> Result<Vec<String>, String> {
        let mut new = Vec::new();
        self.0.change(|kept| {
            for rule in rules.iter().map(ToString::to_string) {
                if kept.insert(rule.clone(), given.clone()).is_none() {
                    new.push(rule);
                }
            }
        })?;
        Ok(new)
    }

    /// Forgets these, or all; gives those that were there.
    pub fn remove(&self, rules: Option<&[String]>) -> Result<Vec<String>, String> {
        let mut gone = Vec::new();
        self.0.change(|kept| {
            kept.retain(|rule, _| {
                let stays = rules.is_some_and(|rules| !rules.contains(rule));
                if !stays {
                    gone.push(rule.clone());
                }
                stays
            });
        })?;
        Ok(gone)
    }
}
