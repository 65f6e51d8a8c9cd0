//! Runs in the background: they outlive terminals, owners and supervisors, and everybody can watch them.
//!
//! The first part is about one run and its life, `background/crashes.rs` about what kills it.

mod crashes;

use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sage_engine::background::{Record, Records};
use sage_engine::lock;
use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, is_alive, wait_until};

/// A step that is done at once, one that runs until `go` is there, one after both.
const WORK: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: quick, type: shell, params: { run: "echo quick >> ran" } }
      - { id: slow, type: shell, params: { run: "echo up; echo up >> up; until [ -e go ]; do sleep 0.02; done; echo slow >> ran" } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { run: "echo last >> ran" } }
"#;

const ASK: &str = r#"
name: ask
phases:
  - id: p
    operations: { id: ok, type: approval, params: { message: "Go on?" } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { run: "echo last >> ran" } }
"#;

impl Sage {
    fn records(&self) -> Records {
        Records::new(&self.path(".sage/state"), self.key().as_ref())
    }

    fn record(&self, feature: &str) -> Option<Record> {
        self.records().get(feature)
    }

    /// Who has the run.
    fn owner(&self, feature: &str) -> Option<u32> {
        lock::peek(&self.path(&format!(".sage/state/workflow-{feature}.lock"))).map(|owner| owner.pid)
    }

    fn supervisor(&self) -> Option<u32> {
        lock::peek(&self.path(".sage/state/supervisor.lock")).map(|owner| owner.pid)
    }

    #[track_caller]
    fn wait_status(&self, feature: &str, status: &str) -> Value {
        wait_until(
            || self.status(feature)["status"] == status,
            DEADLINE,
            &format!("{feature} to be {status}"),
        );
        self.status(feature)
    }

    /// Waits until everything that was ever started here has ended by itself.
    #[track_caller]
    fn assert_all_ended(&self) {
        wait_until(|| self.processes().is_empty(), DEADLINE, "the supervisor to end by itself");
        assert_eq!(self.records().list(), []);
    }
}

#[track_caller]
fn kill(pid: u32, signal: Signal) {
    let raw = Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(raw, signal).unwrap();
    if signal == Signal::KILL {
        wait_until(|| !is_alive(pid), DEADLINE, "a killed process to be gone");
    }
}

/// In the background, with `quick` finished and `slow` at work.
fn at_work() -> Sage {
    let sage = Sage::new().template("t", WORK).template("ask", ASK);
    sage.sage("run x -t t --detach").exit(0).stdout_has("x runs in the background: run_");
    wait_at_work(&sage);
    sage
}

#[track_caller]
fn wait_at_work(sage: &Sage) {
    wait_until(|| !sage.lines("up").is_empty(), DEADLINE, "the slow step");
    wait_until(|| sage.journal("x").succeeded() == ["p/quick"], DEADLINE, "the quick step");
}

/// Lets it finish; nothing that was finished has run again.
#[track_caller]
fn finish(sage: &Sage) -> Value {
    sage.write("go", "");
    let status = sage.wait_status("x", "completed");
    sage.journal("x").assert_nothing_repeated();
    assert_eq!(sage.lines("ran"), ["quick", "slow", "last"]);
    status
}

// covers: S1, S7
#[test]
fn a_detached_run_outlives_its_command() {
    let sage = Sage::new().template("t", WORK);
    let told = sage.sage("run x -t t --detach --json").exit(0).json();
    assert_eq!(
        (&told["type"], &told["success"], &told["feature"]),
        (&"detached".into(), &true.into(), &"x".into())
    );
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["ownerKind"]),
        (&"running".into(), &"background".into()),
        "{status}"
    );
    assert_eq!((&status["workflowId"], &status["owner"]), (&told["workflowId"], &told["owner"]));
    assert_eq!(status["metrics"]["orchestratorBlockedShare"], Value::Null, "not known while it runs");
    let owner = sage.owner("x").unwrap();
    wait_until(|| sage.supervisor().is_some_and(|pid| pid != owner), DEADLINE, "the supervisor");
    wait_at_work(&sage);
    sage.sage("list").exit(0).stdout_has("(in the background)");
    finish(&sage);
    wait_until(|| sage.owner("x").is_none() && sage.record("x").is_none(), DEADLINE, "its end");
    let done = sage.status("x");
    assert_eq!((&done["ownerKind"], &done["metrics"]["owners"]), (&Value::Null, &1.into()), "{done}");
    let told = sage.sage("logs x").exit(0);
    assert!(!told.stdout.contains("run resumed"), "{}", told.stdout);
    assert!(done["metrics"]["orchestratorBlockedShare"].as_f64().unwrap() <= 1.0);
    sage.assert_all_ended();
    sage.sage("verify").exit(0);
}

/// The terminal's end reaches all that still belong to it: `script` is the terminal here.
// covers: S1
#[test]
fn a_detached_run_outlives_its_terminal() {
    let sage = Sage::new().template("t", WORK);
    let binary = env!("CARGO_BIN_EXE_sage");
    let typed =
        format!("{binary} -C {} run x -t t --detach && touch typed; sleep 1000", sage.root().display());
    let mut terminal = Command::new("script")
        .args(["-qec", &typed, "/dev/null"])
        .current_dir(sage.root())
        .env("XDG_STATE_HOME", sage.user_state())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| sage.path("typed").exists(), DEADLINE, "the command in the terminal");
    wait_until(|| sage.supervisor().is_some(), DEADLINE, "the supervisor");
    wait_at_work(&sage);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    // Who still belonged to it has been hung up.
    let sleeps = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x001000\0")
    };
    wait_until(|| !sage.processes().iter().any(sleeps), DEADLINE, "the terminal to be gone");
    let (owner, supervisor) = (sage.owner("x").unwrap(), sage.supervisor().unwrap());
    // Hung up by hand too: a shell may do so to everything that it ever started.
    kill(owner, Signal::HUP);
    kill(supervisor, Signal::HUP);
    finish(&sage);
    let owners = sage.status("x")["metrics"]["owners"].clone();
    assert_eq!(owners, 1, "its one owner was not disturbed");
    sage.assert_all_ended();
}

fn peak_mb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

// covers: S1, S4, S7
#[test]
fn twenty_agents_in_the_background() {
    const AGENTS: usize = 20;
    let text = r#"
name: t
phases:
  - id: p
    operations:
      - id: each
        type: agent
        agent: fake
        prompt: "work on {{ item }}"
        foreach: "[range(20)]"
        params: { script: [{ say: thinking, delayMs: 3000, usage: { input: 100, output: 10 }, result: { ok: true } }] }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t --detach --parallel 20").exit(0);
    let owner = sage.owner("x").unwrap();
    let (mut looks, mut most, mut peak, mut seen) = (0, 0, 0.0f64, 0);
    // Read from other processes all the time; it answers each time.
    while sage.status("x")["status"] == "running" {
        looks += 1;
        peak = peak.max(peak_mb(owner).unwrap_or(0.0));
        let roster = sage.sage("status --json").exit(0).json();
        let Some(row) = roster["runs"].as_array().unwrap().first() else { continue };
        assert_eq!((&row["feature"], &row["ownerKind"]), (&"x".into(), &"background".into()), "{row}");
        let working = row["working"].as_array().unwrap();
        seen = seen.max(working.iter().filter(|step| step["agent"] == "fake").count());
        most = most.max(working.len());
    }
    let status = sage.status("x");
    assert_eq!(
        (&status["verdict"], &status["progress"]["completed"]),
        (&"succeeded".into(), &AGENTS.into()),
        "{status}"
    );
    assert_eq!(sage.journal("x").succeeded().len(), AGENTS);
    let blocked = status["metrics"]["orchestratorBlockedShare"].as_f64().unwrap();
    println!("20 agents: peak {peak:.1} MB, blocked {:.2} %, {looks} looks, {most} at once", blocked * 100.0);
    assert!(looks > 0 && seen > AGENTS / 2, "{looks} looks, {seen} agents seen at once");
    assert!(peak > 0.0 && peak < 60.0, "the owner took {peak} MB");
    assert!(blocked < 0.1, "blocked for {blocked} of the time");
    sage.assert_all_ended();
}

// covers: S1, R5
#[test]
fn an_answer_lets_it_go_on_by_itself() {
    let sage = Sage::new().template("ask", ASK);
    sage.sage("run x -t ask --detach").exit(0);
    sage.wait_status("x", "paused");
    wait_until(|| sage.owner("x").is_none(), DEADLINE, "the owner to leave");
    wait_until(
        || sage.record("x").is_some_and(|r| r.quiet_bytes.is_some()),
        DEADLINE,
        "the record to say so",
    );
    sage.sage("status").exit(0).stdout_has("background, no process").stdout_has("sage approve x p/ok");
    sage.sage("status x --watch").exit(0);
    // While it waits for a person nobody has to look after it.
    wait_until(|| sage.supervisor().is_none(), DEADLINE, "the supervisor to end by itself");
    sage.sage("status x").exit(0);
    assert_eq!(sage.processes(), [0u32; 0], "a look at it starts nothing");
    sage.sage("approve x").exit(0).stderr_has("goes on by itself in the background");
    sage.wait_status("x", "completed");
    assert_eq!(sage.lines("ran"), ["last"]);
    assert_eq!(sage.journal("x").started(), ["p/ok", "q/last"]);
    sage.assert_all_ended();
}

// covers: S1, R5
#[test]
fn an_answer_right_away_is_not_lost() {
    let sage = Sage::new().template("ask", ASK);
    for feature in ["a", "b", "c"] {
        sage.args(["run", feature, "-t", "ask", "--detach"]).run().exit(0);
        // As soon as the question is there, while its owner may still be leaving.
        wait_until(|| sage.journal(feature).started().contains(&"p/ok".to_owned()), DEADLINE, "the question");
        sage.args(["approve", feature]).run().exit(0);
    }
    for feature in ["a", "b", "c"] {
        sage.wait_status(feature, "completed");
    }
}

// covers: R5, R16
#[test]
fn pause_and_cancel_work_as_in_the_foreground() {
    let sage = at_work();
    sage.sage("pause x").exit(0);
    sage.write("go", "");
    sage.wait_status("x", "paused");
    wait_until(|| sage.owner("x").is_none(), DEADLINE, "the owner to leave");
    sage.sage("status x").exit(0);
    std::fs::remove_file(sage.path("go")).unwrap();
    assert_eq!(sage.lines("ran"), ["quick", "slow"]);
    let again = sage.sage("resume x --detach").exit(0);
    again.stdout_has("x runs in the background");
    sage.wait_status("x", "completed");

    sage.sage("run y -t t --detach").exit(0);
    sage.sage("cancel y").exit(0);
    sage.wait_status("y", "cancelled");
    wait_until(|| sage.record("y").is_none(), DEADLINE, "the record to go");
    sage.assert_all_ended();
}

// covers: S1, R16
#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let sage = Sage::new().template("t", WORK).template("wrong", "name: t\nphases: []\n");
    sage.sage("run x -t wrong --detach").exit(2);
    sage.sage("run x -t nobody --detach").exit(2);
    sage.sage("resume x --detach").exit(2).stderr_has("no run of `x`");
    assert_eq!((sage.records().list(), sage.processes()), (vec![], vec![]));
    sage.sage("run x -t t --detach").exit(0);
    sage.sage("run x -t t --detach").exit(5).stderr_has("is being run by process");
    sage.sage("resume x --detach").exit(5);
    sage.sage("run x -t t").exit(5);
    finish_quietly(&sage);
    wait_until(|| sage.owner("x").is_none(), DEADLINE, "the owner to leave");
    sage.sage("resume x --detach").exit(0).stderr_has("nothing left to do");
    assert_eq!(sage.records().list(), []);
}

fn finish_quietly(sage: &Sage) {
    sage.write("go", "");
    sage.wait_status("x", "completed");
}

// covers: S9, P10
#[test]
fn switched_off_it_runs_here() {
    let sage = Sage::new().template("t", WORK);
    sage.write("go", "");
    let off = |switch: &str| sage.args(["run", "x", "-t", "t", "--detach"]).env(switch, "0").run();
    off("SAGE_BACKGROUND").exit(0).stderr_has("switched off").stdout_has("succeeded");
    off("ENABLE_BACKGROUND_AGENTS").exit(0).stderr_has("switched off");
    sage.write("sage.toml", "[switches]\nbackground = false\n");
    sage.sage("run x -t t --detach").exit(0).stderr_has("switched off");
    assert_eq!((sage.records().list(), sage.processes()), (vec![], vec![]));
}

// covers: S7
#[test]
fn others_can_watch_it_to_its_end() {
    let sage = at_work();
    let (watch, roster) = (sage.spawn("status x --watch"), sage.spawn("status --watch --json"));
    let (events, mut output) = (sage.spawn("logs x -f"), sage.spawn("logs x p/slow -f"));
    output.until(|| true, "its start");
    wait_until(|| output.stdout() == "up\n", DEADLINE, "what the step has printed");
    wait_until(|| events.stdout().contains("p/slow started"), DEADLINE, "what happened so far");
    wait_until(|| roster.stdout().contains("p/slow"), DEADLINE, "the roster");
    finish(&sage);
    watch.end().exit(0).stdout_has("q/last finished");
    events.end().exit(0).stdout_has("run succeeded");
    output.end().exit(0);
    let rosters = roster.end().exit(0).json_lines();
    assert!(rosters.iter().all(|line| line["type"] == "roster"));
    assert_eq!(rosters.last().unwrap()["runs"], serde_json::json!([]));
    sage.sage("status").exit(0).stderr_has("no open runs");
}

// covers: S1
#[test]
fn projects_do_not_see_each_other() {
    let (one, other) = (at_work(), at_work());
    assert_ne!(one.supervisor().unwrap(), other.supervisor().unwrap());
    kill(one.supervisor().unwrap(), Signal::KILL);
    kill(one.owner("x").unwrap(), Signal::KILL);
    let runs = |sage: &Sage| sage.sage("status --json").exit(0).json()["runs"].as_array().unwrap().len();
    assert_eq!((runs(&one), runs(&other)), (1, 1));
    finish(&other);
    assert_eq!(other.status("x")["metrics"]["owners"], 1);
    finish(&one);
    assert_eq!(one.status("x")["metrics"]["owners"], 2);
}

/// A person in a terminal may take a run back: then it is theirs.
// covers: S1
#[test]
fn the_foreground_takes_a_run_back() {
    let sage = at_work();
    sage.sage("pause x").exit(0);
    sage.write("go", "");
    wait_until(|| sage.owner("x").is_none(), DEADLINE, "the owner to leave");
    sage.sage("resume x").exit(0);
    assert_eq!(sage.record("x"), None);

    sage.sage("run y -t ask --detach").exit(0);
    sage.wait_status("y", "paused");
    wait_until(|| sage.owner("y").is_none(), DEADLINE, "the owner to leave");
    sage.sage("run y -t t --new").exit(0);
    assert_eq!(sage.record("y"), None, "the run that it was about was given up");
    sage.assert_all_ended();
}

// covers: S1
#[test]
fn a_known_time_is_waited_for_or_not() {
    let nap = "name: t\nphases:\n  - id: p\n    operations: { id: nap, type: sleep, params: { ms: 1500 } }\n";
    let sage = Sage::new().template("t", nap);
    sage.sage("run x -t t --detach").exit(0);
    sage.sage("run y -t t --detach --no-wait").exit(0);
    sage.wait_status("y", "paused");
    sage.wait_status("x", "completed");
    wait_until(|| sage.owner("y").is_none(), DEADLINE, "the owner to leave");
    sage.sage("status y --watch").exit(0);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sage.owner("y"), None, "nobody goes on with it");
    sage.sage("resume y --detach").exit(0);
    sage.wait_status("y", "completed");
}

// covers: S1
#[test]
fn a_project_that_is_removed_does_not_come_back() {
    let sage = Sage::new().template("ask", ASK);
    sage.sage("run x -t ask --detach").exit(0);
    sage.wait_status("x", "paused");
    wait_until(|| sage.owner("x").is_none() && sage.supervisor().is_some(), DEADLINE, "the owner to leave");
    // The supervisor may be writing: whoever removes a project tries again.
    wait_until(|| std::fs::remove_dir_all(sage.root()).is_ok(), DEADLINE, "the project to be removed");
    wait_until(|| sage.processes().is_empty(), DEADLINE, "the supervisor to end");
    assert!(!sage.root().exists());
}
