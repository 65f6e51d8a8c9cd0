//! The outcome table, row by row, with the real Claude Code.

use sage_core::policy::{Cause, FailureClass};
use sage_core::port::{Continuity, Refusal, StepOutcome, Usage};
use serde_json::{Value, json};

use crate::claude_desk::{Desk, TASK, bash, tool};

// covers: S1, R18
#[tokio::test]
async fn it_answers_and_only_what_was_ordered_reaches_the_model() {
    let usage = json!({"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 3});
    let Some(desk) = Desk::new(json!([{"text": "hello", "usage": usage}])) else { return };
    let mut desk = desk.param("system", "speak low".into());
    desk.bench.call.model = Some("claude-sonnet-4-5".into());
    // A server that the project brings along is not started.
    let planted =
        json!({"mcpServers": {"planted": {"command": "/bin/sh", "args": ["-c", "echo > planted"]}}});
    std::fs::write(desk.bench.path(".mcp.json"), planted.to_string()).unwrap();
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    let StepOutcome::Succeeded { usage, .. } = &outcome.0 else { panic!("{outcome:?}") };
    let seen = desk.bench.usages().pop().unwrap();
    assert_eq!(
        seen,
        Usage { cost_estimated: true, ..usage.clone() },
        "what was seen is what is told at the end"
    );
    assert!(usage.cost_usd.is_some_and(|cost| cost > 0.0) && !usage.cost_estimated);
    assert_eq!(usage.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(outcome.succeeded(), "hello");
    let prompts = desk.llm.prompts();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0]["model"], "claude-sonnet-4-5");
    assert!(prompts[0]["system"].to_string().contains("speak low"));
    assert!(desk.last_sent().contains(TASK));
    assert!(!desk.bench.path("planted").exists());
    assert_eq!(desk.continuity(), [Continuity::New]);
    let record = desk.session();
    assert_eq!((&record["contextTokens"], &record["turns"][0]["state"]), (&json!(19), &json!("done")));
    assert!(desk.bench.activity().contains("hello"));
}

#[tokio::test]
async fn an_answer_by_a_schema_is_the_structured_output() {
    let good = tool("StructuredOutput", json!({"n": 3}));
    let Some(desk) = Desk::new(json!([good])) else { return };
    let mut desk = desk.schema();
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), json!({"n": 3}));
    // The program itself takes only objects.
    desk.bench.call.schema = Some(json!({"type": "array", "items": {"type": "integer"}}));
    desk.bench.call.key = "other".into();
    desk.script(json!([tool("StructuredOutput", json!({"answer": [3]}))]));
    assert_eq!(desk.run().await.succeeded(), json!([3]));
}

#[tokio::test]
async fn an_answer_that_misses_its_schema_is_invalid() {
    let Some(desk) = Desk::new(json!([{"text": "three"}])) else { return };
    let desk = desk.schema();
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Invalid).because_of(Cause::Answer).says("structured output");
    desk.script(json!([tool("StructuredOutput", json!({"n": "three"}))]));
    let outcome = desk.run().await;
    assert_eq!(desk.llm.prompts().len(), 5);
    // It gives up while its last answer is still on its way, and may forget that one; it was seen all the same.
    desk.assert_usage_but_for_the_last_words(&outcome, 5);
    outcome.failed(FailureClass::Invalid).because_of(Cause::Answer).says("must be integer");
}

// covers: R18
#[tokio::test]
async fn its_own_limits_end_a_turn_with_a_reason() {
    let Some(desk) = Desk::new(json!([bash("true")])) else { return };
    let mut desk = desk.param("maxTurns", 1.into()).param("tools", json!(["Bash"]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Failed).because_of(Cause::Answer).says("max turns").says("`maxTurns`");
    desk.bench.call.params.remove("maxTurns");
    desk.bench.call.key = "other".into();
    let desk = desk.param("maxBudgetUsd", json!(0.000001));
    desk.script(json!([bash("true")]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Budget).says("`maxBudgetUsd`");
}

/// One endpoint that always says no, and how it is told.
async fn refused(status: u16, class: FailureClass, says: &str) {
    let Some(desk) = Desk::new(json!([{"status": status}])) else { return };
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(class).says(says);
    // Once, unless the interrupt came late.
    assert!(desk.llm.prompts().len() <= 2, "{status}: {}", desk.llm.prompts().len());
}

/// The number of requests is Claude Code's own: it silently leaves out features that an endpoint may not have, and
/// asks without a stream where there is a 404.
// covers: R7
#[tokio::test]
async fn requests_that_the_endpoint_rejects_are_terminal() {
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    for (turn, requests, says) in [
        (json!({"status": 400}), 6, "400"),
        (json!({"status": 404, "error": "not_found_error"}), 2, "model"),
        (json!({"status": 413}), 1, "too large"),
        (json!({"status": 400, "message": too_long}), 1, "too long"),
    ] {
        let Some(desk) = Desk::new(json!([turn])) else { return };
        let outcome = desk.run().await;
        desk.assert_usage(&outcome);
        outcome.failed(FailureClass::Invalid).because_of(Cause::Endpoint).says(says);
        assert_eq!(desk.llm.prompts().len(), requests, "{turn}");
    }
}

// covers: P9
#[tokio::test]
async fn a_wrong_key_is_told_with_what_to_do() {
    refused(401, FailureClass::Auth, "/login").await;
    refused(403, FailureClass::Auth, "ANTHROPIC_API_KEY").await;
    let Some(desk) = Desk::new(json!([{"text": "never"}])) else { return };
    let desk =
        desk.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_AUTH_TOKEN", "").env("CLAUDE_CODE_OAUTH_TOKEN", "");
    desk.run().await.failed(FailureClass::Auth).says("Not logged in");
    assert!(desk.llm.prompts().is_empty());
}

// covers: R7
#[tokio::test]
async fn troubles_that_pass_are_transient() {
    refused(500, FailureClass::Transient, "500").await;
    refused(529, FailureClass::Transient, "529").await;
    let Some(desk) = Desk::new(json!([])) else { return };
    let desk = desk.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    desk.run().await.failed(FailureClass::Transient);
}

// covers: R7
#[tokio::test]
async fn a_rate_limit_tells_when_to_come_back() {
    let slow_down = json!({"status": 429, "headers": {"retry-after": "17"}});
    let Some(desk) = Desk::new(json!([bash("true"), slow_down, {"text": "never"}])) else { return };
    let desk = desk.param("tools", json!(["Bash"]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    let failure = outcome.failed(FailureClass::RateLimit);
    assert_eq!(failure.refusal, Some(Refusal { retry_after_ms: Some(17_000), reset_at_ms: None }));
    assert_eq!(desk.llm.prompts().len(), 2);
}

// covers: R7
#[tokio::test]
async fn a_used_up_account_tells_when_it_is_filled_again() {
    let reset = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 3_600;
    let used_up = json!({"status": 429, "headers": {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": reset.to_string(),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "retry-after": "3600",
    }});
    let Some(desk) = Desk::new(json!([used_up])) else { return };
    let desk = desk.env("ANTHROPIC_API_KEY", "").env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-none");
    let failure = desk.run().await.failed(FailureClass::Quota).says("limit");
    assert_eq!(failure.refusal.unwrap().reset_at_ms, Some(reset * 1_000));
    desk.script(
        json!([{"status": 400, "message": "Your credit balance is too low to access the Anthropic API."}]),
    );
    desk.run().await.failed(FailureClass::Quota).says("no credit");
}

// covers: R18
#[tokio::test]
async fn the_use_of_a_subscription_is_told_before_it_is_used_up() {
    let reset = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 3_600;
    let headers = json!({
        "anthropic-ratelimit-unified-status": "allowed_warning",
        "anthropic-ratelimit-unified-reset": reset.to_string(),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-5h-utilization": "0.87",
        "anthropic-ratelimit-unified-5h-reset": reset.to_string(),
        "anthropic-ratelimit-unified-7d-utilization": "0.35",
        "anthropic-ratelimit-unified-7d-reset": (reset + 99_999).to_string(),
    });
    let Some(desk) = Desk::new(json!([{"text": "fine", "headers": headers}])) else { return };
    let desk = desk.env("ANTHROPIC_API_KEY", "").env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-none");
    assert_eq!(desk.run().await.succeeded(), "fine");
    assert_eq!(desk.bench.allowances(), [("5-hour".to_string(), 87), ("7-day".to_string(), 35)]);
}

#[tokio::test]
async fn a_refusal_and_an_empty_answer_are_no_answers() {
    let Some(desk) = Desk::new(json!([{"text": "no", "stopReason": "refusal"}])) else { return };
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Failed).because_of(Cause::Answer).says("refused");
    desk.script(json!([{"text": " \n "}]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Lost).because_of(Cause::Answer).says("empty answer");
}

// covers: R7
#[tokio::test]
async fn a_stream_that_breaks_is_mended_or_transient() {
    let Some(desk) = Desk::new(json!([{"text": "par", "midstreamError": "overloaded_error"}])) else {
        return;
    };
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    outcome.failed(FailureClass::Transient).says("mid-response");
    // It would be asked again after a moment; that is for the step's policy to decide.
    desk.script(json!([{"text": "par", "drop": true}]));
    desk.run().await.failed(FailureClass::Transient).says("connection");
    // A stream that breaks once is mended by the program itself.
    desk.script(json!([{"text": "par", "midstreamError": "overloaded_error"}, {"text": "whole"}]));
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "whole");
}

// covers: R14
#[tokio::test]
async fn an_endpoint_that_hangs_is_a_timeout() {
    let Some(mut desk) = Desk::new(json!([{"hang": true}])) else { return };
    desk.bench.call.idle_timeout_ms = Some(5_000);
    let failure = desk.run().await.failed(FailureClass::Timeout).says("no progress");
    assert!(failure.usage.is_empty(), "nobody knows what the request has used: {:?}", failure.usage);
}

// covers: P9
#[tokio::test]
async fn a_program_that_does_not_start_says_why() {
    let Some(mut desk) = Desk::new(json!([])) else { return };
    desk.config().command.push("--nonsense".into());
    let failure = desk.run().await.failed(FailureClass::Invalid).because_of(Cause::Setup);
    failure.says("unknown option '--nonsense'");
    desk.config().command = vec!["no-such-claude".into()];
    desk.run().await.failed(FailureClass::Invalid).says("`no-such-claude` was not found").says("npm install");
    assert!(desk.llm.prompts().is_empty());
}

impl Desk {
    /// The record of the only session.
    fn session(&self) -> Value {
        let folder = std::fs::read_dir(self.bench.path(".sessions")).unwrap().next().unwrap().unwrap().path();
        serde_json::from_slice(&std::fs::read(folder.join("session.json")).unwrap()).unwrap()
    }
}
