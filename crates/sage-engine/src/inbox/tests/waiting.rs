use super::*;

// covers: S2, S8
#[test]
fn whoever_waits_gets_what_is_dropped_and_what_was_handled_before() {
    let place = Place::ready();
    let inbox = place.inbox.clone();
    let waiting = std::thread::spawn(move || {
        let late = Instant::now() + DEADLINE;
        inbox.wait_for("mine", None, &|| Instant::now() > late).unwrap().unwrap()
    });
    place.post("other", "not mine");
    place.drop_file("answer.json", r#"{"session_id": "mine", "type": "FINDING", "summary": "first"}"#);
    let first = waiting.join().unwrap();
    assert_eq!(first.summary, "first");
    place.post("mine", "second");
    place.deliver(&Arc::default());
    // Handled long ago: the store has it.
    let second = place.inbox.wait_for("mine", Some(&first.wake_id), &|| true).unwrap().unwrap();
    assert_eq!(second.summary, "second");
    assert_eq!(place.inbox.wait_for("mine", Some(&second.wake_id), &|| true).unwrap(), None);
    let again = place.inbox.wait_for("mine", None, &|| true).unwrap().unwrap();
    assert_eq!(again.summary, "first");
}

// covers: S2
#[test]
fn a_waiter_sees_each_wake_once_also_when_the_ledger_is_replaced() {
    let place = Place::ready();
    let mut waiter = place.inbox.waiter("s", None);
    assert!(waiter.look().unwrap().is_empty());
    place.post("s", "one");
    place.deliver(&Arc::default());
    assert_eq!(waiter.look().unwrap().len(), 1);
    let ledger = place.inbox.dir().join("ledger.jsonl");
    let text = std::fs::read(&ledger).unwrap();
    std::fs::write(place.dir.path().join("copy"), text).unwrap();
    std::fs::rename(place.dir.path().join("copy"), &ledger).unwrap();
    place.post("s", "two");
    place.deliver(&Arc::default());
    let news = waiter.look().unwrap();
    assert_eq!(news.iter().map(|wake| wake.summary.as_str()).collect::<Vec<_>>(), ["two"]);
}

// covers: S2
#[test]
fn a_deliverer_in_the_background_needs_nobody() {
    let place = Place::new();
    let background = Background::start(place.inbox.clone(), Arc::new(Recorded));
    place.post("s", "one");
    wait_until(|| place.handled() == ["one"], "the delivery");
    place.post("s", "two");
    let (done, problem) = background.finish();
    assert_eq!((done.handled, problem), (2, None));
    assert_eq!(place.handled(), ["one", "two"], "also what came last");
}
