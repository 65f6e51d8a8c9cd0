//! The example projects of this repository, as the feature template takes them: research, specification, plan.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Ask, step};
use crate::request::Request;

/// A copy: the examples themselves may be in use.
fn example(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy(&examples().join(name), dir.path());
    dir
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let written = ["target", "node_modules", "specs", "state"].iter().any(|skipped| name == *skipped);
        if path.is_dir() && !written {
            copy(&path, &to.join(&name));
        } else if path.is_file() {
            std::fs::copy(&path, to.join(&name)).unwrap();
        }
    }
}

struct Drafted {
    spec: Value,
    plan: Value,
}

fn perform(operation: &str, project: &Path, title: &str, steps: &Map<String, Value>) -> Value {
    let feature = title.replace(' ', "-");
    let (operation, title) = (operation.to_string(), title.to_string());
    let request = Request { operation, project: project.into(), feature, title, ..Request::default() };
    Ask { request }.steps(Value::Object(steps.clone())).done()
}

/// All steps of the feature template that this crate performs, each with the results of those before it.
fn drafted(project: &Path, title: &str) -> Drafted {
    let mut steps = Map::new();
    let perform = |operation: &str, steps: &Map<String, Value>| perform(operation, project, title, steps);
    for (id, operation) in [
        ("research/market", "research.market"),
        ("research/competitive", "research.competitive"),
        ("research/practices", "research.practices"),
        ("research/patterns", "patterns.extract"),
        ("research/standards", "standards.discover"),
    ] {
        let result = perform(operation, &Map::new());
        steps.insert(id.to_string(), step(result));
    }
    let spec = perform("specify", &steps);
    steps.insert("specification/specify".to_string(), step(spec.clone()));
    let plan = perform("plan", &steps);
    Drafted { spec, plan }
}

/// Conventions are told in at most eight lines, and none of them is a task.
#[track_caller]
fn assert_conventions(drafted: &Drafted) {
    let spec = drafted.spec["document"].as_str().unwrap();
    let section = spec.split("\n## ").find(|section| section.starts_with("Conventions to keep")).unwrap();
    assert!(section.lines().filter(|line| line.starts_with("- ")).count() <= 8, "{section}");
    for task in drafted.plan["tasks"].as_array().unwrap() {
        assert!(!task["title"].as_str().unwrap().starts_with("Errors are"), "{task}");
    }
}

#[track_caller]
fn assert_names(drafted: &Drafted, names: &[&str]) {
    for document in [&drafted.spec, &drafted.plan] {
        let text = document["document"].as_str().unwrap();
        for name in names {
            assert!(text.contains(&format!("`{name}`")), "no `{name}` in\n{text}");
        }
    }
}

// covers: R6
#[test]
fn the_ledgers_currencies_are_in_its_amounts() {
    let dir = example("ledger");
    let drafted = drafted(dir.path(), "multi currency");
    assert_conventions(&drafted);
    assert_names(&drafted, &["src/money.rs", "Amount", "src/journal.rs", "src/report.rs", "Amount::plus"]);
    let spec = drafted.spec["document"].as_str().unwrap();
    assert!(
        spec.contains("`Amount`: its TODO in line 8 speaks of it, `Amount`: named in `docs/decisions.md:7`"),
        "{spec}"
    );
    assert!(spec.contains("- **R1** (known gap) `Amount`: \"multi currency."), "{spec}");
    assert!(!spec.contains("reversed twice"), "a mark about something else\n{spec}");
    assert!(spec.contains("rustfmt, 4 settings: `rustfmt.toml`"), "{spec}");
}

// covers: R6
#[test]
fn the_boards_due_dates_are_in_its_cards() {
    let dir = example("board");
    let drafted = drafted(dir.path(), "due dates");
    assert_conventions(&drafted);
    assert_names(&drafted, &["src/board.ts", "Card", "addCard", "src/api.ts", "web/view.ts"]);
    let spec = drafted.spec["document"].as_str().unwrap();
    assert!(!spec.contains("audit trail"), "a mark about something else\n{spec}");
}

// covers: R6
#[test]
fn the_shops_payments_are_in_its_payments() {
    let dir = example("shop");
    let drafted = drafted(dir.path(), "payment processing");
    assert_conventions(&drafted);
    assert_names(&drafted, &["shop/payments.py", "charge", "refund"]);
}

// covers: R6
#[test]
fn a_plan_for_what_is_near_to_nothing_asks_and_checks_only() {
    let dir = example("board");
    let drafted = drafted(dir.path(), "single sign-on");
    let tasks = drafted.plan["tasks"].as_array().unwrap();
    let titles: Vec<&str> = tasks.iter().map(|task| task["title"].as_str().unwrap()).collect();
    assert!(titles[0].starts_with("Answer the "), "{titles:?}");
    assert_eq!(titles[1..], ["Decide where it belongs, and write its first test", "Check the whole"]);
}
