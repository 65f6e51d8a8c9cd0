//! `sage inbox` and `sage wake`: what waits for a person, wakes from programs and people, dead letters.

use std::time::{Duration, Instant};

use sage_engine::inbox::Inbox;
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};

const ASKS: &str = r#"
name: t
phases:
  - id: ask
    operations:
      - { id: ship, type: approval, params: { message: "ship it?", deadline: 1h, default: reject } }
      - { id: color, type: approval, params: { message: "which?", choices: [blue, green] } }
"#;

const AGENT: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: fake, prompt: hello, params: { script: [{ say: "done" }] } }
      - { id: s, type: shell, params: { run: "echo ran >> shell.ran" } }
"#;

/// A program that reports by a file, written in two pieces and with a pause between them.
const FOREIGN: &str = r#"
name: t
phases:
  - id: p
    operations:
      id: foreign
      type: shell
      params:
        run: |
          printf '{"session_id": "foreign-1", "summ' > .sage/inbox/new/report.json
          sleep 0.4
          printf 'ary": "all done", "status": "complete"}' >> .sage/inbox/new/report.json
"#;

pub fn inbox(sage: &Sage) -> Inbox {
    Inbox::open(sage.path(".sage/inbox"))
}

fn shown(sage: &Sage) -> Value {
    sage.sage("inbox --json --all").exit(0).json()
}

// covers: S2, LESSONS "Delivery and liveness"
#[test]
fn questions_of_all_runs_are_in_one_list_with_the_command_to_type() {
    let sage = Sage::new().template("t", ASKS);
    sage.sage("inbox").exit(0).stderr_has("nothing waits");
    for feature in ["one", "two"] {
        sage.args(["run", feature, "-t", "t", "--no-wait"]).run().exit(4);
    }
    let text = sage.sage("inbox").exit(0);
    for line in [
        "one ask/ship: ship it?  (until 20",
        "then: reject)",
        "  sage approve one ask/ship\n  sage reject one ask/ship\n",
        "two ask/color: which?\n  sage approve two ask/color -c blue\n  sage approve two ask/color -c green\n",
    ] {
        assert!(text.stdout.contains(line), "no {line:?} in {}", text.stdout);
    }
    let questions = shown(&sage)["questions"].clone();
    assert_eq!(questions.as_array().unwrap().len(), 4);
    // What it says to type does it.
    for question in questions.as_array().unwrap() {
        let command = question["commands"][0].as_str().unwrap();
        sage.sage(command.strip_prefix("sage ").unwrap()).exit(0);
    }
    assert_eq!(shown(&sage)["questions"], json!([]));
}

// covers: S2
#[test]
fn a_wake_is_posted_listed_handled_and_kept() {
    let sage = Sage::bare();
    let posted = sage
        .args(
            "wake finding --session auditor-review-1 --role auditor --file a.md --file b.md --handoff h1 \
             --next-role cleaner --priority 0 --summary"
                .split_whitespace()
                .chain(["two holes"]),
        )
        .run()
        .exit(0);
    let id = posted.stdout.trim().to_string();
    let before = shown(&sage);
    let wake = &before["wakes"][0]["wake"];
    assert_eq!((&wake["wakeId"], &before["wakes"][0]["state"]), (&json!(id), &json!("new")));
    assert_eq!(
        (&wake["type"], &wake["status"], &wake["priority"]),
        (&json!("FINDING"), &json!("complete"), &json!(0))
    );
    assert_eq!(
        wake["deliverables"],
        json!({"files": ["a.md", "b.md"], "handoff_id": "h1", "handoff_file": null})
    );
    sage.sage("inbox").exit(0).stdout_has("auditor-review-1: two holes");
    sage.sage("inbox handle").exit(0).stdout_has("1 wake handled");
    sage.sage("inbox handle").exit(0).stdout_has("0 wakes handled");
    let after = shown(&sage);
    assert_eq!((&after["wakes"], &after["handled"][0]["wake"]["acknowledged"]), (&json!([]), &json!(true)));
    let one = sage.args(["inbox", "show", &id]).run().exit(0).json();
    assert_eq!((&one["state"], &one["wake"]["summary"]), (&json!("handled"), &json!("two holes")));
    sage.args(["inbox", "show", &id[..id.len() - 1]]).run().exit(2).stderr_has(&id);
    assert_eq!(sage.lines(".sage/logs/orchestration.jsonl").len(), 1);
}

// covers: S2
#[test]
fn wrong_usage_posts_nothing() {
    let sage = Sage::new();
    sage.sage("wake").exit(2);
    sage.sage("wake complete").exit(2).stderr_has("--session");
    sage.sage("wake done --session s").exit(2).stderr_has("complete, blocked, finding or error");
    sage.sage("wake complete --session s --priority 9").exit(2);
    sage.args(["wake", "complete", "--session", " "]).run().exit(2).stderr_has("session_id");
    sage.write("w.json", "{\"status\": \"complete\"}\n");
    sage.sage("wake --json-file w.json").exit(2).stderr_has("line 1").stderr_has("session_id");
    sage.sage("inbox retry nothing").exit(2).stderr_has("no dead letter");
    sage.sage("inbox retry --all").exit(0);
    assert!(!sage.path(".sage/inbox").exists());
}

// covers: S2
#[test]
fn the_same_id_from_two_processes_is_one_wake() {
    let sage = Sage::new();
    for _ in 0..2 {
        sage.sage("wake complete --session s --id mine").exit(0).stdout_has("mine");
    }
    let done = sage.sage("inbox handle --json").exit(0).json();
    assert_eq!((&done["handled"], &done["repeated"]), (&json!(1), &json!(1)));
}

// covers: S2, S8
#[test]
fn nonsense_becomes_a_dead_letter_that_can_be_mended_and_retried() {
    let sage = Sage::new();
    sage.sage("wake complete --session s").exit(0);
    let dropped = sage.write(".sage/inbox/new/note.json", "{\"status\": \"complete\"}");
    let done = sage.sage("inbox handle").exit(0).stdout_has("1 wake handled").stderr_has("no `session_id`");
    assert!(done.stderr.contains("sage inbox retry"), "{}", done.stderr);
    assert!(!dropped.exists());
    let dead = shown(&sage)["dead"][0].clone();
    assert_eq!(dead["tries"], 5);
    let id = dead["wakeId"].as_str().unwrap();
    sage.sage("inbox").exit(0).stdout_has(id).stdout_has("5 tries");
    sage.sage(&format!("inbox show {id}")).exit(0).stdout_has("no `session_id`");
    let mended = "{\"status\": \"complete\", \"session_id\": \"s2\", \"wakeId\": \"mended\"}";
    std::fs::write(dead["file"].as_str().unwrap(), mended).unwrap();
    sage.sage("inbox retry mended").exit(0).stdout_has("1 wake put back");
    sage.sage("inbox handle").exit(0).stdout_has("1 wake handled");
    let after = shown(&sage);
    assert_eq!((&after["dead"], after["handled"].as_array().unwrap().len()), (&json!([]), 2));
}

// covers: S2, S9
#[test]
fn a_run_tells_what_ended_unless_it_is_switched_off() {
    let sage = Sage::new().template("t", AGENT);
    sage.args(["run", "quiet", "-t", "t"]).env("SAGE_WAKES", "0").run().exit(0);
    let told = sage.lines(".sage/logs/orchestration.jsonl");
    assert!(!sage.path(".sage/inbox").exists() && !told.iter().any(|line| line.contains("\"wake\"")));
    sage.write("sage.toml", "[switches]\nwakes = false\n");
    sage.sage("run quiet2 -t t").exit(0);
    assert!(!sage.path(".sage/inbox").exists());
    sage.write("sage.toml", "");
    sage.sage("run loud -t t").exit(0);
    let all = shown(&sage);
    assert_eq!(all["wakes"], json!([]), "a run delivers by itself");
    let told: Vec<(&str, &str)> = all["handled"]
        .as_array()
        .unwrap()
        .iter()
        .map(|handled| {
            (handled["wake"]["type"].as_str().unwrap(), handled["wake"]["summary"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, [("COMPLETE", "loud: p/a succeeded"), ("COMPLETE", "loud: succeeded")]);
}

// covers: S8
#[test]
fn a_program_that_knows_nothing_of_sage_reports_by_a_file() {
    let sage = Sage::new().template("t", FOREIGN);
    sage.sage("run x -t t").exit(0);
    let found = inbox(&sage).handled_of("foreign-1").unwrap();
    assert_eq!((found.len(), found[0].summary.as_str()), (1, "all done"));
    assert!(inbox(&sage).dead().unwrap().is_empty());
}

// covers: S2
#[test]
fn with_too_many_unhandled_wakes_no_agent_starts() {
    let sage = Sage::new().template("t", AGENT);
    let line = |n: usize| format!("{{\"session_id\": \"s{n}\", \"type\": \"FINDING\"}}\n");
    sage.write("many.jsonl", (0..60).map(line).collect::<String>());
    sage.sage("wake --json-file many.jsonl").exit(0);
    sage.sage("inbox").exit(0).stderr_has("60 wakes are unhandled");
    sage.sage("wake --json-file many.jsonl").exit(0);
    sage.sage("inbox").exit(0).stderr_has("no new agent starts");
    // Somebody has the turn and does not use it, so that the run cannot empty the inbox.
    let turn = std::fs::File::create(sage.path(".sage/inbox/deliver.lock")).unwrap();
    turn.lock().unwrap();
    let mut run = sage.spawn("run x -t t");
    run.until(|| sage.lines("shell.ran") == ["ran"], "the shell step");
    run.until(|| wait_of(&sage, "p/a") == "slot(inbox)", "the agent to say why it waits");
    assert!(!run.stdout().contains("p/a started"), "{}", run.stdout());
    drop(turn);
    run.end().exit(0).stdout_has("agents wait: 120 wakes are unhandled").stdout_has("agents start again");
    assert_eq!(inbox(&sage).handled().unwrap().len(), 122);
}

// covers: S2
#[test]
fn ten_at_once_arrive_while_a_run_is_under_way() {
    let sage = Sage::new().template(
        "t",
        "name: t\nphases: [{ id: p, operations: { id: s, type: sleep, params: { for: 1m } } }]\n",
    );
    let mut run = sage.spawn("run x -t t");
    run.until(|| run_is_under_way(&sage), "the run");
    let started = Instant::now();
    let posts: Vec<_> = (0..10).map(|n| sage.spawn(&format!("wake complete --session s{n}"))).collect();
    let ids: Vec<String> =
        posts.into_iter().map(|post| post.end().exit(0).stdout.trim().to_string()).collect();
    let posted = Instant::now();
    let all_handled = || {
        let handled = inbox(&sage).handled().unwrap();
        ids.iter().all(|id| handled.iter().any(|handled| handled.wake_id == *id))
    };
    wait_until(all_handled, DEADLINE, "all ten to be handled");
    println!(
        "10 at once: posted in {:?}, handled {:?} after the last post",
        posted - started,
        posted.elapsed()
    );
    assert!(posted.elapsed() < Duration::from_secs(5));
    run.kill();
}

fn wait_of(sage: &Sage, path: &str) -> String {
    let Ok(snapshot) = sage.engine().read("x") else { return String::new() };
    let wait = snapshot.run.find(path).and_then(|id| snapshot.run.wait_reason(id));
    wait.map_or(String::new(), |wait| sage_core::wire::wait_text(&wait))
}

fn run_is_under_way(sage: &Sage) -> bool {
    sage.engine().read("x").is_ok_and(|snapshot| snapshot.run.active.sleeping == 1)
}

// covers: S2
#[test]
fn a_burst_of_a_thousand_is_handled_without_loss() {
    let sage = Sage::new();
    let line = |n: usize| {
        format!("{{\"wakeId\": \"w{n}\", \"session_id\": \"s{}\", \"type\": \"FINDING\"}}\n", n % 7)
    };
    sage.write("burst.jsonl", (0..1_000).map(line).collect::<String>());
    let started = Instant::now();
    let posted = sage.sage("wake --json-file burst.jsonl").exit(0);
    let posting = started.elapsed();
    assert_eq!(posted.stdout.lines().count(), 1_000);
    let done = sage.sage("inbox handle --json").exit(0).json();
    assert_eq!((&done["handled"], &done["left"], &done["dead"]), (&json!(1_000), &json!(0), &json!(0)));
    let ids: Vec<String> =
        inbox(&sage).handled().unwrap().into_iter().map(|handled| handled.wake_id).collect();
    assert_eq!(ids, (0..1_000).map(|n| format!("w{n}")).collect::<Vec<_>>());
    println!("burst of 1,000: posted in {posting:?}, handled in {} ms", done["ms"]);
}
