//! A wake, with the names it has on the wire (DESIGN §11: snake and camel mixed, and so it stays).

use serde::Serialize;
use serde_json::{Map, Value};

use crate::clock::Clock;

/// P2: what nobody called urgent.
pub const USUAL_PRIORITY: u8 = 2;
pub const LAST_PRIORITY: u8 = 3;

/// Which record of its run's journal a wake repeats.
pub const RECORD: &str = "record";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wake {
    #[serde(rename = "wakeId")]
    pub wake_id: String,
    #[serde(rename = "type")]
    pub kind: WakeType,
    /// Who sends it: wakes of one session keep their order.
    pub session_id: String,
    pub agent_role: Option<String>,
    pub status: WakeStatus,
    /// RFC 3339.
    pub timestamp: String,
    /// 0 (first) to 3.
    pub priority: u8,
    pub deliverables: Deliverables,
    pub summary: String,
    pub next_role: Option<String>,
    pub acknowledged: bool,
    /// What the sender said besides, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WakeType {
    Complete,
    Blocked,
    Finding,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WakeStatus {
    Complete,
    Blocked,
    Failed,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Deliverables {
    pub files: Vec<String>,
    pub handoff_id: Option<String>,
    pub handoff_file: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Wake {
    /// A new one, of now, with an id of its own.
    pub fn new(kind: WakeType, session_id: impl Into<String>) -> Wake {
        Wake {
            wake_id: fresh_id(),
            kind,
            session_id: session_id.into(),
            agent_role: None,
            status: kind.usual_status(),
            timestamp: sage_core::wire::rfc3339(Clock::System.now_ms()),
            priority: USUAL_PRIORITY,
            deliverables: Deliverables::default(),
            summary: String::new(),
            next_role: None,
            acknowledged: false,
            other: Map::new(),
        }
    }

    /// A journal holds what it says, so losing it in a power cut loses nothing.
    pub fn repeats_a_record(&self) -> bool {
        self.other.get(RECORD).is_some_and(Value::is_u64)
    }
}

pub fn fresh_id() -> String {
    format!("wake_{}", ulid::Ulid::generate())
}

impl WakeType {
    pub const ALL: [WakeType; 4] =
        [WakeType::Complete, WakeType::Blocked, WakeType::Finding, WakeType::Error];

    pub fn name(self) -> &'static str {
        match self {
            WakeType::Complete => "COMPLETE",
            WakeType::Blocked => "BLOCKED",
            WakeType::Finding => "FINDING",
            WakeType::Error => "ERROR",
        }
    }

    /// Whatever the case of its letters.
    pub fn parse(text: &str) -> Option<WakeType> {
        WakeType::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text.trim()))
    }

    pub fn usual_status(self) -> WakeStatus {
        match self {
            WakeType::Complete | WakeType::Finding => WakeStatus::Complete,
            WakeType::Blocked => WakeStatus::Blocked,
            WakeType::Error => WakeStatus::Failed,
        }
    }
}

impl WakeStatus {
    pub const ALL: [WakeStatus; 3] = [WakeStatus::Complete, WakeStatus::Blocked, WakeStatus::Failed];

    pub fn name(self) -> &'static str {
        match self {
            WakeStatus::Complete => "complete",
            WakeStatus::Blocked => "blocked",
            WakeStatus::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<WakeStatus> {
        WakeStatus::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(text.trim()))
    }

    pub fn usual_type(self) -> WakeType {
        match self {
            WakeStatus::Complete => WakeType::Complete,
            WakeStatus::Blocked => WakeType::Blocked,
            WakeStatus::Failed => WakeType::Error,
        }
    }
}
