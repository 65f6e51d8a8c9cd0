//! Runs that go on while they are looked at, and what becomes of them.

use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{Desk, fan, shell, template};
use crate::dsl::{DEADLINE, Sage, wait_until};

/// Runs until somebody writes `go`.
const WAIT: &str = "until [ -e go ]; do sleep 0.02; done";

fn is_running(sage: &Sage, feature: &str, step: &str) -> bool {
    is_in(sage, feature, step, "running")
}

/// Whether there is a run, and in it a step in this state: items and steps of workflows appear while it goes on.
fn is_in(sage: &Sage, feature: &str, step: &str, state: &str) -> bool {
    let is = |it: &Value| it["path"] == step && it["state"] == state;
    sage.engine().latest(feature).is_some()
        && sage.status(feature)["steps"].as_array().unwrap().iter().any(is)
}

/// In the foreground: running, killed, resumed, interrupted, paused, cancelled, finished.
// covers: R5, R8, R16, R18
#[test]
fn of_a_run_that_is_stopped_in_every_way_and_goes_on() {
    let text = template(&[
        (
            "a",
            &[
                shell("q", "true", ""),
                shell("s", WAIT, ""),
                shell("bad", "exit 3", ", fallback: { value: 1 }"),
            ],
        ),
        ("b", &[shell("z", "true", "")]),
    ]);
    let mut desk = Desk::new(Sage::new().template("t", &text));
    let settled =
        |desk: &Desk| is_running(&desk.sage, "x", "a/s") && desk.sage.state_of("x", "a/bad") == "succeeded";
    let mut running = desk.sage.spawn("run x -t t");
    running.until(|| settled(&desk), "the steps");
    let views = desk.agrees("x", "running");
    assert!(
        views.status["metrics"]["totalTime"].as_u64() > views.checkpoint["metrics"]["totalTime"].as_u64()
    );
    running.kill();
    desk.sage.assert_nothing_alive();
    let killed = desk.agrees("x", "interrupted");

    let mut running = desk.sage.spawn("resume x");
    running.until(|| settled(&desk), "the resumed step");
    let resumed = desk.agrees("x", "running");
    let times = [&killed, &resumed].map(|views| views.step("a/s")["elapsedMs"].as_u64());
    assert!(times[0] <= times[1], "the time of a lost attempt was its time: {times:?}");
    running.signal(Signal::INT);
    running.end().exit(130);
    desk.agrees("x", "paused");

    let mut running = desk.sage.spawn("resume x");
    running.until(|| settled(&desk), "the resumed step");
    desk.sage.sage("pause x").exit(0);
    let views = desk.agrees("x", "paused");
    assert_eq!(views.step("a/s")["state"], "running", "what is under way finishes");
    desk.sage.write("go", "");
    running.end().exit(4);
    desk.agrees("x", "paused");
    std::fs::remove_file(desk.sage.path("go")).unwrap();

    let mut running = desk.sage.spawn("run y -t t");
    running.until(|| is_running(&desk.sage, "y", "a/s"), "the step");
    desk.sage.sage("cancel y").exit(0);
    running.end().exit(130);
    desk.agrees("y", "cancelled");
    desk.sage.write("go", "");
    desk.sage.sage("resume y").exit(3);
    desk.agrees("y", "degraded");
    desk.sage.sage("resume x").exit(3);
    desk.agrees("x", "degraded");
}

/// A killed run that is cancelled by a command, not by its owner.
// covers: R5, R8, R16
#[test]
fn of_fan_outs_and_sub_workflows_under_way() {
    let sub = "{ id: w, type: workflow, params: { template: sub } }".to_string();
    let slow = fan(
        "f",
        "test $I != 1 || exit 3; test $I != 2 || { until [ -e go ]; do sleep 0.02; done; }",
        ", tolerate: 2",
    );
    let sage = Sage::new()
        .template("sub", &template(&[("s", &[shell("c", WAIT, "")])]))
        .template("t", &template(&[("a", &[slow, sub]), ("b", &[shell("z", "true", "")])]));
    let mut desk = Desk::new(sage);
    let settled = |desk: &Desk| {
        let is = |step: &str, state: &str| is_in(&desk.sage, "x", step, state);
        is_running(&desk.sage, "x", "a/w")
            && is("a/f[0]", "succeeded")
            && is("a/f[1]", "failed")
            && is("a/f[2]", "running")
    };
    let mut running = desk.sage.spawn("run x -t t");
    running.until(|| settled(&desk), "the steps");
    desk.agrees("x", "running");
    running.kill();
    desk.sage.assert_nothing_alive();
    desk.agrees("x", "interrupted");
    desk.sage.write("go", "");
    desk.sage.sage("resume x").exit(3);
    desk.agrees("x", "degraded");
    std::fs::remove_file(desk.sage.path("go")).unwrap();
    let mut running = desk.sage.spawn("run y -t t");
    running.until(|| is_running(&desk.sage, "y", "a/w"), "the step");
    running.kill();
    desk.sage.assert_nothing_alive();
    desk.sage.sage("cancel y").exit(0);
    desk.agrees("y", "cancelled");
}

/// Somebody is asked while others work; a script computes, then waits.
// covers: R8, R16
#[test]
fn of_questions_and_scripts_beside_work() {
    let ask = "{ id: ask, type: approval, params: { message: Go? } }".to_string();
    let check = "{ id: t, type: test.run }".to_string();
    let sage = Sage::new()
        .code("code", &format!("export default async (sage: any) => {{ await sage.shell('true'); await sage.shell('{WAIT}'); return 1; }};\n"))
        .template("t", &template(&[("a", &[ask, check, shell("s", WAIT, "")])]));
    let mut desk = Desk::new(sage);
    let mut running = desk.sage.spawn("run x -t t");
    running.until(
        || is_running(&desk.sage, "x", "a/s") && desk.sage.state_of("x", "a/t") == "unknown",
        "the steps",
    );
    desk.agrees("x", "running");
    running.kill();
    desk.sage.assert_nothing_alive();
    desk.agrees("x", "interrupted");
    desk.sage.sage("approve x a/ask").exit(0);
    desk.agrees("x", "interrupted");

    let mut running = desk.sage.spawn("run y -t code");
    running.until(
        || {
            desk.sage.engine().latest("y").is_some()
                && desk.sage.status("y")["steps"].as_array().unwrap().len() == 3
        },
        "the call",
    );
    running.until(|| is_running(&desk.sage, "y", "main/shell[1]"), "the call to run");
    desk.agrees("y", "running");
    running.kill();
    desk.sage.assert_nothing_alive();
    desk.agrees("y", "interrupted");
}

/// Its owner stays and waits for a known time: a quota, a retry, a sleep.
// covers: R7, R8, R16
#[test]
fn of_runs_that_wait_for_a_time() {
    let quota = "{ id: g, type: agent, agent: fake, params: { prompt: x, script: [{ fault: quota, resetAt: \"2099-01-01T00:00:00Z\" }] } }";
    let sage = Sage::new()
        .template("quota", &template(&[("a", &[quota.into(), shell("q", "true", "")])]))
        .template(
            "retry",
            &template(&[(
                "a",
                &[
                    shell("f", "false", ", retry: { attempts: 3, delay: 10m, jitter: false }"),
                    shell("q", "true", ""),
                ],
            )]),
        )
        .template(
            "sleep",
            &template(&[(
                "a",
                &["{ id: z, type: sleep, params: { for: 10m } }".into(), shell("q", "true", "")],
            )]),
        );
    let mut desk = Desk::new(sage);
    for (template, step, state, word) in [
        ("quota", "a/g", "waiting", "paused"),
        ("retry", "a/f", "waiting", "running"),
        ("sleep", "a/z", "running", "running"),
    ] {
        let feature = &*format!("x-{template}");
        let mut running = desk.sage.args(["run", feature, "-t", template]).spawn();
        let stands = |sage: &Sage| {
            is_in(sage, feature, "a/q", "succeeded")
                && is_in(sage, feature, step, state)
                && sage.status(feature)["status"] == word
        };
        running.until(|| stands(&desk.sage), "the run to wait");
        let views = desk.agrees(feature, word);
        let head = views.status_text.lines().next().unwrap();
        assert!(word == "running" || head.contains(" left: a provider"), "{head}");
        running.kill();
        desk.sage.assert_nothing_alive();
        desk.agrees(feature, if word == "running" { "interrupted" } else { "paused" });
    }
}

// covers: R5, R8, R16, P8
#[test]
fn of_runs_in_the_background() {
    let text = template(&[
        ("a", &[shell("q", "true", ""), shell("s", WAIT, "")]),
        ("b", &[shell("z", "false", "")]),
    ]);
    let mut desk = Desk::new(Sage::new().template("t", &text));
    desk.sage.sage("run x -t t --detach").exit(0);
    wait_until(|| is_running(&desk.sage, "x", "a/s"), DEADLINE, "the step");
    let views = desk.agrees("x", "running");
    let owner = views.status["owner"].as_u64().unwrap();
    rustix::process::kill_process(Pid::from_raw(owner as i32).unwrap(), Signal::KILL).unwrap();
    let restarted = || desk.sage.status("x")["owner"].as_u64().is_some_and(|pid| pid != owner);
    wait_until(|| restarted() && is_running(&desk.sage, "x", "a/s"), DEADLINE, "another owner");
    desk.agrees("x", "running");
    desk.sage.write("go", "");
    // Its owner still has to take its record away.
    let ended = |status: Value| status["status"] == "failed" && status["background"].is_null();
    wait_until(|| ended(desk.sage.status("x")), DEADLINE, "the end");
    desk.agrees("x", "failed");
}
