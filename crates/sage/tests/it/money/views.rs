//! Every view of a run's cost, and that they agree.

use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::mcp_server::client::{Client, Era};

/// The cost that all views show, in dollars, and whether it is an estimate. `told` is what the run itself printed at its
/// end with `--json`.
#[track_caller]
pub fn cost(sage: &Sage, feature: &str, told: Option<&Value>) -> (f64, bool) {
    let status = sage.status(feature);
    let metrics = &status["metrics"];
    let expected = (metrics["costUsd"].clone(), metrics["costEstimated"] == true);
    let same = |what: &str, cost: &Value, estimated: &Value| {
        assert_eq!((cost.clone(), *estimated == true), expected, "{what}: {status:#}");
    };
    let usd = expected.0.as_f64().unwrap_or_else(|| panic!("no cost: {status:#}"));
    if let Some(told) = told {
        let metrics = &told["results"]["metrics"];
        same("the run's own summary", &metrics["costUsd"], &metrics["costEstimated"]);
    }
    let list = sage.args(["list", "--json"]).run().exit(0).json();
    let row = list["workflows"].as_array().unwrap().iter().find(|row| row["feature"] == feature).unwrap();
    same("list", &row["costUsd"], &row["costEstimated"]);
    let budget = sage.args(["budget", feature, "--json"]).run().exit(0).json();
    same("budget", &budget["costUsd"], &budget["costEstimated"]);
    let run = &budget["nodes"][0];
    assert_eq!(run["node"], "run");
    same("the run's node", &run["spent"]["usd"], &run["estimated"]);
    let image: Value = serde_json::from_slice(
        &std::fs::read(sage.path(&format!(".sage/state/workflow-{feature}.json"))).unwrap(),
    )
    .unwrap();
    same("checkpoint", &image["metrics"]["costUsd"], &image["metrics"]["costEstimated"]);
    let mut client = Client::start(sage, Era::Session);
    let answer = client.call("sage_workflow_status", json!({"feature": feature})).good();
    same("MCP", &answer["metrics"]["costUsd"], &answer["metrics"]["costEstimated"]);

    let logs = sage.args(["logs", feature, "--json"]).run().exit(0).json_lines();
    let told = logs.iter().rev().find(|line| line["type"] == "workflow.performance").unwrap();
    same("logs", &told["metrics"]["costUsd"], &told["metrics"]["costEstimated"]);

    let micros = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e6).round() as u64;
    let steps: u64 = status["steps"].as_array().unwrap().iter().map(|step| micros(&step["costUsd"])).sum();
    assert_eq!(steps, micros(&expected.0), "the steps add up: {status:#}");
    let phases = budget["nodes"].as_array().unwrap().iter();
    let phases: u64 = phases
        .filter(|node| node["node"].as_str().is_some_and(|name| name.starts_with("phase:")))
        .map(|node| micros(&node["spent"]["usd"]))
        .sum();
    assert_eq!(phases, micros(&expected.0), "the phases add up: {budget:#}");

    let text = text(usd, expected.1);
    sage.args(["status", feature]).run().exit(0).stdout_has(&text);
    sage.args(["list"]).run().exit(0).stdout_has(&text);
    sage.args(["budget", feature]).run().exit(0).stdout_has(&text);
    (usd, expected.1)
}

/// As people read it.
fn text(usd: f64, estimated: bool) -> String {
    let about = if estimated { "~" } else { "" };
    let micros = (usd * 1e6).round() as u64;
    let cents = (micros + 5_000) / 10_000;
    match micros {
        ..9_950 => format!("{about}$0.{:04}", (micros + 50) / 100),
        _ => format!("{about}${}.{:02}", cents / 100, cents % 100),
    }
}

/// The tokens of all classes, and how many attempts told none.
pub fn tokens(sage: &Sage, feature: &str) -> ([u64; 5], u64) {
    let classes = sage.status(feature)["metrics"]["tokensByClass"].clone();
    let of = |name: &str| classes[name].as_u64().unwrap();
    (["input", "cacheRead", "cacheWrite", "output", "reasoning"].map(of), of("unattributed"))
}
