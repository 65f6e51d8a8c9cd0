//! `sage compare`: a real sequential run beside the parallel one, never without a yes (P2).

use serde_json::{Value, json};

use crate::dsl::Sage;

const WORK: &str = r#"
name: work
inputs: { depth: 1 }
phases:
  - id: both
    operations:
      - { id: a, type: shell, params: { run: "echo a $SAGE_FEATURE >> ran; sleep 0.3" } }
      - { id: b, type: shell, params: { run: "echo b $SAGE_FEATURE >> ran; sleep 0.3" } }
  - id: report
    dependencies: [both]
    operations: { id: c, type: shell, output: "docs/{{ feature }}.md", params: { run: "echo c $SAGE_FEATURE >> ran" } }
"#;

// covers: P2, R18
#[test]
fn a_sequential_run_is_made_once_read_later_and_reported() {
    let sage = Sage::new().template("work", WORK);
    sage.sage("run x -t work").exit(0);
    let refused = sage.sage("compare x").exit(2);
    refused
        .stderr_has(
            "no sequential run of `x` yet; comparing runs all 3 steps of `x` again, one after another",
        )
        .stderr_has("hint: sage compare x --yes")
        .stderr_lacks("cost money");
    let planned = sage.sage("compare x --dry-run").exit(0);
    planned.stdout_has("as `x-sequential`: about").stdout_has("Nothing was started.");
    let planned = sage.sage("compare x --dry-run --json").exit(0).json();
    assert_eq!((&planned["steps"], &planned["paidAgents"]), (&json!(3), &json!([])), "{planned:#}");
    assert_eq!(sage.engine().latest("x-sequential"), None, "nothing ran");

    let compared = sage.sage("compare x --yes --json").exit(0).json();
    let figure = |name: &str| compared[name].as_i64().unwrap_or_else(|| panic!("{name}: {compared:#}"));
    assert_eq!(figure("timeSaved"), figure("sequentialTime") - figure("parallelTime"));
    assert!(figure("sequentialTime") >= 600, "two sleeps one after another: {compared:#}");
    assert!(compared["percentageSaved"].is_number() && compared["speedup"].is_number(), "{compared:#}");
    assert_eq!(sage.journal("x-sequential").most_at_once(), 1);
    assert_eq!(compared["sequentialWorkflowId"].as_str(), sage.engine().latest("x-sequential").as_deref());
    assert_eq!(sage.lines("ran").len(), 6);
    assert!(sage.path("docs/x.md").exists() && sage.path("docs/x-sequential.md").exists());

    let again = sage.sage("compare x").exit(0);
    again.stdout_has("sequential").stdout_has("parallel").stdout_has("x faster");
    assert_eq!(sage.sage("compare x --json").exit(0).json(), compared, "it is read, not run again");
    assert_eq!(sage.lines("ran").len(), 6);
}

// covers: P2
#[test]
fn other_work_is_not_compared_and_a_run_that_failed_is_not_either() {
    let sage = Sage::new().template("work", WORK).template(
        "bad",
        "name: bad\nphases:\n  - { id: p, operations: { id: s, type: shell, params: { run: 'exit 3' } } }\n",
    );
    sage.sage("run x -t work --sequential").exit(0);
    sage.sage("compare x --yes").exit(2).stderr_has("`x` itself ran one step at a time");
    sage.sage("run y -t work").exit(0);
    sage.sage("compare y --yes").exit(0);
    let first = sage.engine().latest("y-sequential");
    sage.sage("run y -t work -i depth=2").exit(0);
    sage.sage("compare y").exit(2).stderr_has("no sequential run of `y` yet");
    sage.sage("compare y --yes").exit(0);
    assert_ne!(sage.engine().latest("y-sequential"), first, "other inputs need another run");
    sage.sage("run z -t bad").exit(1);
    sage.sage("compare z --yes").exit(2).stderr_has("only a run that succeeded").stderr_has("sage resume z");
    sage.sage("compare nobody").exit(2).stderr_has("no run of `nobody`");
}

/// Agents that may cost money are named before anything is spent, and nothing is taken from the cache.
// covers: P2, R11
#[test]
fn what_may_cost_money_is_said_first() {
    let text = r#"
name: paid
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: mine, prompt: hello, cache: { ttl: 1h } }
      - { id: b, type: agent, agent: fake, params: { prompt: hi, script: [ { result: 1 } ] } }
"#;
    let sage = Sage::new().template("paid", text);
    sage.write(
        "sage.toml",
        "[agents.mine]\ncommand = [\"sh\", \"-c\", \"echo asked >> asked; echo done\"]\n",
    );
    sage.sage("run x -t paid").exit(0);
    sage.sage("compare x").exit(2).stderr_has("agents may cost money (mine;");
    let plan: Value = sage.sage("compare x --dry-run --json").exit(0).json();
    assert_eq!(plan["paidAgents"], json!(["mine"]));
    assert_eq!(sage.lines("asked").len(), 1);
    let done = sage.sage("compare x --yes --json").exit(0).json();
    assert_eq!((done["stepsReused"].clone(), sage.lines("asked").len()), (json!(0), 2), "{done:#}");
}
