//! What Claude Code asks, and what follows from the answer.

use serde_json::json;

use super::claude::CLAUDE;
use super::play::play;
use super::row::{DONE, NOBODY, Row, Scene, row};

/// It cannot be read for certain, so that it is a question.
const COMMAND: &str = "sh -c 'echo ran >> ran'";

fn asks(name: &'static str) -> Row {
    row(name).turns(json!([(CLAUDE.shell)(COMMAND), {"text": DONE}])).requests(2)
}

fn writes(name: &'static str, path: &str) -> Row {
    let write = json!({"tool": {"name": "Write", "input": {"file_path": path, "content": "made"}}});
    row(name).turns(json!([write, {"text": DONE}])).requests(2)
}

fn ran(it: &Scene<'_>) -> Vec<String> {
    it.sage.lines("ran")
}

/// What the model was told of its tool.
fn heard(it: &Scene<'_>, text: &str) {
    assert!(it.told().contains(text), "the model did not hear `{text}`");
}

fn rows() -> Vec<Row> {
    vec![
        asks("allowed")
            .meanwhile(|it| {
                it.wait_for_question();
                it.sage.sage("approve x p/one").exit(0);
            })
            .afterwards(|it| assert_eq!(ran(it), ["ran"])),
        asks("denied with a reason")
            .meanwhile(|it| {
                it.wait_for_question();
                it.sage.args(["reject", "x", "p/one", "-m", "not in production"]).run().exit(0);
            })
            .afterwards(|it| {
                assert!(ran(it).is_empty());
                heard(it, "not in production");
            }),
        asks("allowed, edited")
            .meanwhile(|it| {
                it.wait_for_question();
                let edited = json!({"command": "echo edited >> edited", "description": "work"}).to_string();
                it.sage.args(["approve", "x", "p/one", "--edit", &edited]).run().exit(0);
            })
            .afterwards(|it| assert_eq!((ran(it), it.sage.lines("edited")), (vec![], vec!["edited".into()]))),
        asks("nobody answers").settings(NOBODY).afterwards(|it| {
            assert!(ran(it).is_empty());
            heard(it, "no answer before");
        }),
        asks("denied by a rule")
            .settings("[approvals]\ndeny = [\"*echo ran*\"]\n")
            .afterwards(|it| assert!(ran(it).is_empty())),
        asks("allowed by a rule")
            .settings("[approvals]\ncommands = [\"sh -c *\"]\n")
            .afterwards(|it| assert_eq!(ran(it), ["ran"])),
        writes("file of the project", "@root/made.txt")
            .afterwards(|it| assert_eq!(it.sage.lines("made.txt"), ["made"])),
        writes("file outside of it", "@root/../made.txt")
            .settings(NOBODY)
            .afterwards(|it| assert!(!it.sage.outside().join("made.txt").exists())),
        writes("file, as an auditor", "@root/made.txt")
            .fields("role: auditor")
            .afterwards(|it| assert!(!it.sage.path("made.txt").exists())),
    ]
}

// covers: R17, S4, S6
#[test]
fn asked() {
    play(&CLAUDE, rows());
}
