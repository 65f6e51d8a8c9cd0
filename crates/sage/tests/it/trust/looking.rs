//! Looking at a hostile clone starts nothing and sends nothing: every vector of `clone` against every command.

use serde_json::json;

use super::clone::Clone;
use super::{call, started};
use crate::dsl::Outcome;
use crate::mcp_server::client::{BOTH, Client};

/// Commands that only look, and those that would use something of the clone and must ask first.
const COMMANDS: &[&str] = &[
    "list",
    "list --json",
    "status",
    "status evil",
    "status asking --json",
    "status kept",
    "status evil --watch",
    "inbox",
    "inbox --all",
    "logs evil",
    "logs asking p/ok",
    "explain evil",
    "explain kept p/talk",
    "result kept",
    "result evil --full",
    "tickets",
    "tickets ready",
    "tickets show T-1",
    "validate feature",
    "validate flow",
    "validate scripted",
    "graph feature",
    "graph evil",
    "graph own --format mermaid",
    "templates",
    "templates show feature",
    "config",
    "config --json",
    "agents",
    "agents --json",
    "doctor",
    "doctor --json",
    "verify",
    "cache",
    "cache list",
    "budget asking",
    "limits",
    "breakers",
    "session list --all",
    "session show main",
    "session show other",
    "skills list",
    "skills show evil",
    "skills search payment processing",
    "handoff list",
    "tools search",
    "tools search anything --json",
    "tools describe stdio/x",
    "check",
    "check look.ts",
    "run x --dry-run",
    "run x -t own --dry-run --json",
    "run x -t flow --dry-run",
    "gc --dry-run",
    "trust --list",
    "trust",
    // What would use it asks first, and nobody is there to be asked.
    "run x -t own",
    "run x",
    "run x --agent offline",
    "run x -t bugfix --agent offline",
    "run x -t swarm --agent offline",
    "compare kept --yes",
    "run x --agent mine -t scripted",
    "resume evil",
    "resume asking",
    "resume kept --from p",
    "approve asking",
    "reject asking",
    "pause evil",
    "cancel asking",
    "fork kept --from p --as other",
    "tools call stdio/x",
    "tools call web/x",
    "tools approve toml",
    "session new --agent mine",
    "session resume main hello",
    "session resume other hello",
    "session fork other --as mine",
    "skills run evil",
    "code run look.ts",
    "inbox handle",
    "init",
];

#[track_caller]
fn assert_calm(clone: &Clone, command: &str, outcome: Option<&Outcome>) {
    let told = outcome.map_or_else(String::new, |it| format!("\n{}\n{}", it.stdout, it.stderr));
    assert_eq!(started(&clone.sage), [""; 0], "`{command}` started something{told}");
    assert_eq!(clone.heard(), [""; 0], "`{command}` sent something{told}");
    assert!(!told.contains("sesame"), "`{command}` shows a secret{told}");
    assert!(clone.sage.outside().join("precious").exists(), "`{command}` removed something{told}");
}

// covers: R17, R23, S1
#[test]
fn no_command_starts_or_sends_anything_of_a_hostile_clone() {
    let clone = Clone::new();
    assert!(COMMANDS.len() >= 25);
    for command in COMMANDS {
        let outcome = call(&clone.sage, command);
        assert_calm(&clone, command, Some(&outcome));
        assert_eq!(clone.sage.processes(), [0; 0], "`{command}` left something running");
    }
    // What is not ours is called so.
    call(&clone.sage, "list").exit(0).stdout_has("(foreign: sage trust)");
    call(&clone.sage, "agents").exit(0).stdout_has("not trusted");
    call(&clone.sage, "doctor").stdout_has("`.mcp.json: mcp.stdio` is not trusted").stdout_has("sage trust");
    call(&clone.sage, "tools search").stderr_has("server `far` is not trusted");
    call(&clone.sage, "check look.ts").stderr_has("node_modules/.bin/tsc was not used");
    call(&clone.sage, "run x -t own").exit(2).stderr_has("not trusted");
    call(&clone.sage, "resume evil").exit(2).stderr_has("not written by this user");
    call(&clone.sage, "skills run evil").exit(2);
    call(&clone.sage, "session show other").stderr_has("not written by this user");
}

// covers: R16, R17
#[test]
fn no_tool_over_mcp_starts_or_sends_anything_of_a_hostile_clone() {
    let clone = Clone::new();
    for era in BOTH {
        let mut client = Client::start(&clone.sage, era);
        let calls = [
            ("sage_workflow_list", json!({})),
            ("sage_workflow_status", json!({"feature": "evil"})),
            ("sage_workflow_status", json!({"feature": "asking", "waitMs": 100})),
            ("sage_workflow_validate", json!({"template": "own"})),
            ("sage_workflow_execute", json!({"feature": "x", "template": "own", "waitMs": 0})),
            ("sage_workflow_resume", json!({"feature": "evil", "waitMs": 0})),
            ("sage_workflow_resume", json!({"feature": "asking", "waitMs": 0})),
            ("sage_workflow_cancel", json!({"feature": "asking"})),
            ("sage_inbox", json!({})),
            ("sage_inbox", json!({"action": "answer", "feature": "asking", "choice": "approve"})),
            ("sage_session", json!({})),
            ("sage_handoff", json!({})),
            ("sage_result", json!({"feature": "kept"})),
            ("sage_tools_search", json!({"query": "anything"})),
            ("sage_code_run", json!({"code": "import { x } from \"servers/stdio\"; return await x({});"})),
            ("sage_code_run", json!({"code": "return 1 + 1"})),
            ("sage_skill", json!({})),
        ];
        for (tool, arguments) in calls {
            let id = client.send_call(tool, arguments.clone());
            let answer = client.answer(id);
            assert_calm(&clone, &format!("{tool} {arguments}"), None);
            assert!(!answer.to_string().contains("sesame"), "{answer}");
        }
        let status = client.call("sage_workflow_status", json!({"feature": "evil"})).good();
        assert_eq!(status["foreign"], true);
        let error =
            client.call("sage_workflow_resume", json!({"feature": "evil"})).error("WORKFLOW_CONFLICT");
        assert!(error["hint"].as_str().unwrap().contains("sage trust state.evil"), "{error}");
        let run = json!({"feature": "x", "template": "own"});
        let error = client.call("sage_workflow_execute", run).error("WORKFLOW_VALIDATION_ERROR");
        assert!(error["hint"].as_str().unwrap().contains("sage trust"), "{error}");
        client.hang_up();
    }
}

// covers: R17
#[test]
fn a_template_that_a_person_runs_by_its_name_is_like_a_make_target() {
    let clone = Clone::new();
    let template = "name: mild\nphases:\n  - id: p\n    operations: { id: trap, type: shell, params: { run: ./trap.sh } }\n";
    clone.sage.write(".sage/templates/mild.yaml", template);
    call(&clone.sage, "run x -t mild").exit(0);
    assert_eq!(started(&clone.sage), ["trap.sh sesame"]);
}
