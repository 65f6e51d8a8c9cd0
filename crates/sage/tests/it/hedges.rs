//! Attempts beside a slow one, other ways when one fails, reminders for who is stuck, limits of waiting.

use std::time::{Duration, Instant};

use sage_core::event::Event;
use sage_core::policy::Rung;
use serde_json::{Value, json};

use crate::calls::count;
use crate::dsl::{Sage, is_alive};

fn one(operation: &str) -> Sage {
    let text = format!("name: t\nphases:\n  - id: p\n    operations: [{operation}]\n");
    Sage::new().template("t", &text)
}

#[track_caller]
fn result(sage: &Sage) -> Value {
    sage.sage("result x p/a").exit(0).json()
}

/// The first attempt sleeps for good, deaf to what it is told; the second answers.
// covers: R7, R14
#[test]
fn the_loser_of_a_hedge_leaves_nothing_behind() {
    let sage = one(r#"{ id: a, type: shell, hedge: 200ms, params: { run: "
        echo $$ >> pids; if [ $SAGE_ATTEMPT = 1 ]; then trap '' TERM; (setsid sleep 300 &); sleep 300; fi; echo $SAGE_ATTEMPT
    " } }"#);
    let started = Instant::now();
    sage.sage("run x -t t").exit(0);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert_eq!(result(&sage)["stdout"].as_str().unwrap().trim(), "2");
    let pids: Vec<u32> = sage.lines("pids").iter().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    assert_eq!(sage.alive(), [0u32; 0]);
    let journal = sage.journal("x");
    assert_eq!((count(&journal, "step.hedged"), count(&journal, "step.charged")), (1, 1));
    assert_eq!(sage.status("x")["steps"][0]["attempts"], 2);
    println!("hedge: {:?} with a deaf loser", started.elapsed());
}

// covers: R5, R7
#[test]
fn a_hedged_step_that_is_killed_runs_again_once() {
    let sage = one(
        r#"{ id: a, type: shell, hedge: 100ms, params: { run: "echo $SAGE_ATTEMPT >> up; until [ -e go ]; do sleep 0.02; done" } }"#,
    );
    let mut running = sage.spawn("run x -t t");
    running.until(|| sage.lines("up").len() == 2, "two attempts beside each other");
    assert!(running.kill());
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    sage.assert_nothing_alive();
    assert_eq!(sage.lines("up"), ["1", "2", "3"]);
    sage.sage("verify").exit(0);
}

// covers: R7
#[test]
fn a_step_that_fails_goes_another_way() {
    let crash = "script: [{ fault: crash }]";
    let sage = one(&format!(
        "{{ id: a, type: agent, agent: fake, prompt: x, retry: 1, fallback: {{ value: {{ ok: no }} }}, params: {{ {crash} }} }}"
    ));
    // A value that only stands in for a result is less than what was asked for.
    sage.sage("run x -t t").exit(3);
    assert_eq!(result(&sage), json!({"ok": "no"}));
    let told = sage.status("x")["metrics"]["tokensByClass"]["unattributed"].clone();
    assert_eq!(told, 1, "the value is no attempt");
    let text = format!(
        "{{ id: a, type: agent, agent: fake, prompt: from the other, retry: 1, fallback: echo, params: {{ {crash} }} }}"
    );
    let sage = one(&text);
    sage.write("sage.toml", "[agents.echo]\ncommand = [\"cat\"]\n");
    sage.sage("run x -t t").exit(0);
    assert_eq!(result(&sage), json!("from the other"));
    assert_eq!(count(&sage.journal("x"), "step.fellBack"), 1);
}

// covers: R7, R13
#[test]
fn a_quota_that_is_used_up_is_gone_around() {
    let server = "server: { log: calls.jsonl, refuse: 100, fault: quota, resetAfterMs: 600000 }";
    let sage = one(&format!(
        "{{ id: a, type: agent, agent: fake, prompt: hello, fallback: {{ to: echo, on: [quota] }}, params: {{ script: [{{ {server} }}] }} }}"
    ));
    sage.write("sage.toml", "[agents.echo]\ncommand = [\"cat\"]\n");
    sage.sage("run x -t t --no-wait").exit(0);
    assert_eq!(result(&sage), json!("hello"));
    assert_eq!(sage.lines("calls.jsonl").len(), 1);
    // The next run does not even ask.
    sage.sage("run x -t t --no-wait").exit(0);
    assert_eq!(sage.lines("calls.jsonl").len(), 1);
}

fn rungs(sage: &Sage) -> Vec<Rung> {
    let journal = sage.journal("x");
    let rung = |entry: &crate::dsl::Entry| match &entry.event {
        Event::StepStalled(stalled) => Some(stalled.rung),
        _ => None,
    };
    journal.records.iter().filter_map(rung).collect()
}

fn stuck(stall: &str, script: &str) -> Sage {
    one(&format!(
        "{{ id: a, type: agent, agent: fake, prompt: x, stall: {stall}, params: {{ script: {script} }} }}"
    ))
}

// covers: R7, R14
#[test]
fn who_is_stuck_is_reminded() {
    let sage = stuck("{ after: 300ms }", "[{ fault: hang, wakeOnNudge: true, result: awake }]");
    sage.sage("run x -t t").exit(0);
    assert_eq!(result(&sage), json!("awake"));
    assert_eq!(rungs(&sage), [Rung::Nudge]);
    assert_eq!(sage.status("x")["steps"][0]["attempts"], 1);
    // Slow is not stuck.
    let sage = stuck("{ after: 700ms }", "[{ beats: 20, beatMs: 80, result: slow }]");
    sage.sage("run x -t t").exit(0);
    assert_eq!((result(&sage), rungs(&sage)), (json!("slow"), vec![]));
}

// covers: R7, R14
#[test]
fn who_stays_stuck_is_started_again_and_then_fails() {
    let sage = stuck("{ after: 200ms }", "[{ fault: hang }, { result: second }]");
    sage.sage("run x -t t").exit(0);
    assert_eq!((result(&sage), rungs(&sage)), (json!("second"), vec![Rung::Nudge, Rung::Restart]));
    let sage = stuck("{ after: 200ms, nudges: 0, restarts: 1, then: fail }", "[{ fault: hang }]");
    sage.sage("run x -t t").exit(1);
    assert_eq!(rungs(&sage), [Rung::Restart, Rung::Fail]);
    let error = sage.status("x")["steps"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("timeout: no progress for 200ms"), "{error}");
    sage.assert_nothing_alive();
}

// covers: R7, R14
#[test]
fn who_stays_stuck_may_be_a_question() {
    let sage =
        stuck("{ after: 200ms, nudges: 0, restarts: 0, then: ask }", "[{ fault: hang }, { result: 2 }]");
    sage.sage("run x -t t").exit(4);
    assert_eq!(rungs(&sage), [Rung::Ask]);
    let status = sage.status("x");
    assert_eq!(status["status"], "paused", "{status}");
    assert_eq!(sage.alive(), [0u32; 0]);
    println!("stalled: {} {}", status["pauseReason"], status["steps"][0]);
}

// covers: R7, R14
#[test]
fn a_step_waits_no_longer_than_it_may() {
    let hold = r#"{ id: hold, type: shell, params: { run: "until [ -e go ]; do sleep 0.02; done" } }"#;
    let late = r#"{ id: late, type: shell, timeout: { queue: 300ms }, params: { run: "echo ran >> ran" } }"#;
    let sage = one(&format!("{hold}, {late}"));
    let mut running = sage.spawn("run x -t t --parallel 1");
    let ended = || {
        let known = sage.engine().latest("x").is_some();
        known && count(&sage.journal("x"), "step.finished") > 0
    };
    running.until(ended, "the waiting step to give up");
    let error = sage.status("x")["steps"][1]["error"].as_str().unwrap().to_owned();
    assert_eq!(error, "timeout: waited longer than 300ms for slot(global)");
    sage.write("go", "");
    running.end().exit(1);
    assert_eq!(sage.lines("ran"), [""; 0]);
}
