//! `trust.json` of the user's own directory: which definitions of which project this user has trusted.
//!
//! A definition is known by the hash of its text: a copy of the project, another project in the same place with other
//! definitions, or a change asks again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sage_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::per_project::PerProject;

const NAME: &str = "trust";

/// One definition that a person has trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    pub sha256: Digest,
    pub by: String,
    /// RFC 3339.
    pub at: String,
}

/// What is trusted in one project, by name.
pub type Project = BTreeMap<String, Trusted>;

/// The trust of one project's definitions.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PerProject<Project>,
    trusted: Project,
}

impl Trust {
    /// `dir` is the user's own; without one nothing can be trusted.
    pub fn load(dir: Option<PathBuf>, root: &Path) -> Trust {
        let file = PerProject::new(dir, NAME, root);
        Trust { trusted: file.load(), file }
    }

    pub fn holds(&self, definition: &Definition) -> bool {
        self.trusted.get(&definition.name).is_some_and(|known| known.sha256 == definition.digest)
    }

    /// It was trusted, and is another one now.
    pub fn has_changed(&self, definition: &Definition) -> bool {
        self.trusted.get(&definition.name).is_some_and(|known| known.sha256 != definition.digest)
    }

    pub fn all(&self) -> &Project {
        &self.trusted
    }

    /// Trusts definitions as they are written now.
    pub fn add(&mut self, definitions: &[Definition], by: &str, at: &str) -> Result<(), String> {
        self.change(|trusted| {
            for definition in definitions {
                let entry = Trusted { sha256: definition.digest, by: by.into(), at: at.into() };
                trusted.insert(definition.name.clone(), entry);
            }
        })
    }

    /// Forgets these, or all; gives the names of those that were there.
    pub fn revoke(&mut self, names: &[String]) -> Result<Vec<String>, String> {
        let mut gone = Vec::new();
        self.change(|trusted| {
            trusted.retain(|name, _| {
                let keep = !names.is_empty() && !names.contains(name);
                if !keep {
                    gone.push(name.clone());
                }
                keep
            });
        })?;
        Ok(gone)
    }

    fn change(&mut self, change: impl FnOnce(&mut Project)) -> Result<(), String> {
        self.trusted = self.file.change(change)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server(name: &str, command: &str) -> Definition {
        Definition::server(Path::new("/nowhere"), name, ".mcp.json", &json!({ "command": command }))
    }

    // covers: R17
    #[test]
    fn trust_is_of_one_text_in_one_place() {
        let (home, a, b) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = || Some(home.path().join("sage"));
        let mut trust = Trust::load(dir(), a.path());
        assert!(!trust.holds(&server("x", "one")));
        trust.add(&[server("x", "one"), server("y", "one")], "me", "now").unwrap();
        let again = Trust::load(dir(), a.path());
        assert!(again.holds(&server("x", "one")) && !again.has_changed(&server("x", "one")));
        assert!(!again.holds(&server("x", "two")) && again.has_changed(&server("x", "two")));
        assert!(!again.holds(&server("z", "one")));
        assert!(!Trust::load(dir(), b.path()).holds(&server("x", "one")), "another project");
        assert_eq!(trust.revoke(&["x".into(), "mcp.x".into()]).unwrap(), ["mcp.x"]);
        assert_eq!(Trust::load(dir(), a.path()).all().len(), 1);
        assert_eq!(trust.revoke(&[]).unwrap(), ["mcp.y"]);
        assert!(Trust::load(dir(), a.path()).all().is_empty());
        let mut homeless = Trust::load(None, a.path());
        assert!(homeless.add(&[server("x", "one")], "me", "now").is_err());
    }

    // covers: R17
    #[test]
    fn folders_whose_names_are_no_text_are_told_apart() {
        use std::os::unix::ffi::OsStrExt;
        let name = |byte: u8| std::ffi::OsStr::from_bytes(&[b'a', byte]).to_os_string();
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (home.path().join(name(0xff)), home.path().join(name(0xfe)));
        std::fs::create_dir(&one).and_then(|()| std::fs::create_dir(&two)).unwrap();
        let mut trust = Trust::load(Some(home.path().into()), &one);
        trust.add(&[server("x", "one")], "me", "now").unwrap();
        assert!(Trust::load(Some(home.path().into()), &one).holds(&server("x", "one")));
        assert!(!Trust::load(Some(home.path().into()), &two).holds(&server("x", "one")));
    }

    #[test]
    fn a_file_that_cannot_be_read_trusts_nothing_and_is_not_overwritten() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = home.path().join("trust.json");
        for text in ["{", "{\"version\": 9}"] {
            std::fs::write(&path, text).unwrap();
            let mut trust = Trust::load(Some(home.path().into()), root.path());
            assert!(trust.all().is_empty());
            assert!(trust.add(&[server("x", "one")], "me", "now").is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
