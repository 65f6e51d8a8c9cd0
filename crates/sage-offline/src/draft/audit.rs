//! `swarm.audit`: what a part of a swarm left open, what two parts touched, and what no test calls.

use serde_json::{Value, json};

use super::earlier::{Earlier, Said};
use super::fuzzy;
use super::markdown::{code, count, joined};
use super::project::Project;
use super::task::Task;
use super::uses::Uses;
use crate::finding::{Claim, Finding, Report};
use crate::request::{Request, Trouble};

const METHOD: &str = "offline: the implementers' own reports compared with each other and with the files";

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let project = Project::read(request)?;
    let earlier = Earlier::read(&request.steps);
    let done: Vec<&Said> = earlier.said.iter().filter(|said| said.value["filesChanged"].is_array()).collect();
    let part = request.item.as_ref().and_then(|item| item["id"].as_str());
    let own: Vec<&Said> =
        done.iter().copied().filter(|said| part.is_none_or(|part| is_of(said, part))).collect();
    let mut report = Report { method: METHOD.to_string(), ..Report::default() };
    for said in &own {
        left_open(said, &mut report);
    }
    twice(&done, part, &mut report);
    untested(&project, &files(request, &own), &mut report);
    if own.is_empty() {
        report
            .open_questions
            .push("No report of an implementer came with this step: what was changed?".to_string());
    }
    let what = part.map_or("all parts".to_string(), code);
    report.summary = format!(
        "About {what}: {} read, {}.",
        count(own.len(), "report"),
        count(report.findings.len(), "finding")
    );
    let mut result = json!(report);
    result["part"] = json!(part);
    Ok(result)
}

/// By the part that the report names, else by its place in the fan-out: `part-2` is `[1]`.
fn is_of(said: &Said, part: &str) -> bool {
    match said.value["part"].as_str() {
        Some(named) => named == part,
        None => {
            let number: Option<usize> = part.rsplit('-').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number| said.step.ends_with(&format!("[{}]", number.wrapping_sub(1))))
        }
    }
}

/// What the part was to touch, and what it says it touched.
fn files(request: &Request, own: &[&Said]) -> Vec<String> {
    let planned = request.item.as_ref().map(|item| Task::read_all(item.get("tasks"))).unwrap_or_default();
    let mut files: Vec<String> = planned.into_iter().flat_map(|task| task.files).collect();
    files.extend(own.iter().flat_map(|said| fuzzy::texts(said.value.get("filesChanged"))));
    files.sort();
    files.dedup();
    files
}

fn left_open(said: &Said, report: &mut Report) {
    for id in fuzzy::texts(said.value.get("done")) {
        report.claims.push(claim(&id, "done", json!(true), 0.6));
    }
    for open in said.value["open"].as_array().into_iter().flatten() {
        let id = open["id"].as_str().or_else(|| open.as_str()).unwrap_or("a task").to_string();
        let why = open["why"].as_str().unwrap_or("no reason is given");
        report.claims.push(claim(&id, "done", json!(false), 0.9));
        report.findings.push(Finding {
            title: format!("{id} was left open"),
            detail: format!("{} says: {why}.", code(&said.step)),
            relevance: 0.8,
            kind: "quality".to_string(),
            confidence: 0.9,
            ..Finding::default()
        });
    }
    let tests = &said.value["tests"];
    let (ran, passed) = (tests["ran"] == true, tests["passed"].as_bool());
    report.claims.push(claim(
        &said.step,
        "tests passed",
        passed.map_or(json!("not run"), |passed| json!(passed)),
        0.7,
    ));
    let changed = fuzzy::texts(said.value.get("filesChanged"));
    if !changed.is_empty() && (!ran || passed == Some(false)) {
        let how = if ran { "its tests fail" } else { "no test was run" };
        report.findings.push(Finding {
            title: format!("{} changed {} and {how}", said.step, count(changed.len(), "file")),
            detail: tests["detail"].as_str().unwrap_or_default().to_string(),
            relevance: 0.9,
            evidence: changed,
            kind: "tests".to_string(),
            confidence: 0.8,
        });
    }
}

/// Files that more than one part changed.
fn twice(done: &[&Said], part: Option<&str>, report: &mut Report) {
    let mut by_file: Vec<(String, Vec<&Said>)> = Vec::new();
    for said in done {
        for file in fuzzy::texts(said.value.get("filesChanged")) {
            match by_file.iter_mut().find(|(known, _)| *known == file) {
                Some((_, who)) => who.push(said),
                None => by_file.push((file, vec![said])),
            }
        }
    }
    for (file, who) in by_file {
        let ours = part.is_none_or(|part| who.iter().any(|said| is_of(said, part)));
        let names: Vec<String> = who.iter().map(|said| code(&said.step)).collect();
        if who.len() > 1 && ours {
            report.claims.push(claim(&file, "changed by", json!(who.len()), 0.9));
            report.findings.push(Finding {
                title: format!("{} was changed by {} parts", code(&file), who.len()),
                detail: format!("{} all list it: one of the changes may undo the other.", joined(&names)),
                relevance: 0.95,
                evidence: vec![file],
                kind: "structure".to_string(),
                confidence: 0.9,
            });
        }
    }
}

fn untested(project: &Project, files: &[String], report: &mut Report) {
    let uses = Uses::read(project);
    for path in files {
        let Some((index, file)) = project.source(path).filter(|(_, file)| !file.is_test) else { continue };
        let public = |at: &usize| file.functions[*at].is_public && !file.functions[*at].in_test;
        let tested = |at: &usize| uses.of(project, index, *at).iter().any(|call| call.in_test);
        let all: Vec<usize> = (0..file.functions.len()).filter(public).collect();
        let bare: Vec<usize> = all.iter().copied().filter(|at| !tested(at)).collect();
        report.claims.push(Claim {
            evidence: vec![path.clone()],
            ..claim(path, "public functions that no test calls", json!(bare.len()), 0.7)
        });
        if !bare.is_empty() {
            let names: Vec<String> =
                bare.iter().take(5).map(|at| code(&file.functions[*at].full_name())).collect();
            report.findings.push(Finding {
                title: format!(
                    "{} of {} public functions in {} are called by no test",
                    bare.len(),
                    all.len(),
                    code(path)
                ),
                detail: format!("{}{}.", names.join(", "), if bare.len() > 5 { " and more" } else { "" }),
                relevance: 0.6,
                evidence: bare.iter().take(5).map(|at| file.at(file.functions[*at].line)).collect(),
                kind: "tests".to_string(),
                confidence: 0.7,
            });
        }
    }
}

fn claim(subject: &str, predicate: &str, value: Value, confidence: f64) -> Claim {
    Claim {
        subject: subject.to_string(),
        predicate: predicate.to_string(),
        value,
        confidence,
        ..Claim::default()
    }
}
