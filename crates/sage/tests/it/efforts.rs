//! `effort` and `agentType`: applied by those who can, and told before the run by those who cannot.

use sage_agents::fake_llm::FakeLlm;
use serde_json::json;

use crate::dsl::Sage;
use crate::real_agents::project;

const STEP: &str = "name: t\nphases:\n  - id: p\n    operations: { id: one, type: agent, agent: AGENT, prompt: go, params: { PARAM } }\n";

fn template(agent: &str, param: &str) -> String {
    STEP.replace("AGENT", agent).replace("PARAM", param)
}

// covers: R16
#[test]
fn the_real_claude_and_codex_think_as_much_as_their_step_says() {
    for (agent, wanted, pointer, told) in [
        ("claude", "low", "/output_config/effort", "low"),
        ("claude", "minimal", "/output_config/effort", "low"),
        ("codex", "high", "/reasoning/effort", "high"),
        ("codex", "max", "/reasoning/effort", "xhigh"),
    ] {
        let model = FakeLlm::start(json!([{"text": "done"}])).unwrap();
        let Some(sage) = project(&model, &template(agent, &format!("effort: {wanted}"))) else { return };
        sage.sage("run x -t t --quiet").exit(0);
        let sent = model.prompts()[0].clone();
        assert_eq!(sent.pointer(pointer), Some(&json!(told)), "{agent} {wanted}: {sent}");
    }
}

// covers: R16
#[test]
fn the_real_claude_is_the_agent_that_its_step_names() {
    let model = FakeLlm::start(json!([{"text": "done"}])).unwrap();
    let Some(sage) = project(&model, &template("claude", "agentType: critic")) else { return };
    let critic = "---\nname: critic\ndescription: Finds faults\ntools: Read\n---\nSpare no albatross.\n";
    sage.write(".claude/agents/critic.md", critic);
    sage.sage("run x -t t --quiet").exit(0);
    let sent = model.prompts()[0].clone();
    assert!(sent["system"].to_string().contains("Spare no albatross."), "{}", sent["system"]);
    let tools: Vec<&str> =
        sent["tools"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(tools.contains(&"Read") && !tools.contains(&"Write"), "{tools:?}");
    sage.write(".sage/templates/t.yaml", template("claude", "agentType: nobody"));
    sage.sage("run y -t t").exit(1).stdout_has("Claude Code has no agent `nobody` (`agentType`); it has ");
}

// covers: R16
#[test]
fn a_model_thinks_as_much_as_its_step_says() {
    for (api, pointer, told) in [
        ("anthropic", "/output_config/effort", "max"),
        ("responses", "/reasoning/effort", "xhigh"),
        ("chat", "/reasoning_effort", "xhigh"),
    ] {
        let model = FakeLlm::start(json!([{"text": "done"}])).unwrap();
        let sage = Sage::new().template("t", &template("model", "effort: max"));
        let url = model.url();
        sage.write(
            "sage.toml",
            format!("[agents.model]\nadapter = \"llm\"\napi = \"{api}\"\nurl = \"{url}\"\nmodel = \"m\"\n"),
        );
        sage.sage("run x -t t --quiet").exit(0);
        assert_eq!(model.prompts()[0].pointer(pointer), Some(&json!(told)), "{api}");
    }
}

// covers: R16, R23
#[test]
fn what_an_agent_cannot_do_is_said_before_the_run() {
    let refused = |agent: &str, param: &str, why: &str| {
        let sage = Sage::new().template("t", &template(agent, param));
        sage.sage("validate t").exit(2).stderr_has(&format!("step `p/one`: agent `{agent}` {why}"));
    };
    refused("codex", "agentType: critic", "has no agents of its own (`agentType`)");
    refused("codex", "mode: plan", "has no plan mode");
    refused("offline", "mode: plan", "has no plan mode");
    refused("foreign", "project: true", "has no settings of the project");
    let sage = Sage::new().template("t", &template("offline", "effort: high"));
    sage.sage("run x -t t")
        .stderr_has("agent `offline` thinks as much as it always does: `effort` is not used");
    let sage = Sage::new().template("t", &template("offline", "files: [a.md]"));
    sage.sage("run x -t t --dry-run")
        .stderr_has("agent `offline` looks at the project by itself: `files` is not used");
    let sage = Sage::new()
        .template("t", &template("gemini", "effort: high").replace("go,", "go, fallback: offline,"));
    sage.sage("run x -t t --dry-run").exit(0).stderr_has("agent `gemini` thinks as much as it always does");
    let sage = Sage::new().template("t", &template("codex", "questions: true"));
    sage.sage("run x -t t --dry-run").exit(0).stderr_has("agent `codex` cannot ask a person");
    // Whoever does a step that names nobody is known only when it runs.
    let sage = Sage::new().template("t", &template("AGENT", "mode: plan").replace("agent: AGENT, ", ""));
    sage.sage("validate t").exit(0);
    sage.sage("run x -t t")
        .exit(2)
        .stderr_has("agent `offline` has no plan mode")
        .stderr_has("--agent claude");
    let sage = Sage::new().template("t", &template("claude", "effort: enormous"));
    sage.sage("validate t")
        .exit(2)
        .stderr_has("`enormous` is not one of minimal, low, medium, high, xhigh, max");
    let listed = sage.sage("agents --json").exit(0).json();
    let of = |name: &str| {
        listed["agents"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["capabilities"]
            .clone()
    };
    assert_eq!(
        (&of("claude")["agentTypes"], &of("codex")["agentTypes"]),
        (&json!(true), &json!(false)),
        "{listed}"
    );
}
