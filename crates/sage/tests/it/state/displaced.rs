//! Files taken away under a living owner: the run writes itself anew or stops; it never ends well without a journal,
//! and never has two owners.

use crate::dsl::{DEADLINE, Sage, wait_until};

/// The first step takes something away; two more follow it. The owner (the parent of the step's keeper) stands still
/// meanwhile: it would put back half of what is being removed.
fn thief(theft: &str) -> String {
    let theft =
        format!("owner=$(cut -d' ' -f4 /proc/$PPID/stat); kill -STOP $owner; {theft}; kill -CONT $owner");
    format!(
        r#"
name: t
phases:
  - id: a
    operations: {{ id: thief, type: shell, params: {{ run: "echo thief >> ran; {theft}" }} }}
  - id: b
    dependencies: [a]
    operations: {{ id: two, type: shell, params: {{ run: "echo two >> ran" }} }}
  - id: c
    dependencies: [b]
    operations: {{ id: three, type: shell, params: {{ run: "echo three >> ran" }} }}
"#
    )
}

const RUN: &str = ".sage/state/runs/$SAGE_RUN";

// covers: R4, R5
#[test]
fn a_run_whose_state_is_taken_away_writes_itself_anew() {
    let thefts = [
        "rm -rf .sage/state".to_string(),
        "rm -rf .sage/state/runs".to_string(),
        format!("rm -rf {RUN}"),
        format!("rm {RUN}/journal.jsonl"),
        format!("mv {RUN} ../elsewhere"),
        "mv .sage/state ../elsewhere".to_string(),
        // A copy of what was there takes its place.
        format!("cp {RUN}/journal.jsonl j; mv j {RUN}/journal.jsonl"),
        "git init -q . && git clean -fdxq -e ran -e go".to_string(),
        "rm .sage/state/*.lock".to_string(),
    ];
    for theft in thefts {
        let sage = Sage::new().template("t", &thief(&theft));
        let outcome = sage.sage("run x -t t");
        assert_eq!(outcome.code, 0, "{theft}: {}{}", outcome.stdout, outcome.stderr);
        if !theft.contains(".lock") {
            assert!(outcome.stderr.contains("written anew"), "{theft}: {}", outcome.stderr);
        }
        assert_eq!(sage.lines("ran"), ["thief", "two", "three"], "{theft}: each once");
        assert_eq!(sage.status("x")["status"], "completed", "{theft}");
        sage.journal("x").assert_nothing_repeated();
        assert_eq!(sage.journal("x").succeeded().len(), 3, "{theft}");
        sage.sage("verify").exit(0);
        sage.sage("resume x").exit(0);
    }
}

/// What is in the journal's place is not ours, or the project itself is gone: nothing is overwritten.
// covers: R4, R5
#[test]
fn a_run_that_cannot_write_itself_anew_stops_with_an_error() {
    let thefts = [
        format!("echo other > j; mv j {RUN}/journal.jsonl"),
        format!("rm {RUN}/journal.jsonl; mkdir {RUN}/journal.jsonl"),
        format!("truncate -s 100 {RUN}/journal.jsonl"),
        format!("echo more >> {RUN}/journal.jsonl"),
        "mv .sage/state ../elsewhere; ln -s ../elsewhere .sage/state".to_string(),
        "mv $PWD $PWD-moved; cd $PWD-moved".to_string(),
    ];
    for theft in thefts {
        let sage = Sage::new().template("t", &thief(&theft));
        let outcome = sage.sage("run x -t t");
        assert_eq!(outcome.code, 1, "{theft}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("error: "), "{theft}: {}", outcome.stderr);
        assert!(!outcome.stdout.contains("succeeded"), "{theft}: {}", outcome.stdout);
        let ran = std::fs::read_to_string(sage.path("ran"))
            .or_else(|_| std::fs::read_to_string(sage.outside().join("project-moved/ran")));
        assert_eq!(ran.unwrap(), "thief\n", "{theft}: nothing went on without a journal");
        sage.assert_nothing_alive();
    }
}

const WAITS: &str = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "echo one >> ran; until [ -e go ]; do sleep 0.01; done" } }
  - id: b
    dependencies: [a]
    operations: { id: two, type: shell, params: { run: "echo two >> ran" } }
"#;

/// Noticed also while nothing is written.
// covers: R4, R9
#[test]
fn removed_state_is_back_while_a_long_step_runs_and_nobody_else_can_take_the_run() {
    let sage = Sage::new().template("t", WAITS);
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("ran").is_empty(), "the first step");
    let journal = sage.latest_dir("x").join("journal.jsonl");
    let before = std::fs::read(&journal).unwrap();
    std::fs::remove_dir_all(sage.path(".sage/state")).unwrap();
    running.until(
        || std::fs::read(&journal).is_ok_and(|now| now.starts_with(&before)),
        "the journal to be back",
    );
    sage.sage("run x -t t").exit(5);
    sage.sage("resume x").exit(5);
    sage.write("go", "");
    running.end().exit(0).stderr_has("written anew");
    assert_eq!(sage.lines("ran"), ["one", "two"]);
    sage.sage("verify").exit(0);
}

/// Whoever starts the feature in the moment in which its lock is gone has it; the other one stops.
// covers: R9
#[test]
fn of_two_owners_one_stops() {
    for _ in 0..3 {
        let sage = Sage::new().template("t", WAITS);
        let mut first = sage.spawn("run x -t t");
        first.until(|| !sage.lines("ran").is_empty(), "the first step");
        std::fs::remove_dir_all(sage.path(".sage/state")).unwrap();
        let second = sage.spawn("run x -t t");
        // One of them is refused, or told that it has lost the run; the other one goes on.
        let mut both = [Some(first), Some(second)];
        let mut ended = Vec::new();
        wait_until(
            || {
                for slot in &mut both {
                    if slot.as_mut().is_some_and(|running| running.ended()) {
                        ended.push(slot.take().unwrap().end());
                    }
                }
                !ended.is_empty()
            },
            DEADLINE,
            "one of two owners to stop",
        );
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].code, 5, "{}{}", ended[0].stdout, ended[0].stderr);
        sage.write("go", "");
        let last = both.into_iter().flatten().next().unwrap().end().exit(0);
        drop(last);
        assert_eq!(sage.lines("ran").iter().filter(|line| *line == "two").count(), 1);
        sage.sage("verify").exit(0);
    }
}
