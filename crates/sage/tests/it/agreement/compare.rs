//! In what readers of one run differ.

use serde_json::{Value, json};

use super::views::Views;
use super::{text, times};

/// Everything in which the readers differ, one line each.
pub fn disagreements(views: &Views) -> Vec<String> {
    let mut found = Vec::new();
    fields(views, &mut found);
    whose(views, &mut found);
    steps(views, &mut found);
    questions(views, &mut found);
    phases(views, &mut found);
    counts(views, &mut found);
    times::check(views, &mut found);
    text::check(views, &mut found);
    found
}

/// Values with the name of who told them: one line if they are not all equal.
pub fn same(what: &str, told: &[(&str, Value)], found: &mut Vec<String>) {
    if told.iter().any(|(_, value)| *value != told[0].1) {
        let each: Vec<String> = told.iter().map(|(who, value)| format!("{who} {value}")).collect();
        found.push(format!("{what}: {}", each.join(", ")));
    }
}

fn fields(views: &Views, found: &mut Vec<String>) {
    let Views { status, over_mcp, checkpoint, listed, listed_over_mcp, roster, .. } = views;
    let both = [("status", status), ("mcp", over_mcp)];
    // A killed owner may have left an image that is behind; it says so itself.
    let fresh = checkpoint["lastUpdatedAt"] == status["lastUpdatedAt"];
    let image = fresh.then_some(("checkpoint", checkpoint));
    let lists = [("list", listed), ("mcp list", listed_over_mcp)];
    let open = roster.is_object().then_some(("roster", roster));
    let registered = views.registered.is_object().then_some(("registry", &views.registered));
    let all = || both.into_iter().chain(image);
    let told: Vec<(&str, Vec<(&str, &Value)>)> = vec![
        ("status", all().chain(lists).chain(open).chain(registered).collect()),
        ("verdict", all().chain(lists).collect()),
        ("phase", all().chain(lists).collect()),
        ("startedAt", all().chain(lists).chain(open).chain(registered).collect()),
        ("template", all().chain(lists).chain(open).collect()),
        ("progress", all().chain(open).collect()),
        ("lastUpdatedAt", all().chain(open).collect()),
        ("pauseReason", all().chain(open).collect()),
        ("until", all().chain(open).collect()),
        ("abandoned", both.into_iter().chain(lists).chain(open).collect()),
        ("ownerKind", both.into_iter().chain(lists).chain(open).collect()),
        ("owner", both.into_iter().chain(open).collect()),
        ("needs", both.into()),
        ("errors", both.into()),
        ("reasons", both.into()),
        ("notices", both.into()),
    ];
    for (field, readers) in told {
        let values: Vec<(&str, Value)> = readers.iter().map(|(who, it)| (*who, it[field].clone())).collect();
        same(field, &values, found);
    }
    let percent = |it: &Value| it["progress"].clone();
    let own = status["progress"]["percentage"].clone();
    same(
        "percentage",
        &[("status", own), ("list", percent(listed)), ("mcp list", percent(listed_over_mcp))],
        found,
    );
    let metrics = status["metrics"].as_object().unwrap();
    for name in metrics.keys().filter(|name| !views.moves() || !times::METRICS.contains(&name.as_str())) {
        let values: Vec<(&str, Value)> = all().map(|(who, it)| (who, it["metrics"][name].clone())).collect();
        same(&format!("metrics.{name}"), &values, found);
    }
    if let Some((_, roster)) = open {
        same(
            "tokens",
            &[("roster", roster["tokens"].clone()), ("status", metrics["totalTokens"].clone())],
            found,
        );
        same("cost", &[("roster", roster["costUsd"].clone()), ("status", metrics["costUsd"].clone())], found);
    }
    let strip = |row: &Value| {
        let mut row = row.clone();
        for field in ["elapsedMs", "working"] {
            row.as_object_mut().into_iter().for_each(|row| drop(row.remove(field)));
        }
        row
    };
    same("roster", &[("cli", strip(roster)), ("mcp", strip(&views.roster_over_mcp))], found);
}

/// Open runs are in the registry and the roster, closed ones are in neither and nobody owns them.
fn whose(views: &Views, found: &mut Vec<String>) {
    let open = views.is_open();
    for (who, row) in [("registry", &views.registered), ("roster", &views.roster)] {
        if row.is_object() != open {
            found.push(format!("{who}: a run that is {} is {row}", views.word()));
        }
    }
    let owned = [&views.status["owner"], &views.status["ownerKind"]].iter().any(|it| !it.is_null());
    if owned && !open {
        found.push(format!("a closed run is owned: {} {}", views.status["owner"], views.status["ownerKind"]));
    }
}

fn steps(views: &Views, found: &mut Vec<String>) {
    let names = |status: &Value| -> Vec<Value> {
        status["steps"].as_array().unwrap().iter().map(|step| step["path"].clone()).collect()
    };
    same("steps", &[("status", json!(names(&views.status))), ("mcp", json!(names(&views.over_mcp)))], found);
    let explained: Vec<Value> = views.explained.iter().map(|it| it["step"].clone()).collect();
    same("steps", &[("status", json!(names(&views.status))), ("explain", json!(explained))], found);
    let over_mcp = views.over_mcp["steps"].as_array().unwrap();
    for ((step, seen), told) in views.steps().zip(over_mcp).zip(&views.explained) {
        let path = step["path"].as_str().unwrap();
        for (name, value) in step.as_object().unwrap().iter().filter(|(name, _)| *name != "elapsedMs") {
            same(&format!("{path}.{name}"), &[("status", value.clone()), ("mcp", seen[name].clone())], found);
        }
        for name in ["state", "reused"] {
            same(
                &format!("{path}.{name}"),
                &[("status", step[name].clone()), ("explain", told[name].clone())],
                found,
            );
        }
        let why = told["why"].as_str().unwrap();
        if (why.contains("reused") || why.contains("taken over")) && step["reused"] != true {
            found.push(format!("{path} is not reused, and explain says {why}"));
        }
        let stands = !views.moves() && views.word() != "interrupted";
        if step["state"] == "waiting" && step["waitReason"].is_null() && stands {
            found.push(format!("{path} waits for nothing"));
        }
        if !views.is_open()
            && !matches!(
                step["state"].as_str(),
                Some("succeeded" | "failed" | "skipped" | "blocked" | "cancelled")
            )
        {
            found.push(format!("{path} is {} in a run that has ended", step["state"]));
        }
    }
}

fn questions(views: &Views, found: &mut Vec<String>) {
    let [by_inbox, over_mcp] = &views.asked;
    same("questions", &[("inbox", json!(by_inbox)), ("mcp", json!(over_mcp))], found);
    if views.roster.is_object() {
        same("questions", &[("inbox", json!(by_inbox)), ("roster", views.roster["asking"].clone())], found);
    }
    let asks = |step: &Value| {
        let reason = matches!(step["waitReason"].as_str(), Some("approval" | "unknown"));
        reason && !(step["question"].is_null() && step["asks"].is_null() && step["state"] != "unknown")
    };
    let by_status: Vec<&Value> = views.steps().filter(|step| asks(step)).map(|step| &step["path"]).collect();
    same("questions", &[("inbox", json!(by_inbox)), ("status", json!(by_status))], found);
}

/// Phases of the checkpoint: their state and what failed in them.
fn phases(views: &Views, found: &mut Vec<String>) {
    let state = |phase: &str, operation: &Value| {
        let path = format!("{phase}/{}", operation.as_str().unwrap());
        views.step(&path)["state"].clone()
    };
    for (phase, image) in views.checkpoint["checkpoints"].as_object().into_iter().flatten() {
        for (list, failed) in [("failed", true), ("unfinished", false)] {
            for operation in image[list].as_array().into_iter().flatten() {
                let state = state(phase, operation);
                if (state == "failed") != failed {
                    found.push(format!("checkpoint: {phase}/{operation} is {state}, and in `{list}`"));
                }
            }
        }
        let metrics = &image["metrics"];
        if metrics["completedOperations"].as_u64() > metrics["operationCount"].as_u64() {
            found.push(format!("checkpoint: {phase} has {metrics}"));
        }
    }
}

/// The parts of the progress add up.
fn counts(views: &Views, found: &mut Vec<String>) {
    let leaves = views.leaves();
    let done =
        leaves.iter().filter(|step| matches!(step["state"].as_str(), Some("succeeded" | "skipped"))).count();
    same(
        "completed",
        &[("steps", json!(done)), ("progress", views.status["progress"]["completed"].clone())],
        found,
    );
    same(
        "operationCount",
        &[("steps", json!(leaves.len())), ("metrics", views.status["metrics"]["operationCount"].clone())],
        found,
    );
    let reused = leaves.iter().filter(|step| step["reused"] == true).count();
    same(
        "reused",
        &[("steps", json!(reused)), ("metrics", views.status["metrics"]["stepsReused"].clone())],
        found,
    );
    if views.status["verdict"] == "succeeded" && views.status["progress"]["percentage"] != 100 {
        found.push(format!("succeeded with {}", views.status["progress"]));
    }
}
