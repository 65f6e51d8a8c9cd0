//! Reading a wake that anybody may have written, by hand or by a program that never heard of sage.
//!
//! Only who it is from and what it is about must be there. The rest has a default, other spellings of the known
//! names are understood, and what is not known is kept.

use std::time::{SystemTime, UNIX_EPOCH};

use sage_core::digest::Digest;
use serde_json::{Map, Value};

use super::wake::{Deliverables, LAST_PRIORITY, USUAL_PRIORITY, Wake, WakeStatus, WakeType};
use crate::clock::Clock;

/// Ids and sessions are names: a book in their place is a mistake.
const MAX_NAME_CHARS: usize = 256;

/// Why a file is no wake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Where a wake comes from: what it does not say itself is taken from here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The file's name as its writer chose it.
    pub name: &'a str,
    pub modified: Option<SystemTime>,
}

impl Wake {
    pub fn read(bytes: &[u8], origin: Origin<'_>) -> Result<Wake, Unreadable> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match serde_json::from_slice(text) {
            Ok(Value::Object(map)) => {
                Wake::of(map, || derived_id(bytes, origin), || timestamp(origin.modified))
            }
            Ok(_) => Err(Unreadable("it is JSON, but not an object `{...}`".into())),
            Err(_) if text.trim_ascii().is_empty() => Err(Unreadable("it is empty".into())),
            Err(error) => Err(Unreadable(format!("it is not JSON: {error}"))),
        }
    }

    /// One that was read before: it has all of its fields.
    pub(super) fn known(map: Map<String, Value>) -> Result<Wake, Unreadable> {
        Wake::of(map, String::new, String::new)
    }

    fn of(
        mut map: Map<String, Value>,
        id: impl FnOnce() -> String,
        time: impl FnOnce() -> String,
    ) -> Result<Wake, Unreadable> {
        let session_id = name(&mut map, &["session_id", "sessionId", "session"])?
            .ok_or_else(|| Unreadable("it has no `session_id`, so nobody can tell whom it is from".into()))?;
        let (kind, status) = meaning(&mut map)?;
        Ok(Wake {
            wake_id: name(&mut map, &["wakeId", "wake_id"])?.unwrap_or_else(id),
            kind,
            session_id,
            agent_role: text(&mut map, &["agent_role", "agentRole"]),
            status,
            timestamp: text(&mut map, &["timestamp"]).unwrap_or_else(time),
            priority: priority(map.shift_remove("priority")),
            deliverables: deliverables(map.shift_remove("deliverables")),
            summary: text(&mut map, &["summary"]).unwrap_or_default(),
            next_role: text(&mut map, &["next_role", "nextRole"]),
            acknowledged: map.shift_remove("acknowledged") == Some(Value::Bool(true)),
            other: map,
        })
    }
}

/// Of the file as it is: the same as long as nobody changes it, another one for the next file of that name.
fn derived_id(bytes: &[u8], origin: Origin<'_>) -> String {
    let nanos = origin.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_nanos());
    let parts = [Digest::of(origin.name.as_bytes()), Digest::of(bytes), Digest::of(&nanos.to_be_bytes())];
    format!("wake_{}", &Digest::of_all(&parts).to_string()[..24])
}

fn timestamp(modified: Option<SystemTime>) -> String {
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    sage_core::wire::rfc3339(since.map_or_else(|| Clock::System.now_ms(), |d| d.as_millis() as u64))
}

/// What it is about: each of type and status follows from the other.
fn meaning(map: &mut Map<String, Value>) -> Result<(WakeType, WakeStatus), Unreadable> {
    let given = |text: Option<String>, field: &str, known: &str| {
        text.map_or_else(String::new, |text| {
            format!("its `{field}` is `{}`; it must be {known}", text.escape_debug())
        })
    };
    let kind_text = text(map, &["type"]);
    let status_text = text(map, &["status"]);
    let kind = kind_text.as_deref().map(WakeType::parse);
    let status = status_text.as_deref().map(WakeStatus::parse);
    match (kind, status) {
        (Some(None), _) => Err(Unreadable(given(kind_text, "type", "COMPLETE, BLOCKED, FINDING or ERROR"))),
        (_, Some(None)) => Err(Unreadable(given(status_text, "status", "complete, blocked or failed"))),
        (Some(Some(kind)), Some(Some(status))) => Ok((kind, status)),
        (Some(Some(kind)), None) => Ok((kind, kind.usual_status())),
        (None, Some(Some(status))) => Ok((status.usual_type(), status)),
        (None, None) => Err(Unreadable("it has neither a `type` nor a `status`".into())),
    }
}

/// The first of the spellings that is there, as text. Nothing else takes its place: `null` is absent.
fn text(map: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    let found = names.iter().find(|name| map.get(**name).is_some_and(is_text));
    let value = found.and_then(|name| map.shift_remove(*name));
    // An explicit null says nothing: it need not be kept.
    names.iter().for_each(|name| {
        if map.get(*name).is_some_and(Value::is_null) {
            map.shift_remove(*name);
        }
    });
    value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_string))
}

fn is_text(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn name(map: &mut Map<String, Value>, names: &[&str]) -> Result<Option<String>, Unreadable> {
    let found = text(map, names).map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    match found {
        Some(text) if text.chars().count() > MAX_NAME_CHARS || text.contains(char::is_control) => Err(
            Unreadable(format!("its `{}` is not a name of at most {MAX_NAME_CHARS} characters", names[0])),
        ),
        other => Ok(other),
    }
}

/// A number or `P1`. Odd ones are no reason to lose a message.
fn priority(value: Option<Value>) -> u8 {
    let number = match &value {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().trim_start_matches(['p', 'P']).parse().ok(),
        _ => None,
    };
    number.map_or(USUAL_PRIORITY, |number| number.min(u64::from(LAST_PRIORITY)) as u8)
}

/// As it should be, or just the files.
fn deliverables(value: Option<Value>) -> Deliverables {
    match value {
        Some(Value::Object(mut map)) => Deliverables {
            files: files(map.shift_remove("files")),
            handoff_id: text(&mut map, &["handoff_id", "handoffId"]),
            handoff_file: text(&mut map, &["handoff_file", "handoffFile"]),
            other: map,
        },
        other => Deliverables { files: files(other), ..Deliverables::default() },
    }
}

fn files(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => {
            items.into_iter().filter_map(|item| item.as_str().map(str::to_string)).collect()
        }
        Some(Value::String(file)) if !file.is_empty() => vec![file],
        _ => Vec::new(),
    }
}
