//! Any program as an agent.

use sage_agents::AgentConfig;
use sage_core::policy::FailureClass;
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

#[tokio::test]
async fn configured_agents_are_found_by_name() {
    let parrot = AgentConfig {
        name: "parrot".into(),
        adapter: "command".into(),
        command: vec!["sh".into(), "-c".into(), "echo \"$VOICE: $(cat)\"".into()],
        env: [("VOICE".to_string(), "high".to_string())].into(),
    };
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "polly"})).agent(parrot.clone());
    bench.call.agent = Some("parrot".into());
    assert_eq!(bench.run().await.succeeded(), "high: polly");

    bench.call.agent = Some("parot".into());
    let failure = bench.run().await.failed(FailureClass::Invalid).says("unknown agent `parot`");
    failure.says("`command`, `fake`, `parrot`");
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
