//! Projects for tests, and each operation on one.

use std::path::Path;

use super::*;

mod shop;

/// A project of these files in a folder of its own.
pub(crate) fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), files);
    dir
}

pub(crate) fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Writes files and commits them, as git itself does it.
pub(crate) fn commit(root: &Path, files: &[(&str, &str)], message: &str) {
    write(root, files);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", message]);
}

pub(crate) fn git(root: &Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn asked(operation: &str, root: &Path, title: &str) -> Request {
    Request { operation: operation.into(), project: root.into(), title: title.into(), ..Request::default() }
}

fn reported(operation: &str, root: &Path, title: &str, places: &Places) -> Report {
    report(&asked(operation, root, title), places).unwrap()
}

// covers: R6
#[test]
fn an_empty_project_is_answered_with_questions() {
    let dir = tempfile::tempdir().unwrap();
    for operation in OPERATIONS {
        for title in ["payment processing", ""] {
            let report = reported(operation, dir.path(), title, &Places::default());
            assert_eq!(report.findings, [], "{operation}");
            assert!(
                !report.summary.is_empty() && report.method.starts_with("offline: "),
                "{operation}: {report:?}"
            );
            assert!(!report.open_questions.is_empty(), "{operation}");
            assert_eq!(report.open_questions[0].starts_with("What is it about?"), title.is_empty());
        }
    }
}

// covers: R6
#[test]
fn the_whole_is_json_with_the_names_of_the_contract() {
    let dir = project(&[("CLAUDE.md", "Never log secrets.\n"), ("go.mod", "module x\n")]);
    let value = crate::perform(&asked("standards.discover", dir.path(), "logging")).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["summary", "findings", "claims", "openQuestions", "method"]);
    assert_eq!(value["findings"][0]["title"], "Never log secrets.");
    assert_eq!(value["findings"][0]["evidence"], serde_json::json!(["CLAUDE.md:1"]));
    let claim = serde_json::json!({"subject": "command", "predicate": "test", "value": "go test ./...",
        "evidence": ["go.mod:1"], "confidence": 0.9});
    assert!(value["claims"].as_array().unwrap().contains(&claim), "{value:#}");
    let unknown = crate::perform(&asked("research.nothing", dir.path(), "x")).unwrap_err();
    assert!(unknown.to_string().contains("research.nothing"));
}

// covers: R6
#[test]
fn answers_are_the_same_every_time() {
    let (dir, places) = shop::shop();
    for operation in OPERATIONS {
        let once = reported(operation, dir.path(), "card payments", &places);
        assert_eq!(once, reported(operation, dir.path(), "card payments", &places));
        let falling = once.findings.windows(2).all(|two| two[0].relevance >= two[1].relevance);
        assert!(falling && once.findings.iter().all(|f| (0.0..=1.0).contains(&f.relevance)), "{operation}");
    }
}
