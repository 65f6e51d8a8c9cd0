//! A budget in dollars stops every agent, whatever its model is called, after at most one response too many.

use sage_agents::fake_llm::FakeLlm;
use sage_core::port::Usage;
use serde_json::json;

use super::{CLAUDE_MODEL, CODEX_MODEL, price, project, spend, tool, views};
use crate::dsl::{Outcome, Sage};

const CAP: f64 = 0.05;

fn step(id: &str, agent: &str, model: &str) -> String {
    let model = if model.is_empty() { String::new() } else { format!("model: '{model}', ") };
    let tools = if agent == "claude" { "tools: [Bash], " } else { "" };
    format!(
        "      - {{ id: {id}, type: agent, agent: {agent}, {model}params: {{ {tools}prompt: 'task of {id}' }} }}\n"
    )
}

fn template(steps: &str) -> String {
    format!("name: t\nphases:\n  - id: p\n    operations:\n{steps}")
}

fn output(tokens: u64) -> Usage {
    Usage { input: Some(0), output: Some(tokens), ..Usage::default() }
}

/// As many tokens of output as cost a little more than a cent.
fn cent(model: &str) -> u64 {
    (0.011 / price(model, &output(1_000_000)) * 1e6) as u64
}

fn paused(sage: &Sage) -> Outcome {
    let out = sage.sage("run x -t t --budget 0.05usd --json").exit(4);
    let status = sage.status("x");
    assert_eq!(
        (&status["status"], &status["pauseReason"]),
        (&json!("paused"), &json!("budget")),
        "{status:#}"
    );
    sage.assert_nothing_alive();
    out
}

/// One agent whose every response costs `cent(model)` and wants a tool: it is stopped after the one that goes over.
fn stops(agent: &str, named: &str, model: &str) {
    let tokens = cent(model);
    let script = json!([{"tool": tool(agent), "usage": spend(0, 0, 0, tokens)}]);
    let endpoint = FakeLlm::start(script).unwrap();
    let Some(sage) = project(&endpoint, &template(&step("one", agent, named))) else { return };
    let out = paused(&sage);
    let requests = endpoint.prompts().len();
    let told = out.json_lines().pop().unwrap();
    let (cost, _) = views::cost(&sage, "x", Some(&told));
    let (classes, unattributed) = views::tokens(&sage, "x");
    let each = price(model, &output(tokens));
    println!("{agent} {named:10} {model}: {requests} requests, ${cost} of ${CAP}, ${each} a response");
    assert_eq!(requests, 5, "four fit, the fifth goes over");
    assert_eq!((classes[3], unattributed), (tokens * requests as u64, 0));
    assert!((cost - each * requests as f64).abs() < 1e-5, "{cost}");
    assert!(cost > CAP && cost <= CAP + each, "{cost}");
}

// covers: R18
#[test]
fn claude_without_a_model_is_stopped_at_its_budget() {
    stops("claude", "", CLAUDE_MODEL);
}

// covers: R18
#[test]
fn claude_with_an_alias_is_stopped_at_its_budget() {
    stops("claude", "sonnet", "claude-sonnet-5-5");
    stops("claude", "haiku", "claude-haiku-5-5");
}

// covers: R18
#[test]
fn claude_with_the_name_of_a_model_is_stopped_at_its_budget() {
    stops("claude", "claude-opus-4-6", "claude-opus-4-6");
}

// covers: R18
#[test]
fn codex_is_stopped_at_its_budget() {
    stops("codex", "", CODEX_MODEL);
    stops("codex", "gpt-5.4", "gpt-5.4");
}

// covers: R18
#[test]
fn models_behind_http_are_stopped_at_their_budget() {
    stops("messages", "", "claude-sonnet-5-5");
    stops("responses", "", "gpt-5.4");
    stops("chat", "", "gpt-5.4-mini");
}

// covers: R18
#[test]
fn a_model_without_a_price_counts_as_the_dearest_of_its_provider_and_that_is_told() {
    let tokens = cent("gpt-5.5-pro");
    let script = json!([{"tool": tool("codex"), "usage": spend(0, 0, 0, tokens)}]);
    let endpoint = FakeLlm::start(script).unwrap();
    let Some(sage) = project(&endpoint, &template(&step("one", "codex", "house-model"))) else { return };
    let notice =
        "no price is known for model `house-model`; its cost is estimated at the price of `gpt-5.5-pro`";
    sage.sage("run x -t t --budget 0.05usd").exit(4).stdout_has(notice);
    assert_eq!(endpoint.prompts().len(), 5);
    let (cost, estimated) = views::cost(&sage, "x", None);
    assert!(estimated && cost <= CAP + 0.0111, "{cost}");
    let status = sage.status("x");
    assert!(status["notices"][0].as_str().unwrap().starts_with(notice), "{status:#}");
    sage.sage("budget x").exit(0).stderr_has(notice);
    sage.sage("status x").exit(0).stdout_has(notice);
}

/// Nine agents of five kinds, with responses of a fifth of a cent: at most one too many of each that runs.
// covers: R18, S4
#[test]
fn a_mix_of_nine_agents_is_stopped_at_its_budget() {
    let agents =
        ["claude", "codex", "messages", "responses", "chat", "claude", "codex", "messages", "claude"];
    let models = [
        CLAUDE_MODEL,
        CODEX_MODEL,
        "claude-sonnet-5-5",
        "gpt-5.4",
        "gpt-5.4-mini",
        CLAUDE_MODEL,
        CODEX_MODEL,
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    ];
    let steps: String = agents
        .iter()
        .enumerate()
        .map(|(at, agent)| step(&format!("s{at}"), agent, if at == 8 { "haiku" } else { "" }))
        .collect();
    let turns: Vec<_> = agents
        .iter()
        .zip(models)
        .enumerate()
        .map(|(at, (agent, model))| {
            json!({"match": format!("task of s{at}"), "tool": tool(agent), "usage": spend(0, 0, 0, cent(model) / 5)})
        })
        .collect();
    let endpoint = FakeLlm::start(json!(turns)).unwrap();
    let Some(sage) = project(&endpoint, &template(&steps)) else { return };
    let out = sage.sage("run x -t t --budget 0.05usd --json").exit(4);
    let (cost, _) = views::cost(&sage, "x", out.json_lines().last());
    let (classes, unattributed) = views::tokens(&sage, "x");
    let status = sage.status("x");
    let begun =
        status["steps"].as_array().unwrap().iter().filter(|step| step["attempts"].as_u64() > Some(0)).count();
    println!("nine agents: {begun} began, {} requests, ${cost} of ${CAP}", endpoint.prompts().len());
    assert_eq!((classes[3], unattributed), (endpoint.sent_usage().output.unwrap(), 0), "{status:#}");
    // Those that run may each have one response too many.
    assert!(cost >= 0.04 && cost <= CAP + begun as f64 * 0.0023, "{cost}");
    sage.assert_nothing_alive();
}

/// A response that goes over the budget and is the answer has been paid for: its step has succeeded.
// covers: R18
#[test]
fn the_answer_that_goes_over_the_budget_counts() {
    let answer = json!({"name": "StructuredOutput", "input": {"n": 3}});
    let script = json!([{"tool": answer, "usage": spend(0, 0, 0, 6 * cent(CLAUDE_MODEL))}]);
    let endpoint = FakeLlm::start(script).unwrap();
    let schema = "schema: { type: object, properties: { n: { type: integer } }, required: [n] }";
    let steps = format!("      - {{ id: one, type: agent, agent: claude, {schema}, prompt: go }}\n");
    let Some(sage) = project(&endpoint, &template(&steps)) else { return };
    sage.sage("run x -t t --budget 0.05usd --quiet").exit(0);
    assert_eq!(sage.results("x")[0]["results"]["one"], json!({"n": 3}));
    assert_eq!(endpoint.prompts().len(), 1);
    let (cost, _) = views::cost(&sage, "x", None);
    assert!(cost > CAP, "{cost}");
}

/// A subagent asks the model again and again without its agent; what it uses is only in its file until it is done.
// covers: R18
#[test]
fn the_subagents_of_claude_are_stopped_at_its_budget() {
    let tokens = cent(CLAUDE_MODEL);
    let delegate = json!({"name": "Agent", "input": {"description": "d", "prompt": "count on",
        "subagent_type": "general-purpose"}});
    let script = json!([
        {"match": "count on", "tool": tool("claude"), "usage": spend(0, 0, 0, tokens), "delayMs": 300},
        {"tool": delegate, "usage": spend(0, 0, 0, tokens), "times": 1},
        {"tool": tool("claude"), "usage": spend(0, 0, 0, tokens), "delayMs": 300},
    ]);
    let endpoint = FakeLlm::start(script).unwrap();
    let steps =
        "      - { id: one, type: agent, agent: claude, params: { tools: [Bash, Agent], prompt: go } }\n";
    let Some(sage) = project(&endpoint, &template(steps)) else { return };
    let out = paused(&sage);
    let told = out.json_lines().pop().unwrap();
    let (cost, _) = views::cost(&sage, "x", Some(&told));
    let requests = endpoint.prompts().len();
    println!("subagent: {requests} requests, ${cost} of ${CAP}");
    assert!(requests <= 6 && cost <= CAP + 0.0111, "{requests} requests, ${cost}");
}

/// Below the limit nobody is asked; the live usage of an agent has a price.
// covers: R17, R18
#[test]
fn claude_is_asked_nothing_while_little_has_been_spent() {
    let script = json!([
        {"tool": {"name": "Bash", "input": {"command": "sh -c 'echo ran >> ran'", "description": "run"}},
            "usage": spend(1_000, 0, 0, 10), "times": 3},
        {"text": "done", "usage": spend(1_000, 0, 0, 10)},
    ]);
    let endpoint = FakeLlm::start(script).unwrap();
    let steps = "      - { id: one, type: agent, agent: claude, prompt: go }\n";
    let Some(sage) = project(&endpoint, &template(steps)) else { return };
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    // Three responses cost $0.0126.
    sage.write("sage.toml", config.replace("tools = [\"Bash\"]", "underUsd = 0.5\ndeadline = \"1s\""));
    sage.sage("run x -t t --quiet").exit(0);
    assert_eq!(sage.lines("ran"), ["ran"; 3], "nobody was asked");
    sage.write("sage.toml", config.replace("tools = [\"Bash\"]", "underUsd = 0.006\ndeadline = \"1s\""));
    std::fs::remove_file(sage.path("ran")).unwrap();
    endpoint.reset(
        sage_agents::fake_llm::Script::try_from(json!([
            {"tool": {"name": "Bash", "input": {"command": "sh -c 'echo ran >> ran'", "description": "run"}},
                "usage": spend(1_000, 0, 0, 10), "times": 3},
            {"text": "done", "usage": spend(1_000, 0, 0, 10)},
        ]))
        .unwrap(),
    );
    sage.sage("run y -t t --quiet").exit(0);
    assert_eq!(sage.lines("ran"), ["ran"], "a person is asked once $0.006 are spent");
}
