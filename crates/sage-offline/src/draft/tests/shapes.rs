//! Whatever comes in: never a panic, always a result of the right shape.

use serde_json::{Value, json};

use super::{ask, project, shop};

fn odd() -> Vec<Value> {
    vec![
        json!({}),
        json!({"a": null, "b": 7, "c": true, "d": "", "e": [], "f": {}}),
        json!({"a": "plain text", "b": ["one", "two"], "c": [null, {"findings": [1, null, {"title": 5}]}]}),
        json!({"a": {"findings": "no list", "claims": 3, "openQuestions": {"x": 1}, "requirements": "none", "tasks": 9}}),
        json!({"a": {"tasks": [null, 3, {}, {"title": "t", "files": 3, "dependsOn": "T9", "priority": "urgent"}]}}),
        json!({"a": {"requirements": [null, 3, {"text": 4}, {"id": 1, "text": "x", "evidence": {"file": 1}}]}}),
        json!({"a": {"tasks": [{"id": "A", "title": "a", "dependsOn": ["B"]}, {"id": "B", "title": "b", "dependsOn": ["A"]}]}}),
        json!({"a": {"filesChanged": ["x", 1], "open": [1, "T1", {}], "tests": "none"}}),
        json!({"a": {"findings": [{"title": "π".repeat(500), "evidence": ["../../x:1", ":", "a:b:c", "é.py:0"]}]}}),
    ]
}

// covers: R6, P3
#[test]
fn odd_steps_are_survived_by_all_operations() {
    let (full, empty) = (shop(), project(&[]));
    for operation in crate::draft::OPERATIONS {
        for steps in odd() {
            for dir in [&full, &empty] {
                let result = ask(operation, dir, "payment processing").steps(steps.clone()).done();
                assert!(result["summary"].is_string(), "{operation} {steps}");
            }
        }
    }
}

// covers: R6
#[test]
fn a_title_of_nothing_is_survived() {
    for title in ["", "   ", "!?", "the", "ß ü 漢字"] {
        for operation in crate::draft::OPERATIONS {
            assert!(ask(operation, &shop(), title).done()["summary"].is_string(), "{operation} {title}");
        }
    }
}

// covers: R6
#[test]
fn documents_are_whole_markdown() {
    for operation in ["specify", "plan", "swarm.plan", "devops.prepare", "document"] {
        let document = ask(operation, &shop(), "payment processing").document();
        assert!(document.starts_with("# Payment processing: "), "{document}");
        assert!(document.ends_with('\n') && !document.contains("\n\n\n"), "{operation}\n{document}");
        assert_eq!(document.matches("```").count() % 2, 0, "{document}");
        for table in document.split("\n\n").filter(|block| block.starts_with("| ")) {
            let bars = |line: &str| line.replace("\\|", "").matches('|').count();
            assert!(table.lines().all(|line| bars(line) == bars(table.lines().next().unwrap())), "{table}");
        }
    }
}
