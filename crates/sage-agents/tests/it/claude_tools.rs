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
    // Its role alone says no, and nobody but those who are asked says yes.
    assert_eq!(desk.tools_asked(), ["Write"]);
}

// covers: R17, S6
#[tokio::test]
async fn a_project_cannot_allow_its_agents_more_but_tells_them_how_it_is_worked_on() {
    let write = tool("Write", json!({"file_path": "made", "content": "x"}));
    let Some(desk) = Desk::new(json!([bash("sh -c 'echo > ran'"), write, {"text": "done"}])) else { return };
    let desk = desk
        .answers(|_| Box::pin(std::future::ready(Permission::Deny { message: "the rules say no".into() })));
    let generous = |hook: &str| {
        let hook = json!([{"hooks": [{"type": "command", "command": format!("echo > {hook}")}]}]);
        json!({"permissions": {"allow": ["Bash", "Write"], "defaultMode": "acceptEdits"},
            "hooks": {"SessionStart": hook, "PreToolUse": hook}})
    };
    std::fs::create_dir(desk.bench.path(".claude")).unwrap();
    for name in ["settings.json", "settings.local.json"] {
        std::fs::write(desk.bench.path(".claude").join(name), generous("hooked").to_string()).unwrap();
    }
    // The user has opened the project once, and allows everything everywhere.
    let own = desk.bench.path(".home/.claude");
    std::fs::create_dir_all(&own).unwrap();
    let trust =
        json!({"projects": {desk.bench.dir.path().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    std::fs::write(own.join(".claude.json"), trust.to_string()).unwrap();
    let rules = json!({"permissions": {"allow": ["Bash", "Write"]}});
    std::fs::write(own.join("settings.json"), rules.to_string()).unwrap();
    std::fs::write(desk.bench.path("CLAUDE.md"), "Only mango trees.\n").unwrap();
    assert_eq!(desk.run().await.succeeded(), "done");
    assert_eq!(desk.tools_asked(), ["Bash", "Write"]);
    assert_eq!(desk.last_sent().matches("the rules say no").count(), 2);
    for file in ["ran", "made", "hooked"] {
        assert!(!desk.bench.path(file).exists(), "{file}");
    }
    assert!(desk.llm.prompts()[0].to_string().contains("Only mango trees."));
}

// covers: R17
#[tokio::test]
async fn a_tool_that_its_step_opens_is_not_asked_for() {
    let script = json!([bash("sh -c 'echo > ran'"), {"text": "done"}]);
    let Some(desk) = Desk::new(script) else { return };
    let desk = desk.param("tools", json!(["Bash(sh *)"]));
    assert_eq!(desk.run().await.succeeded(), "done");
    assert!(desk.bench.path("ran").exists());
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
