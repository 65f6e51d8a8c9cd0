//! A step whose lost attempts a person decides about: no damage to the journal lets it run again unasked.

use std::path::PathBuf;

use crate::dsl::{DEADLINE, Sage, wait_until};

const PAY: &str = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "echo one >> ran" } }
  - id: b
    dependencies: [a]
    operations: { id: pay, type: shell, onUnknown: ask, params: { run: "echo pay >> ran; while ! test -e go; do sleep 0.01; done" } }
"#;

/// Killed while it pays.
fn killed() -> (Sage, PathBuf) {
    let sage = Sage::new().template("t", PAY);
    let mut run = sage.spawn("run x -t t");
    let checkpoint = || std::fs::read_to_string(sage.path(".sage/state/workflow-x.json")).unwrap_or_default();
    run.until(|| sage.lines("ran").len() == 2 && checkpoint().contains("\"started\""), "it pays");
    run.kill();
    wait_until(|| sage.alive().is_empty(), DEADLINE, "its processes are gone");
    sage.write("go", "");
    let journal = sage.latest_dir("x").join("journal.jsonl");
    (sage, journal)
}

#[track_caller]
fn asks(sage: &Sage, what: &str) {
    let resumed = sage.sage("resume x");
    assert_eq!(
        sage.lines("ran").iter().filter(|line| *line == "pay").count(),
        1,
        "{what}: {}",
        resumed.stderr
    );
    assert_eq!(resumed.code, 4, "{what}: {}{}", resumed.stdout, resumed.stderr);
    sage.sage("approve x b/pay").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(sage.lines("ran").iter().filter(|line| *line == "pay").count(), 2, "{what}");
}

// covers: R5, RELIABILITY 7
#[test]
fn a_damaged_record_of_another_step_is_no_answer() {
    let (first, journal) = killed();
    let lines = std::fs::read_to_string(journal).unwrap().lines().count();
    drop(first);
    // All but the first, which says what the run is, and the last, which is torn and not damaged.
    for line in 1..lines - 1 {
        let (sage, journal) = killed();
        let text = std::fs::read_to_string(&journal).unwrap();
        let kind = text.lines().nth(line).unwrap().contains("\"step.started\"");
        let is_pay = text.lines().nth(line).unwrap().contains("b/pay");
        let damaged: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(at, it)| if at == line { it.replacen(':', ";", 1) } else { it.into() })
            .collect();
        std::fs::write(&journal, damaged.join("\n") + "\n").unwrap();
        println!(
            "record {}: {}",
            line + 1,
            text.lines().nth(line).unwrap().chars().take(80).collect::<String>()
        );
        if kind && is_pay {
            continue;
        }
        asks(&sage, &format!("record {}", line + 1));
    }
}

// covers: R5, RELIABILITY 7
#[test]
fn a_lost_journal_is_no_answer() {
    let (sage, journal) = killed();
    std::fs::remove_file(journal).unwrap();
    asks(&sage, "the journal is gone");
}
