use serde_json::json;

use super::*;

// covers: S2
#[test]
fn handled_once_in_order_and_acknowledged() {
    let place = Place::new();
    let handler = Arc::new(Notebook::default());
    for number in 0..10 {
        place.post(if number % 2 == 0 { "even" } else { "odd" }, &format!("{number}"));
    }
    let done = place.deliver(&handler);
    assert_eq!((done.handled, done.left, done.dead), (10, 0, 0));
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!((handler.calls(), place.handled()), (expected.clone(), expected));
    assert!(place.inbox.unhandled().unwrap().is_empty());
    assert!(place.inbox.handled().unwrap().iter().all(|handled| handled.wake.as_ref().unwrap().acknowledged));
    assert_eq!(place.deliver(&handler), Delivered::default(), "and nothing is left to do");
    assert_eq!(std::fs::read_to_string(place.inbox.log()).unwrap().lines().count(), 10);
}

// covers: S2
#[test]
fn the_same_id_has_one_effect_however_often_it_is_posted() {
    let place = Place::new();
    let handler = Arc::new(Notebook::default());
    let wake = place.post("s", "once");
    place.inbox.post(&wake).unwrap();
    let done = place.deliver(&handler);
    assert_eq!((done.handled, done.repeated), (1, 1), "both in one batch");
    place.inbox.post(&wake).unwrap();
    let done = place.deliver(&handler);
    assert_eq!((done.handled, done.repeated), (0, 1), "and from the ledger");
    assert_eq!((handler.calls(), place.handled()), (vec!["once".to_string()], vec!["once".to_string()]));
}

// covers: S2
#[test]
fn poison_is_dead_after_exactly_five_tries_and_holds_back_only_its_sender() {
    let place = Place::new();
    let handler = Arc::new(Notebook::default());
    let bad = place.post("a", "poison");
    place.post("a", "behind it");
    place.post("b", "somebody else's");
    let mut delivery = Delivery::new(place.inbox.clone(), handler.clone());
    let first = delivery.pass().unwrap();
    assert_eq!((first.handled, first.failed, first.left), (1, 1, 2));
    assert_eq!(handler.calls(), ["poison", "somebody else's"]);
    let rest = delivery.until_quiet(DEADLINE).unwrap();
    assert_eq!((rest.handled, rest.dead, rest.left), (1, 1, 0));
    let calls = handler.calls();
    assert_eq!(calls.iter().filter(|call| *call == "poison").count(), 5, "{calls:?}");
    assert_eq!(calls.last().unwrap(), "behind it");
    let dead = place.inbox.dead().unwrap();
    assert_eq!((dead.len(), dead[0].id.as_str()), (1, bad.wake_id.as_str()));
    assert_eq!((dead[0].reason.tries, dead[0].reason.reason.as_str()), (5, "it is poison"));
    assert_eq!(place.handled(), ["somebody else's", "behind it"]);
}

// covers: S2
#[test]
fn tries_are_counted_on_disk_not_in_a_process() {
    let place = Place::new();
    let handler = Arc::new(Notebook::default());
    place.post("a", "poison");
    for tried in 1..=5 {
        // A new deliverer each time: it knows nothing of those before.
        Delivery::new(place.inbox.clone(), handler.clone()).pass().unwrap();
        assert_eq!(handler.calls().len(), tried);
        assert_eq!(place.inbox.dead().unwrap().len(), usize::from(tried == 5));
    }
    assert_eq!(place.deliver(&handler), Delivered::default());
    assert_eq!(handler.calls().len(), 5);
}

// covers: S2
#[test]
fn a_dead_letter_can_be_tried_again_with_all_its_tries() {
    let place = Place::new();
    let handler = Arc::new(Notebook::default());
    let id = place.post("a", "poison").wake_id;
    place.deliver(&handler);
    assert!(matches!(place.inbox.retry(Some("nothing")), Err(RetryError::Unknown(_))));
    assert_eq!(place.inbox.retry(Some(&id)).unwrap(), vec![id.clone()]);
    assert!(place.inbox.dead().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(place.inbox.dead_dir()).unwrap().count(), 0, "its reason went with it");
    place.deliver(&handler);
    assert_eq!(handler.calls().len(), 10, "five tries, twice");
    place.inbox.retry(None).unwrap();
    // This time somebody is there who can do it.
    let done = Delivery::new(place.inbox.clone(), Arc::new(Recorded)).until_quiet(DEADLINE).unwrap();
    assert_eq!((done.handled, place.handled()), (1, vec!["poison".to_string()]));
}

// covers: S2
#[test]
fn two_deliverers_take_turns() {
    let place = Place::new();
    for number in 0..200 {
        place.post("s", &format!("{number:03}"));
    }
    let handler = Arc::new(Notebook::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| place.deliver(&handler));
        }
    });
    assert!(place.handled().len() == 200 && place.handled().is_sorted());
    assert_eq!(handler.calls().len(), 200);
}

// covers: S2
#[test]
fn half_a_line_in_the_ledger_never_happened() {
    let place = Place::new();
    place.post("s", "one");
    let two = place.post("s", "two");
    let handler = Arc::new(Notebook::default());
    place.deliver(&handler);
    // The deliverer died in the middle of writing the second line; its file is still there.
    let ledger = place.inbox.dir().join("ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, &text[..text.len() - 20]).unwrap();
    place.inbox.post(&two).unwrap();
    assert_eq!(place.deliver(&handler).handled, 1);
    assert_eq!(place.handled(), ["one", "two"]);
    assert_eq!(std::fs::read_to_string(&ledger).unwrap().lines().count(), 2);
}

// covers: S2
#[test]
fn the_log_gets_what_a_death_left_out_and_nothing_twice() {
    let place = Place::new();
    (0..3).for_each(|number| drop(place.post("s", &number.to_string())));
    place.deliver(&Arc::default());
    let log = place.inbox.log();
    let text = std::fs::read_to_string(&log).unwrap();
    let first_line = text.lines().next().unwrap();
    // It died after the ledger and in the middle of the second line of the log.
    std::fs::write(&log, format!("{first_line}\n{{\"event\":\"wa")).unwrap();
    std::fs::write(place.inbox.dir().join("deliver.lock"), "recording\n").unwrap();
    place.post("s", "3");
    place.deliver(&Arc::default());
    let whole: Vec<serde_json::Value> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let summaries: Vec<&serde_json::Value> = whole.iter().map(|line| &line["summary"]).collect();
    assert_eq!(summaries, [&json!("0"), &json!("1"), &json!("2"), &json!("3")]);
}

// covers: S2
#[test]
fn the_ledger_stays_bounded_and_still_knows_what_was_handled() {
    let place = Place::new();
    let answer = place.post("quiet", "an answer");
    let big = "x".repeat(700 << 10);
    let mut last = None;
    let mut delivery = Delivery::new(place.inbox.clone(), Arc::new(Recorded));
    for _ in 0..14 {
        last = Some(place.post("busy", &big));
        delivery.until_quiet(DEADLINE).unwrap();
    }
    let bytes = std::fs::metadata(place.inbox.dir().join("ledger.jsonl")).unwrap().len();
    assert!(bytes < 8 << 20, "{bytes}");
    assert_eq!(place.inbox.handled().unwrap().len(), 15, "every id");
    assert_eq!(place.inbox.handled_of("quiet").unwrap().len(), 1, "and the answer");
    for again in [answer, last.unwrap()] {
        place.inbox.post(&again).unwrap();
    }
    let handler = Arc::new(Notebook::default());
    assert_eq!(place.deliver(&handler).repeated, 2);
    assert!(handler.calls().is_empty());
}
