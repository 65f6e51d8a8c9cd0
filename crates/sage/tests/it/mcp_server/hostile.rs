//! Arguments that no honest client would send. Each is refused with its name; nothing hangs, grows or is written.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::QUICK;
use super::client::{Client, Era};
use crate::dsl::Sage;

const TOOLS: [&str; 12] = [
    "sage_workflow_execute",
    "sage_workflow_resume",
    "sage_workflow_list",
    "sage_workflow_status",
    "sage_workflow_cancel",
    "sage_inbox",
    "sage_session",
    "sage_handoff",
    "sage_result",
    "sage_tools_search",
    "sage_code_run",
    "sage_skill",
];

// covers: R16
#[test]
fn unknown_and_wrong_arguments_are_named() {
    let sage = Sage::new();
    let mut client = Client::start(&sage, Era::Session);
    for tool in TOOLS {
        let definition = client.tools.iter().find(|it| it["name"] == tool).unwrap().clone();
        let properties = definition["inputSchema"]["properties"].as_object().unwrap().clone();
        let mut base = json!({});
        for name in definition["inputSchema"]["required"].as_array().into_iter().flatten() {
            base[name.as_str().unwrap()] = "x".into();
        }
        let mut odd = base.clone();
        odd["surprise"] = 1.into();
        let error = client.call(tool, odd).error("WORKFLOW_VALIDATION_ERROR");
        assert!(error["message"].as_str().unwrap().contains("surprise"), "{tool}: {error}");
        for (name, schema) in properties {
            // Fields that belong to another action of the tool are not read at all.
            let own = ["inbox", "session", "handoff", "skill"].iter().any(|it| tool == format!("sage_{it}"));
            if own && name != "action" {
                continue;
            }
            let mut wrong = base.clone();
            wrong[&name] = if schema["type"] == "object" { json!([1]) } else { json!({"a": 1}) };
            let error = client.call(tool, wrong).error("WORKFLOW_VALIDATION_ERROR");
            assert!(
                error["message"].as_str().unwrap().contains(&format!("{name}`")),
                "{tool}.{name}: {error}"
            );
        }
    }
    assert!(!sage.path(".sage/state").exists(), "nothing was begun");
}

// covers: R16
#[test]
fn ten_megabytes_are_refused_in_a_few_words() {
    let sage = Sage::new().template("quick", QUICK);
    let mut client = Client::start(&sage, Era::Stateless);
    let long = "a".repeat(10 << 20);
    for (tool, args) in [
        ("sage_workflow_execute", json!({"feature": long})),
        ("sage_workflow_execute", json!({"feature": "x", "template": long})),
        ("sage_workflow_execute", json!({"feature": "x", "options": {"agent": long}})),
        ("sage_workflow_status", json!({"feature": long})),
        ("sage_workflow_list", json!({"filter": long})),
        ("sage_session", json!({"action": "show", "name": long})),
        ("sage_skill", json!({"action": "search", "query": long})),
        ("sage_inbox", json!({"action": "wake", "type": "ERROR", "session": "s", "message": long})),
        ("sage_code_run", json!({"code": long})),
        ("sage_result", json!({"feature": "x", long.clone(): 1})),
    ] {
        let started = Instant::now();
        let reply = client.call(tool, args);
        assert!(reply.is_error && reply.value.to_string().len() < 10_000, "{tool}");
        assert!(started.elapsed() < Duration::from_secs(20), "{tool}");
    }
    let answer = client.call("sage_workflow_validate", json!({"template": long})).good();
    assert_eq!(answer["valid"], false);
    assert!(answer.to_string().len() < 10_000);
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep: Value = serde_json::from_str(&deep).unwrap();
    client.call("sage_workflow_validate", json!({"template": {"name": deep}})).good();
    client.call("sage_workflow_list", json!({})).good();
}

// covers: R16
#[test]
fn names_lead_nowhere_else() {
    let sage = Sage::new().template("quick", QUICK);
    let secret = sage.outside().join("secret.yaml");
    std::fs::write(&secret, "password: hunter2\n").unwrap();
    std::os::unix::fs::symlink(&secret, sage.path("link.yaml")).unwrap();
    let before = sage.listing();
    let mut client = Client::start(&sage, Era::Session);
    for feature in ["../../etc/passwd", "/etc/passwd", "..", "a/../b", "\u{202e}x", "x\0y", "", " ", "支付"]
    {
        for tool in [
            "sage_workflow_execute",
            "sage_workflow_status",
            "sage_workflow_resume",
            "sage_workflow_cancel",
            "sage_result",
        ] {
            client.call(tool, json!({"feature": feature})).error("WORKFLOW_VALIDATION_ERROR");
        }
    }
    let outside = secret.display().to_string();
    for template in [
        outside.as_str(),
        "../secret.yaml",
        "link.yaml",
        "/etc/passwd",
        ".sage/../../secret.yaml",
        "no\0.yaml",
    ] {
        let args = json!({"feature": "x", "template": template});
        let error = client.call("sage_workflow_execute", args).error("WORKFLOW_VALIDATION_ERROR");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    for name in ["../../secret", "/etc", "a/b", ""] {
        for action in ["show", "delete"] {
            assert!(
                client.call("sage_session", json!({"action": action, "name": name})).is_error,
                "{action} {name}"
            );
        }
        assert!(
            client.call("sage_session", json!({"action": "new", "agent": "fake", "name": name})).is_error,
            "{name}"
        );
        assert!(client.call("sage_handoff", json!({"action": "show", "id": name})).is_error, "{name}");
        assert!(client.call("sage_skill", json!({"action": "show", "name": name})).is_error, "{name}");
    }
    assert_eq!(sage.listing(), before);
    // A file of the project is one.
    let done = client
        .call("sage_workflow_execute", json!({"feature": "x", "template": ".sage/templates/quick.yaml"}));
    assert_eq!(done.good()["status"], "completed");
}
