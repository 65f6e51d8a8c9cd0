use super::*;
use crate::inbox::name::Name;

// covers: S2
#[test]
fn opening_creates_nothing_and_a_post_makes_all_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    assert!(place.inbox.unhandled().unwrap().is_empty() && place.inbox.dead().unwrap().is_empty());
    assert_eq!(place.inbox.pressure(), Pressure::Calm(0));
    assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 0);
    let path = place.inbox.post(&wake("s", "x")).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&place.inbox.new_dir())), (0o600, 0o700));
    assert_eq!(std::fs::read_dir(place.inbox.tmp_dir()).unwrap().count(), 0);
}

// covers: S2
#[test]
fn posts_of_many_threads_have_one_order_and_each_sender_its_own() {
    const SENDERS: usize = 8;
    const EACH: usize = 20;
    let place = Place::new();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let inbox = place.inbox.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    inbox.post(&wake(&format!("s{sender}"), &format!("{number:03}"))).unwrap();
                }
            });
        }
    });
    let letters = place.inbox.unhandled().unwrap();
    assert_eq!(letters.len(), SENDERS * EACH);
    for sender in 0..SENDERS {
        let own = letters.iter().map(|letter| letter.wake.as_ref().unwrap());
        let own: Vec<&String> =
            own.filter(|wake| wake.session_id == format!("s{sender}")).map(|wake| &wake.summary).collect();
        assert!(own.len() == EACH && own.is_sorted(), "{own:?}");
    }
}

// covers: S2
#[test]
fn a_lost_counter_is_corrected_by_what_lies_in_the_inbox() {
    let place = Place::new();
    for number in 0..3 {
        place.post("s", &number.to_string());
    }
    for damage in ["", "gibberish", "00000000000000000000 another-boot\n"] {
        std::fs::write(place.inbox.dir().join("order.lock"), damage).unwrap();
        place.post("s", "later");
    }
    let names: Vec<String> = place.inbox.list(&place.inbox.new_dir()).unwrap();
    let numbers: Vec<u64> = names.iter().map(|name| Name::parse(name).unwrap().seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

// covers: S2, S8
#[test]
fn a_file_that_looks_like_one_of_ours_does_no_harm() {
    let place = Place::ready();
    let text = r#"{"session_id": "s", "type": "FINDING", "summary": "guest"}"#;
    place.drop_file("9999999999999999-0123456789ab-guest.json", text);
    place.drop_file("99999999999999999999-0123456789ab-guest.json", &text.replace("guest", "other"));
    std::fs::remove_file(place.inbox.dir().join("order.lock")).ok();
    place.post("s", "ours");
    place.deliver(&Arc::default());
    let mut handled = place.handled();
    handled.sort();
    assert_eq!(handled, ["guest", "other", "ours"]);
}

// covers: S2
#[test]
fn what_is_no_wake_is_not_posted() {
    let place = Place::new();
    let nobody = place.inbox.post(&wake(" ", "x")).unwrap_err();
    assert!(matches!(nobody, PostError::Missing("session_id")), "{nobody}");
    let book = place.inbox.post(&wake("s", &"x".repeat(MAX_BYTES as usize))).unwrap_err();
    assert!(matches!(book, PostError::TooLarge { .. }), "{book}");
    std::fs::write(place.dir.path().join("file"), "").unwrap();
    let blocked = Inbox::open(place.dir.path().join("file/inbox")).post(&wake("s", "x")).unwrap_err();
    assert!(matches!(blocked, PostError::Io { .. }), "{blocked}");
}

// covers: S2
#[test]
fn an_inbox_that_is_a_link_is_refused() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.inbox.dir()).unwrap();
    assert!(place.inbox.post(&wake("s", "x")).unwrap_err().to_string().contains("not a directory"));
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

// covers: S2
#[test]
fn pressure_counts_what_is_unhandled() {
    let place = Place::ready();
    let seen = |unhandled: usize| {
        wait_until(|| place.inbox.pressure().unhandled() == unhandled, "the count to be fresh");
        place.inbox.pressure()
    };
    for number in 0..WARN_OVER {
        place.drop_file(&format!("{number}.json"), "{}");
    }
    assert_eq!(seen(WARN_OVER), Pressure::Calm(50));
    place.post("s", "one more");
    assert_eq!(seen(51), Pressure::Warn(51));
    place.drop_file("unfinished.tmp", "{");
    for number in 0..50 {
        place.post("s", &number.to_string());
    }
    assert_eq!(seen(101), Pressure::Full(101));
}
