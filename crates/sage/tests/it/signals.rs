//! Ctrl-C, SIGTERM, `pause` and `cancel`: what stops, what is kept, what is told.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sage_core::event::Event;

use crate::dsl::{DEADLINE, Outcome, Running, Sage, wait_until};

/// A step that is done at once, one that runs until `go` is there, one after both.
const WORK: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: quick, type: shell, params: { run: "echo quick >> ran" } }
      - { id: slow, type: shell, params: { run: "echo up >> up; until [ -e go ]; do sleep 0.02; done; echo slow >> ran" } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { run: "echo last >> ran" } }
"#;

fn template(slow: &str) -> String {
    WORK.replace("echo up >> up;", slow)
}

/// Running, with `quick` finished and `slow` at work.
fn at_work(slow: &str) -> (Sage, Running) {
    let sage = Sage::new().template("t", &template(slow));
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty(), "the slow step");
    running.until(|| sage.journal("x").succeeded() == ["p/quick"], "the quick step");
    (sage, running)
}

const POLITE: &str = "echo up >> up;";
/// Sleeps are children of their own, so the loop goes on after they are killed.
const DEAF: &str = "trap '' TERM INT HUP; echo up >> up;";

/// Interrupted, told how to go on; goes on without repeating what is finished.
#[track_caller]
fn assert_resumable(sage: &Sage, outcome: Outcome) {
    let told = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(told.contains("sage resume x"), "{told}");
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["pauseReason"]),
        (&"paused".into(), &"interrupted".into()),
        "{status}"
    );
    assert_eq!(sage.alive(), [0u32; 0], "children are gone when sage is");
    go_on(sage);
}

#[track_caller]
fn go_on(sage: &Sage) {
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    let journal = sage.journal("x");
    journal.assert_nothing_repeated();
    assert_eq!(journal.started().iter().filter(|step| *step == "p/quick").count(), 1);
    assert_eq!(sage.lines("ran"), ["quick", "slow", "last"]);
    assert_eq!(sage.status("x")["status"], "completed");
    sage.sage("verify").exit(0);
}

// covers: R5, R14
#[test]
fn one_interrupt_is_graceful() {
    let (sage, running) = at_work(POLITE);
    running.signal(Signal::INT);
    let outcome = running.end().exit(130);
    assert_resumable(&sage, outcome);
}

// covers: R5, R14
#[test]
fn sigterm_is_graceful_too() {
    let (sage, running) = at_work(POLITE);
    running.signal(Signal::TERM);
    let outcome = running.end().exit(130);
    assert_resumable(&sage, outcome);
}

// covers: R5, RELIABILITY 28
#[test]
fn two_interrupts_stop_at_once_even_a_deaf_child() {
    let (sage, running) = at_work(DEAF);
    running.signal(Signal::INT);
    wait_until(|| running.stderr().contains("stopping"), DEADLINE, "the first interrupt to be taken");
    let second = Instant::now();
    running.signal(Signal::INT);
    let outcome = running.end().exit(130);
    // The grace of a first interrupt is 5 s or more; this is far below, also on a busy machine.
    assert!(second.elapsed() < Duration::from_secs(4), "{:?}", second.elapsed());
    assert_resumable(&sage, outcome);
}

// covers: R5, RELIABILITY 28
#[test]
fn one_interrupt_ends_a_deaf_child_too_after_its_grace() {
    let (sage, running) = at_work(DEAF);
    running.signal(Signal::INT);
    let outcome = running.end().exit(130);
    assert_resumable(&sage, outcome);
}

// covers: R5
#[test]
fn interrupted_json_ends_with_a_summary() {
    let sage = Sage::new().template("t", WORK);
    let mut running = sage.spawn("run x -t t --json");
    running.until(|| !sage.lines("up").is_empty(), "the slow step");
    running.signal(Signal::INT);
    let lines = running.end().exit(130).json_lines();
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["status"]), (&"summary".into(), &"paused".into()));
    assert_eq!(last["success"], false);
}

// covers: R5, P7
#[test]
fn pause_lets_running_steps_finish_and_exits_4() {
    let (sage, running) = at_work(POLITE);
    sage.sage("pause x").exit(0).stderr_has("sage resume x");
    sage.write("go", "");
    running.end().exit(4);
    assert_eq!(
        sage.lines("ran"),
        ["quick", "slow"],
        "the running step was not killed, the last was not started"
    );
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"user".into()));
    sage.sage("pause x").exit(2);
    go_on(&sage);
}

// covers: R5, R16
#[test]
fn cancel_ends_the_run_and_resume_works() {
    let (sage, running) = at_work(POLITE);
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    assert_eq!(sage.status("x")["status"], "cancelled");
    assert_eq!(sage.alive(), [0u32; 0]);
    sage.sage("cancel x").exit(2);
    go_on(&sage);
}

// covers: R16
#[test]
fn cancel_without_checkpoint_is_final() {
    let (sage, running) = at_work(POLITE);
    let told = sage.sage("cancel x --no-checkpoint --json").exit(0).json();
    assert_eq!((&told["success"], &told["checkpointSaved"]), (&true.into(), &false.into()));
    running.end().exit(130);
    let before = sage.journal("x").last_seq();
    let refused = sage.sage("resume x");
    assert!(matches!(refused.code, 1 | 2), "{}", refused.code);
    refused.stderr_has("cannot be resumed").stderr_has("sage run x");
    assert_eq!(sage.journal("x").last_seq(), before);
    // Closed is closed: a new run may start.
    sage.write("go", "");
    sage.sage("run x -t t").exit(0);
}

/// A run whose owner was killed.
fn orphaned() -> Sage {
    let (sage, running) = at_work(POLITE);
    assert!(running.kill());
    sage
}

// covers: R5
#[test]
fn pause_works_without_an_owner() {
    let sage = orphaned();
    sage.sage("pause x").exit(0);
    assert_eq!(sage.status("x")["status"], "paused");
    assert_eq!(sage.lines("up").len(), 1, "nothing was started");
    sage.assert_nothing_alive();
    go_on(&sage);
}

// covers: R5, R16
#[test]
fn cancel_works_without_an_owner() {
    let sage = orphaned();
    sage.sage("cancel x").exit(0);
    assert_eq!(sage.status("x")["status"], "cancelled");
    assert_eq!(sage.lines("up").len(), 1, "nothing was started");
    go_on(&sage);
}

// covers: R5
#[test]
fn signals_for_an_unknown_feature_are_refused() {
    let sage = Sage::new();
    for command in [
        "pause x",
        "cancel x",
        "approve x a/b",
        "reject x a/b",
        "resume x",
        "status x",
        "logs x",
        "result x",
        "explain x",
    ] {
        sage.sage(command).exit(2).stderr_has("no run of `x`");
    }
}

/// A stopped owner takes its signal when it goes on; nothing is lost.
// covers: R5, RELIABILITY 26
#[test]
fn a_stopped_sage_goes_on_as_if_nothing_had_been() {
    let (sage, running) = at_work(POLITE);
    running.signal(Signal::STOP);
    sage.write("go", "");
    wait_until(|| sage.lines("ran").contains(&"slow".to_owned()), DEADLINE, "the child to end");
    sage.sage("run x -t t").exit(5);
    running.signal(Signal::CONT);
    running.end().exit(0);
    assert_eq!(sage.lines("ran"), ["quick", "slow", "last"]);
}

// covers: R14
#[test]
fn the_time_limit_pauses_resumable() {
    let sage = Sage::new().template("t", WORK);
    let mut running = sage.spawn("run x -t t --timeout 400ms");
    running.until(|| !sage.lines("up").is_empty(), "the slow step");
    running.end().exit(4);
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["pauseReason"]),
        (&"paused".into(), &"timeout".into()),
        "{status}"
    );
    sage.assert_nothing_alive();
    sage.write("go", "");
    sage.sage("resume x --timeout 10m").exit(0);
    sage.journal("x").assert_nothing_repeated();
}

// covers: R5
#[test]
fn what_an_interrupt_stopped_is_stopped_in_the_journal() {
    let (sage, running) = at_work(POLITE);
    running.signal(Signal::INT);
    running.end().exit(130);
    let journal = sage.journal("x");
    let stopped = journal.records.iter().filter_map(|entry| match &entry.event {
        Event::StepFinished(e) if matches!(e.end, sage_core::event::End::Stopped) => Some(e.step.to_string()),
        _ => None,
    });
    assert_eq!(stopped.collect::<Vec<_>>(), ["p/slow"]);
}
