//! `sage init` and the slash command of Claude Code that it writes.

use std::process::Command;
use std::time::Duration;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::installed::finished;
use crate::mcp_server::client::{BOTH, Client};
use crate::real_agents::programs;

const COMMAND: &str = ".claude/commands/sage.workflow.md";

fn command(sage: &Sage) -> String {
    std::fs::read_to_string(sage.path(COMMAND)).unwrap()
}

// covers: R16
#[test]
fn an_older_command_is_updated_and_an_edited_one_is_kept() {
    let sage = Sage::bare();
    sage.sage("init").exit(0).stdout_has(&format!("wrote {COMMAND}"));
    let current = command(&sage);
    let again = sage.sage("init").exit(0);
    assert!(!again.stdout.contains(COMMAND) && !again.stderr.contains(COMMAND), "{}", again.stderr);
    let earlier = include_str!("init/earlier.workflow.md");
    sage.write(COMMAND, earlier);
    sage.sage("init").exit(0).stdout_has(&format!("wrote {COMMAND}"));
    assert_eq!(command(&sage), current);
    for edited in [format!("{earlier}Be brief.\n"), format!("{current}Be brief.\n")] {
        sage.write(COMMAND, &edited);
        sage.sage("init").exit(0).stderr_has(&format!("note: {COMMAND} was edited and is left as it is"));
        assert_eq!(command(&sage), edited);
    }
    let told = sage.sage("init --json").exit(0).json();
    assert_eq!(told["notes"].as_array().unwrap().len(), 1, "{told}");
}

/// The words in backticks of the lines that begin a row of a table.
fn first_cells(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

// covers: R16
#[test]
fn the_command_knows_every_template_and_every_option() {
    let sage = Sage::bare();
    sage.sage("init").exit(0);
    let text = command(&sage);
    let listed = sage.sage("templates --json").exit(0).json();
    for template in listed["templates"].as_array().unwrap() {
        let name = template["name"].as_str().unwrap();
        let row = text.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("no row of `{name}`"));
        let shown = sage.args(["templates", "show", name, "--json"]).run().exit(0).json();
        for input in shown["inputs"].as_array().unwrap() {
            let input = input["name"].as_str().unwrap();
            assert!(row.contains(&format!("`{input}`")), "{name}: {input}");
        }
    }
    let known = listed["templates"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    let known: Vec<&str> = known.collect();
    let cells = first_cells(&text);
    let templates: Vec<&&str> = cells.iter().filter(|cell| !cell.starts_with("--")).collect();
    assert_eq!(templates.len(), known.len(), "{templates:?}");
    let client = Client::start(&sage, BOTH[0]);
    let instructions = client.about["instructions"].as_str().unwrap();
    known.iter().for_each(|name| assert!(instructions.contains(name), "{name}"));
    assert!(instructions.contains("writes no code"), "{instructions}");
    let tool = client.tools.iter().find(|tool| tool["name"] == "sage_workflow_execute").unwrap();
    let options = tool["inputSchema"]["properties"]["options"]["properties"].as_object().unwrap();
    for option in options.keys() {
        assert!(text.contains(&format!("`options.{option}")), "{option}");
    }
}

/// The real Claude Code, with private settings and a scripted model.
fn claude(sage: &Sage, model: &FakeLlm, home: &std::path::Path) -> Option<Command> {
    let mut claude = Command::new(programs()?.join("claude"));
    claude.env_clear().current_dir(sage.root()).env("PATH", std::env::var_os("PATH").unwrap());
    claude.env("HOME", home).env("XDG_STATE_HOME", sage.user_state());
    claude.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "dummy");
    for quiet in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
        claude.env(quiet, "1");
    }
    let server =
        json!({"type": "stdio", "command": env!("CARGO_BIN_EXE_sage"), "args": ["-C", sage.root(), "mcp"]});
    claude.args(["-p", "--strict-mcp-config", "--allowedTools", "mcp__sage", "--mcp-config"]);
    claude.arg(json!({"mcpServers": {"sage": server}}).to_string());
    Some(claude)
}

/// What the model was told about its call.
fn result(prompt: &Value) -> String {
    let blocks = prompt["messages"].as_array().unwrap().iter().flat_map(|it| it["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].to_string()).collect()
}

// covers: R16
#[test]
fn the_real_claude_runs_a_workflow_by_the_command_and_hears_where_documents_are() {
    let call = json!({"name": "mcp__sage__sage_workflow_execute", "input": {"feature": "gift cards"}});
    let model = FakeLlm::start(json!([{"tool": call}, {"text": "done"}])).unwrap();
    let sage = Sage::bare();
    sage.write("shop/cart.py", "def total(items):\n    return sum(items)\n");
    sage.sage("init").exit(0);
    let home = sage.outside().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let Some(mut claude) = claude(&sage, &model, &home) else { return };
    claude.args(["--", "/sage.workflow \"gift cards\" --budget 5usd"]);
    let (succeeded, stdout, stderr) = finished(claude, Duration::from_secs(120));
    assert!(succeeded, "{stdout}\n{stderr}");
    let prompts = model.prompts();
    let first = prompts[0].to_string();
    assert!(first.contains(r#"/sage.workflow \"gift cards\" --budget 5usd"#));
    assert!(first.contains("**writes no code**"), "the whole text is the prompt");
    let heard = result(prompts.last().unwrap());
    for told in ["docs/specs/gift-cards/spec.md", "docs/specs/gift-cards/plan.md", "it writes no code"] {
        assert!(heard.contains(told), "{told}: {heard}");
    }
}
