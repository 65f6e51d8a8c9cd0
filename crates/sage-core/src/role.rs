//! Roles: what a step's agent may do, decided here once and enforced by adapters and sandbox, not by prose.
//!
//! | role         | writes              | runs commands | network |
//! |--------------|---------------------|---------------|---------|
//! | planner      | docs/               | no            | no      |
//! | implementer  | everything          | yes           | yes     |
//! | auditor      | nothing             | yes (tests)   | no      |
//! | cleaner      | everything          | yes           | no      |
//! | researcher   | nothing             | no            | yes     |
//! | observer     | nothing             | no            | no      |
//! | orchestrator | nothing             | no            | no      |
//!
//! Reading the project is always allowed. A step without a role has no limits of this sort.

use std::fmt;

use crate::diagnostic::{did_you_mean, printable};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Planner,
    Implementer,
    Auditor,
    Cleaner,
    Researcher,
    Observer,
    Orchestrator,
}

/// What a role may do besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// May change files at all; where is in `paths`.
    pub write: bool,
    /// May run commands.
    pub run: bool,
    pub network: bool,
    pub paths: Paths,
}

/// Where files may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    None,
    /// Folders of the project, each with a `/` at its end.
    Only(&'static [&'static str]),
    All,
}

impl Paths {
    /// Whether a file may be changed. `path` is relative to the project, with `/` between its parts.
    pub fn contains(self, path: &str) -> bool {
        let path = path.strip_prefix("./").unwrap_or(path);
        let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
        match self {
            Paths::None => false,
            Paths::All => !leaves,
            Paths::Only(folders) => !leaves && folders.iter().any(|folder| path.starts_with(folder)),
        }
    }
}

const PLANNER_WRITES: &[&str] = &["docs/"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown role `{given}`")]
pub struct UnknownRole {
    given: String,
    pub hint: String,
}

impl Role {
    pub const ALL: [Role; 7] = [
        Role::Planner,
        Role::Implementer,
        Role::Auditor,
        Role::Cleaner,
        Role::Researcher,
        Role::Observer,
        Role::Orchestrator,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Implementer => "implementer",
            Role::Auditor => "auditor",
            Role::Cleaner => "cleaner",
            Role::Researcher => "researcher",
            Role::Observer => "observer",
            Role::Orchestrator => "orchestrator",
        }
    }

    pub fn parse(text: &str) -> Result<Role, UnknownRole> {
        let names = Role::ALL.map(Role::name);
        Role::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| UnknownRole {
            given: printable(text),
            hint: did_you_mean(&text.to_lowercase(), names)
                .unwrap_or_else(|| format!("roles: {}", names.join(", "))),
        })
    }

    pub fn access(self) -> Access {
        let (paths, run, network) = match self {
            Role::Planner => (Paths::Only(PLANNER_WRITES), false, false),
            Role::Implementer => (Paths::All, true, true),
            Role::Auditor => (Paths::None, true, false),
            Role::Cleaner => (Paths::All, true, false),
            Role::Researcher => (Paths::None, false, true),
            Role::Observer | Role::Orchestrator => (Paths::None, false, false),
        };
        Access { write: paths != Paths::None, run, network, paths }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S6
    #[test]
    fn a_role_is_read_by_its_name_and_a_wrong_one_gets_the_nearest() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.name()), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        let hint = |text: &str| Role::parse(text).unwrap_err().hint;
        assert_eq!(hint("audtor"), "did you mean `auditor`?");
        assert_eq!(hint("PLANNER"), "did you mean `planner`?");
        assert!(hint("boss").starts_with("roles: planner, implementer"), "{}", hint("boss"));
        assert_eq!(Role::parse("a\u{1b}[31m").unwrap_err().to_string(), "unknown role `a\u{FFFD}[31m`");
    }

    // covers: S6
    #[test]
    fn only_those_who_make_things_write() {
        let writers: Vec<&str> =
            Role::ALL.into_iter().filter(|role| role.access().write).map(Role::name).collect();
        assert_eq!(writers, ["planner", "implementer", "cleaner"]);
        let runners: Vec<&str> =
            Role::ALL.into_iter().filter(|role| role.access().run).map(Role::name).collect();
        assert_eq!(runners, ["implementer", "auditor", "cleaner"]);
        let online: Vec<&str> =
            Role::ALL.into_iter().filter(|role| role.access().network).map(Role::name).collect();
        assert_eq!(online, ["implementer", "researcher"]);
    }

    // covers: S6
    #[test]
    fn a_planner_writes_plans_and_nothing_else() {
        let paths = Role::Planner.access().paths;
        for path in ["docs/plan.md", "./docs/a/b.md"] {
            assert!(paths.contains(path), "{path}");
        }
        for path in
            ["src/main.rs", "docs", "docsx/a", "docs/../src/main.rs", "/docs/a", ".sage/handoffs/h.json"]
        {
            assert!(!paths.contains(path), "{path}");
        }
        assert!(Role::Cleaner.access().paths.contains("src/main.rs"));
        assert!(!Role::Cleaner.access().paths.contains("../other/main.rs"));
        assert!(!Role::Auditor.access().paths.contains("docs/a"));
    }
}
