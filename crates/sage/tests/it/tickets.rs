//! Tickets: listing, adding, finishing, and runs that belong to them.

use serde_json::Value;

use crate::dsl::{DEADLINE, Sage, wait_until};
use crate::examples::copy_named;

const FINE: &str = r#"
name: fine
phases:
  - id: work
    operations:
      - { id: do, type: shell, params: { argv: [sh, -c, 'echo "$0" >> ran', '{{ inputs.ticket.id }} {{ title }}'] } }
"#;

const FAILS: &str = r#"
name: fails
phases:
  - id: work
    operations:
      - { id: break, type: shell, params: { run: "test -e mended" }, retry: { attempts: 1 } }
"#;

const ASKS: &str = r#"
name: asks
phases:
  - id: ask
    operations:
      - { id: ship, type: approval, params: { message: "ship {{ inputs.ticket.title }}?" } }
  - id: go
    dependencies: [ask]
    operations:
      - { id: do, type: shell, params: { run: "true" } }
"#;

const AGENT: &str = r#"
name: agent
phases:
  - id: work
    operations:
      - { id: write, type: agent, agent: scribe, prompt: "Do {{ inputs.ticket.title }}" }
"#;

const WORK: &str = r#"
name: work
phases:
  - id: work
    operations:
      - id: do
        type: agent
        agent: fake
        params: { script: [{ result: { filesChanged: [], open: [{id: T1}, {id: T2}] } }] }
"#;

fn sage() -> Sage {
    Sage::new().template("fine", FINE).template("fails", FAILS).template("asks", ASKS)
}

fn ticket(sage: &Sage, id: &str) -> Value {
    sage.args(["tickets", "show", id, "--json"]).run().exit(0).json()["ticket"].clone()
}

fn state(sage: &Sage, id: &str) -> String {
    ticket(sage, id)["state"].as_str().unwrap().to_string()
}

fn add(sage: &Sage, args: &[&str]) {
    sage.args(["tickets", "add"].iter().chain(args)).run().exit(0);
}

// covers: R22
#[test]
fn tickets_are_added_shown_and_finished() {
    let sage = sage();
    add(&sage, &["Store tokens", "--priority", "P1", "--file", "src/a.rs", "-m", "in the\nkey ring"]);
    add(&sage, &["Check tokens", "--blocked-by", "T-1", "--criterion", "old ones are refused"]);
    add(&sage, &["Write it up", "--blocked-by", "2", "--blocked-by", "T-1"]);
    sage.sage("tickets").exit(0).stdout_has("T-1  P1        ready").stdout_has("waits for T-1 (open)");
    sage.sage("tickets ready").exit(0).stdout_has("Store tokens").stderr_has("sage tickets run T-1");
    sage.args(["tickets", "add", "Loop", "--blocked-by", "3", "--blocks", "1"])
        .run()
        .exit(2)
        .stderr_has("tickets wait for each other: T-1 -> T-4 -> T-3 -> T-2 -> T-1");
    sage.sage("tickets show 9").exit(2).stderr_has("no ticket `9`");
    sage.sage("tickets done 1 -m checked").exit(0).stderr_has("ready now: T-2");
    let first = ticket(&sage, "T-1");
    assert_eq!((&first["state"], &first["notes"][0]["text"]), (&"done".into(), &"checked".into()));
    sage.sage("tickets cancel T-2").exit(0);
    sage.sage("tickets").exit(0).stderr_has("T-3 waits for T-2, which is cancelled").stderr_has("2 closed");
    sage.sage("tickets reopen T-2").exit(0);
    let listed = sage.sage("tickets --json list --all").exit(0).json();
    let standing: Vec<&str> =
        listed["tickets"].as_array().unwrap().iter().map(|row| row["standing"].as_str().unwrap()).collect();
    assert_eq!(standing, ["ready", "blocked", "done"]);
}

// covers: R22
#[test]
fn a_file_that_others_edit_is_kept_as_they_left_it() {
    let sage = sage();
    let text =
        r#"{"version": "1.0", "board": "b", "tickets": [{"id": "X-1", "title": "by hand", "size": "L"}]}"#;
    sage.write(".sage/tickets/index.json", text);
    add(&sage, &["second"]);
    let kept: Value = serde_json::from_str(&sage.lines(".sage/tickets/index.json").join("\n")).unwrap();
    assert_eq!((&kept["board"], &kept["tickets"][0]["size"]), (&"b".into(), &"L".into()));
    sage.write(".sage/tickets/index.json", "<<<<<<< HEAD\n");
    sage.sage("tickets").exit(2).stderr_has("it is not JSON").stderr_has("never overwritten");
    sage.sage("tickets add x").exit(2);
    assert_eq!(sage.lines(".sage/tickets/index.json"), ["<<<<<<< HEAD"]);
}

// covers: R22
#[test]
fn a_run_takes_its_ticket_from_open_over_in_progress_to_done() {
    let sage = sage();
    add(&sage, &["Ship it"]);
    sage.sage("tickets run T-1 -t asks").exit(4);
    let waiting = ticket(&sage, "T-1");
    assert_eq!(waiting["state"], "inProgress");
    assert!(waiting["run"].as_str().unwrap().starts_with("run_"), "{waiting}");
    sage.sage("tickets").exit(0).stdout_has("inProgress");
    sage.sage("tickets run T-1 -t asks").exit(5).stderr_has("T-1 is in progress by run_");
    sage.sage("approve ship-it").exit(0);
    assert_eq!(state(&sage, "T-1"), "inProgress", "it waits for somebody who resumes it");
    sage.sage("resume ship-it").exit(0);
    assert_eq!(state(&sage, "T-1"), "done");
    let text = std::fs::read_to_string(sage.path(".sage/tickets/index.json")).unwrap();
    sage.sage("resume ship-it").exit(0);
    let again = std::fs::read_to_string(sage.path(".sage/tickets/index.json")).unwrap();
    assert_eq!(again, text, "a run that is over says nothing twice");
    sage.sage("tickets run 1 -t fine").exit(2).stderr_has("T-1 is done");
}

/// A run that succeeded without doing the work must not close its ticket, nor look as if it had done it.
// covers: R22
#[test]
fn a_run_that_leaves_tasks_open_leaves_its_ticket_open() {
    let sage = Sage::new().template("work", WORK);
    add(&sage, &["Fix the till"]);
    let run = sage.sage("tickets run T-1 -t work").exit(0);
    run.stdout_has("work/do left 2 tasks open, changed no file");
    let left = ticket(&sage, "T-1");
    assert_eq!(left["state"], "open");
    let note = left["notes"][0]["text"].as_str().unwrap();
    assert_eq!(note, "the run of `fix-the-till` left 2 tasks open; nothing was changed: work/do");
    sage.write(".sage/templates/work.yaml", WORK.replace("[{id: T1}, {id: T2}]", "[]"));
    sage.sage("tickets run T-1 -t work").exit(0);
    assert_eq!(state(&sage, "T-1"), "done");
}

// covers: R22
#[test]
fn a_failed_run_gives_its_ticket_back_with_a_note_and_resuming_takes_it_again() {
    let sage = sage();
    add(&sage, &["Break it"]);
    sage.args(["run", "another name", "-t", "fails", "--ticket", "T-1"]).run().exit(1);
    let failed = ticket(&sage, "T-1");
    assert_eq!((&failed["state"], failed["notes"].as_array().unwrap().len()), (&"open".into(), 1));
    let note = failed["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("`another-name` ended failed: work/break"), "{note}");
    sage.write("mended", "");
    sage.sage("resume another-name").exit(0);
    assert_eq!(
        (state(&sage, "T-1"), ticket(&sage, "T-1")["notes"].as_array().unwrap().len()),
        ("done".into(), 1)
    );
}

// covers: R22
#[test]
fn a_cancelled_run_without_an_owner_gives_its_ticket_back() {
    let sage = sage();
    add(&sage, &["Ship it"]);
    sage.sage("tickets run T-1 -t asks").exit(4);
    sage.sage("cancel ship-it").exit(0);
    assert_eq!(state(&sage, "T-1"), "open");
}

// covers: R22
#[test]
fn a_ticket_that_waits_is_refused_unless_forced() {
    let sage = sage();
    add(&sage, &["First"]);
    add(&sage, &["Second", "--blocked-by", "1"]);
    for command in ["tickets run T-2 -t fine", "run x --ticket 2 -t fine"] {
        sage.sage(command).exit(2).stderr_has("T-2 is blocked by T-1 (open)").stderr_has("--force");
    }
    sage.sage("run x --ticket T-7 -t fine").exit(2).stderr_has("no ticket `T-7`");
    sage.sage("tickets run T-2 -t fine --force").exit(0);
    assert_eq!((state(&sage, "T-2"), state(&sage, "T-1")), ("done".into(), "open".into()));
    assert_eq!(sage.lines("ran"), ["T-2 Second"]);
}

// covers: R22
#[test]
fn all_that_are_ready_run_in_order_and_a_failure_stops_them() {
    let sage = sage();
    add(&sage, &["Last", "--priority", "P3"]);
    add(&sage, &["Base"]);
    add(&sage, &["Top", "--blocked-by", "2"]);
    add(&sage, &["Urgent", "--priority", "P0"]);
    sage.sage("tickets run --ready --max 2 -t fine").exit(0);
    assert_eq!(sage.lines("ran"), ["T-4 Urgent", "T-2 Base"]);
    sage.sage("tickets run --ready -t fails").exit(1);
    assert_eq!((state(&sage, "T-3"), ticket(&sage, "T-1").get("run")), ("open".into(), None));
    sage.sage("tickets run --ready --keep-going -t fails").exit(1);
    assert!(ticket(&sage, "T-1").get("run").is_some());
    sage.sage("tickets run --ready -t fine --json").exit(0);
    assert_eq!(sage.lines("ran"), ["T-4 Urgent", "T-2 Base", "T-3 Top", "T-1 Last"]);
    sage.sage("tickets run --ready -t fine").exit(0).stderr_has("no ticket is ready");
}

// covers: R22, S1
#[test]
fn a_run_in_the_background_moves_its_ticket_too() {
    let sage = sage();
    add(&sage, &["Ship it"]);
    sage.sage("tickets run T-1 -t asks --detach").exit(0);
    assert_eq!(state(&sage, "T-1"), "inProgress", "before the command returns");
    wait_until(|| sage.status("ship-it")["status"] == "paused", DEADLINE, "its question");
    sage.sage("approve ship-it").exit(0);
    wait_until(|| state(&sage, "T-1") == "done", DEADLINE, "the ticket to be done");
}

// covers: R22
#[test]
fn whoever_looks_makes_up_for_an_owner_that_was_killed_before_it_could_tell() {
    let sage = sage();
    add(&sage, &["Do it"]);
    sage.sage("tickets run T-1 -t fine").exit(0);
    // As it was just before the last word about the ticket.
    let path = sage.path(".sage/tickets/index.json");
    let before = std::fs::read_to_string(&path).unwrap().replace("\"done\"", "\"inProgress\"");
    std::fs::write(&path, &before).unwrap();
    sage.sage("tickets").exit(0).stderr_has("1 closed");
    assert_eq!(state(&sage, "T-1"), "done");
    // A run of somebody else, who shares the tickets by git, is left alone.
    let foreign =
        before.replace(ticket(&sage, "T-1")["run"].as_str().unwrap(), "run_01K00000000000000000000000");
    std::fs::write(&path, foreign).unwrap();
    assert_eq!(state(&sage, "T-1"), "inProgress");
}

// covers: R22
#[test]
fn an_agent_is_told_its_ticket() {
    let sage = Sage::new().template("agent", AGENT);
    let tee = "[agents.scribe]\ncommand = [\"tee\", \"asked\"]\n";
    sage.write("sage.toml", tee);
    add(&sage, &["Draw a cat"]);
    sage.sage("tickets run T-1 -t agent").exit(0);
    assert_eq!(
        (sage.lines("asked"), state(&sage, "T-1")),
        (vec!["Do Draw a cat".to_string()], "done".into())
    );
}

// covers: R22
#[test]
fn many_processes_lose_no_ticket() {
    let sage = sage();
    let adding: Vec<_> =
        (0..12).map(|n| sage.args(["tickets", "add", &format!("ticket {n}")]).spawn()).collect();
    for running in adding {
        running.end().exit(0);
    }
    let listed = sage.sage("tickets --json").exit(0).json();
    let mut ids: Vec<&str> =
        listed["tickets"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12);
}

// covers: R22
#[test]
fn a_decision_for_a_person_is_never_run() {
    let sage = copy_named("shop");
    sage.args(["run", "payment processing", "--quiet"]).run().exit(3);
    let first = ticket(&sage, "T-1");
    assert!(first["detail"].as_str().unwrap().starts_with("A person decides."), "{first}");
    assert_eq!((&first["person"], &first["standing"]), (&true.into(), &"person".into()));
    let ready = sage.sage("tickets ready").exit(0).stderr_has("sage tickets done T-1 -m");
    assert!(!ready.stderr.contains("sage tickets run T-1"), "{}", ready.stderr);
    let shown = sage.sage("tickets show T-1").exit(0).stderr_has("sage tickets done T-1 -m");
    assert!(!shown.stderr.contains("sage tickets run"), "{}", shown.stderr);
    let refused = sage.sage("tickets run T-1").exit(2).stderr_has("T-1 is a decision for a person");
    refused.stderr_has("hint: sage tickets done T-1 -m");
    sage.args(["run", "other", "--ticket", "T-1"]).run().exit(2).stderr_has("decision for a person");
    // What only waits for the decision is not run either.
    let before = sage.sage("tickets list --all --json").exit(0).json();
    for id in sage.sage("tickets ready --json").exit(0).json()["tickets"].as_array().unwrap() {
        if id["standing"] == "ready" {
            sage.args(["tickets", "done", id["id"].as_str().unwrap()]).run().exit(0);
        }
    }
    sage.sage("tickets run --ready -q").exit(0).stderr_has("no ticket is ready for a run");
    assert_eq!(
        sage.sage("tickets list --all --json").exit(0).json()["total"],
        before["total"],
        "none was bred"
    );
    let done = sage.args(["tickets", "done", "T-1", "-m", "by card only"]).run().exit(0);
    done.stderr_has("note: ready now: ").stderr_has("hint: sage tickets run T-");
    add(&sage, &["Choose a name", "--person"]);
    sage.sage("tickets list --state person").exit(0).stdout_has("Choose a name");
}
