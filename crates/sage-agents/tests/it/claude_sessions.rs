//! Conversations of the real Claude Code that are killed, stopped, stuck, forked and lost.

use rustix::process::Signal;
use sage_agents::session::Store;
use sage_core::policy::FailureClass;
use sage_core::port::{Continuity, Stop, StopSignal};
use serde_json::json;

use crate::bench::{alive, key, kill, marked, until};
use crate::claude_desk::{Desk, TASK, bash};

const SLOW: &str = "echo begun > begun; while ! test -e never; do sleep 0.05; done";

fn slow() -> Option<Desk> {
    Some(Desk::new(json!([bash(SLOW), {"text": "finished"}]))?.param("tools", json!(["Bash"])))
}

/// The transcript of the conversation has the tool call: what is not on its disk, nobody can go on with.
async fn in_the_tool(desk: &Desk) {
    until("the tool", || desk.bench.path("begun").exists()).await;
    let written = || {
        let projects = std::fs::read_dir(desk.bench.path(".home/.claude/projects")).into_iter().flatten();
        let files = projects.flatten().filter_map(|it| std::fs::read_dir(it.path()).ok()).flatten().flatten();
        files.filter_map(|it| std::fs::read_to_string(it.path()).ok()).any(|text| text.contains("echo begun"))
    };
    until("the transcript", written).await;
}

/// The program itself, not its keeper.
fn program(desk: &Desk) -> u32 {
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(desk.bench.config.agents["claude"].command[0].as_bytes())
    };
    marked(&desk.bench.call.run).into_iter().find(is_it).unwrap()
}

/// The second attempt goes on, and is not told the task again.
async fn goes_on(mut desk: Desk) {
    desk.bench.call.attempt += 1;
    desk.bench.cx.stop = StopSignal::default();
    desk.script(json!([{"text": "finished"}]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "finished");
    assert_eq!(desk.continuity(), [Continuity::New, Continuity::Resumed]);
    let sent = desk.last_sent();
    assert!(sent.contains("echo begun"), "{sent}");
    assert_eq!(sent.matches(TASK).count(), 1, "{sent}");
    assert!(sent.contains("You were interrupted"), "{sent}");
}

// covers: S3, R5
#[tokio::test]
async fn killed_in_a_tool_it_goes_on_where_it_was() {
    let Some(desk) = slow() else { return };
    let story = async {
        in_the_tool(&desk).await;
        kill(program(&desk), Signal::KILL);
    };
    let outcome = desk.bench.run_with(story).await;
    // It cannot tell any more what it used; that was seen.
    desk.assert_usage(&outcome);
    let failure = outcome.failed(FailureClass::Lost).says("SIGKILL");
    assert!(failure.usage.cost_estimated && failure.usage.cost_usd > Some(0.0), "{:?}", failure.usage);
    goes_on(desk).await;
}

// covers: S3, R5
#[tokio::test]
async fn ended_from_outside_it_is_lost_and_goes_on() {
    let Some(desk) = slow() else { return };
    let story = async {
        in_the_tool(&desk).await;
        kill(program(&desk), Signal::TERM);
    };
    desk.bench.run_with(story).await.failed(FailureClass::Lost).says("143");
    goes_on(desk).await;
}

// covers: S4, R18
#[tokio::test]
async fn stopped_it_tells_what_it_used_and_goes_on() {
    let Some(desk) = slow() else { return };
    let story = async {
        in_the_tool(&desk).await;
        desk.bench.cx.stop.set(Stop::Graceful);
    };
    let outcome = desk.bench.run_with(story).await;
    desk.assert_usage(&outcome);
    outcome.stopped();
    goes_on(desk).await;
}

// covers: S4
#[tokio::test]
async fn stopped_at_once_it_is_gone_at_once() {
    let Some(desk) = slow() else { return };
    let story = async {
        in_the_tool(&desk).await;
        let pid = program(&desk);
        desk.bench.cx.stop.set(Stop::Now);
        until("the end", || !alive(pid)).await;
    };
    desk.bench.run_with(story).await.stopped();
}

// covers: S4
#[tokio::test]
async fn a_reminder_frees_it_from_a_request_that_hangs() {
    let Some(desk) = Desk::new(json!([{"hang": true}, {"text": "awake"}])) else { return };
    let story = async {
        until("the request", || desk.llm.prompts().len() == 1).await;
        desk.bench.cx.nudge.give();
    };
    let outcome = desk.bench.run_with(story).await;
    assert_eq!(outcome.succeeded(), "awake");
    assert!(desk.last_sent().contains("You seem to be stuck"));
}

// covers: S3, R18
#[tokio::test]
async fn a_fork_knows_all_and_changes_nothing() {
    let Some(mut desk) = Desk::new(json!([{"text": "a plan"}])) else { return };
    desk.bench.call.session = Some("plans".into());
    assert_eq!(desk.run().await.succeeded(), "a plan");
    let store = Store::new(desk.bench.path(".sessions"), Some(key()));
    store.fork("plans", "other-plans").unwrap();
    desk.bench.call.session = Some("other-plans".into());
    desk.bench.call.key = "other".into();
    desk.bench.call.params.insert("prompt".into(), "another task".into());
    desk.script(json!([{"text": "another plan"}]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "another plan");
    assert_eq!(desk.continuity(), [Continuity::New, Continuity::Forked]);
    let sent = desk.last_sent();
    assert!(sent.contains(TASK) && sent.contains("a plan") && sent.contains("another task"), "{sent}");
    let (old, new) = (store.load("plans").unwrap(), store.load("other-plans").unwrap());
    assert_ne!(old.conversation, new.conversation);
    // What it had cost before is not counted twice.
    assert!(new.usage.cost_usd.unwrap() < new.counters.unwrap().cost_usd.unwrap());
}

// covers: R3, S3
#[tokio::test]
async fn a_conversation_that_is_gone_is_told_again_once() {
    let Some(mut desk) = Desk::new(json!([{"text": "a plan"}])) else { return };
    desk.bench.call.session = Some("plans".into());
    assert_eq!(desk.run().await.succeeded(), "a plan");
    // Still there for whoever looks, but not for the program.
    let store = Store::new(desk.bench.path(".sessions"), Some(key()));
    let mut record = store.load("plans").unwrap();
    let lost = "00000000-0000-7000-8000-000000000000";
    record.conversation = Some(lost.into());
    store.save(&record, true).unwrap();
    let elsewhere = desk.bench.path(".home/.claude/projects/elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join(format!("{lost}.jsonl")), "{}\n").unwrap();
    desk.bench.call.key = "other".into();
    desk.bench.call.params.insert("prompt".into(), "another task".into());
    desk.script(json!([{"text": "another plan"}]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "another plan");
    assert_eq!(desk.continuity(), [Continuity::New, Continuity::Resumed, Continuity::Reloaded]);
    assert_eq!(store.load("plans").unwrap().reloads, 1);
    let sent = desk.last_sent();
    assert!(sent.contains("a plan") && sent.contains("another task"), "{sent}");
    assert_eq!(desk.llm.prompts().len(), 1);
}
