//! The scripted agent: its turns and every fault it knows, as real processes.

use std::time::{Duration, Instant};

use sage_core::policy::FailureClass;
use sage_core::port::{Level, Progress, QuotaSignal, Refusal, StepOutcome, Stop, Usage};
use serde_json::{Value, json};

use crate::bench::{Bench, sage, until};

fn fault(name: &str) -> Bench {
    Bench::fake(json!([{ "fault": name, "say": "so far" }]))
}

#[tokio::test]
async fn a_turn_says_writes_runs_and_answers() {
    let turn = json!({
        "say": "working", "write": {"docs/a.md": "text"}, "run": "echo noise; echo ran > ran",
        "usage": {"input": 10, "cacheRead": 5, "output": 2},
        "result": {"ok": true}, "claims": [{"subject": "x"}],
    });
    let bench = Bench::fake(json!([turn]));
    let StepOutcome::Succeeded { result, usage } = bench.run().await.0 else { panic!("no success") };
    assert_eq!(result, json!({"ok": true, "claims": [{"subject": "x"}]}));
    let expected = Usage { input: Some(10), cache_read: Some(5), output: Some(2), ..Usage::default() };
    assert_eq!(usage, expected);
    assert_eq!((bench.read("docs/a.md"), bench.read("ran")), ("text".to_string(), "ran\n".to_string()));
    assert_eq!(bench.usages(), [expected]);
}

// covers: P3
#[tokio::test]
async fn what_nobody_allows_is_not_done_and_the_agent_is_told() {
    let turn =
        json!({"ask": {"tool": "Bash", "input": {"command": "x"}}, "run": "echo ran > ran", "result": 1});
    let bench = Bench::fake(json!([turn]));
    assert_eq!(bench.run().await.succeeded(), 1);
    assert_eq!(bench.read("ran"), "");
    assert!(bench.read(".scratch/stdout.log").contains("denied: `Bash` is not allowed"));
}

// covers: R7
#[tokio::test]
async fn attempts_walk_through_the_turns() {
    let script = json!([{"fault": "overloaded"}, {"say": "second"}, {"result": 3}]);
    Bench::fake(script.clone()).run().await.failed(FailureClass::Transient);
    assert_eq!(Bench::fake(script.clone()).attempt(2).run().await.succeeded(), "second");
    assert_eq!(Bench::fake(script.clone()).attempt(3).run().await.succeeded(), 3);
    assert_eq!(Bench::fake(script).attempt(50).run().await.succeeded(), 3);
}

#[tokio::test]
async fn scripts_come_inline_as_text_or_from_a_file() {
    assert_eq!(Bench::fake(json!(r#"[{"say":"text"}]"#)).run().await.succeeded(), "text");
    let file = Bench::fake(json!("agent.json"));
    std::fs::write(file.path("agent.json"), r#"[{"say":"file"}]"#).unwrap();
    assert_eq!(file.run().await.succeeded(), "file");
    for (script, hint) in [
        (json!("missing.json"), "missing.json"),
        (json!([]), "no turn"),
        (json!([{"fault": "explode"}]), "explode"),
        (json!([{"typo": 1}]), "typo"),
        (Value::Null, "`script`"),
    ] {
        Bench::fake(script).run().await.failed(FailureClass::Invalid).says(hint);
    }
}

#[tokio::test]
async fn a_delay_is_kept() {
    let start = Instant::now();
    Bench::fake(json!([{"delayMs": 250, "say": "late"}])).run().await.succeeded();
    assert!(start.elapsed() >= Duration::from_millis(250));
}

#[tokio::test]
async fn a_script_of_a_stranger_cannot_write_outside() {
    for path in ["../x", "/tmp/sage-fake-x", "a/../../x"] {
        let bench = Bench::fake(json!([{ "write": {path: "x"} }]));
        bench.run().await.failed(FailureClass::Failed).says("is outside the project");
    }
    Bench::fake(json!([{"run": "exit 3"}])).run().await.failed(FailureClass::Failed).says("exit 3");
}

// covers: R7, S4
#[tokio::test]
async fn what_ends_without_one_result_is_not_a_success() {
    for (name, class, says) in [
        ("crash", FailureClass::Lost, "killed by SIGABRT"),
        ("garbage", FailureClass::Lost, "3 lines were not understood"),
        ("truncated", FailureClass::Lost, "1 lines were not understood"),
        ("silent-exit", FailureClass::Lost, "ended without a result"),
        ("double-result", FailureClass::Invalid, "two results"),
    ] {
        let failure = fault(name).run().await.failed(class).says(says);
        assert_eq!(failure.partial["text"], "so far", "{name}");
    }
    // A result, and then death: not trusted.
    let outcome = Bench::fake(json!([{"result": 1, "fault": "crash"}])).run().await;
    assert_eq!(outcome.failed(FailureClass::Lost).partial, json!({"result": 1}));
}

// covers: R7
#[tokio::test]
async fn errors_of_a_provider_keep_their_class_and_times() {
    for (name, class) in [
        ("rate-limit", FailureClass::RateLimit),
        ("quota", FailureClass::Quota),
        ("overloaded", FailureClass::Transient),
        ("auth", FailureClass::Auth),
    ] {
        let turn = json!({
            "fault": name, "retryAfterMs": 1500, "resetAt": "2030-01-01T00:00:00Z", "usage": {"input": 4},
        });
        let failure = Bench::fake(json!([turn])).run().await.failed(class).says(name);
        let reset_at_ms = Some(1_893_456_000_000);
        assert_eq!(failure.refusal, Some(Refusal { retry_after_ms: Some(1500), reset_at_ms }));
        assert_eq!(failure.partial, Value::Null);
        assert_eq!(failure.usage.input, Some(4));
        assert_eq!(fault(name).run().await.failed(class).refusal, None);
    }
    assert_eq!(fault("crash").run().await.failed(FailureClass::Lost).refusal, None);
}

// covers: R7
#[tokio::test]
async fn what_the_target_says_about_its_limits_is_passed_on() {
    let limits = json!({
        "requests": {"limit": 50, "left": 3, "resetAfterMs": 1200}, "inputTokens": {"limit": 1000, "left": 0},
    });
    for fault in [Value::Null, json!("overloaded")] {
        let bench = Bench::fake(json!([{ "limits": limits, "fault": fault, "say": "x" }]));
        bench.run().await;
        let signal = QuotaSignal {
            requests: Some(Level { limit: 50, left: 3, reset_after_ms: Some(1200) }),
            input_tokens: Some(Level { limit: 1000, left: 0, reset_after_ms: None }),
            output_tokens: None,
        };
        let progress = bench.progress.lock().unwrap();
        let told: Vec<QuotaSignal> = progress
            .iter()
            .filter_map(|it| match it {
                Progress::Quota(signal) => Some(*signal),
                _ => None,
            })
            .collect();
        assert_eq!(told, [signal]);
    }
}

fn used(input: u64, output: u64) -> Usage {
    Usage { input: Some(input), output: Some(output), ..Usage::default() }
}

#[tokio::test]
async fn usage_is_the_sum_of_all_responses() {
    let bench = Bench::fake(json!([{
        "responses": [
            {"say": "one, ", "usage": {"input": 100, "output": 10}},
            {"say": "two, ", "delayMs": 10},
            {"usage": {"input": 200, "output": 20}},
        ],
        "say": "three", "usage": {"input": 300, "output": 30},
    }]));
    let StepOutcome::Succeeded { result, usage } = bench.run().await.0 else { panic!("no success") };
    assert_eq!((result, &usage), (json!("three"), &used(600, 60)));
    assert_eq!(bench.usages(), [used(100, 10), used(300, 30), used(600, 60)]);
    // What was said last is the result.
    let last = Bench::fake(json!([{"responses": [{"say": "one"}, {"say": "two"}]}]));
    assert_eq!(last.run().await.succeeded(), "two");
}

// covers: R7
#[tokio::test]
async fn an_agent_can_be_stopped_between_two_responses() {
    let bench = Bench::fake(json!([{
        "responses": [
            {"say": "one", "usage": {"input": 100, "output": 10}},
            {"say": "never", "delayMs": 3_600_000, "usage": {"input": 1, "output": 1}},
        ],
    }]));
    let story = async {
        until("the first response", || !bench.usages().is_empty()).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    let outcome = bench.run_with(story).await.0;
    assert!(matches!(&outcome, StepOutcome::Stopped { usage } if *usage == used(100, 10)), "{outcome:?}");
}

#[tokio::test]
async fn a_beat_shows_progress_without_a_result() {
    let start = Instant::now();
    let bench = Bench::fake(json!([{"beatMs": 40, "beats": 5, "fault": "silent-exit"}]));
    assert_eq!(bench.run().await.failed(FailureClass::Lost).partial, json!({"text": "....."}));
    assert!(start.elapsed() >= Duration::from_millis(200));
    let alive = bench.progress.lock().unwrap().iter().filter(|it| matches!(it, Progress::Alive)).count();
    assert!(alive >= 2, "{alive}");
}

// covers: S4, R14
#[tokio::test]
async fn hanging_agents_are_noticed_and_deaf_ones_killed() {
    fault("hang").idle_timeout(300).run().await.failed(FailureClass::Timeout).says("idle");
    let start = Instant::now();
    let deaf = fault("ignore-term").timeout(600).grace(Duration::from_millis(300));
    deaf.run().await.failed(FailureClass::Timeout).says("timed out");
    assert!(start.elapsed() >= Duration::from_millis(900));
}

// covers: R20
#[tokio::test]
async fn a_flood_is_read_without_drowning_and_can_be_stopped() {
    let bench = fault("flood").output_cap(100_000);
    let log = bench.path(".scratch/stdout.log");
    let story = async {
        until("a full log", || std::fs::metadata(&log).is_ok_and(|it| it.len() == 100_000)).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    bench.run_with(story).await.stopped();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 100_000);
}

#[tokio::test]
async fn the_running_executable_is_its_own_keeper_and_agent() {
    let dir = tempfile::tempdir().unwrap();
    let mut own = tokio::process::Command::new(sage());
    let output = own.arg("own").arg(dir.path()).arg(r#"[{"result":[1]}]"#).output().await.unwrap();
    assert!(output.stdout.starts_with(b"[1] "), "{output:?}");
}
