//! A session whose `session.json` is torn, put together from its turns.
//!
//! Every `turn-<n>.json` carries what the record said when the turn was written: the session without its turns, and
//! the turn itself. The last one that can be read is the newest state; a turn that cannot be read keeps its number.

use sage_fence::private;
use serde_json::{Value, json};

use super::record::{Record, TurnRecord, TurnState};
use super::store::Store;

const SESSION: &str = "session";
const TURN: &str = "turn";
/// Each number up to the last is looked for, and anybody can name a file.
const MAX_TURNS: usize = 1 << 16;

/// Puts into a turn's file what its session needs to be put together again.
pub(super) fn annotate(turn: &mut Value, record: &Record) {
    let header = Record { turns: Vec::new(), ..record.clone() };
    turn[SESSION] = json!(header);
    turn[TURN] = json!(record.last());
}

impl Store {
    /// The record as its turns tell it. `agent` is whose session it is where no turn says so; without either there
    /// is nothing to put together.
    pub(super) fn rebuild(&self, id: &str, agent: Option<&str>) -> Option<Record> {
        let files: Vec<Option<Value>> = (1..=self.count_turns(id)).map(|n| self.load_turn(id, n)).collect();
        let last = files.iter().rposition(Option::is_some)?;
        let header = files.iter().flatten().rev().find_map(|turn| parse::<Record>(turn, SESSION));
        let header = header.or_else(|| Some(Record::new(id, agent?, None, true, 0)))?;
        // What the last write tore is told again; a hole before it must not move the numbers after it.
        let turns =
            files[..=last].iter().map(|file| file.as_ref().map_or_else(unreadable, turn_of)).collect();
        Some(Record { id: id.to_string(), turns, ..header })
    }

    fn count_turns(&self, id: &str) -> usize {
        let entries = private::list(&self.path(id)).unwrap_or_default().into_iter();
        let number = |name: String| name.strip_prefix("turn-")?.strip_suffix(".json")?.parse().ok();
        let numbers = entries.filter_map(|entry| number(entry.name.into_string().ok()?));
        numbers.filter(|number| *number <= MAX_TURNS).max().unwrap_or(0)
    }
}

fn parse<T: serde::de::DeserializeOwned>(turn: &Value, field: &str) -> Option<T> {
    serde_json::from_value(turn.get(field)?.clone()).ok()
}

fn turn_of(file: &Value) -> TurnRecord {
    parse(file, TURN).unwrap_or_else(|| {
        let state = if file.get("answer").is_some() { TurnState::Done } else { TurnState::Failed };
        TurnRecord { state, ..unreadable() }
    })
}

/// Nobody knows whose work it was: no later work is taken for the same.
fn unreadable() -> TurnRecord {
    TurnRecord {
        run: String::new(),
        step: String::new(),
        key: String::new(),
        attempt: 0,
        state: TurnState::Failed,
        heard: true,
        started_ms: 0,
        ended_ms: None,
        usage: Default::default(),
        class: None,
        message: Some("the turn's file is damaged".into()),
        spoiled: false,
        planned: false,
        messages: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::SessionError;
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("sessions"), Some(sage_core::seal::Key::new(&[1; 32])));
        (dir, store)
    }

    /// A session with three turns, as it is written while it is used.
    fn used(store: &Store) -> Record {
        let mut record = Record::new("planner-claude-1", "claude", Some("planner".into()), true, 5);
        store.create(&record).unwrap();
        for number in 1..=3 {
            record.conversation = Some(format!("talk-{number}"));
            record.turns.push(TurnRecord {
                run: "run_1".into(),
                step: format!("a/{number}"),
                key: "k".into(),
                attempt: 1,
                state: TurnState::Done,
                message: None,
                ..unreadable()
            });
            let mut turn = json!({"prompt": "p", "answer": number});
            annotate(&mut turn, &record);
            store.save_turn(&record.id, number, &turn, false).unwrap();
            store.save(&record, false).unwrap();
        }
        record
    }

    // covers: S3
    #[test]
    fn a_torn_record_is_put_together_from_its_turns() {
        let (_dir, store) = store();
        let whole = used(&store);
        let path = store.path(&whole.id).join("session.json");
        let text = std::fs::read(&path).unwrap();
        let flipped: Vec<u8> =
            text.iter().enumerate().map(|(at, byte)| byte ^ (u8::from(at == 40) << 7)).collect();
        for torn in [&text[..text.len() / 2], b"", b"\0\0\0\0", &flipped[..]] {
            std::fs::write(&path, torn).unwrap();
            assert_eq!(json!(store.load(&whole.id).unwrap()), json!(whole));
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(json!(store.load(&whole.id).unwrap()), json!(whole), "a device is not read");
        // The last turn was torn, too: what came before it is known.
        std::fs::write(store.path(&whole.id).join("turn-3.json"), "{").unwrap();
        let rebuilt = store.load(&whole.id).unwrap();
        assert_eq!((rebuilt.turns.len(), rebuilt.conversation.as_deref()), (2, Some("talk-2")));
        assert_eq!(store.list().unwrap().len(), 1);
    }

    // covers: S3
    #[test]
    fn a_damaged_turn_in_the_middle_keeps_the_numbers_of_the_others() {
        let (_dir, store) = store();
        let whole = used(&store);
        std::fs::write(store.path(&whole.id).join("session.json"), "{").unwrap();
        std::fs::write(store.path(&whole.id).join("turn-2.json"), "{").unwrap();
        let rebuilt = store.load(&whole.id).unwrap();
        assert_eq!(rebuilt.turns.len(), 3);
        assert_eq!((rebuilt.turns[1].step.as_str(), rebuilt.turns[2].step.as_str()), ("", "a/3"));
    }

    // covers: S3
    #[test]
    fn turns_that_do_not_say_whose_they_are_need_an_agent() {
        let (_dir, store) = store();
        let whole = used(&store);
        std::fs::write(store.path(&whole.id).join("session.json"), "{").unwrap();
        for number in 1..=3 {
            store.save_turn(&whole.id, number, &json!({"prompt": "p", "answer": 1}), false).unwrap();
        }
        assert!(matches!(store.load(&whole.id), Err(SessionError::Damaged { .. })));
        let rebuilt = store.rebuild(&whole.id, Some("claude")).unwrap();
        assert_eq!((rebuilt.agent.as_str(), rebuilt.turns.len()), ("claude", 3));
        assert!(rebuilt.turns.iter().all(|turn| turn.state == TurnState::Done));
    }
}
