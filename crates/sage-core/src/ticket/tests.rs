use serde_json::{Value, json};

use super::*;

const AT: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-02T00:00:00Z";

fn book(tickets: Value) -> Book {
    Book::read(json!({"version": "1.0", "tickets": tickets}).to_string().as_bytes()).unwrap()
}

fn ids(tickets: &[&Ticket]) -> Vec<String> {
    tickets.iter().map(|ticket| ticket.id.clone()).collect()
}

fn steps(result: Value) -> serde_json::Map<String, Value> {
    let step = json!({"state": "succeeded", "result": {"summary": "cut"}, "full": result, "artifacts": []});
    [("planning/plan".to_string(), step)].into_iter().collect()
}

// covers: R22
#[test]
fn what_others_wrote_stays_and_is_read_leniently() {
    let text = br#"{"version": 1, "owner": "me", "tickets": [
        {"id": "T-1", "title": "a", "state": "IN_PROGRESS", "priority": "p0", "points": 5, "notes": ["by hand"]},
        {"id": "X-7", "title": "b", "state": "todo", "detail": null, "blockedBy": null}]}"#;
    let mut book = Book::read(text).unwrap();
    assert_eq!(book.get("T-1").unwrap().state, State::InProgress);
    assert_eq!(book.get("X-7").unwrap().priority, Priority::P2);
    book.edit("t-1", LATER, |ticket| ticket.state = State::Done).unwrap();
    let value: Value = serde_json::from_str(&book.text()).unwrap();
    assert_eq!((&value["owner"], &value["tickets"][0]["points"]), (&json!("me"), &json!(5)));
    assert_eq!(value["tickets"][0]["notes"], json!([{"text": "by hand"}]));
    assert_eq!(value["tickets"][0]["updatedAt"], LATER);
    assert_eq!(value["tickets"][1].get("updatedAt"), None, "an untouched ticket stays as it is");
    assert_eq!(Book::read(book.text().as_bytes()).unwrap().text(), book.text());
}

// covers: R22
#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let refused = |text: &str| Book::read(text.as_bytes()).unwrap_err().to_string();
    assert!(refused("{").contains("not JSON"));
    assert!(refused("[]").contains("list `tickets`"));
    assert!(refused(r#"{"version": "2.0"}"#).contains("newer sage"));
    assert!(
        refused(r#"{"tickets": [{"id": "T-1", "state": "lost"}]}"#).contains("`T-1`: `lost` is not a state")
    );
    assert!(refused(r#"{"tickets": [{"title": "x"}]}"#).contains("number 1"));
    assert!(refused(r#"{"tickets": [{"id": "a"}, {"id": "a"}]}"#).contains("two tickets have the id `a`"));
    assert!(refused(r#"{"tickets": [{"id": "a b"}]}"#).contains("its id"));
    assert_eq!(Book::read(b"{}").unwrap(), Book::default());
}

// covers: R22
#[test]
fn ready_is_by_priority_then_dependants_then_id() {
    let book = book(json!([
        {"id": "T-10", "title": "late"},
        {"id": "T-2", "title": "early"},
        {"id": "T-3", "title": "useful"},
        {"id": "T-4", "title": "waits", "blockedBy": ["T-3"]},
        {"id": "T-5", "title": "waits longer", "blockedBy": ["T-4", "T-1"]},
        {"id": "T-6", "title": "urgent", "priority": "P0"},
        {"id": "T-7", "title": "done", "state": "done"},
        {"id": "T-8", "title": "free", "blockedBy": ["T-7"], "priority": "P3"},
        {"id": "T-9", "title": "begun", "state": "inProgress"},
        {"id": "T-1", "title": "given up", "state": "cancelled"},
        {"id": "T-11", "title": "held", "state": "blocked"},
    ]));
    assert_eq!(ids(&book.ready()), ["T-6", "T-3", "T-2", "T-10", "T-8"]);
    assert_eq!((book.dependants("T-3"), book.dependants("T-7"), book.dependants("T-2")), (2, 1, 0));
    let five = book.get("T-5").unwrap();
    assert_eq!(book.standing(five), Standing::Blocked);
    let blockers: Vec<String> = book.blockers(five).into_iter().map(|blocker| blocker.id).collect();
    assert_eq!(blockers, ["T-4", "T-1"]);
    assert_eq!(book.problems(), ["T-5 waits for T-1, which is cancelled"]);
}

// covers: R22
#[test]
fn a_cycle_is_refused_with_its_path_and_unknown_blockers_are_told() {
    let mut all =
        book(json!([{"id": "T-1", "title": "a"}, {"id": "T-2", "title": "b", "blockedBy": ["T-1"]}]));
    let draft = Draft {
        title: "c".into(),
        blocked_by: vec!["T-2".into()],
        blocks: vec!["1".into()],
        ..Draft::default()
    };
    let before = all.clone();
    let refused = all.add(draft.clone(), AT).unwrap_err();
    assert_eq!(refused.to_string(), "tickets wait for each other: T-1 -> T-3 -> T-2 -> T-1");
    assert_eq!(all, before, "a refused change changes nothing");
    assert_eq!(all.add(Draft { blocks: vec![], ..draft }, AT).unwrap(), "T-3");
    let unknown = Draft { title: "d".into(), blocked_by: vec!["T-9".into()], ..Draft::default() };
    assert_eq!(all.add(unknown, AT).unwrap_err().to_string(), "no ticket `T-9`");
    // By hand everything can be written: it is told, and the others go on.
    let odd = book(json!([
        {"id": "A", "title": "a", "blockedBy": ["B"]}, {"id": "B", "title": "b", "blockedBy": ["A"]},
        {"id": "C", "title": "c", "blockedBy": ["T-40"]}, {"id": "D", "title": "d"}]));
    let problems = odd.problems();
    assert!(problems[0].ends_with("can never start: A -> B -> A"), "{problems:?}");
    assert_eq!(problems[1], "C waits for T-40, which does not exist");
    assert_eq!(ids(&odd.ready()), ["D"]);
    let mut odd = odd;
    let id = odd.add(Draft { title: "e".into(), ..Draft::default() }, AT).unwrap();
    assert_eq!(id, "T-41", "an id that somebody waits for is not given to something else");
}

// covers: R22
#[test]
fn a_run_moves_its_ticket_and_telling_it_twice_changes_nothing() {
    let mut book = book(json!([{"id": "T-1", "title": "a"}]));
    let state = |book: &Book| (book.get("T-1").unwrap().state, book.get("T-1").unwrap().notes.len());
    book.began("T-1", "run_1", AT);
    book.began("T-1", "run_1", LATER);
    assert_eq!(
        (state(&book), book.get("T-1").unwrap().updated_at.as_deref()),
        ((State::InProgress, 0), Some(AT))
    );
    let short = Ended::Short("run_1 failed".into());
    for _ in 0..3 {
        book.ended("T-1", "run_1", &short, LATER);
        assert_eq!(state(&book), (State::Open, 1));
    }
    // Resumed, and a newer run besides: only the newest decides.
    book.began("T-1", "run_1", AT);
    book.began("T-1", "run_2", AT);
    book.ended("T-1", "run_1", &Ended::Succeeded, AT);
    book.began("T-1", "run_1", AT);
    assert_eq!(state(&book), (State::InProgress, 1));
    book.ended("T-1", "run_2", &Ended::Succeeded, AT);
    book.ended("T-1", "run_2", &short, AT);
    assert_eq!(state(&book), (State::Done, 1));
    // A person's word counts for a run that only goes on, and not for one that was asked for since.
    book.began("T-1", "run_2", AT);
    assert_eq!(state(&book).0, State::Done);
    book.began("T-1", "run_3", AT);
    assert_eq!(state(&book).0, State::InProgress);
    book.began("T-99", "run_3", AT);
}

// covers: R22
#[test]
fn a_plan_makes_tickets_once() {
    let plan = json!({"tasks": [
        {"id": "T1", "title": "Store tokens", "priority": "P1", "files": ["src/a.rs"], "acceptance": ["x"]},
        {"id": "T2", "title": "Check tokens", "dependsOn": ["T1", "T9"]},
        {"id": "T3", "title": "Check tokens", "dependsOn": ["T2"]},
        {"detail": "no title"},
    ]});
    let mut book = Book::default();
    let first = create(&mut book, "run_1", "login", &steps(plan.clone()), AT).unwrap();
    assert_eq!((first.created.join(" "), first.kept.len()), ("T-1 T-2 T-3".into(), 0));
    assert_eq!(first.notes, ["T-2 depends on `T9`, which is not in the plan"]);
    assert_eq!(book.get("T-2").unwrap().blocked_by, ["T-1"]);
    assert_eq!(book.get("T-3").unwrap().blocked_by, ["T-2"]);
    assert_eq!(book.get("T-1").unwrap().priority, Priority::P1);
    let after = book.clone();
    let again = create(&mut book, "run_1", "login", &steps(plan.clone()), LATER).unwrap();
    assert_eq!((again.created.len(), again.kept.join(" ")), (0, "T-1 T-2 T-3".into()));
    assert_eq!(book, after, "the same plan of the same run changes nothing");
    // A new run of the feature finds what is open; what is done is planned anew.
    book.edit("T-1", LATER, |ticket| ticket.state = State::Done).unwrap();
    let next = create(&mut book, "run_2", "login", &steps(plan.clone()), LATER).unwrap();
    assert_eq!((next.created.join(" "), next.kept.join(" ")), ("T-4".into(), "T-2 T-3".into()));
    // Another feature has tickets of its own.
    assert_eq!(create(&mut book, "run_3", "logout", &steps(plan), LATER).unwrap().created.len(), 3);
    assert_eq!(book.cycle(), None);
}

// covers: R22
#[test]
fn what_an_offline_agent_leaves_open_joins_the_plan_and_no_name_is_lost() {
    let mut all = steps(json!({"tasks": [{"id": "T1", "title": "One"}]}));
    let left = json!({"open": [{"id": "T1", "why": "no model"}], "tickets": [
        {"title": "one"}, {"title": "Two", "blockedBy": ["T1", "one"]}, {"title": "Two"}]});
    all.insert("a/swarm".into(), json!([left, {"tasks": [{"id": "T1", "title": "Other"}]}]));
    let mut book = Book::default();
    let made = create(&mut book, "run_1", "f", &all, AT).unwrap();
    assert_eq!((made.created.join(" "), made.kept.join(" ")), ("T-1 T-2 T-3".into(), "T-1".into()));
    let titles: Vec<&str> = book.tickets.iter().map(|ticket| ticket.title.as_str()).collect();
    assert_eq!(titles, ["One", "Two", "Other"]);
    assert_eq!(book.get("T-2").unwrap().blocked_by, ["T-1"]);
    let again = create(&mut book, "run_1", "f", &all, AT).unwrap();
    assert_eq!(again.created, Vec::<String>::new());
}

// covers: R22
#[test]
fn a_plan_that_waits_for_itself_is_refused_whole() {
    let plan = json!({"tasks": [
        {"id": "A", "title": "a", "dependsOn": ["B"]}, {"id": "B", "title": "b", "dependsOn": ["A"]}]});
    let mut book = Book::default();
    let refused = create(&mut book, "run_1", "f", &steps(plan), AT).unwrap_err();
    assert_eq!(refused.to_string(), "the plan waits for itself: A -> B -> A");
    assert_eq!(book, Book::default());
}

// covers: R22
#[test]
fn results_finish_tickets_and_say_why_others_are_left() {
    let mut book = Book::default();
    let plan = json!({"tasks": [
        {"id": "T1", "title": "a"}, {"id": "T2", "title": "b"}, {"id": "T3", "title": "c"}]});
    create(&mut book, "run_1", "f", &steps(plan), AT).unwrap();
    let result = steps(
        json!({"done": ["T1", "T3", "T7"], "open": [{"id": "T2", "why": "no key"}, {"id": "T3", "why": "half"}]}),
    );
    let updated = update(&mut book, "run_1", &result, LATER);
    assert_eq!((updated.done.join(" "), updated.open.join(" ")), ("T-1".into(), "T-2 T-3".into()));
    assert_eq!(updated.notes, ["`T7` is done, but is no ticket of this run"]);
    assert_eq!(book.get("T-1").unwrap().state, State::Done);
    assert_eq!(book.get("T-2").unwrap().notes[0].text, "no key");
    let after = book.clone();
    update(&mut book, "run_1", &result, "2026-01-03T00:00:00Z");
    assert_eq!(book, after, "told twice, done once");
    update(&mut book, "run_2", &steps(json!({"done": ["T2"]})), LATER);
    assert_eq!(book.get("T-2").unwrap().state, State::Open, "another run's `T2` is not this one's");
}

// covers: R22
#[test]
fn ten_thousand_tickets_are_no_work() {
    let tickets: Vec<Value> = (1..=10_000)
        .map(|n| json!({"id": format!("T-{n}"), "title": "x", "blockedBy": if n > 5_000 { vec![format!("T-{}", n - 1)] } else { vec![] }}))
        .collect();
    let book = book(Value::Array(tickets));
    let ready = book.ready();
    assert_eq!((ready.len(), ready[0].id.as_str()), (5_000, "T-5000"));
    assert_eq!(book.cycle(), None);
}
