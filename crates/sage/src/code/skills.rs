//! The skills of a project that code can import: those that a person has approved, and what this process saved itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sage_core::diagnostic::did_you_mean;
use sage_core::skill::scan::Known;
use sage_engine::skills::{Listed, SCRIPT_FILE, Store};
use sage_script::code::Skills;

use super::save::{self, Save, SavedSkill};

#[derive(Debug)]
pub struct ProjectSkills {
    store: Store,
    known: Vec<Known>,
    /// Texts that code of this process was saved as: whoever wrote them may use them again.
    own: Mutex<BTreeMap<String, String>>,
}

impl ProjectSkills {
    /// `known` are values that must not be saved.
    pub fn new(store: Store, known: Vec<Known>) -> ProjectSkills {
        ProjectSkills { store, known, own: Mutex::default() }
    }

    pub fn save(&self, save: &Save, code: &str) -> Result<SavedSkill, String> {
        let saved = save::write(&self.store, save, code, &self.known)?;
        self.own().insert(save.name.clone(), code.to_string());
        Ok(saved)
    }

    fn own(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Skills for ProjectSkills {
    fn names(&self) -> Vec<String> {
        let index = self.store.index();
        let usable = |listed: &&Listed| script(listed).is_some();
        let mut names: Vec<String> =
            index.skills.iter().filter(usable).map(|listed| listed.skill.name.clone()).collect();
        names.extend(self.own().keys().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    fn text(&self, name: &str) -> Result<String, String> {
        if let Some(text) = self.own().get(name) {
            return Ok(text.clone());
        }
        let index = self.store.index();
        let Ok(listed) = index.find(name) else {
            let names = self.names();
            let near = did_you_mean(name, names.iter().map(String::as_str)).map(|near| format!("; {near}"));
            let there = if names.is_empty() {
                "there are none".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            return Err(format!(
                "there is no skill `{}` with code{}; {there}",
                name.escape_debug(),
                near.unwrap_or_default()
            ));
        };
        match script(listed) {
            Some(text) => Ok(text.to_string()),
            None if listed.approved() => {
                Err(format!("the skill `{name}` has no {SCRIPT_FILE}: it is instructions for agents"))
            }
            None => {
                Err(format!("the skill `{name}` is not approved; a person types: sage skills approve {name}"))
            }
        }
    }
}

/// The code of an approved skill, as it was approved.
pub fn script(listed: &Listed) -> Option<&str> {
    listed.content.as_ref()?.script()
}
