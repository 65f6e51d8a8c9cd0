//! Runs outlive calls, clients and servers.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{BOTH, Client, Era};
use super::{QUICK, SLOW, assert_ran_once};
use crate::dsl::{DEADLINE, Sage, wait_until};

fn slow() -> Sage {
    Sage::new().template("slow", SLOW).template("quick", QUICK)
}

/// The run ends well without anybody's doing, and nothing is left of it.
fn assert_it_finishes(sage: &Sage, feature: &str) {
    sage.write("go", "");
    wait_until(|| sage.status(feature)["status"] == "completed", DEADLINE, "the run to end");
    assert_ran_once(sage);
    wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
}

// covers: R16
#[test]
fn a_run_that_takes_longer_than_the_client_waits() {
    for era in BOTH {
        let sage = slow();
        let mut client = Client::start(&sage, era);
        let started = Instant::now();
        let args = json!({"feature": "x", "template": "slow", "waitMs": 300});
        let handle = client.call("sage_workflow_execute", args).good();
        assert_eq!((&handle["status"], handle.get("success")), (&"running".into(), None), "not decided yet");
        assert!(started.elapsed() >= Duration::from_millis(300));
        assert!(handle["workflowId"].as_str().unwrap().starts_with("run_"));
        // Who wants to know is told how far it is, with figures that grow.
        let id = client.send(
            "tools/call",
            json!({"name": "sage_workflow_status", "arguments": {"feature": "x", "waitMs": 1200}, "_meta": {"progressToken": 7}}),
        );
        assert_eq!(client.reply("sage_workflow_status", id).good()["status"], "running");
        let told: Vec<_> =
            client.notifications.iter().filter(|it| it["method"] == "notifications/progress").collect();
        assert!(!told.is_empty());
        assert_eq!(
            (&told[0]["params"]["progressToken"], &told[0]["params"]["total"]),
            (&7.into(), &3.0.into())
        );
        assert!(told.last().unwrap()["params"]["message"].as_str().unwrap().contains("p/slow"), "{told:?}");
        let figures: Vec<f64> = told.iter().map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
        assert!(figures.windows(2).all(|pair| pair[0] < pair[1]), "{figures:?}");
        // The end is told as soon as it is there.
        let id = client.send_call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000}));
        sage.write("go", "");
        assert_eq!(client.reply("sage_workflow_status", id).good()["status"], "completed");
        assert!(client.hang_up() < Duration::from_secs(10));
        assert_it_finishes(&sage, "x");
    }
}

/// A run that is known to be wrong goes on with its other steps: nothing is decided, and the wait lasts as long as asked.
// covers: R16
#[test]
fn a_check_that_could_not_be_made_does_not_end_the_wait() {
    let text = "
name: t
phases:
  - id: c
    operations:
      - { id: t, type: test.run }
      - { id: f, type: shell, params: { run: 'false' } }
      - { id: s, type: shell, params: { run: 'until [ -e go ]; do sleep 0.02; done' } }
";
    let sage = Sage::new().template("t", text);
    let mut client = Client::start(&sage, BOTH[0]);
    let started = Instant::now();
    let args = json!({"feature": "x", "template": "t", "waitMs": 2_000});
    let answer = client.call("sage_workflow_execute", args).good();
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!((&answer["status"], answer.get("success")), (&"running".into(), None), "{answer:#}");
    wait_until(|| sage.state_of("x", "c/t") == "unknown", DEADLINE, "the check");
    let id = client.send_call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000}));
    sage.write("go", "");
    assert_eq!(client.reply("sage_workflow_status", id).good()["pauseReason"], "unknown");
    let answer = client.call("sage_workflow_resume", json!({"feature": "x"})).good();
    assert_eq!((&answer["status"], &answer["success"]), (&"paused".into(), &false.into()), "{answer:#}");
}

/// An approval can be given while other steps work, so the client is told at once.
// covers: R16
#[test]
fn a_question_ends_the_wait() {
    let text = "
name: t
phases:
  - id: c
    operations:
      - { id: s, type: shell, params: { run: 'touch up; until [ -e go ]; do sleep 0.02; done' } }
      - { id: first, type: shell, params: { run: 'until [ -e up ]; do sleep 0.02; done' } }
      - { id: ask, type: approval, needs: [first], params: { message: Go? } }
";
    let sage = Sage::new().template("t", text);
    let mut client = Client::start(&sage, BOTH[1]);
    let answer = client.call("sage_workflow_execute", json!({"feature": "x", "template": "t"})).good();
    assert_eq!((&answer["status"], answer.get("success")), (&"running".into(), None), "{answer:#}");
    assert_eq!(answer["questions"][0]["step"], "c/ask");
    client.call("sage_workflow_cancel", json!({"feature": "x"})).good();
}

// covers: R16
#[test]
fn a_client_that_hangs_up_ends_nothing() {
    let sage = slow();
    let mut client = Client::start(&sage, Era::Session);
    client.send_call("sage_workflow_execute", json!({"feature": "x", "template": "slow"}));
    wait_until(|| sage.path("up").exists(), DEADLINE, "the slow step");
    assert!(client.hang_up() < Duration::from_secs(20), "whoever waits is cut");
    assert_it_finishes(&sage, "x");
}

// covers: R16
#[test]
fn a_server_that_is_killed_ends_nothing() {
    let sage = slow();
    let mut client = Client::start(&sage, Era::Stateless);
    client.send_call("sage_workflow_execute", json!({"feature": "x", "template": "slow"}));
    wait_until(|| sage.path("up").exists(), DEADLINE, "the slow step");
    client.kill();
    // The next server knows it as well as the first did.
    let mut client = Client::start(&sage, Era::Session);
    let status = client.call("sage_workflow_status", json!({"feature": "x", "waitMs": 0})).good();
    assert_eq!(status["status"], "running");
    client.hang_up();
    assert_it_finishes(&sage, "x");
}

// covers: R16
#[test]
fn a_cancelled_request_ends_the_waiting_only() {
    for era in BOTH {
        let sage = slow();
        let mut client = Client::start(&sage, era);
        client.call("sage_workflow_execute", json!({"feature": "x", "template": "slow", "waitMs": 0})).good();
        let id = client.send_call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000}));
        client.notify(
            "notifications/cancelled",
            json!({"requestId": id, "reason": "the user has other plans"}),
        );
        let status = client.call("sage_workflow_status", json!({"feature": "x"})).good();
        assert_eq!(status["status"], "running");
        client.hang_up();
        assert_it_finishes(&sage, "x");
    }
}

// covers: R16
#[test]
fn twenty_calls_at_once() {
    let sage = slow();
    let mut client = Client::start(&sage, Era::Stateless);
    let mut waiting = Vec::new();
    client.call("sage_workflow_execute", json!({"feature": "x", "template": "slow", "waitMs": 0})).good();
    for n in 0..10 {
        waiting.push(client.send_call("sage_workflow_status", json!({"feature": "x", "waitMs": 40_000})));
        let args = json!({"feature": format!("quick {n}"), "template": "quick"});
        waiting.push(client.send_call("sage_workflow_execute", args));
    }
    // Who waits keeps nobody from asking.
    client.call("sage_workflow_list", json!({})).good();
    for id in waiting.iter().skip(1).step_by(2) {
        assert_eq!(client.reply("sage_workflow_execute", *id).good()["status"], "completed");
    }
    sage.write("go", "");
    for id in waiting.iter().step_by(2) {
        assert_eq!(client.reply("sage_workflow_status", *id).good()["status"], "completed");
    }
    let done = client.call("sage_workflow_list", json!({"filter": "completed"})).good();
    assert_eq!(done["workflows"].as_array().unwrap().len(), 11);
    client.hang_up();
    wait_until(|| sage.processes().is_empty(), DEADLINE, "everything to end");
}
