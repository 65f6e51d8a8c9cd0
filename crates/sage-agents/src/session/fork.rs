//! Sessions of a run that is forked: the fork goes on in copies of them that know what was known at that point.
//!
//! | what the source did in the session                  | what the fork's copy begins with                     |
//! |-----------------------------------------------------|------------------------------------------------------|
//! | only what the fork takes over                       | a fork of the conversation                           |
//! | also what the fork does once more, or somebody else | a new conversation that is told of the turns before  |
//! | nothing that the fork takes over                    | nothing, or what the session itself was forked from  |

use std::collections::{BTreeMap, BTreeSet};

use sage_core::port::Fork;

use super::record::{Parent, Record, Source, TurnState};
use super::store::{SessionError, Store, now_ms};

/// Of a run's id: the end of it is random.
const RUN_CHARS: usize = 8;
/// What a name may have, so that an agent's name still fits behind it.
const NAME_CHARS: usize = 80;

/// Gives the session of the fork for each one that the source's steps name. Reads the source's, also while they are
/// at work.
pub fn fork(store: &Store, fork: &Fork) -> Result<BTreeMap<String, String>, SessionError> {
    let (mut shared, mut beside) = (BTreeSet::new(), Vec::new());
    for id in &fork.used {
        let record = match store.load(id) {
            Ok(record) if record.named => record,
            // A step's own session belongs to its run; a deleted one has nothing to go on from.
            Ok(_) | Err(SessionError::Unknown(_)) => continue,
            Err(error) => return Err(error),
        };
        match &record.beside {
            Some(of) => {
                shared.insert(of.session.clone());
                beside.push((of.session.clone(), record));
            }
            None => drop(shared.insert(id.clone())),
        }
    }
    let mut names = BTreeMap::new();
    for name in shared.iter().map(|id| named(fork, id)).collect::<BTreeSet<_>>() {
        let new = name_of(&name, &fork.run);
        // What a fork has taken over it had in the session of its source; it goes on in its own.
        let id = fork.sessions.get(&name).unwrap_or(&name).clone();
        if let Ok(record) = store.load(&id) {
            copy(store, fork, &record, &new, None)?;
        }
        for (_, record) in beside.iter().filter(|(of, _)| *of == id) {
            // Both were named after the session that they stand in for.
            let end: String = record.id.chars().skip(id.chars().count()).collect();
            copy(store, fork, record, &format!("{new}{end}"), Some(&new))?;
        }
        names.insert(name, new);
    }
    Ok(names)
}

/// What steps call a session.
fn named(fork: &Fork, id: &str) -> String {
    let known = fork.sessions.iter().find(|(_, session)| *session == id);
    known.map_or(id, |(name, _)| name).to_string()
}

fn name_of(name: &str, run: &str) -> String {
    let end: String = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let end = end[end.len().saturating_sub(RUN_CHARS)..].to_lowercase();
    format!("{}-{end}", name.chars().take(NAME_CHARS).collect::<String>())
}

fn copy(
    store: &Store,
    fork: &Fork,
    of: &Record,
    new: &str,
    beside: Option<&str>,
) -> Result<(), SessionError> {
    let known = known_turns(of, fork);
    let mut record = Record::new(new, &of.agent, of.role.clone(), true, now_ms());
    record.beside = beside.map(|session| Source { session: session.into(), turns: 0 });
    let whole = known == of.turns.len();
    record.parent = match known {
        0 => of.parent.clone(),
        turns => {
            let conversation = of.conversation.clone().filter(|_| whole).unwrap_or_default();
            Some(Parent { session: of.id.clone(), conversation, turns, exact: true })
        }
    };
    if let Some(parent) = &mut record.parent {
        parent.exact = true;
    }
    if whole {
        (record.counters, record.context_tokens) = (of.counters.clone(), of.context_tokens);
    }
    store.create(&record)
}

/// The turns before the first one that the fork does once more, without one that is under way.
fn known_turns(record: &Record, fork: &Fork) -> usize {
    let again = record.turns.iter().position(|turn| fork.repeats(&turn.run, &turn.step));
    let known = again.unwrap_or(record.turns.len());
    let open = known > 0 && known == record.turns.len() && record.turns[known - 1].state == TurnState::Open;
    known - usize::from(open)
}

#[cfg(test)]
mod tests {
    use sage_core::port::Usage;

    use super::super::record::TurnRecord;
    use super::*;

    fn turn(run: &str, step: &str, state: TurnState) -> TurnRecord {
        TurnRecord {
            run: run.into(),
            step: step.into(),
            key: "k".into(),
            attempt: 1,
            state,
            heard: true,
            started_ms: 1,
            ended_ms: None,
            usage: Usage::default(),
            class: None,
            message: None,
            spoiled: false,
            planned: false,
            messages: Vec::new(),
        }
    }

    fn store_with(id: &str, turns: Vec<TurnRecord>, beside: Option<&str>) -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("sessions"), Some(sage_core::seal::Key::new(&[1; 32])));
        save(&store, id, turns, beside);
        (dir, store)
    }

    fn save(store: &Store, id: &str, turns: Vec<TurnRecord>, beside: Option<&str>) {
        let mut record = Record::new(id, "claude", None, true, 5);
        (record.conversation, record.turns) = (Some(format!("c-{id}")), turns);
        record.beside = beside.map(|session| Source { session: session.into(), turns: 1 });
        store.create(&record).unwrap();
    }

    fn asked(used: &[&str], kept: &[&str]) -> Fork {
        Fork {
            sources: vec!["run_A".into()],
            run: "run_00000000BBBBBBBB".into(),
            feature: "g".into(),
            kept: kept.iter().map(ToString::to_string).collect(),
            used: used.iter().map(ToString::to_string).collect(),
            sessions: BTreeMap::new(),
        }
    }

    // covers: S3
    #[test]
    fn a_copy_knows_the_turns_before_the_first_that_is_repeated() {
        use TurnState::{Done, Open};
        let turns = |state| {
            vec![turn("run_Z", "p/two", Done), turn("run_A", "p/one", Done), turn("run_A", "p/two", state)]
        };
        for (kept, state, known, conversation) in [
            (&["p/one", "p/two"][..], Done, 3, "c-talk"),
            (&["p/one"][..], Done, 2, ""),
            (&["p/one", "p/two"][..], Open, 2, ""),
            (&[][..], Done, 1, ""),
        ] {
            let (_dir, store) = store_with("talk", turns(state), None);
            let names = fork(&store, &asked(&["talk", "gone"], kept)).unwrap();
            assert_eq!(names, BTreeMap::from([("talk".into(), "talk-bbbbbbbb".to_string())]));
            let copy = store.load("talk-bbbbbbbb").unwrap();
            let parent = copy.parent.unwrap();
            assert_eq!(
                (parent.turns, parent.conversation.as_str(), parent.exact),
                (known, conversation, true)
            );
            assert!(copy.turns.is_empty() && copy.conversation.is_none());
            assert_eq!(store.load("talk").unwrap().turns.len(), 3, "the source's is as it was");
        }
    }

    // covers: S3
    #[test]
    fn another_agents_session_beside_it_is_copied_beside_the_copy() {
        let (_dir, store) = store_with("talk", vec![turn("run_A", "p/one", TurnState::Done)], None);
        save(&store, "talk-codex", vec![turn("run_A", "p/two", TurnState::Done)], Some("talk"));
        let names = fork(&store, &asked(&["talk-codex"], &["p/one", "p/two"])).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [("talk".into(), "talk-bbbbbbbb".into())]);
        let copy = store.load("talk-bbbbbbbb-codex").unwrap();
        assert_eq!(copy.beside.unwrap(), Source { session: "talk-bbbbbbbb".into(), turns: 0 });
        assert_eq!(copy.parent.unwrap().conversation, "c-talk-codex");
    }
}
