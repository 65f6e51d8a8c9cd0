//! Tickets: what is to be done in the project, over many runs. `.sage/tickets/index.json` holds them.
//!
//! ```text
//!            run starts          run succeeds
//!   open  ------------->  inProgress  ------->  done         blocked: open, but a blocker is not done
//!     ^---- run fails, is cancelled ----'                    ready:   open, and every blocker is done
//! ```
//! People and other tools edit the file too: what is not known is kept, names are read leniently.
//! Pure: the book of all tickets (`book`), what waits for what (`graph`), what runs do to them (`life`), and
//! tickets that come out of a plan (`planned`).

mod book;
mod graph;
mod life;
mod note;
mod planned;
mod state;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

pub use book::{Book, BookError, Draft};
pub use graph::{Blocker, Standing};
pub use life::{Ended, ticket_of};
pub use note::Note;
pub use planned::{PlanError, Planned, Updated, create, update};
pub use state::{Priority, State};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// `T-1`, or whatever a person chose.
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub title: String,
    #[serde(default, deserialize_with = "or_default")]
    pub state: State,
    #[serde(default, deserialize_with = "or_default")]
    pub priority: Priority,
    /// Tickets that must be done first.
    #[serde(default, deserialize_with = "or_default")]
    pub blocked_by: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub detail: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How it is seen that it is done.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// A decision that only a person can make: no run works on it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// The feature that it was planned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The newest run that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// What others have written, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What made the ticket: the same part of the same plan makes it only once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    #[serde(default, deserialize_with = "or_default")]
    pub run: String,
    /// The plan's own name for it.
    #[serde(default, deserialize_with = "or_default")]
    pub task: String,
}

impl Ticket {
    /// What a run is told of its ticket. Nothing in it changes while the work is the same: inputs are part of
    /// what decides whether a step has to run.
    pub fn input(&self) -> Value {
        json!({
            "id": self.id, "title": self.title, "detail": self.detail, "priority": self.priority,
            "files": self.files, "acceptance": self.acceptance, "feature": self.feature,
            "blockedBy": self.blocked_by,
        })
    }
}

/// A field that somebody wrote as `null` is a field that somebody left out.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
