//! The six tools of workflows, one after the other, as a client uses them.

use serde_json::{Value, json};

use super::client::{BOTH, Client};
use super::{QUICK, SLOW, assert_ran_once};
use crate::dsl::DEADLINE;
use crate::dsl::{Sage, wait_until};

// covers: R16
#[test]
fn a_run_from_its_start_to_its_result() {
    for era in BOTH {
        let sage = Sage::new().template("quick", QUICK);
        let mut client = Client::start(&sage, era);
        assert_eq!(client.tools.len(), 13);
        assert!(
            client.about["instructions"].as_str().unwrap().contains("sage_workflow_execute"),
            "{}",
            client.about
        );
        let done = client
            .call(
                "sage_workflow_execute",
                json!({"feature": "Say hello!", "template": "quick", "options": {"parallel": false}}),
            )
            .good();
        assert_eq!(
            (&done["success"], &done["status"], &done["verdict"]),
            (&true.into(), &"completed".into(), &"succeeded".into())
        );
        assert_eq!(done["results"]["phases"][0]["results"]["word"]["stdout"], "hello\n");
        let metrics = &done["results"]["metrics"];
        for field in [
            "totalTime",
            "totalTokens",
            "contextReloads",
            "phaseCount",
            "sequentialTime",
            "speedup",
            "cacheHitRate",
            "tokensSaved",
            "costUsd",
            "tokensByClass",
        ] {
            assert!(metrics.get(field).is_some(), "{field}: {metrics}");
        }
        let phase = &done["results"]["phases"][0]["metrics"];
        for field in ["duration", "tokens", "operationCount", "parallelOps"] {
            assert!(phase.get(field).is_some(), "{field}: {phase}");
        }
        let listed = client.call("sage_workflow_list", json!({})).good();
        assert_eq!(listed["workflows"][0]["feature"], "say-hello");
        assert_eq!(listed["workflows"][0]["progress"], 100);
        let none = client.call("sage_workflow_list", json!({"filter": "running"})).good();
        assert_eq!(none["workflows"], json!([]));
        let status = client.call("sage_workflow_status", json!({"feature": "say-hello"})).good();
        assert_eq!(
            (&status["status"], &status["steps"][0]["state"]),
            (&"completed".into(), &"succeeded".into())
        );
        assert_eq!(status["progress"], json!({"completed": 2, "total": 2, "percentage": 100}));
        let page = client.call("sage_result", json!({"feature": "say hello", "step": "look/word"})).good();
        assert_eq!((&page["value"]["stdout"], &page["next"]), (&"hello\n".into(), &Value::Null));
        // Nothing is left to do; nothing runs again.
        let again = client.call("sage_workflow_resume", json!({"feature": "say-hello"})).good();
        assert_eq!((&again["status"], &again["resumedFrom"]), (&"completed".into(), &"tell".into()));
        assert_eq!(sage.lines("ran"), ["again"]);
        let again =
            client.call("sage_workflow_resume", json!({"feature": "say-hello", "fromPhase": "tell"})).good();
        assert_eq!((&again["status"], &again["resumedFrom"]), (&"completed".into(), &"tell".into()));
        assert_eq!(sage.lines("ran"), ["again", "again"]);
        client.call("sage_workflow_cancel", json!({"feature": "say-hello"})).error("WORKFLOW_NOT_RUNNING");
        client.hang_up();
    }
}

// covers: R16
#[test]
fn a_run_is_cancelled_and_resumed() {
    let sage = Sage::new().template("slow", SLOW);
    let mut client = Client::start(&sage, BOTH[0]);
    let wait = json!({"feature": "x", "template": "slow", "waitMs": 0});
    let started = client.call("sage_workflow_execute", wait).good();
    assert_eq!((started.get("success"), &started["status"]), (None, &"running".into()));
    wait_until(|| sage.path("up").exists(), DEADLINE, "the slow step");
    let cancelled = client.call("sage_workflow_cancel", json!({"feature": "x"})).good();
    assert_eq!((&cancelled["success"], &cancelled["checkpointSaved"]), (&true.into(), &true.into()));
    assert!(cancelled["cancelledAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(client.call("sage_workflow_status", json!({"feature": "x"})).good()["status"], "cancelled");
    sage.write("go", "");
    let resumed = client.call("sage_workflow_resume", json!({"feature": "x"})).good();
    assert_eq!((&resumed["status"], &resumed["resumedFrom"]), (&"completed".into(), &"p".into()));
    assert_ran_once(&sage);
    // Without its checkpoint there is nothing to go on with.
    std::fs::remove_file(sage.path("go")).unwrap();
    client.call("sage_workflow_execute", json!({"feature": "x", "template": "slow", "waitMs": 0})).good();
    let gone = client.call("sage_workflow_cancel", json!({"feature": "x", "saveCheckpoint": false})).good();
    assert_eq!(gone["checkpointSaved"], false);
    client.call("sage_workflow_resume", json!({"feature": "x"})).error("NO_CHECKPOINT_FOUND");
    sage.assert_nothing_alive();
}

// covers: R16
#[test]
fn templates_are_checked_and_nothing_fails() {
    let sage = Sage::new().template("quick", QUICK);
    let mut client = Client::start(&sage, BOTH[1]);
    let mut check =
        |template: Value| client.call("sage_workflow_validate", json!({"template": template})).good();
    let definition = json!({"name": "t", "phases": [
        {"id": "a", "operations": [{"id": "x", "type": "shell", "params": {"run": "true"}}]},
        {"id": "b", "dependencies": ["a"], "operations": [{"id": "y", "type": "shell", "params": {"run": "true"}}]}]});
    let good = check(definition.clone());
    assert_eq!(
        (&good["valid"], &good["graph"]["nodes"], &good["graph"]["depth"]),
        (&true.into(), &2.into(), &2.into())
    );
    assert_eq!(check(QUICK.into())["valid"], true, "as text");
    assert_eq!(check("quick".into())["valid"], true, "by name");
    let mut broken = definition;
    broken["phases"][1]["dependencies"] = json!(["c"]);
    broken["phases"][0]["operations"][0]["type"] = "shel".into();
    let bad = check(broken);
    let errors = bad["errors"].as_array().unwrap();
    assert!(bad["valid"] == false && errors.len() >= 2, "{bad}");
    for error in errors {
        assert!(error["field"].as_str().unwrap().starts_with("phases["), "{error}");
        assert_eq!(error["severity"], "error");
    }
    for odd in
        [Value::Null, 5.into(), json!([]), "".into(), "no-such".into(), "{".into(), ": - [".into(), json!({})]
    {
        let answer = check(odd.clone());
        assert!(answer["valid"] == false && answer["errors"][0]["message"].is_string(), "{odd}: {answer}");
    }
    let odd = client.call("sage_workflow_validate", json!({"templat": {}})).good();
    assert_eq!(odd["valid"], false);
}
