//! Times of one run: the same for every reader, and in order inside of each.

use serde_json::Value;

use super::compare::same;
use super::views::Views;

/// Figures that go on while a run does.
pub const METRICS: &[&str] = &[
    "asOf",
    "totalTime",
    "parallelTime",
    "sequentialTime",
    "sequentialAtMost",
    "timeSaved",
    "percentageSaved",
    "speedup",
    "alerts",
];

pub fn check(views: &Views, found: &mut Vec<String>) {
    let (status, later) = (&views.status, &views.later);
    if !views.moves() && status != later {
        found.push(format!("a run that stands still changes: {status} {later}"));
    }
    let total = |it: &Value| it["metrics"]["totalTime"].clone();
    between("totalTime", [total(status), total(later)], ("mcp", total(&views.over_mcp)), found);
    for (who, row) in [("roster", &views.roster), ("mcp roster", &views.roster_over_mcp)] {
        if row.is_object() {
            between("totalTime", [total(status), total(later)], (who, row["elapsedMs"].clone()), found);
        }
        for step in row["working"].as_array().into_iter().flatten() {
            elapsed(views, step, who, found);
        }
    }
    views.over_mcp["steps"].as_array().unwrap().iter().for_each(|step| elapsed(views, step, "mcp", found));
    ordered(status, found);
    let as_of = |it: &Value| it["metrics"]["asOf"].clone();
    if !views.moves() {
        same(
            "asOf",
            &[("metrics", as_of(status)), ("lastUpdatedAt", status["lastUpdatedAt"].clone())],
            found,
        );
    }
    checkpoint(views, found);
}

/// A time that was told between two others of the same kind.
fn between(what: &str, [first, last]: [Value; 2], (who, told): (&str, Value), found: &mut Vec<String>) {
    let inside = first.as_u64() <= told.as_u64() && told.as_u64() <= last.as_u64();
    if !inside {
        found.push(format!("{what}: {who} says {told}, status {first} before and {last} after it"));
    }
}

fn elapsed(views: &Views, step: &Value, who: &str, found: &mut Vec<String>) {
    let path = step["path"].as_str().unwrap();
    let of = |status: &Value| {
        let steps = status["steps"].as_array().unwrap();
        steps.iter().find(|it| it["path"] == path).map(|it| it["elapsedMs"].clone()).unwrap_or_default()
    };
    let told = (who, step["elapsedMs"].clone());
    between(&format!("{path}.elapsedMs"), [of(&views.status), of(&views.later)], told, found);
}

/// No step takes longer than the run, and the run is not active for longer than it was owned.
fn ordered(status: &Value, found: &mut Vec<String>) {
    let metrics = &status["metrics"];
    let (active, total) = (metrics["parallelTime"].as_u64(), metrics["totalTime"].as_u64());
    if active > total || metrics["sequentialTime"].as_u64() < active {
        found.push(format!("times do not fit together: {metrics}"));
    }
    for step in status["steps"].as_array().unwrap() {
        if step["elapsedMs"].as_u64() > active {
            found.push(format!("{} takes {} of {active:?}", step["path"], step["elapsedMs"]));
        }
    }
}

/// Its times count up to its last record: it never says more than a reader who knows what time it is.
fn checkpoint(views: &Views, found: &mut Vec<String>) {
    let image = &views.checkpoint;
    if !image.is_object() {
        return;
    }
    let (as_of, updated) = (image["metrics"]["asOf"].clone(), image["lastUpdatedAt"].clone());
    same("asOf", &[("checkpoint", as_of), ("its lastUpdatedAt", updated)], found);
    let active = &image["metrics"]["parallelTime"];
    for (phase, told) in image["checkpoints"].as_object().into_iter().flatten() {
        let duration = &told["metrics"]["duration"];
        if duration.as_u64() > active.as_u64() {
            found.push(format!("checkpoint: phase {phase} takes {duration} of {active}"));
        }
        let inside = |step: &&Value| {
            step["path"]
                .as_str()
                .unwrap()
                .strip_prefix(phase.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let known = image["lastUpdatedAt"] == views.status["lastUpdatedAt"] && !views.moves();
        for step in views.steps().filter(inside).filter(|_| known) {
            if step["elapsedMs"].as_u64() > duration.as_u64() {
                found.push(format!("{} takes {}, its phase {duration}", step["path"], step["elapsedMs"]));
            }
        }
    }
}
