use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ask, project, shop};

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

// covers: R6
#[test]
fn parts_share_no_file_and_hold_every_task_once() {
    for number in [1, 2, 3, 5] {
        let result = ask("swarm.plan", &shop(), "payment processing").params(json!({"parts": number})).done();
        let parts = result["parts"].as_array().unwrap();
        assert_eq!(parts.len(), number);
        let (mut files, mut tasks) = (BTreeSet::new(), BTreeSet::new());
        for part in parts {
            for file in strings(&part["files"]) {
                assert!(files.insert(file.to_string()), "{file} is in two parts");
            }
            for task in part["tasks"].as_array().unwrap() {
                assert!(tasks.insert(task["id"].as_str().unwrap().to_string()), "{task} is in two parts");
            }
        }
        assert_eq!(tasks.len(), result["tasks"].as_array().unwrap().len());
    }
}

// covers: R6
#[test]
fn three_parts_by_default_and_nonsense_is_refused() {
    let parts = |params: Value| ask("swarm.plan", &project(&[]), "x").params(params).try_it();
    assert_eq!(parts(json!({})).unwrap()["parts"].as_array().unwrap().len(), 3);
    let refused = parts(json!({"parts": 0})).unwrap_err().to_string();
    assert_eq!(refused, "params.parts is 0; it can be 1 to 32");
}

// covers: R6
#[test]
fn an_implementer_without_a_model_opens_its_own_part_only() {
    let part =
        json!({"id": "part-2", "title": "x", "files": ["a.py"], "tasks": [{"id": "T4", "title": "Adapt a"}]});
    let result = ask("swarm.implement", &shop(), "payment processing").item(part).done();
    assert_eq!((&result["open"][0]["id"], &result["part"]), (&json!("T4"), &json!("part-2")));
    assert_eq!(result["open"].as_array().unwrap().len(), 1);
    let empty = ask("swarm.implement", &shop(), "x").item(json!({"id": "part-3", "tasks": []})).done();
    assert_eq!(empty["summary"], json!("Nothing to do: no task and no finding asks for a change."));
}

// covers: S5
#[test]
fn an_audit_sees_what_was_left_and_what_two_changed() {
    let steps = json!({"swarm/implement": [
        {"filesChanged": ["shop/payments.py"], "done": ["T1"], "open": [], "tests": {"ran": true, "passed": true}},
        {"filesChanged": ["shop/payments.py"], "done": [], "open": [{"id": "T2", "why": "no time"}],
            "tests": {"ran": false, "passed": null, "detail": "no runner"}}]});
    let part = json!({"id": "part-2", "tasks": [{"id": "T2", "title": "x", "files": ["shop/payments.py"]}]});
    let result = ask("swarm.audit", &shop(), "payment processing").steps(steps).item(part).done();
    let titles: Vec<&str> =
        result["findings"].as_array().unwrap().iter().map(|found| found["title"].as_str().unwrap()).collect();
    assert_eq!(
        titles,
        [
            "T2 was left open",
            "swarm/implement[1] changed 1 file and no test was run",
            "`shop/payments.py` was changed by 2 parts",
            "1 of 2 public functions in `shop/payments.py` are called by no test",
        ]
    );
    let claims = result["claims"].as_array().unwrap();
    let says = |subject: &str, predicate: &str, value: Value| {
        claims.iter().any(|c| c["subject"] == subject && c["predicate"] == predicate && c["value"] == value)
    };
    assert!(says("T2", "done", json!(false)), "{claims:?}");
    assert!(says("shop/payments.py", "changed by", json!(2)), "{claims:?}");
    assert!(!says("T1", "done", json!(true)), "another part's\n{claims:?}");
}
