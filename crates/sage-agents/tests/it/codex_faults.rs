//! The real codex in trouble: refusals, broken streams, kills, stops. Nothing is lost and nothing is left.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sage_core::policy::{Cause, FailureClass};
use sage_core::port::{Continuity, Refusal, Stop, Usage};
use serde_json::{Value, json};

use crate::bench::{kill, until};
use crate::codex_bench::Codex;

/// The command runs, and codex has written down what the answer before it used.
async fn is_counted(codex: &Codex) {
    codex.bench.pid("runs").await;
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let counted = || codex.thread_file().is_some_and(|path| read(path).contains("token_usage_record"));
    until("the usage is written down", counted).await;
}

/// A command that says that it runs and does not end.
fn long_command() -> Value {
    json!({"tool": {"name": "exec_command", "input": {"cmd": "echo $$ > runs; sleep 300"}},
        "usage": {"input_tokens": 100, "output_tokens": 10}})
}

fn unknown_model() -> Value {
    let error = json!({"type": "invalid_request_error", "code": "model_not_found",
        "message": "The model `x` does not exist"});
    json!({"status": 404, "body": {"error": error}})
}

// covers: R7
#[tokio::test]
async fn what_a_model_refuses_has_its_class() {
    let Some(mut codex) = Codex::new(json!([])) else { return };
    for (turn, class, says) in [
        (json!({"status": 400, "message": "no such field"}), FailureClass::Invalid, "no such field"),
        (unknown_model(), FailureClass::Invalid, "does not exist"),
        (json!({"status": 413, "message": "too large"}), FailureClass::Invalid, "too large"),
        (json!({"status": 401}), FailureClass::Auth, "codex login"),
        (json!({"status": 429}), FailureClass::RateLimit, "429"),
        (json!({"status": 500}), FailureClass::Transient, "high demand"),
        (json!({"drop": true, "text": "half an ans"}), FailureClass::Transient, "stream disconnected"),
        (json!({"failed": "server_error"}), FailureClass::Transient, "scripted failure"),
        (json!({"failed": "context_length_exceeded"}), FailureClass::Invalid, "context window"),
        (json!({"failed": "insufficient_quota"}), FailureClass::Quota, "Quota exceeded"),
    ] {
        codex.script(json!([turn]));
        codex.bench.call.key = turn.to_string();
        let failure = codex.run().await.failed(class).says(says);
        assert_eq!(codex.llm.prompts().len(), 1, "{turn}: it was tried again");
        assert_eq!(failure.cause, (class == FailureClass::Invalid).then_some(Cause::Endpoint), "{turn}");
        if matches!(class, FailureClass::Auth | FailureClass::RateLimit) {
            assert_eq!(failure.usage.total(), 0);
            assert_ne!(failure.usage, Usage::default(), "nothing was used, and that is known");
        }
    }
}

// covers: R7
#[tokio::test]
async fn a_used_up_quota_says_when_it_is_full_again() {
    let headers = json!({"x-codex-primary-used-percent": "100", "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "4102444800"});
    let refused = json!({"status": 429, "error": "usage_limit_reached", "headers": headers});
    let Some(codex) = Codex::new(json!([refused])) else { return };
    let failure = codex.run().await.failed(FailureClass::Quota).says("usage limit");
    assert_eq!(failure.refusal.and_then(|refusal| refusal.reset_at_ms), Some(4_102_444_800_000));
}

/// Without a header, only the words have the time: a minute of it, in codex's own time zone.
// covers: R7
#[tokio::test]
async fn a_used_up_quota_may_say_so_in_words_only() {
    let body =
        |at: Value| json!({"error": {"type": "usage_limit_reached", "message": "no", "resets_at": at}});
    let refused = |at: u64| json!([{"status": 429, "body": body(at.into())}]);
    let Some(mut codex) = Codex::new(refused(4_102_444_801)) else { return };
    for zone in ["UTC", "Asia/Kolkata"] {
        codex.bench.config.agents.get_mut("codex").unwrap().env.insert("TZ".into(), zone.into());
        codex.bench.call.key = zone.into();
        let failure = codex.run().await.failed(FailureClass::Quota).says("ry again at Jan 1st, 2100");
        assert_eq!(failure.refusal.unwrap().reset_at_ms, Some(4_102_444_860_000), "{zone}");
    }
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    codex.script(refused(now_s + 60));
    codex.bench.call.key = "soon".into();
    let reset = codex.run().await.failed(FailureClass::Quota).refusal.unwrap().reset_at_ms.unwrap() / 1_000;
    assert!((now_s + 60..=now_s + 120).contains(&reset), "{reset} and {now_s}");
}

// covers: R18
#[tokio::test]
async fn the_use_of_the_account_is_told_before_it_is_used_up() {
    let headers = json!({"x-codex-primary-used-percent": "62", "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "4102444800", "x-codex-secondary-used-percent": "12",
        "x-codex-secondary-window-minutes": "10080", "x-codex-secondary-reset-at": "4102444800"});
    let Some(codex) = Codex::new(json!([{"text": "fine", "headers": headers}])) else { return };
    codex.answers().await;
    assert_eq!(codex.bench.allowances(), [("5-hour".to_string(), 62), ("7-day".to_string(), 12)]);
}

/// Codex tells its events not how long it was asked to wait, but its log does.
// covers: R7
#[tokio::test]
async fn a_rate_limit_is_told_with_the_time_that_the_endpoint_named() {
    let slow_down = json!({"status": 429, "headers": {"retry-after": "7"}});
    let Some(codex) = Codex::new(json!([slow_down])) else { return };
    let codex = codex.tries_again(5);
    let failure = codex.run().await.failed(FailureClass::RateLimit).says("exceeded retry limit");
    assert!(failure.message.starts_with("exceeded"), "{}", failure.message);
    assert_eq!(codex.llm.prompts().len(), 1);
    let Refusal { retry_after_ms, reset_at_ms } = failure.refusal.unwrap();
    assert!(retry_after_ms.is_some_and(|ms| (6_900..=7_000).contains(&ms)), "{retry_after_ms:?}");
    assert_eq!(reset_at_ms, None);
    // What makes codex log is not seen by the commands that it runs.
    let look = json!({"tool": {"name": "exec_command", "input": {"cmd": "echo \"log: $RUST_LOG.\" > seen"}}});
    codex.script(json!([look, {"text": "done"}]));
    assert_eq!(codex.answers().await.0, "done");
    assert_eq!(codex.bench.read("seen"), "log: .\n");
}

/// Who has settings of their own for the environment of commands keeps them, and codex does the waiting.
// covers: R7
#[tokio::test]
async fn without_its_log_codex_waits_itself() {
    let slow_down = json!({"status": 429, "headers": {"retry-after": "2"}});
    let Some(codex) = Codex::new(json!([slow_down, {"text": "done"}])) else { return };
    let codex = codex.tries_again(5);
    let own = "[shell_environment_policy]\nexclude = [\"MINE\"]\n";
    std::fs::write(codex.home.path().join("config.toml"), own).unwrap();
    assert_eq!(codex.answers().await.0, "done");
    let times: Vec<u64> = codex.llm.requests().iter().map(|request| request["t"].as_u64().unwrap()).collect();
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] >= 1_900, "{times:?}");
}

// covers: R7
#[tokio::test]
async fn a_refusal_is_not_tried_again_behind_the_engines_back() {
    let Some(mut codex) = Codex::new(json!([{"status": 429}])) else { return };
    codex = codex.tries_again(5);
    codex.run().await.failed(FailureClass::RateLimit).says("429");
    assert!(codex.llm.prompts().len() <= 2, "{} requests", codex.llm.prompts().len());
    for (status, class) in [(413, FailureClass::Invalid), (401, FailureClass::Auth)] {
        codex.script(json!([{"status": status}]));
        codex.bench.call.key = status.to_string();
        let failure = codex.run().await.failed(class);
        assert!(failure.message.starts_with("unexpected status"), "{}", failure.message);
        // The next one may be on its way when codex is told to end.
        assert!(codex.llm.prompts().len() <= 2, "{status}: {} requests", codex.llm.prompts().len());
    }
    // A broken stream is the business of codex: it goes on where it was.
    codex.script(json!([{"drop": true, "text": "half"}, {"text": "whole"}]));
    assert_eq!(codex.answers().await.0, "whole");
}

// covers: S4
#[tokio::test]
async fn a_model_that_is_silent_is_noticed() {
    let Some(mut codex) = Codex::new(json!([{"hang": true}])) else { return };
    codex.bench.call.idle_timeout_ms = Some(4_000);
    let failure = codex.run().await.failed(FailureClass::Timeout).says("no progress");
    assert_eq!(failure.usage, Usage::default());
}

#[tokio::test]
async fn without_a_network_it_does_not_wait_for_ever() {
    let Some(codex) = Codex::new(json!([])) else { return };
    let Codex { llm, bench, home } = codex;
    drop(llm);
    let start = Instant::now();
    bench.run().await.failed(FailureClass::Transient).says("no network");
    assert!(start.elapsed() < Duration::from_secs(25));
    drop(home);
}

// covers: R5, S3, R18
#[tokio::test]
async fn killed_in_the_middle_of_a_command_it_goes_on_where_it_was() {
    let Some(mut codex) = Codex::new(json!([long_command(), {"text": "done"}])) else { return };
    let story = async {
        is_counted(&codex).await;
        kill(codex.pid().unwrap(), Signal::KILL);
    };
    let failure = codex.bench.run_with(story).await.failed(FailureClass::Lost);
    // What the answered request used is known although nobody told it at the end.
    assert_eq!((failure.usage.input, failure.usage.output), (Some(100), Some(10)));
    codex.again();
    let (answer, used) = codex.answers().await;
    assert_eq!((answer, codex.continuity()), (json!("done"), Some(Continuity::Resumed)));
    let mut sum = failure.usage;
    sum.add(&used);
    assert_eq!(sum.tokens(), codex.llm.sent_usage());
    let last = codex.last_input();
    assert!(last.contains("the first task") && last.contains("You were interrupted"), "{last}");
    assert!(last.contains("function_call") && last.contains("sleep 300"), "{last}");
}

// covers: R5, S3
#[tokio::test]
async fn stopped_it_ends_at_once_and_goes_on_later() {
    let Some(mut codex) = Codex::new(json!([long_command(), {"text": "done"}])) else { return };
    let story = async {
        codex.bench.pid("runs").await;
        codex.bench.cx.stop.set(Stop::Graceful);
    };
    codex.bench.run_with(story).await.stopped();
    codex.bench.cx.stop = Default::default();
    codex.again();
    assert_eq!(codex.answers().await.0, "done");
    assert_eq!(codex.continuity(), Some(Continuity::Resumed));
    assert!(codex.last_input().contains("sleep 300"));
}

// covers: R5, S3
#[tokio::test]
async fn an_owner_that_dies_leaves_a_conversation_that_goes_on() {
    let Some(mut codex) = Codex::new(json!([long_command(), {"text": "done"}])) else { return };
    let mut running = codex.start();
    tokio::select! {
        outcome = &mut running => panic!("{outcome:?}"),
        () = is_counted(&codex) => {}
    }
    drop(running);
    let run = codex.bench.call.run.clone();
    until("everything of it is gone", || crate::bench::marked(&run).is_empty()).await;
    codex.again();
    let (answer, used) = codex.answers().await;
    // Nobody was left to hear of the first answer: it is told now, as what the first attempt used.
    let (attempt, mut sum) = codex.bench.lost().pop().expect("what the first attempt used");
    assert_eq!((attempt, sum.input), (1, Some(100)));
    sum.add(&used);
    assert_eq!((answer, sum.tokens()), (json!("done"), codex.llm.sent_usage()));
    assert_eq!(codex.continuity(), Some(Continuity::Resumed));
    assert!(codex.last_input().contains("sleep 300"));
}

// covers: R3, S3
#[tokio::test]
async fn a_thread_that_codex_does_not_know_is_told_again() {
    let Some(mut codex) = Codex::new(json!([{"text": "noted"}])) else { return };
    codex.task("remember kiwi");
    codex.answers().await;
    // Codex says so itself: the file is there, and empty, as after a power cut.
    std::fs::write(codex.thread_file().unwrap(), "").unwrap();
    codex.task("which word?");
    codex.answers().await;
    assert_eq!(codex.continuity(), Some(Continuity::Reloaded));
    // Gone without a trace: nobody has to ask codex.
    std::fs::remove_dir_all(codex.home.path().join("sessions")).unwrap();
    codex.task("and now?");
    codex.answers().await;
    assert_eq!(codex.continuity(), Some(Continuity::Reloaded));
    let last = codex.last_input();
    assert!(
        last.contains("remember kiwi") && last.contains("which word?") && last.contains("and now?"),
        "{last}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_is_told() {
    let Some(mut codex) = Codex::new(json!([{"text": "not json"}])) else { return };
    codex.bench.call.schema = Some(json!({"type": "object"}));
    codex.run().await.failed(FailureClass::Invalid).says("the answer is not JSON: not json");
    let mut agent = codex.bench.config.agents["codex"].clone();
    agent.command.extend(["-c".into(), "model_reasoning_effort=7".into()]);
    codex.bench.config.agents.insert("codex".into(), agent);
    codex.bench.call.key = "other".into();
    codex.run().await.failed(FailureClass::Invalid).says("model_reasoning_effort");
    assert_eq!(codex.llm.prompts().len(), 1);
}
