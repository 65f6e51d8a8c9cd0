//! What the real Claude Code may do: its questions, and what its role decides.

use std::sync::Arc;

use sage_core::port::{AskKind, Permission};
use sage_core::role::Role;
use serde_json::json;
use tokio::sync::Barrier;

use crate::claude_desk::{Desk, bash, tool};

// covers: R17
#[tokio::test]
async fn a_command_is_asked_for_and_the_answer_may_change_it() {
    let script = json!([bash("sh -c 'echo > one'"), bash("sh -c 'echo > two'"), bash("sh -c 'echo > three'"), {"text": "done"}]);
    let Some(desk) = Desk::new(script) else { return };
    let desk = desk.answers(|ask| {
        let answer = match ask.command.as_deref().unwrap_or_default() {
            "sh -c 'echo > one'" => Permission::Allow { input: None },
            "sh -c 'echo > two'" => {
                Permission::Allow { input: Some(json!({"command": "echo changed > two"})) }
            }
            _ => Permission::Deny { message: "rather not: too much noise".into() },
        };
        Box::pin(std::future::ready(answer))
    });
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "done");
    assert_eq!((desk.bench.read("one").as_str(), desk.bench.read("two").as_str()), ("\n", "changed\n"));
    assert!(!desk.bench.path("three").exists());
    assert!(desk.last_sent().contains("rather not: too much noise"));
    let asked = desk.asked.lock().unwrap();
    assert_eq!(asked.iter().map(|ask| ask.kind).collect::<Vec<_>>(), [AskKind::Run; 3]);
}

// covers: R17
#[tokio::test]
async fn several_questions_are_open_at_once() {
    let read = |name: &str| json!({"name": "Read", "input": {"file_path": format!("/etc/{name}")}});
    let Some(desk) = Desk::new(json!([{"tools": [read("hostname"), read("passwd")]}, {"text": "done"}]))
    else {
        return;
    };
    // Nobody is answered before both have asked.
    let both = Arc::new(Barrier::new(2));
    let desk = desk.answers(move |_| {
        let both = Arc::clone(&both);
        Box::pin(async move {
            both.wait().await;
            Permission::Deny { message: "not yours".into() }
        })
    });
    assert_eq!(desk.run().await.succeeded(), "done");
    assert_eq!(desk.tools_asked(), ["Read", "Read"]);
    assert_eq!(desk.last_sent().matches("not yours").count(), 2);
}

// covers: R17
#[tokio::test]
async fn an_auditor_has_no_tool_that_writes_and_asks_for_every_command() {
    let write = tool("Write", json!({"file_path": "made", "content": "x"}));
    let edit = tool("Edit", json!({"file_path": "there", "old_string": "a", "new_string": "b"}));
    let Some(desk) = Desk::new(json!([write, edit, bash("ls"), {"text": "done"}])) else { return };
    let desk = desk.role(Role::Auditor).allows();
    std::fs::write(desk.bench.path("there"), "a\n").unwrap();
    // Neither the project nor the user can give it more than its role.
    std::fs::create_dir(desk.bench.path(".claude")).unwrap();
    let generous = json!({"permissions": {"allow": ["Bash", "Write", "Edit"], "defaultMode": "acceptEdits"}});
    std::fs::write(desk.bench.path(".claude/settings.json"), generous.to_string()).unwrap();
    assert_eq!(desk.run().await.succeeded(), "done");
    assert_eq!(desk.tools_asked(), ["Bash"]);
    assert!(!desk.bench.path("made").exists());
    assert_eq!(desk.bench.read("there"), "a\n");
    let sent = desk.last_sent();
    assert!(
        sent.contains("No such tool available: Write") && sent.contains("No such tool available: Edit"),
        "{sent}"
    );
    let offered = desk.llm.prompts()[0]["tools"].to_string();
    assert!(offered.contains("\"Bash\"") && !offered.contains("\"Write\"") && !offered.contains("\"Edit\""));
}

// covers: R17
#[tokio::test]
async fn a_planner_writes_where_plans_are_and_nowhere_else() {
    let write = |path: &str| tool("Write", json!({"file_path": path, "content": "x"}));
    let script = json!([write("docs/plan.md"), write("src/main.rs"), bash("echo > ran"), {"text": "done"}]);
    let Some(desk) = Desk::new(script) else { return };
    let desk = desk.role(Role::Planner).allows();
    assert_eq!(desk.run().await.succeeded(), "done");
    assert!(desk.bench.path("docs/plan.md").exists());
    assert!(!desk.bench.path("src").exists() && !desk.bench.path("ran").exists());
    assert!(desk.last_sent().contains("may only change files in docs/"));
    assert!(desk.tools_asked().is_empty());
}

// covers: R17, R18
#[tokio::test]
async fn a_subagent_asks_as_its_agent_does_and_its_tokens_count() {
    let task = json!({"description": "d", "prompt": "part of it", "subagent_type": "general-purpose"});
    let script =
        json!([tool("Task", task), bash("sh -c 'echo > sub'"), {"text": "part done"}, {"text": "done"}]);
    let Some(desk) = Desk::new(script) else { return };
    let desk = desk.allows();
    let outcome = desk.run().await;
    assert_eq!(desk.llm.prompts().len(), 4);
    desk.assert_usage(&outcome);
    assert_eq!(outcome.succeeded(), "done");
    assert_eq!(desk.tools_asked(), ["Bash"]);
    assert!(desk.bench.path("sub").exists());
}
