//! Any program as an agent.

use sage_agents::AgentConfig;
use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, StepOutcome, Usage};
use sage_core::template::Kind;
use serde_json::json;

use crate::bench::{Bench, mode};

#[tokio::test]
async fn the_prompt_goes_in_and_the_answer_comes_out() {
    let bench = Bench::command(&["sh", "-c", "cat; cmp - \"$SAGE_PROMPT\" </dev/null"], "hello");
    bench.run().await.failed(FailureClass::Failed);
    let bench = Bench::command(&["tr", "a-z", "A-Z"], "hello\n").param("system", json!("be loud"));
    assert_eq!(bench.run().await.succeeded(), "BE LOUD\n\nHELLO");
    assert_eq!(mode(&bench.path(".scratch/stdin.txt")), 0o600);
    let bench = Bench::command(&["sh", "-c", "cat \"$SAGE_PROMPT\""], "from the file");
    assert_eq!(bench.run().await.succeeded(), "from the file");
}

#[tokio::test]
async fn a_program_that_never_reads_blocks_nobody() {
    let bench = Bench::command(&["echo", "answered anyway"], &"long prompt ".repeat(100_000));
    assert_eq!(bench.run().await.succeeded(), "answered anyway");
}

#[tokio::test]
async fn json_is_parsed_when_a_schema_asks_for_it() {
    let script = r#"test -s "$SAGE_SCHEMA" && echo "{\"model\":\"$SAGE_MODEL\"}""#;
    let mut bench = Bench::command(&["sh", "-c", script], "go");
    bench.call.schema = Some(json!({"type": "object"}));
    bench.call.model = Some("small".into());
    assert_eq!(bench.run().await.succeeded(), json!({"model": "small"}));
    bench.call.schema = None;
    bench.run().await.failed(FailureClass::Failed);
}

// covers: S2
#[tokio::test]
async fn exit_0_without_an_answer_is_not_a_success() {
    for program in [&["true"][..], &["printf", " \\n\\n"]] {
        let outcome = Bench::command(program, "go").run().await;
        outcome.failed(FailureClass::Lost).says("ended without a result");
    }
    let cut = Bench::command(&["seq", "1000"], "go").output_cap(100);
    cut.run().await.failed(FailureClass::Invalid).says("too long");
    let failure = Bench::command(&["sh", "-c", "echo half; exit 9"], "go").run().await;
    assert_eq!(failure.failed(FailureClass::Failed).partial, "half\n");
}

fn last_word(note: serde_json::Value, code: u32) -> Bench {
    let script = r#"echo half; echo "warming up" >&2; printf '%s\n' "$NOTE" >&2; exit "$CODE""#;
    let env = json!({"NOTE": note.to_string(), "CODE": code.to_string()});
    Bench::command(&["sh", "-c", script], "go").param("env", env)
}

// covers: R7
#[tokio::test]
async fn a_program_says_why_it_failed_and_when_to_try_again() {
    for (name, class) in [
        ("rate-limit", FailureClass::RateLimit),
        ("quota", FailureClass::Quota),
        ("overloaded", FailureClass::Transient),
        ("auth", FailureClass::Auth),
        ("invalid", FailureClass::Invalid),
        ("moody", FailureClass::Failed),
    ] {
        let note = json!({"sage": {
            "class": name, "message": "not now", "retryAfterMs": 1500, "resetAt": "2030-01-01T00:00:00Z",
            "usage": {"input": 7, "costUsd": 0.5},
        }});
        // Who says that it has failed has failed, whatever its exit code says.
        for code in [1, 75, 0] {
            let failure = last_word(note.clone(), code).run().await.failed(class);
            let reset_at_ms = Some(1_893_456_000_000);
            assert_eq!(failure.refusal, Some(Refusal { retry_after_ms: Some(1500), reset_at_ms }));
            assert_eq!(failure.usage, Usage { input: Some(7), cost_usd: Some(0.5), ..Usage::default() });
            assert_eq!(failure.partial, "half\n");
            failure.says(&format!("{name}: not now"));
        }
    }
    let failure = last_word(json!({"sage": {"class": "auth"}}), 3).run().await.failed(FailureClass::Auth);
    assert_eq!((failure.message.as_str(), failure.refusal), ("auth: exit code 3: warming up", None));
}

// covers: R7
#[tokio::test]
async fn exit_75_is_a_passing_failure() {
    let failure = Bench::command(&["sh", "-c", "echo busy >&2; exit 75"], "go").run().await;
    let failure = failure.failed(FailureClass::Transient).says("exit code 75: busy");
    assert_eq!(failure.refusal, None);
    // Shell steps know nothing of that.
    Bench::shell("exit 75").run().await.failed(FailureClass::Failed);
}

#[tokio::test]
async fn a_program_says_what_it_has_used() {
    let usage = json!({"input": 900, "cacheRead": 50, "cacheWrite": 5, "output": 40, "reasoning": 4});
    let expected = Usage {
        input: Some(900),
        cache_read: Some(50),
        cache_write: Some(5),
        output: Some(40),
        reasoning: Some(4),
        ..Usage::default()
    };
    let note = json!({ "sage": { "usage": usage } });
    let outcome = last_word(note.clone(), 0).run().await.0;
    let StepOutcome::Succeeded { result, usage } = outcome else { panic!("{outcome:?}") };
    assert_eq!((result, usage), (json!("half"), expected.clone()));
    let failure = last_word(note, 2).run().await.failed(FailureClass::Failed);
    assert_eq!((failure.message.as_str(), failure.usage), ("exit code 2: warming up", expected));
    // Not the last line: ordinary output.
    let script = r#"echo '{"sage":{"class":"auth","usage":{"input":1}}}' >&2; echo done >&2; echo fine"#;
    let outcome = Bench::command(&["sh", "-c", script], "go").run().await.0;
    assert!(matches!(outcome, StepOutcome::Succeeded { usage, .. } if usage.is_empty()));
}

// covers: S4
#[tokio::test]
async fn what_was_used_before_a_timeout_counts() {
    let script = r#"echo '{"sage":{"class":"auth","usage":{"input":9}}}' >&2; sleep 3600"#;
    let failure = Bench::command(&["sh", "-c", script], "go").timeout(1_000).run().await;
    let failure = failure.failed(FailureClass::Timeout).says("timed out");
    assert_eq!(failure.usage.input, Some(9));
}

#[tokio::test]
async fn configured_agents_are_found_by_name() {
    let parrot = AgentConfig {
        name: "parrot".into(),
        adapter: "command".into(),
        command: vec!["sh".into(), "-c".into(), "echo \"$VOICE: $(cat)\"".into()],
        env: [("VOICE".to_string(), "high".to_string())].into(),
        ..AgentConfig::default()
    };
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "polly"})).agent(parrot.clone());
    bench.call.agent = Some("parrot".into());
    assert_eq!(bench.run().await.succeeded(), "high: polly");

    bench.call.agent = Some("parot".into());
    let failure = bench.run().await.failed(FailureClass::Invalid).says("unknown agent `parot`");
    failure.says("`command`, `fake`, `foreign`, `gemini`, `offline`, `parrot`");
    bench.call.agent = None;
    bench.run().await.failed(FailureClass::Invalid).says("no agent is named");
    let mut odd = Bench::new(Kind::Agent, json!({"prompt": "x"})).agent(AgentConfig {
        name: "odd".into(),
        adapter: "telepathy".into(),
        ..parrot
    });
    odd.call.agent = Some("odd".into());
    odd.run().await.failed(FailureClass::Invalid).says("`telepathy`");
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    for (params, hint) in [
        (json!({"prompt": "x"}), "`command`"),
        (json!({"prompt": "x", "command": "cat"}), "`command`"),
        (json!({"command": ["cat"]}), "`prompt`"),
    ] {
        let mut bench = Bench::new(Kind::Agent, params);
        bench.call.agent = Some("command".into());
        bench.run().await.failed(FailureClass::Invalid).says(hint);
    }
}
