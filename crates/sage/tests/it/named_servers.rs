//! MCP servers that agents are given by name, from the project or from the user's own configuration.

use sage_agents::fake_llm::FakeLlm;
use serde_json::json;

use crate::dsl::Sage;
use crate::real_agents::project;

/// As much of a server as it takes, in the shell: its one tool says a word and a variable.
const SERVER: &str = r#"#!/bin/sh
echo started >> "$LOG"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"say","description":"Says the word","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}]}' ;;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"the word of '$WHO'"}]}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const STEP: &str = "name: t\nphases:\n  - id: p\n    operations: { id: one, type: agent, agent: AGENT, prompt: go, MCP params: { tools: [\"mcp__db\", \"mcp__db__say\"] } }\n";

fn template(agent: &str, mcp: &str) -> String {
    STEP.replace("AGENT", agent).replace("MCP ", mcp)
}

fn server(sage: &Sage) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = sage.write("tools/db.sh", SERVER);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let log = sage.outside().join("started");
    format!("[mcp.db]\ncommand = \"./tools/db.sh\"\nenv = {{ LOG = \"{}\", WHO = \"db\" }}\n", log.display())
}

fn add(sage: &Sage, path: &str, text: &str) {
    let before = std::fs::read_to_string(sage.path(path)).unwrap_or_default();
    sage.write(path, before + text);
}

// covers: R24
#[test]
fn a_server_that_is_not_there_is_refused_before_the_run() {
    let sage = Sage::new().template("t", &template("claude", "mcp: [dbs],"));
    add(&sage, "sage.toml", &server(&sage));
    for command in ["validate t", "run x -t t"] {
        let told =
            sage.sage(command).exit(2).stderr_has("agent `claude` is to be given the MCP server `dbs`");
        told.stderr_has("there is none of that name").stderr_has("did you mean `db`?");
    }
    let sage = Sage::new().template("t", &template("offline", "mcp: [db],"));
    add(&sage, "sage.toml", &server(&sage));
    sage.sage("validate t").exit(2).stderr_has("agent `offline` cannot be given MCP servers");
    let sage = Sage::new().template("t", &template("claude", ""));
    sage.write("sage.toml", "[agents.claude]\nmcp = [\"nowhere\"]\n");
    sage.sage("validate t").exit(2).stderr_has("MCP server `nowhere`");
    sage.sage("doctor").exit(1).stdout_has("`agents.claude.mcp` names `nowhere`");
    sage.write(".sage/templates/t.yaml", template("claude", "mcp: [\"{{ feature }}\"],"));
    sage.sage("validate t").exit(2).stderr_has("must be plain names");
}

// covers: R17, R24
#[test]
fn a_server_that_is_not_trusted_is_refused_before_the_run() {
    let sage = Sage::untrusted().template("t", &template("claude", "mcp: [db],"));
    add(&sage, "sage.toml", &server(&sage));
    sage.sage("run x -t t").exit(2).stderr_has("`sage.toml: mcp.db` is not trusted").stderr_has("sage trust");
    // An agent that is given servers is a definition of its own.
    let sage = Sage::untrusted().template("t", &template("claude", ""));
    add(&sage, "sage.toml", "[agents.claude]\nmcp = [\"db\"]\n");
    add(&sage, "sage.toml", &server(&sage));
    sage.sage("run x -t t").exit(2).stderr_has("agents.claude").stderr_has("mcp.db");
    let asked = sage.sage("trust --yes").exit(0);
    asked.stdout_has("is given the MCP servers db").stdout_has("tools/db.sh");
    assert!(!sage.outside().join("started").exists(), "nothing was started");
}

// covers: R24
#[test]
fn the_real_claude_uses_a_server_of_the_project_and_one_of_the_user() {
    let script = json!([
        {"tool": {"name": "mcp__db__say", "input": {}}},
        {"text": "heard: {{last_tool_result}}"},
    ]);
    let model = FakeLlm::start(script.clone()).unwrap();
    let Some(sage) = project(&model, &template("claude", "mcp: [db],")) else { return };
    add(&sage, "sage.toml", &server(&sage));
    sage.sage("run x -t t --quiet").exit(0);
    assert_eq!(sage.results("x")[0]["results"]["one"], "heard: the word of db");
    // Those that nobody named are not there.
    model.reset(json!([{"text": "x"}]).try_into().unwrap());
    sage.write(".sage/templates/t.yaml", template("claude", "mcp: [],"));
    sage.sage("run y -t t --quiet").exit(0);
    assert!(!model.prompts()[0].to_string().contains("mcp__db"));
    // The user's own, by a name that the project does not know; its key is a variable of the user.
    let program = sage.path("tools/db.sh").display().to_string();
    let log = sage.outside().join("started").display().to_string();
    let own =
        json!({"mcpServers": {"mine": {"command": program, "env": {"LOG": log, "WHO": "${WHO_AM_I}"}}}});
    let home = sage.outside().join("user");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join(".claude.json"), own.to_string()).unwrap();
    let script =
        json!([{"tool": {"name": "mcp__mine__say", "input": {}}}, {"text": "heard: {{last_tool_result}}"}]);
    model.reset(script.try_into().unwrap());
    sage.write(".sage/templates/t.yaml", template("claude", "mcp: mine,").replace("mcp__db", "mcp__mine"));
    let run =
        sage.args(["run", "z", "-t", "t", "--quiet"]).env("CLAUDE_CONFIG_DIR", &home).env("WHO_AM_I", "ada");
    run.run().exit(0);
    assert_eq!(sage.results("z")[0]["results"]["one"], "heard: the word of ada");
    sage.assert_nothing_alive();
}

// covers: R24
#[test]
fn the_real_codex_uses_a_server_that_its_agent_is_given() {
    let call = json!({"name": "say", "namespace": "mcp__db", "input": {}});
    let model = FakeLlm::start(json!([{"tool": call}, {"text": "heard: {{last_tool_result}}"}])).unwrap();
    let Some(sage) = project(&model, &template("codex", "")) else { return };
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", config.replace("[agents.codex]", "[agents.codex]\nmcp = [\"db\"]"));
    add(&sage, "sage.toml", &server(&sage));
    sage.sage("run x -t t --quiet").exit(0);
    let result = sage.results("x")[0]["results"]["one"].as_str().unwrap().to_string();
    assert!(result.contains("the word of db"), "{result}");
    sage.assert_nothing_alive();
    // What codex would not understand is told before the run.
    let text = "[mcp.odd]\ncommand = \"x\"\nenv = { KEY = \"a ${B}\" }\n";
    add(&sage, "sage.toml", text);
    sage.write(".sage/templates/t.yaml", template("codex", "mcp: [odd],"));
    sage.sage("validate t").exit(2).stderr_has("agent `codex`: MCP server `odd`: codex cannot fill in");
}

const MODEL: &str = "[agents.model]\nadapter = \"llm\"\napi = \"anthropic\"\nurl = \"URL\"\nmodel = \"m\"\n";

// covers: R24, R21
#[test]
fn a_model_gets_only_the_servers_that_its_step_names() {
    let code = "import { say } from \"servers/db\"; return (await say({})).content ?? await say({});";
    let other = "import { say } from \"servers/other\"; return await say({});";
    let run = |code: &str| json!({"tool": {"name": "code_run", "input": {"code": code}}});
    let model = FakeLlm::start(json!([run(code), run(other), {"text": "{{last_tool_result}}"}])).unwrap();
    let sage = Sage::new()
        .template("t", &template("model", "mcp: [db],").replace("[\"mcp__db\", \"mcp__db__say\"]", "[]"));
    let config = MODEL.replace("URL", &model.url()) + &server(&sage);
    let twin = server(&sage).replace("[mcp.db]", "[mcp.other]").replace("WHO = \"db\"", "WHO = \"other\"");
    sage.write("sage.toml", config + &twin);
    sage.sage("run x -t t --quiet").exit(0);
    let heard = model.prompts().last().unwrap().to_string();
    assert!(heard.contains("the word of db") && !heard.contains("the word of other"), "{heard}");
    sage.assert_nothing_alive();
}
