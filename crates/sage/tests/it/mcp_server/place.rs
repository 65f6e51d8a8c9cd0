//! Where a server works, what it costs to have one, and what `sage init` tells other programs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::QUICK;
use super::client::{Client, Era};
use crate::dsl::Sage;

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// covers: R16
#[test]
fn a_server_is_there_at_once_and_small() {
    let sage = Sage::new();
    let started = Instant::now();
    let client = Client::start(&sage, Era::Stateless);
    let (took, kb) = (started.elapsed(), resident_kb(client.pid()));
    println!("ready and all tools listed after {took:?}, {kb} KB resident");
    // Without optimisation, on a machine that does other things, too.
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(kb < 60_000, "{kb} KB");
    // A client shows them to its model in every conversation.
    let tokens = sage_engine::tokens::count(&serde_json::to_string(&client.tools).unwrap());
    println!("{tokens} tokens of definitions");
    assert!(tokens < 3_500, "{tokens}");
    assert!(!sage.path(".sage/state").exists(), "looking writes nothing");
    client.hang_up();
}

// covers: R16
#[test]
fn settings_that_change_count_for_the_next_call() {
    let sage = Sage::new().template("quick", QUICK);
    let mut client = Client::start(&sage, Era::Session);
    sage.write("sage.toml", "template = 5\n");
    let error =
        client.call("sage_workflow_execute", json!({"feature": "x"})).error("WORKFLOW_VALIDATION_ERROR");
    assert!(error["message"].as_str().unwrap().contains("sage.toml"), "{error}");
    sage.write("sage.toml", "template = \"quick\"\n");
    sage.sage("trust --yes").exit(0);
    assert_eq!(client.call("sage_workflow_execute", json!({"feature": "x"})).good()["status"], "completed");
}

// covers: R16
#[test]
fn init_tells_other_programs_and_overwrites_nothing() {
    let sage = Sage::bare();
    sage.write(".mcp.json", r#"{"mcpServers": {"other": {"command": "o"}}, "more": 1}"#);
    let said = sage.sage("init").exit(0);
    for line in [
        "codex mcp add sage -- sage mcp",
        "gemini mcp add sage sage mcp",
        ".mcp.json",
        ".claude/commands/sage.workflow.md",
    ] {
        assert!(said.stdout.contains(line), "{line}: {}", said.stdout);
    }
    let servers: Value =
        serde_json::from_str(&std::fs::read_to_string(sage.path(".mcp.json")).unwrap()).unwrap();
    assert_eq!(servers["mcpServers"]["sage"], json!({"type": "stdio", "command": "sage", "args": ["mcp"]}));
    assert_eq!((&servers["mcpServers"]["other"]["command"], &servers["more"]), (&"o".into(), &1.into()));
    let command = std::fs::read_to_string(sage.path(".claude/commands/sage.workflow.md")).unwrap();
    for part in [
        "description:",
        "argument-hint:",
        "allowed-tools: mcp__sage__sage_workflow_list, mcp__sage__sage_workflow_status,",
        "$ARGUMENTS",
        "--resume",
        "--template",
        "--list",
    ] {
        assert!(command.contains(part), "{part}");
    }
    // What starts or calls something is the client's question to its user.
    let allowed = command.lines().find(|line| line.starts_with("allowed-tools:")).unwrap();
    for reaching in
        ["*", "execute", "resume", "cancel", "code_run", "session", "skill", "handoff", "tools_search"]
    {
        assert!(!allowed.contains(reaching), "{allowed}");
    }
    // Sage is no server of its own runs.
    let config = sage.sage("config --json").exit(0);
    assert!(!config.stdout.contains("sage mcp"), "{}", config.stdout);
    sage.write(".claude/commands/sage.workflow.md", "mine");
    let before = sage.listing();
    let again: Value = sage.sage("init --json").exit(0).json();
    assert_eq!(again["written"], json!([]));
    assert_eq!(sage.listing(), before);
    sage.write(".mcp.json", "{ broken");
    sage.sage("init").exit(0).stderr_has(".mcp.json is left as it is");
    assert_eq!(std::fs::read_to_string(sage.path(".mcp.json")).unwrap(), "{ broken");
}
