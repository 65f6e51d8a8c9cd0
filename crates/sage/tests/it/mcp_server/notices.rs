//! What people read on stderr is part of the answer for MCP clients.

use serde_json::{Value, json};

use super::client::{BOTH, Client, Reply};
use crate::dsl::{DEADLINE, Sage, wait_until};

const TWO: &str = r#"
name: two
inputs: { depth: 1 }
phases:
  - { id: one, operations: { id: a, type: shell, params: { run: "true" } } }
  - { id: two, dependencies: [one], operations: { id: b, type: shell, params: { run: "test -e go" } } }
"#;

#[track_caller]
fn has_notice(reply: &Reply, text: &str) {
    let notices: Vec<&str> =
        reply.value["notices"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(notices.iter().any(|notice| notice.contains(text)), "no {text:?} in {notices:?}");
    assert!(reply.text.contains(text), "no {text:?} in {}", reply.text);
}

/// Its owner tells the end first and leaves a moment later.
fn is_left_alone(sage: &Sage) {
    let alone = || sage.engine().read("x").is_ok_and(|snapshot| snapshot.owner.is_none());
    wait_until(alone, DEADLINE, "the owner to leave");
}

// covers: R16, R5
#[test]
fn a_lost_journal_and_a_changed_template_are_told_to_the_client() {
    let sage = Sage::new().template("two", TWO);
    let mut client = Client::start(&sage, BOTH[0]);
    let failed = client.call("sage_workflow_execute", json!({"feature": "x", "template": "two"}));
    assert_eq!(failed.value.get("notices"), None, "{}", failed.value);
    is_left_alone(&sage);
    std::fs::remove_file(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    sage.write(".sage/templates/two.yaml", TWO.replace("test -e go", "true"));
    let resumed = client.call("sage_workflow_resume", json!({"feature": "x"}));
    has_notice(&resumed, "repaired the run from what is left");
    has_notice(&resumed, "has changed since this run started");
    sage.write("go", "");
    let done = client.call("sage_workflow_resume", json!({"feature": "x"}));
    has_notice(
        &done,
        "has changed since this run started; the run continues with the old one (hint: sage resume x -t",
    );
    assert_eq!(done.good()["status"], "completed");
}

// covers: R16, R5
#[test]
fn a_torn_journal_is_told_to_the_client() {
    let sage = Sage::new().template("two", TWO);
    let mut client = Client::start(&sage, BOTH[1]);
    client.call("sage_workflow_execute", json!({"feature": "x", "template": "two"}));
    is_left_alone(&sage);
    let journal = sage.latest_dir("x").join("journal.jsonl");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.extend_from_slice(b"{\"v\":1,\"seq\":99");
    std::fs::write(&journal, bytes).unwrap();
    let resumed = client.call("sage_workflow_resume", json!({"feature": "x"}));
    has_notice(&resumed, "note: the journal ended in 15 bytes that were never acknowledged");
}

/// Warnings about the template, the project's operations, pools and limits.
// covers: R16
#[test]
fn warnings_of_a_start_are_told_to_the_client() {
    let odd = r#"
name: odd
phases:
  - id: one
    operations: { id: a, type: shell, pool: quantum, params: { run: "echo {{ title }}" } }
"#;
    let sage = Sage::new().template("odd", odd);
    sage.write(".sage/operations/broken.one.md", "---\nkind: nonsense\n---\nx\n");
    let mut client = Client::start(&sage, BOTH[0]);
    let started = client.call("sage_workflow_execute", json!({"feature": "x", "template": "odd"}));
    has_notice(
        &started,
        "warning: pool `quantum` is not configured, so it limits nothing (hint: [pools] quantum = 2",
    );
    has_notice(&started, "`run` is never rendered");
    has_notice(&started, "broken.one.md:1:1: the file has mistakes; this template does not use it");
    assert_eq!(started.good()["status"], "completed");
}
