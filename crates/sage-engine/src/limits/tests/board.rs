use crate::limits::board::{Ask, Board, Ticket};
use crate::limits::name::safe;
use crate::limits::text::{self, Content};
use proptest::prelude::*;

const AGEING_MS: u64 = 60_000;

fn ask<'a>(member: &'a str, units: u32, limit: u32, priority: u8, now_ms: u64) -> Ask<'a> {
    Ask { member, run: "r", pool: "p", units, limit, priority, now_ms, ageing_ms: AGEING_MS }
}

fn ticket(board: &mut Board, member: &str, ticket: Ticket) {
    let row = board.members.entry(member.to_owned()).or_default();
    row.pools.entry("p".into()).or_default().ticket = Some(ticket);
}

fn at(since_ms: u64, asked_ms: u64, priority: u8) -> Ticket {
    Ticket { priority, since_ms, asked_ms, reserves: 0 }
}

// covers: R13, P6
#[test]
fn room_decides_when_nobody_waits() {
    // held, wanted, limit, override: granted?
    let cases = [
        (0, 1, 1, None, true),
        (1, 1, 1, None, false),
        (1, 1, 2, None, true),
        (1, 2, 2, None, false),
        (0, 9, 2, None, true),
        (1, 9, 2, None, false),
        (0, 1, 0, None, false),
        (0, 0, 0, None, true),
        (5, 0, 1, None, true),
        (1, 1, 1, Some(2), true),
        (1, 1, 5, Some(1), false),
        (0, 1, 5, Some(0), false),
        (0, 1, 0, Some(1), true),
        (u32::MAX, 1, u32::MAX, None, false),
    ];
    for (held, units, limit, set, granted) in cases {
        let mut board = Board::default();
        board.take(&ask("a", held, u32::MAX, 0, 0));
        board.overrides.extend(set.map(|limit| ("p".to_owned(), limit)));
        assert_eq!(board.is_free(&ask("b", units, limit, 0, 0)), granted, "{held} {units} {limit} {set:?}");
    }
}

// covers: R13, P6
#[test]
fn rank_decides_between_those_who_wait() {
    // The other's ticket (since, asked, priority); ours (member, priority, now): are we first?
    let cases = [
        (at(900, 1_000, 1), ("a", 1, 1_000), false),
        (at(1_000, 1_000, 1), ("a", 1, 1_000), true),
        (at(1_000, 1_000, 1), ("z", 1, 1_000), false),
        (at(900, 1_000, 2), ("a", 1, 1_000), true),
        (at(900, 1_000, 0), ("a", 1, 1_000), false),
        (at(0, 120_000, 3), ("a", 1, 120_000), true), // Two steps of priority are two times the ageing: a tie.
        (at(0, 120_001, 3), ("a", 1, 120_001), false),
        (at(2, 120_001, 3), ("a", 1, 120_001), true),
        (at(0, 0, 0), ("a", 9, 1_999), false),
        (at(0, 0, 0), ("a", 9, 2_000), true),
        (at(90_000, 90_000, 0), ("a", 9, 1_000), true), // A clock that was set back.
    ];
    for (index, (other, (member, priority, now_ms), first)) in cases.into_iter().enumerate() {
        let mut board = Board::default();
        ticket(&mut board, "m", other);
        assert_eq!(board.is_free(&ask(member, 1, 1, priority, now_ms)), first, "case {index}");
    }
}

// covers: R13
#[test]
fn a_ticket_keeps_its_time_and_the_better_priority() {
    let mut board = Board::default();
    board.wait(&ask("a", 1, 1, 3, 1_000));
    board.wait(&ask("a", 1, 1, 1, 2_000));
    board.wait(&ask("a", 1, 1, 2, 3_000));
    let of = |board: &Board| board.members["a"].pools["p"].ticket;
    assert_eq!(of(&board), Some(at(1_000, 3_000, 1)));
    board.wait(&ask("a", 1, 1, 2, 9_000));
    assert_eq!(of(&board), Some(at(1_000, 9_000, 2)), "lapsed: the priority was another step's");
    assert_eq!(board.take(&ask("a", 5, 2, 2, 9_001)), 2);
    assert_eq!(of(&board), None);
    board.wait(&ask("a", 1, 1, 2, 9_002));
    assert_eq!(of(&board), Some(at(9_002, 9_002, 2)), "granted: at the end of the queue again");
    board.withdraw("a");
    board.give("a", "p", 1);
    assert_eq!(board.held("p"), 1);
    board.give("a", "p", 7);
    assert_eq!(board, Board::default(), "nothing is left of who has nothing");
}

// covers: R13
#[test]
fn a_place_is_kept_only_after_ageing_and_only_for_its_units() {
    let mut board = Board::default();
    board.wait(&ask("a", 2, 4, 0, 0));
    board.keep_place(&ask("a", 2, 4, 0, 50_000));
    assert!(board.is_free(&ask("b", 4, 4, 0, 50_000)), "its ticket has lapsed");
    board.keep_place(&ask("a", 2, 4, 0, AGEING_MS));
    assert!(!board.is_free(&ask("b", 3, 4, 0, AGEING_MS)));
    assert!(board.is_free(&ask("b", 2, 4, 0, AGEING_MS)), "the rest is free");
    assert!(board.is_free(&ask("a", 4, 4, 0, AGEING_MS)), "it does not stand in its own way");
    board.keep_place(&ask("c", 2, 4, 0, AGEING_MS));
    assert!(!board.members.contains_key("c"), "who never waited here keeps nothing");
}

// covers: R13
#[test]
fn text_that_is_no_board_is_foreign() {
    let foreign = [
        "",
        "\n",
        "sage-board",
        "sage-board 0\n",
        "{\"version\":1}",
        "sage-board 1\np p 1 -\n",
        "sage-board 1\nm a\n",
        "sage-board 1\nm a r\np p x -\n",
        "sage-board 1\nm a r\np p 1 1 1 1\n",
        "sage-board 1\nm a r\np %zz 1 -\n",
        "sage-board 1\no p -1\n",
        "sage-board 1\n\n",
        "\0\0\0",
    ];
    for text in foreign {
        assert_eq!(text::read(text.as_bytes()), Content::Foreign, "{text:?}");
    }
    assert_eq!(text::read(b"\xff\xfe"), Content::Foreign);
    assert_eq!(text::read(b"sage-board 2\nwhatever"), Content::Newer);
    assert_eq!(text::read(b"sage-board 1\n"), Content::Board(Board::default()));
}

// covers: R13
#[test]
fn names_of_files_are_readable_safe_and_different() {
    assert_eq!(safe("claude-code.v2"), "claude-code.v2");
    let name = safe("provider:anthropic/default");
    assert!(name.starts_with("provider-anthropic-default~") && name.len() == 39, "{name}");
    let long = "x".repeat(400);
    let names = ["A", "a", "a/b", "a:b", "a-b", "..", ".", "", "~", &long, "a\0b", "ä"];
    let files: std::collections::BTreeSet<String> = names.iter().map(|name| safe(name)).collect();
    assert_eq!(files.len(), names.len());
    for file in files {
        let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-~".contains(c);
        assert!(file.chars().all(safe) && !file.starts_with('.') && file.len() < 100, "{file}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // covers: R13
    #[test]
    fn a_board_reads_as_it_was_written(
        overrides in prop::collection::btree_map(any::<String>(), any::<u32>(), 0..3),
        rows in prop::collection::vec((any::<String>(), any::<String>(), any::<String>(), 1u32.., any::<Option<(u8, u64, u64, u32)>>()), 0..6),
    ) {
        let mut board = Board { overrides, ..Board::default() };
        for (member, run, pool, held, ticket) in rows {
            let row = board.members.entry(member).or_default();
            row.run = run;
            let share = row.pools.entry(pool).or_default();
            share.held = held;
            share.ticket = ticket.map(|(priority, since_ms, asked_ms, reserves)| Ticket { priority, since_ms, asked_ms, reserves });
        }
        prop_assert_eq!(text::read(text::write(&board).as_bytes()), Content::Board(board));
    }

    // covers: R13
    #[test]
    fn no_bytes_make_reading_panic(bytes in any::<Vec<u8>>(), lines in prop::collection::vec("[omp] [%0-9a-f -]{0,12}", 0..5)) {
        let _ = text::read(&bytes);
        let _ = text::read(format!("sage-board 1\n{}", lines.join("\n")).as_bytes());
    }
}
