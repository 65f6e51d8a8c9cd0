//! `examples/flows`: workflows in code that a stranger can run, without a model and without a key.

use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};
use crate::examples::{copy_into, copy_named};

fn value(sage: &Sage, feature: &str) -> Value {
    sage.args(["result", feature, "main/script"]).run().exit(0).json()
}

// covers: R21, R6
#[test]
fn the_feature_template_in_code_writes_the_same_documents() {
    let sage = copy_named("flows");
    sage.args(["run", "saved searches", "--quiet"]).run().exit(3);
    assert_eq!(value(&sage, "saved-searches")["sides"], 6);
    for document in ["patterns.md", "spec.md", "plan.md"] {
        let path = sage.path(&format!("docs/specs/saved-searches/{document}"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
        assert!(text.lines().count() > 5, "{document}: {text}");
    }
    for step in [
        "research/market",
        "research/skills",
        "specification/specify",
        "planning/tickets",
        "implementation/implement",
    ] {
        assert_eq!(sage.state_of("saved-searches", step), "succeeded");
    }
    let spec = std::fs::read_to_string(sage.path("docs/specs/saved-searches/spec.md")).unwrap();
    assert!(spec.contains("notes/search.py"), "it names the project's own code: {spec}");
}

// covers: R21, R7
#[test]
fn mend_goes_round_until_the_tests_pass() {
    let sage = copy_named("flows");
    let before = std::fs::read_to_string(sage.path("broken/add.sh")).unwrap();
    sage.args(["run", "make it green", "-t", "mend"]).run().exit(0).stdout_has("round 2");
    let value = value(&sage, "make-it-green");
    assert_eq!(value["green"], true);
    let mended: Vec<&Value> =
        value["rounds"].as_array().unwrap().iter().map(|round| &round["mended"]).collect();
    assert_eq!(mended, ["add.sh adds now", "greet.sh says Hello"]);
    assert_eq!(std::fs::read_to_string(sage.path("broken/add.sh")).unwrap(), before);
}

// covers: R17, R21
#[test]
fn the_agents_of_the_example_work_after_the_line_of_its_readme() {
    let sage = copy_into(Sage::untrusted(), "flows");
    let refused = sage.args(["run", "make it green", "-t", "mend"]).run();
    assert_ne!(refused.code, 0, "{}", refused.stderr);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        told.contains("agent `mender` of sage.toml is not trusted; to trust it, type: sage trust"),
        "{told}"
    );
    let readme = std::fs::read_to_string(sage.path("README.md")).unwrap();
    assert!(readme.contains("sage -C examples/flows trust "), "{readme}");
    sage.sage("trust --yes").exit(0).stdout_has("agents.mender").stdout_has("agents.reviewer");
    sage.sage("resume make-it-green").exit(0);
}

// covers: R21, R7
#[test]
fn mend_gives_up_after_its_rounds_and_goes_on_with_more() {
    let sage = copy_named("flows");
    let run = ["run", "x", "-t", "mend", "-i", "rounds=1"];
    sage.args(run).run().exit(1).stdout_has("still red after 1 rounds").stdout_has("mend.ts:");
}

// covers: R21, R5, P8
#[test]
fn five_hundred_files_are_counted_once_each_whoever_is_killed() {
    let sage = copy_named("flows");
    let running = sage.args(["run", "count words", "-t", "mapreduce", "--quiet"]).spawn();
    let begun = || {
        let known = sage.engine().latest("count-words");
        known.is_some() && sage.journal("count-words").succeeded().len() > 60
    };
    wait_until(begun, DEADLINE, "sixty files");
    running.kill();
    sage.args(["resume", "count words", "--quiet"]).run().exit(0);
    let words: u64 = (1..=500).map(|n| n % 7 + 1).sum();
    let value = value(&sage, "count-words");
    assert_eq!((&value["files"], &value["words"]), (&json!(500), &json!(words)), "{value}");
    sage.journal("count-words").assert_nothing_repeated();
    let report = std::fs::read_to_string(sage.path("dist/words.md")).unwrap();
    assert!(report.contains(&format!("500 files, {words} words")), "{report}");
}

// covers: R21
#[test]
fn the_review_of_claude_code_finds_what_is_broken() {
    let sage = copy_named("flows");
    sage.args(["run", "look at it", "-t", "review", "--agent", "reviewer"]).run().exit(0);
    let found = json!([{"file": "broken/add.sh", "real": ["it takes away"]}, {"file": "broken/greet.sh", "real": ["a typo: Helo"]}]);
    assert_eq!(value(&sage, "look-at-it"), found);
}

// covers: R21
#[test]
fn all_of_it_is_valid_and_can_be_drawn() {
    let sage = copy_named("flows");
    for name in ["feature", "mend", "mapreduce", "review"] {
        sage.args(["validate", name]).run().exit(0);
        sage.args(["graph", name]).run().exit(0).stdout_has("script");
        sage.args(["run", "x", "-t", name, "--dry-run"]).run().exit(0);
    }
}
