//! The real codex, answering.

use sage_agents::AgentConfig;
use sage_agents::agent::{Auth, adapter};
use sage_core::port::{Continuity, Usage};
use sage_core::role::Role;
use serde_json::{Value, json};

use crate::bench::key;
use crate::claude_mcp::SERVER;
use crate::codex_bench::Codex;

fn command(command: &str) -> Value {
    json!({"tool": {"name": "exec_command", "input": {"cmd": command}}})
}

// covers: R18, S3
#[tokio::test]
async fn it_answers_uses_tools_and_tells_what_it_used() {
    let usage =
        |input: u64| json!({"input_tokens": input, "output_tokens": 20, "cached": 30, "reasoning": 5});
    let mut work = command("echo hello > made; cat made");
    work["usage"] = usage(100);
    let Some(mut codex) =
        Codex::new(json!([work, {"text": "it says {{last_tool_result}}", "usage": usage(170)}]))
    else {
        return;
    };
    codex.bench.call.params.insert("system".into(), "Be \"brief\".\nAlways.".into());
    let (answer, used) = codex.answers().await;
    assert!(answer.as_str().unwrap().contains("hello"), "{answer}");
    assert_eq!(codex.bench.read("made"), "hello\n");
    let expected = Usage {
        input: Some(210),
        cache_read: Some(60),
        cache_write: Some(0),
        output: Some(30),
        reasoning: Some(10),
        ..Usage::default()
    };
    assert_eq!((&used.tokens(), &codex.llm.sent_usage()), (&expected, &expected));
    // It tells no cost; the file tells the model that was asked for, which nobody knows a price of.
    assert_eq!((used.model.as_deref(), used.cost_estimated), (Some("fake-1"), true));
    assert_eq!(used.unpriced["fake-1"], "gpt-5.5-pro");
    // What it used was known before it had ended.
    assert_eq!(codex.bench.usages().first().and_then(|usage| usage.input), Some(70));
    assert_eq!(codex.continuity(), Some(Continuity::New));
    let log = codex.bench.activity();
    assert!(log.contains("> shell echo hello > made"), "{log}");
    let first = codex.llm.prompts()[0].to_string();
    assert!(first.contains("the first task") && first.contains(r#"Be \"brief\".\nAlways."#));
}

// covers: S3, R3, R18
#[tokio::test]
async fn a_conversation_goes_on_and_each_turn_is_charged_its_own() {
    let turn = |text: &str, input: u64, cached: u64| {
        let usage = json!({"input_tokens": input, "output_tokens": 9, "cached": cached, "reasoning": 4,
            "cacheCreationInputTokens": 3});
        json!({"text": text, "usage": usage})
    };
    let script = json!([turn("one", 100, 10), turn("two", 250, 100), turn("three", 400, 300)]);
    let Some(mut codex) = Codex::new(script) else { return };
    let mut sum = Usage::default();
    for (number, (prompt, cached)) in [("alpha", 10), ("beta", 100), ("gamma", 300)].into_iter().enumerate() {
        codex.bench.call.params.insert("system".into(), format!("system {}", number / 2).into());
        codex.task(prompt);
        let (_, used) = codex.answers().await;
        assert_eq!((used.cache_read, used.cache_write, used.output), (Some(cached), Some(3), Some(5)));
        sum.add(&used);
    }
    assert_eq!(sum.tokens(), codex.llm.sent_usage());
    assert_eq!(codex.continuity(), Some(Continuity::Resumed));
    let last = codex.last_input();
    for part in ["alpha", "one", "beta", "two", "gamma"] {
        assert!(last.contains(part), "`{part}` is not in {last}");
    }
    // A system prompt is told once; another one is told, too.
    assert_eq!((last.matches("system 0").count(), last.matches("system 1").count()), (1, 1));
    let session: Value = serde_json::from_str(&codex.bench.read(".sessions/talk/session.json")).unwrap();
    assert_eq!(session["contextTokens"], 409);
}

// covers: S3
#[tokio::test]
async fn a_fork_knows_what_its_origin_knew_and_is_charged_its_own() {
    let usage = json!({"input_tokens": 100, "output_tokens": 9});
    let Some(mut codex) = Codex::new(json!([{"text": "noted", "usage": usage}])) else { return };
    codex.task("remember the word kiwi");
    codex.answers().await;
    let store = sage_agents::session::Store::new(codex.bench.path(".sessions"), Some(key()));
    store.fork("talk", "copy").unwrap();
    // The origin goes on before the fork begins.
    codex.task("and the word plum");
    codex.answers().await;
    codex.task("which word?");
    codex.bench.call.session = Some("copy".into());
    let (_, used) = codex.answers().await;
    assert_eq!((used.input, used.output), (Some(100), Some(9)));
    assert_eq!(codex.continuity(), Some(Continuity::Forked));
    assert!(codex.last_input().contains("kiwi"));
    let conversations = ["talk", "copy"].map(|id| store.load(id).unwrap().conversation.unwrap());
    assert_ne!(conversations[0], conversations[1]);
}

#[tokio::test]
async fn an_answer_in_json_is_read_as_such() {
    let Some(mut codex) = Codex::new(json!([{"text": "{\"ok\": true}"}])) else { return };
    let closed = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
        "additionalProperties": false});
    codex.bench.call.schema = Some(closed.clone());
    assert_eq!(codex.answers().await.0, json!({"ok": true}));
    assert_eq!(codex.llm.prompts()[0]["text"]["format"]["schema"], closed);
    // What the decoder would refuse is told in words.
    let wide = json!({"type": "object", "required": ["ok"]});
    codex.bench.call.schema = Some(wide.clone());
    codex.bench.call.key = "another".into();
    assert_eq!(codex.answers().await.0, json!({"ok": true}));
    assert!(codex.llm.prompts()[1].get("text").is_none());
    assert!(codex.last_input().contains("fits this JSON Schema"));
}

// covers: S6
#[tokio::test]
async fn a_role_that_may_not_write_cannot() {
    let write = command("echo x > made; echo x > docs/made; echo tried");
    let Some(mut codex) = Codex::new(json!([write, {"text": "{{last_tool_result}}"}])) else { return };
    std::fs::create_dir(codex.bench.path("docs")).unwrap();
    codex.bench.call.role = Some(Role::Auditor);
    let (answer, _) = codex.answers().await;
    assert!(answer.as_str().unwrap().contains("tried"), "{answer}");
    assert!(!codex.bench.path("made").exists() && !codex.bench.path("docs/made").exists());
    // In the same conversation, a planner may write plans and nothing else.
    codex.script(json!([write, {"text": "{{last_tool_result}}"}]));
    codex.bench.call.role = Some(Role::Planner);
    codex.bench.call.feedback = Some("write it down".into());
    let (answer, _) = codex.answers().await;
    assert!(answer.as_str().unwrap().contains("tried"), "{answer}");
    assert!(codex.bench.path("docs/made").exists(), "{answer}");
    assert!(!codex.bench.path("made").exists());
}

// covers: S6, P9
#[tokio::test]
async fn it_uses_the_mcp_servers_that_it_was_given_as_far_as_its_role_goes() {
    let Some(mut codex) = Codex::new(json!([])) else { return };
    let server = json!({"command": "/bin/sh", "args": ["-c", SERVER]});
    codex.bench.config.agents.get_mut("codex").unwrap().mcp_servers.insert("good".into(), server);
    for (role, tool, is_allowed) in
        [(Role::Implementer, "say", true), (Role::Auditor, "look", true), (Role::Auditor, "say", false)]
    {
        let call = json!({"tool": {"name": tool, "namespace": "mcp__good", "input": {}}});
        codex.script(json!([call, {"text": "done"}]));
        codex.bench.call.role = Some(role);
        codex.bench.call.key = format!("{role} {tool}");
        codex.answers().await;
        let said = codex.last_input();
        assert_eq!(said.contains("the word"), is_allowed, "{role} {tool}: {said}");
    }
}

#[tokio::test]
async fn a_probe_knows_the_program_its_version_and_the_login() {
    let Some(codex) = Codex::new(json!([])) else { return };
    let mut config = codex.bench.config.agents["codex"].clone();
    config.command.truncate(1);
    let adapter = adapter("codex").unwrap();
    let probe = adapter.probe(&config).await;
    assert!(probe.version.as_ref().is_some_and(|version| version.starts_with("0.")), "{probe:?}");
    assert_eq!(probe.auth, Auth::Missing);
    assert!(probe.hint.is_some_and(|hint| hint.starts_with("codex login")));
    config.env.insert("CODEX_API_KEY".into(), "none".into());
    assert_eq!(adapter.probe(&config).await.auth, Auth::Ready);
    let missing = AgentConfig { command: vec!["/no/such/codex".into()], ..AgentConfig::default() };
    let probe = adapter.probe(&missing).await;
    assert_eq!((probe.found, probe.auth), (None, Auth::Unknown));
    assert!(probe.hint.is_some_and(|hint| hint.contains("npm install")));
}
