//! Each template that comes with Sage, with the real Claude Code behind its agents and a scripted model behind that.

use std::process::Command;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::real_agents::project;

/// One answer that has every field that any of the operations asks for.
fn answer() -> Value {
    let finding = json!({"title": "Cards first", "detail": "Most pay so.", "relevance": 0.9, "evidence": ["shop.py:1"]});
    let claim = json!({"subject": "payment", "predicate": "method", "value": "card", "confidence": 0.8, "evidence": ["shop.py:1"]});
    let task = json!({"id": "T1", "title": "Take cards", "detail": "In shop.py", "files": ["shop.py"], "dependsOn": [],
        "acceptance": ["python3 -m unittest"], "priority": "P1"});
    let part = |n: u32| json!({"id": format!("part-{n}"), "title": format!("Part {n}"), "files": [format!("{n}.py")], "tasks": [task]});
    json!({
        "summary": "All is known.", "findings": [finding], "claims": [claim], "openQuestions": [], "method": "read",
        "document": "# The document\n", "requirements": [{"id": "R1", "text": "It takes cards", "evidence": []}],
        "files": ["shop.py"], "tasks": [task], "parts": [part(1), part(2), part(3)],
        "filesChanged": [], "done": ["T1"], "open": [], "tests": {"ran": false, "passed": null, "detail": ""}, "tickets": [],
        "verdict": "APPROVED", "issues": [],
    })
}

fn git(sage: &Sage, args: &[&str]) {
    let identity = ["-c", "user.name=me", "-c", "user.email=me@localhost"];
    let done = Command::new("git").args(identity).args(args).current_dir(sage.root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a template to its end; says how many of its steps Claude Code did. The model says that all is done and changes
/// nothing, which is no plain success where something was to be changed.
fn run(template: &str, agents: usize) {
    let script = json!([
        {"tool": {"name": "StructuredOutput", "input": answer()}, "usage": {"input_tokens": 50, "output_tokens": 5}},
    ]);
    let model = FakeLlm::start(script).unwrap();
    let Some(sage) = project(&model, "name: t\nphases: []\n") else { return };
    sage.write("shop.py", "def charge(card):\n    return card\n");
    sage.write(
        "tests/test_shop.py",
        "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n",
    );
    sage.write(".gitignore", ".sage\n__pycache__\n");
    git(&sage, &["init", "-q"]);
    git(&sage, &["add", "-A"]);
    git(&sage, &["commit", "-qm", "start"]);
    let (code, verdict) = if template == "audit" { (0, "succeeded") } else { (3, "degraded") };
    sage.sage(&format!("run x -t {template} --agent claude --quiet")).exit(code);
    let status = sage.status("x");
    assert_eq!(status["verdict"], verdict, "{status:#}");
    assert_eq!(status["reasons"].is_array(), code == 3, "{status:#}");
    let done = |step: &&Value| step["tokens"].as_u64() > Some(0);
    let steps = status["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(done).count(), agents, "{status:#}");
    assert_eq!(status["metrics"]["tokensByClass"]["unattributed"], 0);
    sage.assert_nothing_alive();
}

// covers: R6
#[test]
fn feature_with_the_real_claude_code() {
    run("feature", 8);
}

// covers: R6
#[test]
fn bugfix_with_the_real_claude_code() {
    run("bugfix", 6);
}

// covers: R6
#[test]
fn enhancement_with_the_real_claude_code() {
    run("enhancement", 7);
}

// covers: P2
#[test]
fn delivery_with_the_real_claude_code() {
    run("delivery", 8);
}

// covers: P2
#[test]
fn swarm_with_the_real_claude_code() {
    run("swarm", 8);
}

// covers: S5
#[test]
fn audit_with_the_real_claude_code() {
    run("audit", 3);
}
