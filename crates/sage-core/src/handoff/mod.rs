//! Handoffs: a checked transfer of work from one role to another.
//!
//! ```text
//! PLANNER -> IMPLEMENTER -> AUDITOR -> CLEANER -> ORCHESTRATOR      each: pending -> accepted -> completed
//!    ^------------ requires_replanning ---------------+                        \-> rejected
//! ```
//! Pure: reading with everything that is missing (`read`), who may hand what to whom (`transition`), the
//! handoffs of one taskId (`chain`), and a handoff made of a broken conversation (`session`).

mod chain;
mod read;
mod session;
mod transition;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::role::Role;

pub use chain::{Chain, Entry, Index, STUCK_MS, chain_file, is_id};
pub use read::{Problem, read};
pub use session::BrokenSession;
pub use transition::{ORDER, REPLANNING, Refusal, SESSION_LOST, WORK, check_parties};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handoff {
    pub handoff: Header,
    pub context: Context,
    pub deliverable: Deliverable,
    pub next_steps: NextSteps,
    #[serde(default)]
    pub issues: Vec<Issue>,
    #[serde(default)]
    pub memory: Memory,
    /// The conversation that it came out of, to be gone on with.
    #[serde(default)]
    pub session: Option<String>,
    /// What became of it, in order; the first one is its creation. Written by sage alone.
    #[serde(default)]
    pub transitions: Vec<Transition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    #[serde(with = "upper")]
    pub from: Role,
    #[serde(with = "upper")]
    pub to: Role,
    /// RFC 3339; when it was created.
    pub timestamp: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: Status,
    pub handoff_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    pub task_id: String,
    pub phase: String,
    pub scope: String,
    #[serde(default)]
    pub dependencies: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    #[serde(rename = "type")]
    pub kind: String,
    /// A path of the project or an address.
    pub location: String,
    pub summary: String,
    /// Files of the project.
    #[serde(default)]
    pub artifacts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextSteps {
    pub instructions: Vec<String>,
    #[serde(default)]
    pub constraints: Vec<String>,
    pub acceptance_criteria: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    pub severity: Severity,
    pub description: String,
    pub recommendation: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub const ALL: [Severity; 5] =
        [Severity::Info, Severity::Low, Severity::Medium, Severity::High, Severity::Critical];

    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// What was learned on the way, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    #[serde(default)]
    pub created: Vec<String>,
    #[serde(default)]
    pub referenced: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    Accepted,
    Rejected,
    Completed,
}

/// One change of status and when it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub status: Status,
    /// RFC 3339.
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// As people write the parties of a handoff: `PLANNER`.
pub fn party(role: Role) -> String {
    role.name().to_uppercase()
}

mod upper {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::role::Role;

    pub fn serialize<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::party(*role))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
        let text = String::deserialize(deserializer)?;
        Role::parse(&text.to_lowercase()).map_err(D::Error::custom)
    }
}
