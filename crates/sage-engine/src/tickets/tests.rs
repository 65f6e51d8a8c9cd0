use std::sync::Arc;

use sage_core::ticket::{BookError, Draft, Ticket};

use super::*;
use crate::vfs::DiskFs;

fn store(root: &Path) -> Store {
    let project = Project::new(root.to_owned(), root.join(".sage"));
    Store::new(&project, DiskFs::new(), Clock::System)
}

fn add(store: &Store, title: &str) -> String {
    let draft = Draft { title: title.into(), ..Draft::default() };
    store.change(|book, at| book.add(draft.clone(), at)).unwrap()
}

// covers: R22
#[test]
fn looking_makes_nothing_and_the_file_is_for_people() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    assert!(store.read().unwrap().tickets.is_empty());
    assert!(!home.path().join(".sage").exists());
    assert_eq!(add(&store, "first"), "T-1");
    let text = std::fs::read_to_string(store.path()).unwrap();
    assert!(text.starts_with("{\n  \"version\": \"1.0\",\n  \"tickets\": [\n"), "{text}");
    let names: Vec<_> = std::fs::read_dir(home.path().join(".sage/tickets")).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "nothing but the tickets lies there: {names:?}");
}

// covers: R22
#[test]
fn two_hundred_updates_of_many_writers_are_all_there() {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let home = tempfile::tempdir().unwrap();
    let first = add(&store(home.path()), "shared");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            // Stores of their own: nothing but the lock keeps them apart, as with processes.
            let (store, first) = (store(home.path()), first.clone());
            scope.spawn(move || {
                for n in 0..EACH {
                    let text = format!("{writer}/{n}");
                    let note = |ticket: &mut Ticket| ticket.note(&text, None, "now");
                    store.change(|book, at| book.edit(&first, at, note).map(drop)).unwrap();
                }
            });
        }
    });
    let book = store(home.path()).read().unwrap();
    let mut notes: Vec<String> = book.tickets[0].notes.iter().map(|note| note.text.clone()).collect();
    notes.sort();
    notes.dedup();
    assert_eq!(notes.len(), WRITERS * EACH);
}

// covers: R22
#[test]
fn what_an_editor_saves_in_between_is_taken_in() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    add(&store, "mine");
    let path = store.path();
    let saved = std::cell::Cell::new(false);
    let added = store.change(|book, at| {
        if !saved.replace(true) {
            let text = std::fs::read_to_string(&path).unwrap().replace("mine", "edited by hand");
            std::fs::write(&path, text).unwrap();
        }
        book.add(Draft { title: "new".into(), ..Draft::default() }, at)
    });
    assert_eq!(added.unwrap(), "T-2");
    let titles: Vec<String> = store.read().unwrap().tickets.into_iter().map(|ticket| ticket.title).collect();
    assert_eq!(titles, ["edited by hand", "new"]);
}

// covers: R22
#[test]
fn a_damaged_or_newer_file_is_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    add(&store, "mine");
    for text in ["{\"tickets\": [", "<<<<<<< HEAD\n", "{\"version\": \"2.1\", \"tickets\": []}"] {
        std::fs::write(store.path(), text).unwrap();
        let refused = store.change(|book, at| book.add(Draft { title: "x".into(), ..Draft::default() }, at));
        assert!(matches!(refused, Err(TicketError::Damaged { .. })), "{refused:?}");
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), text);
    }
    let refused: Result<(), TicketError> = store.change(|_, _| Err(BookError::Title));
    assert!(refused.is_err());
}

// covers: R22
#[test]
fn a_power_cut_at_any_write_leaves_the_old_or_the_new_tickets() {
    use crate::sim::{Fault, SimFs};
    let home = tempfile::tempdir().unwrap();
    let project = Project::new(home.path().to_owned(), home.path().join(".sage"));
    std::fs::create_dir_all(project.runs()).unwrap();
    let open = |sim: &SimFs| Store::new(&project, Arc::new(sim.clone()), Clock::System);
    let probe = SimFs::new(1);
    add(&open(&probe), "one");
    let before = probe.ops();
    add(&open(&probe), "two");
    for op in before..probe.ops() {
        let sim = SimFs::new(op);
        add(&open(&sim), "one");
        sim.fail_at(op, Fault::Crash);
        let _ = open(&sim).change(|book, at| book.add(Draft { title: "two".into(), ..Draft::default() }, at));
        sim.crash(op);
        sim.restart();
        sim.clear_faults();
        let tickets = open(&sim).read().unwrap().tickets;
        assert!(matches!(tickets.len(), 1 | 2), "after operation {op}: {tickets:?}");
    }
}
