//! `swarm.plan`: the plan in parts that share no file, so that several can work at once.

use serde_json::{Value, json};

use super::brief::Brief;
use super::markdown::{code, count, joined, section};
use super::plan;
use super::project::Project;
use super::spec;
use super::task::Task;
use crate::request::{Request, Trouble};

const PARTS: u64 = 3;
const MOST_PARTS: u64 = 32;

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let number = request
        .params
        .get("parts")
        .and_then(|n| n.as_u64().or_else(|| n.as_str()?.parse().ok()))
        .unwrap_or(PARTS);
    if number == 0 || number > MOST_PARTS {
        return Err(Trouble::Invalid(format!("params.parts is {number}; it can be 1 to {MOST_PARTS}")));
    }
    let project = Project::read(request)?;
    let brief = Brief::of(request, &project);
    let drafted = plan::draft(request, &brief);
    let parts = split(&drafted.tasks, number as usize);
    let busy = parts.iter().filter(|part| !part.is_empty()).count();
    let summary = format!(
        "{} in {} that share no file; {busy} of them have work.",
        count(drafted.tasks.len(), "task"),
        count(parts.len(), "part")
    );
    let document = plan::document(&brief, &drafted, &summary, &section("Parts", &told(&parts)));
    let listed: Vec<Value> = parts.iter().enumerate().map(|(at, part)| to_json(at, part, &parts)).collect();
    Ok(json!({"document": document, "summary": summary, "tasks": drafted.tasks, "parts": listed,
        "openQuestions": drafted.questions, "method": spec::METHOD}))
}

fn id(at: usize) -> String {
    format!("part-{}", at + 1)
}

/// Tasks that share a file stay together, and so do a task and the only one that waits for it.
pub fn split(tasks: &[Task], number: usize) -> Vec<Vec<Task>> {
    let mut group: Vec<usize> = (0..tasks.len()).collect();
    let mut unite = |a: usize, b: usize| {
        let (from, to) = (group[a].max(group[b]), group[a].min(group[b]));
        group.iter_mut().filter(|known| **known == from).for_each(|known| *known = to);
    };
    for a in 0..tasks.len() {
        for b in a + 1..tasks.len() {
            if tasks[a].files.iter().any(|file| tasks[b].files.contains(file)) {
                unite(a, b);
            }
        }
        let waiting: Vec<usize> =
            (0..tasks.len()).filter(|b| tasks[*b].depends_on.contains(&tasks[a].id)).collect();
        let with_files = |at: &usize| !tasks[*at].files.is_empty();
        if let [only] = waiting.as_slice()
            && with_files(only)
            && with_files(&a)
        {
            unite(a, *only);
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for root in 0..tasks.len() {
        let members: Vec<usize> = (0..tasks.len()).filter(|at| group[*at] == root).collect();
        groups.extend((!members.is_empty()).then_some(members));
    }
    groups.sort_by_key(|members| (std::cmp::Reverse(members.len()), members[0]));
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); number];
    for members in groups {
        if let Some(smallest) = parts.iter_mut().min_by_key(|part| part.len()) {
            smallest.extend(members);
        }
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts.into_iter().map(|part| part.into_iter().map(|at| tasks[at].clone()).collect()).collect()
}

fn files(part: &[Task]) -> Vec<String> {
    let mut files: Vec<String> = part.iter().flat_map(|task| task.files.clone()).collect();
    files.sort();
    files.dedup();
    files
}

fn title(part: &[Task]) -> String {
    match part {
        [] => "nothing left to split off".to_string(),
        [one] => one.title.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.title, rest.len()),
    }
}

/// The other parts whose tasks it waits for.
fn waits_for(part: &[Task], parts: &[Vec<Task>]) -> Vec<String> {
    let needs =
        |other: &Vec<Task>| other.iter().any(|task| part.iter().any(|own| own.depends_on.contains(&task.id)));
    let others = parts.iter().enumerate().filter(|(_, other)| other.as_slice() != part && needs(other));
    others.map(|(at, _)| id(at)).collect()
}

fn to_json(at: usize, part: &[Task], parts: &[Vec<Task>]) -> Value {
    json!({"id": id(at), "title": title(part), "tasks": part, "files": files(part), "waitsFor": waits_for(part, parts)})
}

fn told(parts: &[Vec<Task>]) -> String {
    let each = parts.iter().enumerate().map(|(at, part)| {
        let ids: Vec<String> = part.iter().map(|task| task.id.clone()).collect();
        let own: Vec<String> = files(part).iter().map(|file| code(file)).collect();
        let waits = waits_for(part, parts);
        let after = if waits.is_empty() { String::new() } else { format!("; builds on {}", joined(&waits)) };
        match ids.is_empty() {
            true => format!("- **{}**: nothing left to split off without sharing a file\n", id(at)),
            false => format!(
                "- **{}**: {} ({}){after}\n",
                id(at),
                ids.join(", "),
                if own.is_empty() { "no files".to_string() } else { own.join(", ") }
            ),
        }
    });
    each.collect()
}
