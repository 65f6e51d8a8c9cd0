//! What every client does: all 13 tools, a run that outlasts a time-out, a question, a cancelled and resumed run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::dsl::Sage;

/// Runs until `go` is there.
const SLOW: &str = r#"
name: slow
phases:
  - id: p
    operations: { id: slow, type: shell, params: { run: "echo up > up; until [ -e go ]; do sleep 0.02; done; echo slow" } }
  - id: q
    dependencies: [p]
    operations: { id: last, type: shell, params: { run: "echo the-last-word" } }
"#;

const ASK: &str = r#"
name: ask
phases:
  - id: p
    operations: { id: color, type: approval, params: { message: "Which color?", choices: [blue, green] } }
"#;

pub fn project() -> Sage {
    Sage::new().template("slow", SLOW).template("ask", ASK)
}

/// What an answer must hold.
#[derive(Clone, Debug)]
pub enum Expected {
    /// This text somewhere in its JSON.
    Has(&'static str),
    /// The client gives up.
    TimesOut,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub tool: &'static str,
    pub arguments: Value,
    pub expected: Expected,
    /// Called again until the status is this.
    pub until: Option<&'static str>,
    /// Lets the slow run end before the call.
    pub lets_go: bool,
}

fn step(tool: &'static str, arguments: Value, has: &'static str) -> Step {
    Step { tool, arguments, expected: Expected::Has(has), until: None, lets_go: false }
}

pub fn steps() -> Vec<Step> {
    let long = json!({"feature": "long", "waitMs": 40_000});
    vec![
        step("sage_workflow_validate", json!({"template": "slow"}), r#""valid":true"#),
        step(
            "sage_workflow_execute",
            json!({"feature": "long", "template": "slow", "waitMs": 200}),
            r#""status":"running""#,
        ),
        Step { expected: Expected::TimesOut, ..step("sage_workflow_status", long, "") },
        step("sage_workflow_list", json!({}), r#""feature":"long""#),
        Step {
            until: Some("completed"),
            lets_go: true,
            ..step(
                "sage_workflow_status",
                json!({"feature": "long", "waitMs": 1000}),
                r#""status":"completed""#,
            )
        },
        step("sage_result", json!({"feature": "long", "step": "q/last"}), "the-last-word"),
        step("sage_workflow_execute", json!({"feature": "asks", "template": "ask"}), r#""status":"paused""#),
        step("sage_workflow_cancel", json!({"feature": "asks"}), r#""success":true"#),
        step("sage_workflow_resume", json!({"feature": "asks"}), r#""status":"paused""#),
        step("sage_inbox", json!({}), "Which color?"),
        // Only a person can: none of these clients has one in front of it.
        step(
            "sage_inbox",
            json!({"action": "answer", "feature": "asks", "choice": "blue"}),
            "WORKFLOW_CONFLICT",
        ),
        step("sage_workflow_status", json!({"feature": "asks"}), r#""status":"paused""#),
        step("sage_session", json!({}), r#""sessions":[]"#),
        step("sage_handoff", json!({}), r#""handoffs":[]"#),
        step("sage_skill", json!({}), r#""skills":[]"#),
        step("sage_tools_search", json!({"query": "anything"}), r#""total":0"#),
        step("sage_code_run", json!({"code": "export default 40 + 2"}), r#""value":42"#),
    ]
}

/// How often a client may ask again.
pub const TRIES: u32 = 30;

/// For a client that reads it from a file.
pub fn script(sage: &Sage, timeout_ms: u64) -> Vec<Value> {
    let told = |step: &Step| {
        let mut told = json!({"tool": step.tool, "arguments": step.arguments});
        if matches!(step.expected, Expected::TimesOut) {
            told["timeoutMs"] = timeout_ms.into();
        }
        if step.lets_go {
            told["write"] = json!(sage.path("go"));
        }
        if let Some(until) = step.until {
            told["until"] = until.into();
            told["tries"] = TRIES.into();
        }
        told
    };
    steps().iter().map(told).collect()
}

/// Every tool that the server lists is in the story.
pub fn check_complete(listed: &[String]) {
    let played: BTreeSet<&str> = steps().iter().map(|step| step.tool).collect();
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    assert_eq!(listed.len(), 13, "{listed:?}");
    assert_eq!(played, listed);
}

/// An answer as the client understood it: its structured content, or `{"failed": why}`.
#[track_caller]
pub fn check(step: &Step, answer: &str) {
    let short: String = answer.chars().take(600).collect();
    match step.expected {
        Expected::Has(text) => assert!(answer.contains(text), "{}: no {text} in {short}", step.tool),
        Expected::TimesOut => assert!(
            answer.contains("timed out"),
            "{}: the client did not lose its patience: {short}",
            step.tool
        ),
    }
}
