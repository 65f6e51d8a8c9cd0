//! One owner per feature: double starts, waiting, giving up, and locks that nobody holds any more.

use serde_json::json;

use crate::dsl::{Running, Sage, is_alive};

/// Runs until the file `go` is there.
const HOLD: &str = r#"
name: t
phases:
  - id: p
    operations: { id: hold, type: shell, params: { run: "echo up >> up; until [ -e go ]; do sleep 0.01; done; echo done" } }
"#;

const ASK: &str = r#"
name: t
phases:
  - id: p
    operations: { id: ask, type: approval, params: { message: "go on?" } }
"#;

fn held() -> (Sage, Running) {
    let sage = Sage::new().template("t", HOLD);
    let mut first = sage.spawn("run x -t t");
    first.until(|| !sage.lines("up").is_empty(), "the step to be up");
    (sage, first)
}

// covers: R9, RELIABILITY 25
#[test]
fn the_second_start_exits_5_and_names_the_owner() {
    let (sage, first) = held();
    let second = sage.sage("run x -t t").exit(5);
    assert!(second.stderr.contains(&first.pid().to_string()), "{}", second.stderr);
    second.stderr_has("hint: ").stderr_has("--wait");
    sage.sage("resume x").exit(5).stderr_has(&first.pid().to_string());
    // Another feature is another matter.
    sage.write("go", "");
    sage.sage("run y -t t").exit(0);
    first.end().exit(0);
    assert_eq!(sage.journal("x").started(), ["p/hold"]);
}

// covers: R9
#[test]
fn a_suspended_owner_is_named_with_the_command_that_continues_it() {
    let (sage, first) = held();
    let pid = first.pid();
    first.signal(rustix::process::Signal::STOP);
    let suspended =
        || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
    crate::dsl::wait_until(suspended, crate::dsl::DEADLINE, "it to be suspended");
    for command in ["resume x", "run x -t t", "pause x"] {
        let told = sage.sage(command).exit(5);
        told.stderr_has("which is suspended").stderr_has(&format!("hint: kill -CONT {pid}"));
    }
    first.signal(rustix::process::Signal::CONT);
    sage.write("go", "");
    first.end().exit(0);
}

// covers: R9
#[test]
fn a_directory_in_the_place_of_a_lock_is_named_with_the_command_that_removes_it() {
    let sage = Sage::new().template("t", ASK);
    let lock = sage.path(".sage/state/workflow-x.lock");
    std::fs::create_dir_all(&lock).unwrap();
    sage.sage("run x -t t")
        .exit(1)
        .stderr_has("is a directory")
        .stderr_has(&format!("hint: rmdir {}", lock.display()));
}

// covers: R9
#[test]
fn the_registry_names_the_open_run_and_its_owner() {
    let (sage, first) = held();
    let (entries, damage) = sage_engine::registry::read(&sage.path(".sage/state"));
    assert!(damage.is_none());
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].feature.as_str(), entries[0].pid), ("x", first.pid()));
    sage.write("go", "");
    first.end().exit(0);
    assert!(sage_engine::registry::read(&sage.path(".sage/state")).0.is_empty());
}

// covers: R9
#[test]
fn wait_starts_when_the_first_is_done() {
    let (sage, first) = held();
    let mut second = sage.spawn("run x -t t --wait");
    let told = || sage.lines("up").len() > 1;
    // It must be waiting before the first may end.
    let pid = second.pid();
    crate::dsl::wait_until(
        || second.stderr().contains("waiting") || second.ended(),
        crate::dsl::DEADLINE,
        "it to wait",
    );
    assert!(is_alive(pid) && !told(), "{}", second.stderr());
    sage.write("go", "");
    first.end().exit(0);
    second.end().exit(0);
    assert!(told());
    let runs = std::fs::read_dir(sage.path(".sage/state/runs")).unwrap().count();
    assert_eq!(runs, 2);
}

// covers: R9
#[test]
fn a_paused_run_is_a_conflict_unless_it_is_given_up() {
    let sage = Sage::new().template("t", ASK);
    sage.sage("run x -t t").exit(4);
    let first = sage.engine().latest("x").unwrap();
    sage.sage("run x -t t").exit(5).stderr_has("sage resume x").stderr_has("--new");
    sage.sage("run x -t t --new").exit(4);
    let second = sage.engine().latest("x").unwrap();
    assert_ne!(first, second);
    let old = crate::dsl::Journal::read(&sage.run_dir(&first));
    assert_eq!(old.records.last().unwrap().event.kind(), "run.cancelled", "the old run is closed");
    sage.sage("verify").exit(0);
}

// covers: R9
#[test]
fn a_killed_run_is_open_and_a_new_start_is_told_so() {
    let (sage, first) = held();
    assert!(first.kill());
    sage.sage("run x -t t").exit(5).stderr_has("sage resume x");
    sage.sage("list").exit(0).stdout_has("sage resume");
    sage.write("go", "");
    sage.sage("resume x").exit(0);
}

/// Writes what a dead owner would have left.
fn stale(sage: &Sage, change: impl FnOnce(&mut serde_json::Value)) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut owner = json!({"pid": 1, "bootId": boot.trim(), "startTime": "1", "run": "", "sinceMs": 1});
    change(&mut owner);
    sage.write(".sage/state/workflow-x.lock", format!("{owner}\n"));
}

// covers: R9, RELIABILITY 25
#[test]
fn stale_locks_are_taken_over_with_a_notice() {
    let (sage, first) = held();
    let dead = first.pid();
    assert!(first.kill());
    sage.write("go", "");
    let paused = |outcome: crate::dsl::Outcome| outcome.exit(0);
    // The real thing first.
    let real = sage.sage("resume x").exit(0);
    real.stderr_has(&format!("process {dead}")).stderr_has("dead");
    stale(&sage, |owner| owner["pid"] = json!(dead));
    paused(sage.sage("resume x --from p/hold")).stderr_has(&format!("process {dead}")).stderr_has("dead");
    stale(&sage, |owner| owner["pid"] = json!(std::process::id()));
    let recycled = paused(sage.sage("resume x --from p/hold"));
    recycled.stderr_has(&std::process::id().to_string()).stderr_has("another process");
    stale(&sage, |owner| owner["pid"] = json!(1));
    paused(sage.sage("resume x --from p/hold")).stderr_has("process 1").stderr_has("another process");
    stale(&sage, |owner| owner["bootId"] = json!("00000000-0000-0000-0000-000000000000"));
    paused(sage.sage("resume x --from p/hold")).stderr_has("restarted");
    // Unreadable text is not an error, and a clean end leaves nothing to tell.
    sage.write(".sage/state/workflow-x.lock", "not json");
    paused(sage.sage("resume x --from p/hold"));
    paused(sage.sage("resume x --from p/hold")).stderr_lacks("took over the run");
}

// covers: R9, RELIABILITY 25
#[test]
fn a_new_start_takes_a_stale_lock_over_too() {
    let sage = Sage::new().template("t", HOLD);
    sage.write("go", "");
    sage.sage("run x -t t").exit(0);
    stale(&sage, |owner| owner["pid"] = json!(1));
    sage.sage("run x -t t").exit(0).stderr_has("process 1");
}

// covers: R9
#[test]
fn of_many_starts_at_once_one_wins() {
    let sage = Sage::new().template("t", HOLD);
    let mut all: Vec<Running> = (0..6).map(|_| sage.spawn("run x -t t")).collect();
    crate::dsl::wait_until(
        || all.iter_mut().filter_map(|one| one.ended().then_some(())).count() == 5,
        crate::dsl::DEADLINE,
        "five of six to be refused",
    );
    sage.write("go", "");
    let mut codes: Vec<i32> = all.into_iter().map(|one| one.end().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 5, 5, 5, 5, 5]);
    assert_eq!(std::fs::read_dir(sage.path(".sage/state/runs")).unwrap().count(), 1);
}
