use super::*;

const GOOD: &str = r#"{"session_id": "foreign", "status": "complete", "summary": "by hand"}"#;

// covers: S8
#[test]
fn a_dropped_file_is_a_wake() {
    let place = Place::ready();
    place.drop_file("from agent.json", GOOD);
    place.drop_file("no ending", &GOOD.replace("by hand", "another"));
    let shown = place.inbox.unhandled().unwrap();
    assert!(shown.iter().all(|letter| letter.place == super::super::Place::Dropped && letter.wake.is_ok()));
    let done = place.deliver(&Arc::default());
    assert_eq!((done.handled, done.left), (2, 0));
    assert_eq!(place.handled(), ["by hand", "another"], "in the order of their times");
    for dir in [place.inbox.new_dir(), place.inbox.claimed_dir(), place.inbox.taken_dir()] {
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    }
}

// covers: S8
#[test]
fn a_slow_writer_is_not_judged_before_it_is_done() {
    let place = Place::ready();
    let handler = Arc::new(Notebook::default());
    let mut delivery = Delivery::new(place.inbox.clone(), handler.clone());
    // In pieces, opened anew for each: as a shell script with `>>` writes.
    let path = place.inbox.new_dir().join("slow.json");
    let pieces: Vec<&str> = vec!["", &GOOD[..10], &GOOD[10..30], &GOOD[30..GOOD.len() - 1], "}\n"];
    for (number, piece) in pieces.iter().enumerate() {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        file.write_all(piece.as_bytes()).unwrap();
        let pass = delivery.pass().unwrap();
        let last = number + 1 == pieces.len();
        assert_eq!(
            (pass.handled, pass.left, pass.failed),
            if last { (1, 0, 0) } else { (0, 1, 0) },
            "{number}"
        );
    }
    assert_eq!(handler.calls(), ["by hand"]);
}

// covers: S8
#[test]
fn nonsense_is_tried_five_times_and_kept_with_the_reason() {
    let place = Place::ready();
    place.drop_file("half.json", r#"{"session_id": "s", "#);
    place.drop_file("who.json", r#"{"status": "complete"}"#);
    std::fs::create_dir(place.inbox.new_dir().join("folder.json")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", place.inbox.new_dir().join("link.json")).unwrap();
    place.post("s", "fine");
    let started = Instant::now();
    let done = place.deliver(&Arc::default());
    assert_eq!((done.handled, done.dead, done.left), (1, 4, 0));
    assert!(started.elapsed() >= GRACE, "it had its time");
    let dead = place.inbox.dead().unwrap();
    for (name, reason) in
        [("half", "not JSON"), ("who", "no `session_id`"), ("folder", "directory"), ("link", "symlink")]
    {
        let letter = dead.iter().find(|letter| letter.id.contains(name)).unwrap();
        assert!(letter.reason.reason.contains(reason), "{letter:?}");
        assert_eq!(letter.reason.tries, TRIES);
    }
    let half = dead.iter().find(|letter| letter.id.contains("half")).unwrap();
    assert_eq!(std::fs::read_to_string(&half.path).unwrap(), r#"{"session_id": "s", "#, "as it was");
    // Its writer is done now: the same file can be tried again.
    std::fs::write(&half.path, GOOD).unwrap();
    let id = place.inbox.dead().unwrap().into_iter().find(|letter| letter.wake.is_some()).unwrap().id;
    place.inbox.retry(Some(&id)).unwrap();
    place.deliver(&Arc::default());
    assert_eq!(place.handled(), ["fine", "by hand"]);
}

// covers: S8
#[test]
fn the_same_words_in_a_new_file_are_a_new_wake() {
    let place = Place::ready();
    let handler = Arc::new(Notebook::default());
    for _ in 0..3 {
        place.drop_file("done.json", GOOD);
        place.deliver(&handler);
    }
    assert_eq!(handler.calls().len(), 3, "an agent may say the same thing again");
}

// covers: S8
#[test]
fn a_file_that_was_posted_but_not_removed_has_one_effect() {
    let place = Place::ready();
    let handler = Arc::new(Notebook::default());
    // The deliverer died between the post and the removal.
    let path = place.drop_file("done.json", GOOD);
    let claimed = place.inbox.claimed_dir().join("done.json");
    std::fs::rename(path, &claimed).unwrap();
    let posted = place.inbox.read_wake(&claimed, "done.json").unwrap().unwrap();
    place.inbox.post(&posted).unwrap();
    let done = place.deliver(&handler);
    assert_eq!((done.handled, done.repeated), (1, 1));
    assert_eq!(handler.calls(), ["by hand"]);
    assert!(!claimed.exists());
}

// covers: S8
#[test]
fn files_that_are_not_finished_are_left_alone() {
    let place = Place::ready();
    for name in [".hidden.json", "x.json.tmp", "x.part", "x.json~"] {
        place.drop_file(name, GOOD);
    }
    assert_eq!(place.deliver(&Arc::default()), Delivered::default());
    assert_eq!(std::fs::read_dir(place.inbox.new_dir()).unwrap().count(), 4);
    // With manners: written under another name, then renamed.
    std::fs::rename(place.inbox.new_dir().join("x.json.tmp"), place.inbox.new_dir().join("x.json")).unwrap();
    assert_eq!(place.deliver(&Arc::default()).handled, 1);
}
