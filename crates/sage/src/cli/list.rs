//! `sage list`: the newest run of every feature.

use std::collections::BTreeSet;
use std::process::ExitCode;

use sage_core::wire;
use sage_engine::open::{Engine, Newest, OpenError};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json, roster};
use crate::command_line;
use crate::display::text::cost_text;

/// Statuses and verdicts that a list can be restricted to, and what runs without an owner are called.
const WORDS: [&str; 8] =
    ["running", "interrupted", "paused", "completed", "succeeded", "degraded", "failed", "cancelled"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only runs with this status or verdict
    #[arg(long, value_parser = WORDS)]
    status: Option<String>,
    /// All runs, not only the newest of every feature
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    if args.all {
        return super::history::list(&engine, args.json);
    }
    let rows = rows(&engine, args.status.as_deref())?;
    if args.json {
        print_json(&json!({"type": "list", "workflows": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &args.status {
        _ if !rows.is_empty() => table(&rows),
        Some(status) => {
            eprintln!("no {status} runs");
            command_line::tell("sage list");
        }
        None => {
            eprintln!("no runs");
            command_line::tell(command_line::sage("run").arg("my first feature"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A run's status for people, as `wire::word` says.
fn word(row: &Value) -> &str {
    let status = row["status"].as_str().unwrap_or("-");
    let driven = row["abandoned"] != true && row["foreign"] != true;
    match row["verdict"].as_str() {
        Some(verdict) => verdict,
        None if status == "running" && !driven => "interrupted",
        None => status,
    }
}

/// One row a feature, of those with this status or verdict.
pub fn rows(engine: &Engine, status: Option<&str>) -> Result<Vec<Value>, OpenError> {
    engine.refuse_unreadable()?;
    let index = engine.index();
    let mut rows: Vec<Value> = index.iter().map(|(feature, newest)| row(engine, feature, newest)).collect();
    rows.retain(|row| status.is_none_or(|status| row["status"] == status || word(row) == status));
    Ok(rows)
}

fn table(rows: &[Value]) {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("-").to_string();
    let width = rows.iter().map(|row| text(row, "feature").len()).max().unwrap_or(0).max("FEATURE".len());
    print(format_args!(
        "{:width$}  {:11}  {:>5}  {:16}  {:19}  {:>8}  TEMPLATE\n",
        "FEATURE", "STATUS", "DONE", "PHASE", "STARTED (UTC)", "COST"
    ));
    for row in rows {
        let status = word(row);
        let owner = match row["status"].as_str() {
            _ if row["foreign"] == true => "  (foreign: sage trust)",
            _ if row["abandoned"] != true && row["ownerKind"] == "background" => "  (in the background)",
            Some("paused") if row["abandoned"] != true && row["ownerKind"].is_null() => {
                "  (no process owns it)"
            }
            _ if row["abandoned"] != true => "",
            Some("paused") => "  (no process waits for it: sage resume)",
            _ => "  (no process owns it: sage resume)",
        };
        let started = text(row, "startedAt").replace('T', " ").chars().take(19).collect::<String>();
        let done = row["progress"].as_u64().map_or_else(|| "-".into(), |percent| format!("{percent}%"));
        let cost = row["costUsd"].as_f64();
        let cost = cost.map_or_else(|| "-".into(), |cost| cost_text(cost, row["costEstimated"] == true));
        print(format_args!(
            "{:width$}  {status:11}  {done:>5}  {:16}  {started:19}  {cost:>8}  {}{owner}\n",
            text(row, "feature"),
            text(row, "phase"),
            text(row, "template"),
        ));
    }
}

/// Only where there is one.
fn tell_cost(row: &mut Value, cost: Option<f64>, estimated: bool) {
    if let Some(cost) = cost {
        row["costUsd"] = cost.into();
    }
    if estimated {
        row["costEstimated"] = true.into();
    }
}

/// Features whose run would go on if its owner had not died.
pub fn abandoned(engine: &Engine) -> Vec<String> {
    let open = engine.index().into_iter().filter(|(_, newest)| newest.may_be_open());
    let left = open.filter(|(feature, newest)| row(engine, feature, newest)["abandoned"] == true);
    left.map(|(feature, _)| feature).collect()
}

/// By checkpoint, and by journal for runs that have none yet.
pub fn features(engine: &Engine) -> BTreeSet<String> {
    engine.index().into_keys().collect()
}

/// A closed run's checkpoint says it all; an open one is folded.
fn row(engine: &Engine, feature: &str, newest: &Newest) -> Value {
    if let Some(image) = newest.image.as_ref().filter(|_| !newest.may_be_open()) {
        let percentage = image.get("progress").map_or(Value::Null, |p| p["percentage"].clone());
        let mut row = json!({
            "feature": feature, "template": image.get("template"), "phase": image.get("phase"),
            "status": image.get("status"), "verdict": image.get("verdict"), "startedAt": image.get("startedAt"),
            "progress": percentage, "abandoned": false, "ownerKind": null,
        });
        if let Some(metrics) = image.get("metrics") {
            tell_cost(&mut row, metrics["costUsd"].as_f64(), metrics["costEstimated"] == true);
        }
        if newest.run.as_ref().is_some_and(|run| engine.is_foreign(feature, run)) {
            row["foreign"] = true.into();
        }
        return row;
    }
    let read = match &newest.run {
        Some(run) => engine.snapshot_of(feature, run),
        None => engine.read(feature),
    };
    match read {
        Ok(snapshot) => {
            let run = &snapshot.run;
            let mut row = json!({
                "feature": feature, "template": run.plan().template.name, "phase": wire::current_phase(run),
                "status": run.status.name(), "verdict": wire::verdict_of(run).map(|v| v.name()),
                "startedAt": wire::rfc3339(run.started_ms), "progress": wire::Progress::of(run).percentage,
                "abandoned": roster::is_abandoned(&snapshot), "ownerKind": roster::owner_kind(&snapshot),
            });
            let usage = run.usage();
            tell_cost(&mut row, wire::shown_cost(&usage), usage.cost_estimated);
            if snapshot.is_foreign {
                row["foreign"] = true.into();
            }
            row
        }
        Err(error) => {
            json!({
                "feature": feature, "status": "damaged", "error": error.to_string(), "progress": null,
                "abandoned": false, "ownerKind": null,
            })
        }
    }
}
