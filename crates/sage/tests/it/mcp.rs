//! `tool` steps and operations bound to tools: one server for a whole workflow, and none after it.

use serde_json::json;

use crate::dsl::{DEADLINE, Sage, is_alive, wait_until};

/// A project with the fake server `research`.
fn project(template: &str, bindings: &str) -> Sage {
    let sage = Sage::new().template("t", template);
    let starts = sage.path("starts").display().to_string();
    let toml = format!(
        "[mcp.research]\ncommand = {:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\ntimeout = \"60s\"\n{bindings}",
        env!("CARGO_BIN_EXE_sage"),
    );
    sage.write("sage.toml", &toml);
    sage
}

fn starts(sage: &Sage) -> Vec<u32> {
    let text = std::fs::read_to_string(sage.path("starts")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

const BOUND: &str = r#"
[operations."research.market"]
server = "research"
tool = "echo"
arguments = { summary = "market of {{ title }}", findings = [
  { title = "a", detail = "d", relevance = 0.2, evidence = [] },
  { title = "b", detail = "d", relevance = 0.9, evidence = [] } ] }
[operations."research.competitive"]
server = "research"
tool = "echo"
arguments = { summary = "others", findings = [], inputs = "{{ inputs }}" }
[operations."our.own"]
server = "research"
tool = "echo"
"#;

const RESEARCH: &str = "
name: t
phases:
  - id: research
    operations:
      - { type: research.market, filter: { top: 1 } }
      - { type: research.competitive }
      - { id: own, type: our.own }
  - id: use
    dependencies: [research]
    operations:
      - id: show
        type: shell
        params:
          argv: [printf, '%s %s', '{{ steps[\"research/market\"].result.summary }}', '{{ steps[\"research/market\"].result.findings | length }}']
";

// covers: R24, R3
#[test]
fn named_operations_are_done_by_tools_of_one_server() {
    let sage = project(RESEARCH, BOUND);
    sage.args(["validate", "t"]).run().exit(0);
    sage.args(["run", "Blue Sky", "-t", "t", "-i", "depth=3"]).run().exit(0);
    let results = sage.results("blue-sky");
    assert_eq!(results[1]["results"]["show"]["stdout"], "market of Blue Sky 1");
    let done = &results[0]["results"];
    assert_eq!(done["competitive"]["inputs"], json!({"depth": 3}));
    assert_eq!(done["own"], json!({"feature": "blue-sky", "title": "Blue Sky", "inputs": {"depth": 3}}));
    assert_eq!(starts(&sage).len(), 1);
    assert!(!is_alive(starts(&sage)[0]));
    sage.assert_nothing_alive();
}

// covers: R24
#[test]
fn a_tool_that_fails_fails_the_step_and_a_crash_takes_only_its_own() {
    let template = "
name: t
phases:
  - id: first
    join: { atLeast: 1 }
    operations:
      - { id: crash, type: tool, params: { server: research, tool: crash } }
      - { id: fine, type: shell, params: { run: 'true' } }
  - id: second
    dependencies: [first]
    join: { atLeast: 1 }
    operations:
      - { id: refused, type: tool, params: { server: research, tool: error, arguments: { text: no such page } } }
      - { id: again, type: tool, params: { server: research, tool: text, arguments: { text: 'for {{ feature }}' } } }
";
    let sage = project(template, "");
    sage.args(["run", "x", "-t", "t"]).run();
    let status = sage.status("x").to_string();
    assert!(status.contains("no such page"), "{status}");
    assert!(status.contains("server `research` died: exit code 3: crashing as told"), "{status}");
    assert_eq!(sage.state_of("x", "second/again"), "succeeded");
    assert!(sage.results("x").to_string().contains("for x"));
    assert_eq!(sage.state_of("x", "second/refused"), "failed");
    assert_eq!(starts(&sage).len(), 2, "a dead server is started again, once for both");
    sage.assert_nothing_alive();
}

// covers: R24, S2
#[test]
fn killing_sage_leaves_no_server_and_a_lost_call_is_not_repeated_by_itself() {
    let template = "
name: t
phases:
  - id: work
    operations:
      - { id: act, type: tool, params: { server: research, tool: hang } }
";
    let sage = project(template, "");
    let mut running = sage.args(["run", "x", "-t", "t"]).spawn();
    running.until(|| !starts(&sage).is_empty(), "the server to start");
    running.until(|| sage.engine().latest("x").is_some(), "the run");
    let pid = starts(&sage)[0];
    assert!(running.kill());
    wait_until(|| !is_alive(pid), DEADLINE, "the server to die with sage");
    sage.assert_nothing_alive();
    sage.args(["resume", "x", "--no-wait"]).run().exit(4);
    assert_eq!(sage.state_of("x", "work/act"), "unknown");
    assert_eq!(starts(&sage), [pid], "nobody called it again");
}

// covers: R24, R6
#[test]
fn what_is_missing_is_found_before_anything_runs() {
    let template = "
name: t
phases:
  - id: work
    operations: { type: tool, params: { server: serch, tool: find } }
";
    let sage = project(template, "");
    let toml = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    let unknown = sage.args(["validate", "t"]).run().exit(2);
    unknown.stderr_has("there is no MCP server `serch`").stderr_has("research");
    // Of the servers that others use, too; those that cannot be used say why.
    sage.write(".mcp.json", r#"{"mcpServers": {"serch": {"type": "sse", "url": "http://127.0.0.1:1"}}}"#);
    sage.args(["run", "x", "-t", "t"]).run().exit(2).stderr_has("ask for `http`");
    sage.write(
        ".mcp.json",
        r#"{"mcpServers": {"serch": {"type": "http", "url": "http://example.com/mcp"}}}"#,
    );
    sage.args(["run", "x", "-t", "t"]).run().exit(2).stderr_has("must begin with https");
    sage.write(".mcp.json", r#"{"mcpServers": {"serch": {"command": "${NOPE:-no-such-program}"}}}"#);
    let missing = sage.args(["run", "x", "-t", "t"]).run().exit(2);
    missing.stderr_has("server `serch` cannot start: there is no program `no-such-program`");
    sage.args(["doctor"]).run().stdout_has("there is no program `no-such-program`");
    let shared = format!(
        r#"{{"mcpServers": {{"serch": {{"command": {:?}, "args": ["debug", "fake-mcp", "{}"]}}}}}}"#,
        env!("CARGO_BIN_EXE_sage"),
        sage.path("starts").display(),
    );
    sage.write(".mcp.json", &shared);
    sage.args(["run", "x", "-t", "t"]).run().exit(1);
    assert!(sage.status("x").to_string().contains("has no tool `find`"));
    sage.args(["config"]).run().exit(0).stdout_has("mcp.serch.command").stdout_has(".mcp.json");
    sage.write("sage.toml", toml.replace("timeout", "timeuot"));
    sage.args(["validate", "t"]).run().exit(2).stderr_has("timeuot");
}

// covers: R24, S2
#[test]
fn a_lost_call_that_does_no_harm_is_made_again() {
    let template = "
name: t
phases:
  - id: work
    operations:
      - { id: look, type: tool, params: { server: research, tool: slow, arguments: { ms: 3000 } } }
      - { id: stay, type: tool, params: { server: research, tool: hang } }
";
    let sage = project(template, "");
    // Known since it was used: the tool says of itself that it only reads.
    sage.args(["tools", "call", "research/slow", "--arg", "ms=0"]).run().exit(0);
    let before = starts(&sage).len();
    let mut running = sage.args(["run", "x", "-t", "t"]).spawn();
    running.until(|| starts(&sage).len() > before, "the server to start");
    running.until(|| sage.engine().latest("x").is_some(), "the run");
    assert!(running.kill());
    sage.assert_nothing_alive();
    sage.args(["resume", "x", "--no-wait"]).run().exit(4);
    assert_eq!(sage.state_of("x", "work/stay"), "unknown", "nobody knows what this one does");
    assert_eq!(sage.state_of("x", "work/look"), "succeeded");
}
