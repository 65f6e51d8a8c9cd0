//! Where a ticket stands and how urgent it is, as people write it.

use serde::{Deserialize, Deserializer, Serialize, de};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    #[default]
    Open,
    InProgress,
    Done,
    Cancelled,
    /// Somebody says so, whatever its blockers say: it is not ready until it is reopened.
    Blocked,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Open => "open",
            State::InProgress => "inProgress",
            State::Done => "done",
            State::Cancelled => "cancelled",
            State::Blocked => "blocked",
        }
    }

    /// Nothing is left to do.
    pub fn closed(self) -> bool {
        matches!(self, State::Done | State::Cancelled)
    }

    /// Other tools write `in_progress`, `COMPLETED` or `todo`.
    pub fn parse(text: &str) -> Option<State> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "open" | "todo" | "ready" => Some(State::Open),
            "inprogress" | "doing" | "started" => Some(State::InProgress),
            "done" | "completed" | "closed" => Some(State::Done),
            "cancelled" | "canceled" => Some(State::Cancelled),
            "blocked" => Some(State::Blocked),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<State, D::Error> {
        let text = String::deserialize(from)?;
        State::parse(&text).ok_or_else(|| {
            let known = "open, inProgress, done, cancelled or blocked";
            de::Error::custom(format!("`{}` is not a state: {known}", text.escape_debug()))
        })
    }
}

/// `P0` goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Priority {
    P0,
    P1,
    #[default]
    P2,
    P3,
}

impl Priority {
    pub fn name(self) -> &'static str {
        match self {
            Priority::P0 => "P0",
            Priority::P1 => "P1",
            Priority::P2 => "P2",
            Priority::P3 => "P3",
        }
    }

    pub fn parse(text: &str) -> Option<Priority> {
        match text.trim().trim_start_matches(['p', 'P']) {
            "0" => Some(Priority::P0),
            "1" => Some(Priority::P1),
            "2" => Some(Priority::P2),
            "3" => Some(Priority::P3),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Priority, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(from)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        Priority::parse(&text).ok_or_else(|| {
            de::Error::custom(format!("`{}` is not a priority: P0 (first) to P3", text.escape_debug()))
        })
    }
}
