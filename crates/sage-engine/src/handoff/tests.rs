//! Handoffs on a real disk: their life, their views, damage, and many writers at once.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use sage_core::handoff::{ORDER, party};
use sage_core::role::Role;
use serde_json::json;

use super::*;
use crate::vfs::DiskFs;

struct Desk {
    dir: tempfile::TempDir,
    store: Store,
}

fn store(root: &Path) -> Store {
    let project = Project::new(root.to_owned(), root.join(".sage"));
    Store::new(&project, DiskFs::new(), Clock::System)
}

impl Desk {
    fn new() -> Desk {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plan.md"), "plan").unwrap();
        Desk { store: store(dir.path()), dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(".sage/handoffs").join(name)
    }

    fn file_of(&self, handoff: &Handoff) -> PathBuf {
        self.path(&handoff.file())
    }

    /// Through its whole life.
    fn done(&self, from: Role, to: Role, task_id: &str) -> Handoff {
        let made = self.store.create(&draft(from, to, task_id)).unwrap().value;
        let id = &made.handoff.handoff_id;
        self.store.advance(id, Status::Accepted, None).unwrap();
        self.store.advance(id, Status::Completed, None).unwrap().value
    }
}

fn draft(from: Role, to: Role, task_id: &str) -> Value {
    json!({
        "handoff": {"from": party(from), "to": party(to)},
        "context": {"taskId": task_id, "phase": "p", "scope": "s"},
        "deliverable": {"type": "plan", "location": "plan.md", "summary": "x", "artifacts": ["plan.md"]},
        "nextSteps": {"instructions": ["i"], "acceptanceCriteria": ["a"]},
        "session": "planner-claude-1"
    })
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

// covers: S6
#[test]
fn create_accept_and_complete_take_less_than_a_second() {
    let desk = Desk::new();
    for n in 0..50 {
        desk.store.create(&draft(Role::Planner, Role::Implementer, &format!("t{n}"))).unwrap();
    }
    let start = Instant::now();
    let done = desk.done(Role::Planner, Role::Implementer, "measured");
    let took = start.elapsed();
    println!("create + accept + complete beside 50 others: {} ms", took.as_millis());
    assert!(took < Duration::from_secs(1), "{took:?}");
    let states: Vec<Status> = done.transitions.iter().map(|transition| transition.status).collect();
    assert_eq!(states, [Status::Pending, Status::Accepted, Status::Completed]);
    assert!(done.transitions.iter().all(|transition| transition.at.ends_with('Z')));
    assert_eq!(done.session.as_deref(), Some("planner-claude-1"));
    let mode = std::fs::metadata(desk.file_of(&done)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(json_of(&desk.file_of(&done))["handoff"]["status"], "completed");
}

// covers: S6
#[test]
fn what_lacks_something_is_refused_with_all_of_it_and_nothing_is_written() {
    let desk = Desk::new();
    let mut poor = draft(Role::Planner, Role::Implementer, "t");
    poor["context"] = json!({});
    poor["deliverable"]["location"] = json!("nowhere.md");
    poor["deliverable"]["artifacts"] = json!(["plan.md", "gone.md"]);
    let Err(HandoffError::Incomplete(problems)) = desk.store.create(&poor) else { panic!() };
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "`context.taskId` is missing",
            "`context.phase` is missing",
            "`context.scope` is missing",
            "`deliverable.location` does not exist: nowhere.md",
            "`deliverable.artifacts[1]` does not exist: gone.md",
        ]
    );
    assert!(!desk.path("").exists());
    let mut address = draft(Role::Planner, Role::Implementer, "t");
    address["deliverable"]["location"] = json!("https://example.com/pull/7");
    desk.store.create(&address).unwrap();
}

// covers: S6
#[test]
fn wrong_ways_are_refused() {
    let desk = Desk::new();
    let refused = |result: Result<Done<Handoff>, HandoffError>| match result {
        Err(HandoffError::Refused(refusal)) => format!("{}; {}", refusal.message, refusal.hint),
        other => panic!("{other:?}"),
    };
    let told = refused(desk.store.create(&draft(Role::Planner, Role::Auditor, "t")));
    assert!(told.contains("PLANNER hands to IMPLEMENTER"), "{told}");
    let first = desk.store.create(&draft(Role::Planner, Role::Implementer, "t")).unwrap().value;
    let told = refused(desk.store.create(&draft(Role::Implementer, Role::Auditor, "t")));
    assert!(told.contains(&format!("sage handoff accept {}", first.handoff.handoff_id)), "{told}");
    let told = refused(desk.store.advance(&first.handoff.handoff_id, Status::Completed, None));
    assert!(told.contains("is pending and cannot become completed"), "{told}");
    let end = &first.handoff.handoff_id[20..];
    desk.store.advance(end, Status::Rejected, Some("no tests")).unwrap();
    let shown = desk.store.show(end).unwrap().value;
    assert_eq!(shown.transitions[1].reason.as_deref(), Some("no tests"));
    let told = refused(desk.store.advance(end, Status::Accepted, None));
    assert!(told.contains("create a new one"), "{told}");
    assert!(matches!(desk.store.show("nothing"), Err(HandoffError::Unknown { .. })));
    let mut again = draft(Role::Planner, Role::Implementer, "t");
    again["handoff"]["handoffId"] = json!(first.handoff.handoff_id);
    assert!(matches!(desk.store.create(&again), Err(HandoffError::Exists(_))));
}

// covers: S6
#[test]
fn a_chain_that_has_come_to_its_end_is_archived_and_stays_readable() {
    let desk = Desk::new();
    let mut ids = Vec::new();
    for pair in ORDER.windows(2) {
        assert!(ids.is_empty() || desk.path("chain-login.json").exists());
        ids.push(desk.done(pair[0], pair[1], "login").handoff.handoff_id);
    }
    assert!(!desk.path("chain-login.json").exists());
    let chain = json_of(&desk.path("archive/chain-login.json"));
    let listed: Vec<&str> = chain["handoffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["handoffId"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ids);
    let entries = desk.store.list().unwrap();
    assert!(entries.notes.is_empty() && entries.value.iter().all(|entry| entry.archived));
    assert_eq!(desk.store.show(&ids[0]).unwrap().value.handoff.status, Status::Completed);
    desk.store.create(&draft(Role::Orchestrator, Role::Planner, "login")).unwrap();
    assert!(desk.path("chain-login.json").exists() && !desk.path("archive/chain-login.json").exists());
}

// covers: S6, R5
#[test]
fn damaged_views_are_made_anew_and_told_and_a_damaged_handoff_is_left_alone() {
    let desk = Desk::new();
    let first = desk.done(Role::Planner, Role::Implementer, "a");
    desk.store.create(&draft(Role::Planner, Role::Implementer, "b")).unwrap();
    let good = [json_of(&desk.path("index.json")), json_of(&desk.path("chain-a.json"))];
    let damages: [&dyn Fn(); 5] = [
        &|| std::fs::write(desk.path("index.json"), "{").unwrap(),
        &|| std::fs::remove_file(desk.path("index.json")).unwrap(),
        &|| std::fs::write(desk.path("chain-a.json"), "").unwrap(),
        &|| std::fs::remove_file(desk.path("chain-a.json")).unwrap(),
        // As if the power had failed between a handoff and its views.
        &|| {
            let text = std::fs::read_to_string(desk.path("index.json")).unwrap();
            std::fs::write(desk.path("index.json"), text.replace("completed", "accepted")).unwrap();
        },
    ];
    for (n, damage) in damages.iter().enumerate() {
        damage();
        let listed = desk.store.list().unwrap();
        assert_eq!(listed.notes.len(), 1, "{n}: {:?}", listed.notes);
        assert!(
            listed.notes[0].ends_with("did not match its handoffs: the next change writes it anew"),
            "{n}"
        );
        assert_eq!(listed.value.len(), 2);
        assert_eq!(desk.store.list().unwrap().notes, listed.notes, "{n}: looking writes nothing");
        let mut notes = Vec::new();
        desk.store.whole_list(&mut notes).unwrap();
        assert!(notes[0].ends_with("did not match its handoffs: made anew from the handoffs"), "{n}");
        assert_eq!([json_of(&desk.path("index.json")), json_of(&desk.path("chain-a.json"))], good, "{n}");
        assert_eq!(desk.store.list().unwrap().notes, [""; 0]);
    }
    std::fs::write(desk.file_of(&first), "{\"half\":").unwrap();
    let listed = desk.store.list().unwrap();
    assert_eq!((listed.value.len(), listed.notes.len()), (1, 2), "{:?}", listed.notes);
    assert!(listed.notes[0].contains("it is left as it is"), "{:?}", listed.notes);
    assert_eq!(std::fs::read_to_string(desk.file_of(&first)).unwrap(), "{\"half\":");
}

// covers: S6
#[test]
fn many_writers_at_once_lose_nothing() {
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let root = desk.dir.path();
            scope.spawn(move || {
                // A store of its own, as another process would have.
                let store = store(root);
                for n in 0..5 {
                    let task_id = if n % 2 == 0 { "shared".to_string() } else { format!("t{writer}") };
                    let made =
                        store.create(&draft(Role::Planner, Role::Implementer, &task_id)).unwrap().value;
                    store.advance(&made.handoff.handoff_id, Status::Accepted, None).unwrap();
                }
            });
        }
    });
    let listed = desk.store.list().unwrap();
    assert_eq!((listed.value.len(), listed.notes), (40, Vec::new()));
    assert!(listed.value.iter().all(|entry| entry.status == Status::Accepted));
    let index: Index = serde_json::from_value(json_of(&desk.path("index.json"))).unwrap();
    assert_eq!(index.handoffs, listed.value);
    assert_eq!(json_of(&desk.path("chain-shared.json"))["handoffs"].as_array().unwrap().len(), 24);
}

// covers: S6
#[test]
fn looking_creates_nothing() {
    let desk = Desk::new();
    assert!(desk.store.list().unwrap().value.is_empty());
    assert!(desk.store.show("x").is_err() && desk.store.advance("x", Status::Accepted, None).is_err());
    assert!(!desk.dir.path().join(".sage").exists());
}

// covers: R4, S6
#[test]
fn ended_chains_are_forgotten_and_the_views_still_match() {
    let desk = Desk::new();
    for pair in ORDER.windows(2) {
        desk.done(pair[0], pair[1], "over");
    }
    let open = desk.done(Role::Planner, Role::Implementer, "open");
    let before = desk.store.list().unwrap().value.len();
    assert!(desk.store.forget(|_| false, false).unwrap().is_empty());
    let dry = desk.store.forget(|_| true, true).unwrap();
    assert_eq!((dry.len(), desk.store.list().unwrap().value.len()), (ORDER.len() - 1, before));
    assert_eq!(desk.store.forget(|_| true, false).unwrap(), dry);
    let left = desk.store.list().unwrap();
    assert_eq!(left.notes, Vec::<String>::new(), "nothing has to be put right");
    assert_eq!(left.value.len(), 1);
    assert_eq!(left.value[0].handoff_id, open.handoff.handoff_id);
    assert!(!desk.path("archive/chain-over.json").exists() && desk.path("chain-open.json").exists());
    // Killed between two files of a chain, what is left is still at its end, and goes the next time.
    for pair in ORDER.windows(2) {
        desk.done(pair[0], pair[1], "half");
    }
    let first = desk.store.list().unwrap().value.into_iter().find(|entry| entry.task_id == "half").unwrap();
    std::fs::remove_file(desk.path("archive/chain-half.json")).unwrap();
    std::fs::remove_file(desk.path(&first.file)).unwrap();
    assert_eq!(desk.store.forget(|_| true, false).unwrap().len(), ORDER.len() - 2);
}
