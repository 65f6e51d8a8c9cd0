//! Parallelism can be limited and switched off, and is there when it is not (R1, P10).

use crate::dsl::Sage;

const WIDE: &str = r#"
name: t
phases:
  - id: p
    operations: { id: s, type: shell, foreach: "[range(6)]", params: { run: "sleep 0.15" } }
"#;

// covers: P10
#[test]
fn parallelism_can_be_switched_off_by_flag_and_environment() {
    let sage = Sage::new().template("t", WIDE);
    let run = |feature: &str| sage.args(["run", feature, "-t", "t"]);
    run("flag-a").run().exit(0);
    assert!(sage.journal("flag-a").most_at_once() > 1, "without a switch they overlap");
    sage.args(["run", "flag-b", "-t", "t", "--sequential"]).run().exit(0);
    run("flag-c").env("SAGE_PARALLEL", "0").run().exit(0);
    run("flag-d").env("ENABLE_PARALLEL_EXECUTION", "false").run().exit(0);
    run("flag-e").env("SAGE_PARALLEL_LIMIT", "1").run().exit(0);
    sage.write("sage.toml", "[switches]\nparallel = false\n");
    run("flag-f").run().exit(0);
    for feature in ["flag-b", "flag-c", "flag-d", "flag-e", "flag-f"] {
        assert_eq!(sage.journal(feature).most_at_once(), 1, "{feature}");
    }
    let config = sage.args(["config", "--json"]).env("SAGE_PARALLEL", "1").run().exit(0).json();
    let settings = config["settings"].as_array().unwrap();
    let switch = settings.iter().find(|setting| setting["name"] == "switches.parallel").unwrap();
    assert_eq!((&switch["value"], &switch["source"]), (&"1".into(), &"environment SAGE_PARALLEL".into()));
}

// covers: R1, R13
#[test]
fn the_limit_holds_and_is_used() {
    let sage = Sage::new().template("t", WIDE);
    for limit in [2, 3] {
        let feature = format!("limit-{limit}");
        sage.args(["run", &feature, "-t", "t", "--parallel", &limit.to_string()]).run().exit(0);
        assert_eq!(sage.journal(&feature).most_at_once(), limit);
    }
}

/// Sub-workflows and fan-outs hold no slot that their own children need.
// covers: R13, LESSONS "Resume"
#[test]
fn nesting_at_limit_1_does_not_deadlock() {
    let outer = "name: t\nphases:\n  - id: p\n    operations: { id: w, type: workflow, foreach: \"[1,2]\", params: { template: mid } }\n";
    let mid = "name: mid\nphases:\n  - id: p\n    operations: { id: w, type: workflow, foreach: \"[1,2]\", maxParallel: 1, params: { template: inner } }\n";
    let inner = "name: inner\nphases:\n  - id: p\n    operations: { id: s, type: shell, foreach: \"[1,2]\", params: { run: \"true\" } }\n";
    let sage = Sage::new().template("t", outer).template("mid", mid).template("inner", inner);
    sage.sage("run x -t t --parallel 1").exit(0);
    let journal = sage.journal("x");
    assert_eq!(journal.succeeded().len(), 8);
    assert_eq!(journal.most_at_once(), 1);
}
