//! `sage doctor`: what is missing is told with what to type, and nothing is changed.

use serde_json::Value;

use crate::agents_cli::NOTHING_INSTALLED;
use crate::dsl::{Outcome, Sage};

const GOOD: &str = "name: t\nphases:\n  - id: p\n    operations: { id: a, type: shell, params: { run: \"echo $$ > pid; sleep 300\" } }\n";
const ANY_PROGRAM: &str = "[agents.mine]\ncommand = [\"cat\"]\n";

fn check(outcome: &Outcome, name: &str) -> Value {
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let found = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no {name} in {report}"))
}

// covers: R23
#[test]
fn a_project_that_can_work_is_well() {
    let sage = Sage::new().template("t", GOOD);
    sage.write("sage.toml", format!("{NOTHING_INSTALLED}{ANY_PROGRAM}"));
    let told = sage.sage("doctor").exit(0).stdout_has("\nall ").stdout_has("ok    git ");
    assert_eq!(told.stderr, "");
    let report = sage.sage("doctor --json").exit(0);
    for name in [
        "state",
        "disk",
        "settings",
        "templates",
        "agents",
        "limits",
        "background",
        "runs",
        "files",
        "clock",
        "shared",
    ] {
        assert_eq!(check(&report, name)["state"], "good", "{name}");
    }
    assert!(!sage.path(".sage/state").exists(), "nothing is made by looking");
    let bare = Sage::bare();
    bare.sage("doctor");
    assert!(!bare.path(".sage").exists() && !bare.user_state().exists(), "nothing is made by looking");
}

// covers: R23
#[test]
fn what_work_needs_and_is_not_there_is_a_failure_with_a_way_out() {
    let sage = Sage::new().template("t", GOOD).template("broken", "name: broken\nphases: 7\n");
    sage.write("sage.toml", format!("agent = \"codex\"\n{NOTHING_INSTALLED}"));
    let report = sage.sage("doctor --json").exit(1);
    assert_eq!(check(&report, "agents")["state"], "bad");
    assert!(check(&report, "agents")["hints"].to_string().contains("npm install -g @openai/codex"));
    assert_eq!(check(&report, "templates")["hints"][0], "sage validate broken");
    sage.sage("doctor").exit(1).stdout_has("FAIL").stdout_has("> sage validate broken");
    sage.write("sage.toml", "paralel = 3\n");
    let report = sage.sage("doctor --json").exit(1);
    assert!(check(&report, "settings")["says"].as_str().unwrap().contains("paralel"));
    assert_eq!(check(&report, "clock")["state"], "good", "the rest is looked at all the same");
}

// covers: R23
#[test]
fn without_a_coding_agent_the_default_one_is_enough() {
    let sage = Sage::new().template("t", GOOD);
    for agent in ["", "agent = \"offline\"\n"] {
        sage.write("sage.toml", format!("{agent}{NOTHING_INSTALLED}"));
        let report = sage.sage("doctor --json").exit(0);
        let agents = check(&report, "agents");
        assert_eq!(agents["state"], "warn", "{agents}");
        assert!(agents["says"].as_str().unwrap().starts_with("only `offline` is ready"), "{agents}");
        assert!(agents["hints"].to_string().contains("npm install -g @openai/codex"));
    }
}

// covers: R23, R15
#[test]
fn a_place_that_is_not_a_directory_is_told() {
    let sage = Sage::bare();
    sage.write("sage.toml", ANY_PROGRAM);
    assert_eq!(check(&sage.sage("doctor --json").exit(0), "state")["hints"][0], "sage init");
    sage.write(".sage", "a file");
    assert_eq!(check(&sage.sage("doctor --json").exit(1), "state")["state"], "bad");
    let report = sage.args(["doctor", "--json"]).env("SAGE_DIR", ".state").run().exit(0);
    assert_eq!(check(&report, "state")["state"], "warn");
}

// covers: R23, R5
#[test]
fn a_run_whose_owner_died_is_not_forgotten() {
    let sage = Sage::new().template("t", GOOD);
    sage.write("sage.toml", ANY_PROGRAM);
    let mut run = sage.spawn("run x -t t");
    run.until(|| sage.path("pid").exists(), "the step");
    assert_eq!(check(&sage.sage("doctor --json").exit(0), "runs")["state"], "good");
    assert!(run.kill());
    let report = sage.sage("doctor --json").exit(0);
    assert_eq!(check(&report, "runs")["hints"][0], "sage resume x");
    sage.assert_nothing_alive();
}
