//! What readers print for people, held against what they tell programs.

use serde_json::{Value, json};

use super::compare::same;
use super::views::Views;

pub fn check(views: &Views, found: &mut Vec<String>) {
    heads(views, found);
    tree(views, found);
    graph(views, found);
    explained(views, found);
    causes(views, found);
}

/// As displays write a time that is over.
fn time_text(ms: &Value) -> String {
    format!("{:.1}s", ms.as_u64().unwrap() as f64 / 1_000.0)
}

fn lacks(what: &str, text: &str, wanted: &str, found: &mut Vec<String>) {
    if !text.contains(wanted) {
        found.push(format!("{what} lacks `{wanted}`: {text}"));
    }
}

/// One line each: the word for its status, and how far it is.
fn heads(views: &Views, found: &mut Vec<String>) {
    let (status, word, feature) = (&views.status, views.word(), &views.feature);
    let progress = &status["progress"];
    let counts = format!("{}/{}", progress["completed"], progress["total"]);
    let percent = format!("{}%", progress["percentage"]);
    let phase = status["phase"].as_str().unwrap_or("-");
    let row = |text: &str| {
        let own = text.lines().find(|line| line.split_whitespace().next() == Some(feature));
        own.unwrap_or_default().to_string()
    };
    let head = views.status_text.lines().next().unwrap_or_default();
    if word != "running" {
        lacks("the tree's head", head, word, found);
    }
    if progress["total"] != 0 {
        lacks("the tree's head", head, &format!(" · {counts} · {percent}"), found);
    }
    if !views.is_open() {
        lacks(
            "the tree's head",
            head,
            &format!("{word} in {}", time_text(&status["metrics"]["totalTime"])),
            found,
        );
    }
    lacks(
        "the graph's head",
        views.graph_text.lines().next().unwrap_or_default(),
        &format!(" · {word} · {counts}"),
        found,
    );
    let listed: Vec<String> = row(&views.list_text).split_whitespace().map(str::to_string).collect();
    let told = [("list", json!(listed.get(1..4))), ("status", json!([word, percent, phase]))];
    same("the list's row", &told, found);
    if views.is_open() {
        lacks("the roster's row", &row(&views.roster_text), &format!(" {word} · "), found);
        lacks("the roster's row", &row(&views.roster_text), &format!(" · {counts} · "), found);
    }
    let steps = if progress["total"] == 1 { "step" } else { "steps" };
    let text = format!("{feature}: {word}, {} of {} {steps} done", progress["completed"], progress["total"]);
    lacks("MCP's text", &views.mcp_text, &text, found);
}

/// A row of the tree: how deep it is, its sign, its name, the facts after it.
fn row(line: &str) -> Option<(usize, char, &str, Vec<&str>)> {
    let text = line.trim_start_matches(' ');
    let mut letters = text.chars();
    let sign = letters.next()?;
    let (name, facts) =
        letters.as_str().trim_start().split_once(' ').unwrap_or((letters.as_str().trim(), ""));
    Some(((line.len() - text.len()) / 2, sign, name, facts.split(" · ").map(str::trim).collect()))
}

/// Phases and fan-outs of the tree, against the checkpoint and the steps.
fn tree(views: &Views, found: &mut Vec<String>) {
    let fresh = views.checkpoint["lastUpdatedAt"] == views.status["lastUpdatedAt"];
    let mut phase = "";
    for (depth, sign, name, facts) in views.status_text.lines().skip(1).filter_map(row) {
        let fan = format!("{phase}/{name}");
        if depth == 0 {
            phase = name;
            let image = &views.checkpoint["checkpoints"][name];
            if image.is_object() && fresh {
                tree_phase(views, (name, sign), &facts, image, found);
            }
        } else if depth == 1 && !views.items(&fan).is_empty() {
            let counts = ok_of(&views.items(&fan));
            if !facts.iter().any(|fact| fact.split(' ').any(|word| word == counts)) {
                found.push(format!("the tree says {facts:?} of {fan}, its items {counts}"));
            }
        }
    }
}

fn tree_phase(
    views: &Views,
    (name, sign): (&str, char),
    facts: &[&str],
    image: &Value,
    found: &mut Vec<String>,
) {
    let signs = match image["status"].as_str().unwrap() {
        "completed" => "✓!",
        "failed" => "✗",
        "blocked" | "cancelled" => "-",
        _ => "◌?⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
    };
    if !signs.contains(sign) {
        found.push(format!("the tree has {sign} for {name}, the checkpoint {}", image["status"]));
    }
    if matches!(image["status"].as_str(), Some("completed" | "failed")) {
        let time = time_text(&image["metrics"]["duration"]);
        if !facts.contains(&time.as_str()) {
            found.push(format!("the tree says {facts:?} of {name}, the checkpoint {time}"));
        }
    }
    let prefix = format!("{name}/");
    let odd = |step: &Value| {
        let left_out =
            matches!(step["state"].as_str(), Some("skipped" | "cancelled")) || step["replaced"] == true;
        step["path"].as_str().unwrap().starts_with(&prefix) && left_out
    };
    let metrics = &image["metrics"];
    let told = facts.iter().find_map(|fact| {
        let succeeded = fact.split_once(" succeeded").filter(|(_, rest)| !rest.contains("needed"));
        succeeded.and_then(|(counts, _)| counts.split_once(" of ")).or_else(|| fact.split_once('/'))
    });
    if let Some(told) = told.filter(|_| !views.steps().any(odd) && !is_script(views, name)) {
        let known = (metrics["completedOperations"].to_string(), metrics["operationCount"].to_string());
        if (known.0.as_str(), known.1.as_str()) != told {
            found.push(format!("the tree says {told:?} of {name}, the checkpoint {known:?}"));
        }
    }
}

/// A script that throws counts as itself beside its calls.
fn is_script(views: &Views, phase: &str) -> bool {
    views.steps().any(|step| step["path"] == format!("{phase}/script"))
}

/// `2/3`: items that succeeded, of all.
fn ok_of(items: &[&Value]) -> String {
    let ok = |item: &&&Value| matches!(item["state"].as_str(), Some("succeeded" | "skipped"));
    format!("{}/{}", items.iter().filter(ok).count(), items.len())
}

/// Every step of the graph, against its state.
fn graph(views: &Views, found: &mut Vec<String>) {
    let mut phase = String::new();
    for line in views.graph_text.lines().skip(2).take_while(|line| *line != "batches") {
        let Some((_, step)) = line.split_once("├─ ").or_else(|| line.split_once("└─ ")) else {
            if !line.starts_with(' ') && !line.is_empty() {
                phase = line.split_whitespace().next().unwrap().to_string();
            }
            continue;
        };
        let (sign, rest) = step.split_at(step.find(' ').unwrap());
        let id = rest.split_whitespace().next().unwrap();
        graph_step(views, (&phase, id), (sign, rest), found);
    }
}

fn graph_step(views: &Views, (phase, id): (&str, &str), (sign, rest): (&str, &str), found: &mut Vec<String>) {
    let newest = views.steps().filter(|step| {
        let (of, name) = step["path"].as_str().unwrap().split_once('/').unwrap();
        of.split('@').next() == Some(phase) && name == id
    });
    let Some(step) = newest.last() else { return found.push(format!("the graph shows {phase}/{id}")) };
    let word = step_word(views, step);
    let asks = !step["question"].is_null() || !step["asks"].is_null();
    let signs = match word {
        "pending" => "○",
        "waiting" | "running" if asks => "?",
        "waiting" | "interrupted" => "◌",
        "running" => "▶",
        "unknown" => "?",
        "succeeded" => "✓!",
        "failed" => "✗",
        _ => "-",
    };
    let end = match word {
        "failed" => "",
        "succeeded" if step["reused"] == true => "reused",
        "succeeded" if step["cached"] == true => "cached",
        "succeeded" => &time_text(&step["elapsedMs"]),
        word => word,
    };
    if !signs.contains(sign) || !rest.ends_with(end) {
        found.push(format!("the graph has `{sign}{rest}` for {}, which is {word}", step["path"]));
    }
    let items = views.items(step["path"].as_str().unwrap());
    if !items.is_empty() {
        lacks("the graph", rest, &format!("  {} · ", ok_of(&items)), found);
    }
}

/// A step's state for people.
fn step_word<'a>(views: &Views, step: &'a Value) -> &'a str {
    let dead = views.status["abandoned"] == true;
    match step["state"].as_str().unwrap() {
        "running" if dead => "interrupted",
        state => state,
    }
}

fn explained(views: &Views, found: &mut Vec<String>) {
    for (line, step) in views.explain_text.lines().zip(views.steps()) {
        let (word, rest) = line.split_once(' ').unwrap();
        let path = step["path"].as_str().unwrap();
        if word != step_word(views, step) || !rest.trim_start().starts_with(&format!("{path}:")) {
            found.push(format!("explain says `{line}` of {path}, which is {}", step["state"]));
        }
    }
}

/// The tree says why something failed.
fn causes(views: &Views, found: &mut Vec<String>) {
    const SHOWN: usize = 3;
    for error in views.status["errors"].as_array().into_iter().flatten().take(SHOWN) {
        let (_, message) = error.as_str().unwrap().split_once(": ").unwrap();
        let message = message.lines().next().unwrap();
        let message = message.rsplit_once(" (").map_or(message, |(message, _)| message);
        lacks("the tree", &views.status_text, message, found);
    }
}

/// The line of a summary that counts steps: what is part of the total adds up to it, and is what readers say.
pub fn last_lines(views: &Views, stdout: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(line) = stdout.lines().find(|line| line.contains("steps done") || line.contains("step done"))
    else {
        return found;
    };
    let mut parts = line.trim().split(" · ");
    let done = parts.next().unwrap().split(" step").next().unwrap();
    let (completed, total) = done.split_once(" of ").unwrap_or((done, done));
    let progress = &views.status["progress"];
    let told = [completed, total].map(|number| json!(number.parse::<u64>().unwrap()));
    same(
        "progress",
        &[("summary", json!(told)), ("status", json!([progress["completed"], progress["total"]]))],
        &mut found,
    );
    let counts: Vec<(u64, &str)> = parts
        .map(|part| part.split_once(' ').unwrap())
        .map(|(count, what)| (count.parse().unwrap(), what))
        .collect();
    let apart = |what: &str| {
        what.contains("needed")
            || what.contains("handled")
            || what.contains("of them")
            || what.contains("earlier")
    };
    let rest: u64 = counts.iter().filter(|(_, what)| !apart(what)).map(|(count, _)| count).sum();
    if told[0].as_u64().unwrap() + rest != told[1].as_u64().unwrap() {
        found.push(format!("does not add up: {line}"));
    }
    let failed = counts.iter().find(|(_, what)| *what == "failed").map_or(0, |(count, _)| *count);
    let by_status = views
        .leaves()
        .into_iter()
        .filter(|step| step["state"] == "failed" && step["handled"] != true && step["replaced"] != true);
    let (by_status, scripts) = (
        by_status.count() as u64,
        u64::from(views.steps().any(|s| s["path"] == "main/script" && s["state"] == "failed")),
    );
    if failed < by_status || failed > by_status + scripts {
        found.push(format!("{by_status} steps failed: {line}"));
    }
    found
}
