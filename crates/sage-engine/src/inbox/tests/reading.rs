use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::*;

fn read(value: Value) -> Result<Wake, Unreadable> {
    Wake::read(value.to_string().as_bytes(), Origin { name: "a.json", modified: Some(UNIX_EPOCH) })
}

// covers: S2
#[test]
fn the_names_on_the_wire_are_those_of_the_design() {
    let mut wake = wake("s", "done");
    (wake.wake_id, wake.timestamp) = ("w".into(), "2026-01-01T00:00:00.000Z".into());
    wake.other.insert("mood".into(), json!("good"));
    let expected = json!({
        "wakeId": "w", "type": "COMPLETE", "session_id": "s", "agent_role": null, "status": "complete",
        "timestamp": "2026-01-01T00:00:00.000Z", "priority": 2,
        "deliverables": {"files": [], "handoff_id": null, "handoff_file": null}, "summary": "done",
        "next_role": null, "acknowledged": false, "mood": "good",
    });
    let text = serde_json::to_value(&wake).unwrap();
    assert_eq!(text, expected);
    assert_eq!(Wake::read(text.to_string().as_bytes(), Origin::default()), Ok(wake), "and it reads back");
}

// covers: S8
#[test]
fn only_who_and_what_must_be_there() {
    let wake = read(json!({"session_id": "s", "status": "failed"})).unwrap();
    assert_eq!((wake.kind, wake.status), (WakeType::Error, WakeStatus::Failed));
    assert_eq!(wake.timestamp, "1970-01-01T00:00:00.000Z", "of the file");
    assert!(wake.wake_id.starts_with("wake_"));
    let wake =
        read(json!({"sessionId": 7, "type": "finding", "priority": "P0", "deliverables": "a.md"})).unwrap();
    assert_eq!((wake.kind, wake.status), (WakeType::Finding, WakeStatus::Complete));
    assert_eq!((wake.session_id.as_str(), wake.priority), ("7", 0));
    assert_eq!(wake.deliverables.files, ["a.md"]);
    let wake =
        read(json!({"session": "s", "type": "BLOCKED", "priority": {"odd": 1}, "extra": [1]})).unwrap();
    assert_eq!((wake.priority, &wake.other["extra"]), (2, &json!([1])), "odd is usual, unknown is kept");
    let bom = b"\xef\xbb\xbf{\"session_id\":\"s\",\"type\":\"complete\"}\n";
    assert!(Wake::read(bom, Origin::default()).is_ok());
}

// covers: S8
#[test]
fn an_id_follows_from_the_file_and_only_from_it() {
    let value = json!({"session_id": "s", "status": "complete"}).to_string();
    let id = |name, seconds| {
        let modified = Some(UNIX_EPOCH + Duration::from_secs(seconds));
        Wake::read(value.as_bytes(), Origin { name, modified }).unwrap().wake_id
    };
    assert_eq!(id("a.json", 1), id("a.json", 1));
    assert_ne!(id("a.json", 1), id("b.json", 1));
    assert_ne!(id("a.json", 1), id("a.json", 2), "the same words later are another wake");
}

// covers: S8
#[test]
fn what_cannot_be_understood_is_refused_with_a_reason() {
    for (value, reason) in [
        (json!([1]), "not an object"),
        (json!({"type": "COMPLETE"}), "no `session_id`"),
        (json!({"session_id": "", "type": "COMPLETE"}), "no `session_id`"),
        (json!({"session_id": null, "type": "COMPLETE"}), "no `session_id`"),
        (json!({"session_id": "s"}), "neither a `type` nor a `status`"),
        (json!({"session_id": "s", "type": "DONE"}), "COMPLETE, BLOCKED, FINDING or ERROR"),
        (json!({"session_id": "s", "status": "ok"}), "complete, blocked or failed"),
        (json!({"session_id": "s\u{1b}[2J", "status": "complete"}), "not a name"),
        (json!({"session_id": "x".repeat(300), "status": "complete"}), "not a name"),
    ] {
        let error = read(value.clone()).unwrap_err().to_string();
        assert!(error.contains(reason), "{value}: {error}");
    }
    for (text, reason) in [("", "empty"), ("{\"session_id\": \"s\"", "not JSON"), ("hello", "not JSON")] {
        let error = Wake::read(text.as_bytes(), Origin::default()).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
