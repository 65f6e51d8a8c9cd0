//! What kills runs in the background, and how they go on by themselves.

use rustix::process::Signal;
use sage_engine::background::{Over, Record};

use super::{WORK, at_work, finish, kill};
use crate::dsl::{DEADLINE, Random, Sage, long, wait_until};

/// Another owner than the one before.
#[track_caller]
fn wait_next_owner(sage: &Sage, before: u32) -> u32 {
    wait_until(|| sage.owner("x").is_some_and(|pid| pid != before && pid != 0), DEADLINE, "the next owner");
    sage.owner("x").unwrap()
}

// covers: P8, S1, R5
#[test]
fn a_killed_owner_is_replaced() {
    let sage = at_work();
    let watch = sage.spawn("status x --watch");
    let events = sage.spawn("logs x -f");
    wait_until(|| events.stdout().contains("p/slow started"), DEADLINE, "the follower");
    let first = sage.owner("x").unwrap();
    kill(first, Signal::KILL);
    wait_next_owner(&sage, first);
    wait_until(|| sage.lines("up").len() == 2, DEADLINE, "the lost step to run again");
    let done = finish(&sage);
    assert_eq!(done["metrics"]["owners"], 2);
    assert_eq!(sage.journal("x").started().iter().filter(|step| *step == "p/quick").count(), 1);
    // Who watched has seen all of it.
    watch.end().exit(0).stdout_has("q/last finished");
    events.end().exit(0).stdout_has("p/slow started (attempt 2)").stdout_has("run succeeded");
    let log = std::fs::read_to_string(sage.path(".sage/logs/supervisor.log")).unwrap();
    assert!(log.contains("x: started process"), "{log}");
    sage.assert_all_ended();
}

// covers: P8, S1
#[test]
fn a_killed_supervisor_is_missed_by_nobody() {
    let sage = at_work();
    let (owner, first) = (sage.owner("x").unwrap(), sage.supervisor().unwrap());
    kill(first, Signal::KILL);
    assert_eq!(sage.owner("x"), Some(owner), "owners go on without it");
    sage.sage("list").exit(0);
    wait_until(|| sage.supervisor().is_some_and(|pid| pid != first), DEADLINE, "the next supervisor");
    // It looks after an owner that it has not started.
    kill(owner, Signal::KILL);
    wait_next_owner(&sage, owner);
    finish(&sage);
    sage.assert_all_ended();
}

// covers: P8, S1
#[test]
fn with_both_killed_the_next_look_heals() {
    let sage = at_work();
    let (owner, supervisor) = (sage.owner("x").unwrap(), sage.supervisor().unwrap());
    kill(supervisor, Signal::KILL);
    kill(owner, Signal::KILL);
    sage.assert_nothing_alive();
    sage.sage("status x").exit(0).stderr_has("the next one starts by itself");
    wait_next_owner(&sage, owner);
    finish(&sage);
    sage.assert_all_ended();
}

/// A follower is a look as well, and one that lasts.
// covers: P8, S7
#[test]
fn whoever_watches_heals() {
    let sage = at_work();
    let watch = sage.spawn("logs x -f");
    wait_until(|| watch.stdout().contains("p/slow started"), DEADLINE, "the follower");
    let (owner, supervisor) = (sage.owner("x").unwrap(), sage.supervisor().unwrap());
    kill(supervisor, Signal::KILL);
    kill(owner, Signal::KILL);
    wait_next_owner(&sage, owner);
    sage.write("go", "");
    watch.end().exit(0).stdout_has("run succeeded");
}

// covers: P8
#[test]
fn a_run_that_gets_nowhere_is_given_up_and_can_be_resumed() {
    let sage = at_work();
    let owner = sage.owner("x").unwrap();
    let settled = 1;
    // As after five owners that died within the last minutes without getting anywhere.
    sage.records()
        .change("x", |record| {
            let mut record = record.unwrap();
            let last = record.starts[0];
            record.starts = (0..6).map(|n| last - n * 20_000).collect();
            record.settled = settled;
            (Some(record), ())
        })
        .unwrap();
    kill(owner, Signal::KILL);
    wait_until(
        || matches!(sage.record("x").unwrap().over, Some(Over::GaveUp { .. })),
        DEADLINE,
        "the supervisor to give up",
    );
    sage.sage("status x")
        .exit(0)
        .stderr_has("given up in the background")
        .stderr_has("sage resume x --detach");
    let status = sage.status("x");
    assert_eq!(
        (&status["background"]["state"], &status["owner"]),
        (&"gaveUp".into(), &serde_json::Value::Null)
    );
    let log = std::fs::read_to_string(sage.path(".sage/logs/supervisor.log")).unwrap();
    assert!(log.contains("x: gave up after 5 restarts in 10 min"), "{log}");
    wait_until(|| sage.supervisor().is_none(), DEADLINE, "the supervisor to end by itself");
    sage.sage("status --watch").exit(0);
    assert_eq!((sage.owner("x"), sage.supervisor()), (None, None), "it stays so");
    sage.sage("resume x --detach").exit(0);
    finish(&sage);
    sage.assert_all_ended();
}

/// A step that failed has had its chances: a crash of the owner is no reason to try it again.
// covers: P8, R7
#[test]
fn what_failed_stays_failed_when_an_owner_is_replaced() {
    let text = WORK.replace("echo quick >> ran", "echo bad >> ran; exit 3");
    let sage = Sage::new().template("t", &text);
    sage.sage("run x -t t --detach").exit(0);
    wait_until(|| !sage.lines("up").is_empty(), DEADLINE, "the slow step");
    wait_until(|| sage.state_of("x", "p/quick") == "failed", DEADLINE, "the failure");
    let owner = sage.owner("x").unwrap();
    kill(owner, Signal::KILL);
    wait_next_owner(&sage, owner);
    wait_until(|| sage.lines("up").len() == 2, DEADLINE, "the lost step to run again");
    sage.write("go", "");
    sage.wait_status("x", "failed");
    assert_eq!(sage.lines("ran"), ["bad", "slow"]);
    wait_until(|| sage.owner("x").is_none(), DEADLINE, "the owner to end");
    // A person who resumes gives it another chance, as ever.
    sage.sage("resume x").exit(1);
    assert_eq!(sage.lines("ran"), ["bad", "slow", "bad"]);
    sage.assert_all_ended();
}

// covers: S4, P8
#[test]
fn a_stopped_supervisor_pauses_its_runs() {
    let sage = at_work();
    let supervisor = sage.supervisor().unwrap();
    kill(supervisor, Signal::TERM);
    wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
    assert_eq!(sage.record("x").unwrap().over, Some(Over::Stopped));
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"interrupted".into()));
    sage.sage("status x").exit(0).stderr_has("stopped in the background by a person");
    sage.sage("status").exit(0).stderr_has("sage resume x --detach");
    assert_eq!(sage.processes(), [0u32; 0], "looks do not start it again");
    sage.sage("resume x --detach").exit(0);
    finish(&sage);
    sage.assert_all_ended();
}

/// A shutdown ends supervisors and owners as a person would; the next look after it lets the run go on.
// covers: S1, P8, R5
#[test]
fn a_run_goes_on_after_the_machine_was_restarted() {
    let sage = at_work();
    kill(sage.supervisor().unwrap(), Signal::TERM);
    wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
    let of_another_boot = |record: Option<Record>| {
        let record = record.map(|record| Record { boot_id: "another boot".into(), ..record });
        (record, ())
    };
    sage.records().change("x", of_another_boot).unwrap();
    sage.sage("status").exit(0);
    wait_until(|| sage.lines("up").len() == 2, DEADLINE, "the interrupted step to run again");
    finish(&sage);
    sage.assert_all_ended();
}

/// Two at once: the lock decides, and both commands end well.
// covers: S1
#[test]
fn supervisors_and_owners_may_be_started_twice() {
    let sage = at_work();
    let (owner, supervisor) = (sage.owner("x").unwrap(), sage.supervisor().unwrap());
    sage.sage("supervise").exit(0);
    let run = sage.record("x").unwrap().run;
    sage.args(["resume", "x", "--supervised", &run]).run().exit(0);
    sage.args(["resume", "x", "--supervised", "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"]).run().exit(0);
    assert_eq!((sage.owner("x"), sage.supervisor()), (Some(owner), Some(supervisor)));
    finish(&sage);
    // And late: it has ended, and is not to be opened again.
    let last = sage.journal("x").last_seq();
    sage.args(["resume", "x", "--supervised", &run]).run().exit(0);
    assert_eq!(sage.journal("x").last_seq(), last);
}

/// Owners and supervisors are killed again and again while others look: all of it is done, and once.
// covers: P8, S1, R5
#[test]
fn a_storm_of_kills_loses_nothing() {
    const STEPS: usize = 60;
    let text = r#"
name: t
phases:
  - id: p
    operations:
      - { id: each, type: shell, foreach: "[range(60)]", params: { run: 'echo "$SAGE_STEP" >> ran; sleep 0.05' } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t --detach --parallel 2").exit(0);
    let mut random = Random::new(11);
    let (mut kills, mut done) = (0, 0);
    let enough = if long() { 40 } else { 8 };
    while sage.status("x")["status"] == "running" {
        let now = sage.journal("x").succeeded().len();
        // Progress between kills: this is about kills, not about giving up.
        if kills < enough && now >= done + STEPS / (enough + 2) {
            let (owner, supervisor) = (sage.owner("x"), sage.supervisor());
            let victims: Vec<u32> = match random.below(3) {
                0 => owner.into_iter().collect(),
                1 => supervisor.into_iter().collect(),
                _ => supervisor.into_iter().chain(owner).collect(),
            };
            for pid in victims.into_iter().filter(|&pid| pid != 0) {
                // It may have ended by itself meanwhile.
                let raw = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                kills += usize::from(rustix::process::kill_process(raw, Signal::KILL).is_ok());
            }
            done = now;
        }
    }
    assert!(kills >= enough / 2, "{kills} kills");
    let status = sage.status("x");
    assert_eq!((&status["verdict"], &status["progress"]["completed"]), (&"succeeded".into(), &STEPS.into()));
    let journal = sage.journal("x");
    journal.assert_nothing_repeated();
    assert_eq!(journal.succeeded().len(), STEPS);
    println!("storm: {kills} kills, {} owners", status["metrics"]["owners"]);
    sage.assert_all_ended();
    sage.sage("verify").exit(0);
}
