//! Tickets out of a plan, and what was done of them: from the results of a run's steps.
//!
//! ```text
//! {tasks: [{id, title, dependsOn, ..}]}         -> one ticket each, dependsOn -> blockedBy     (create)
//! {tickets: [{title, blockedBy, ..}]}           -> one ticket each                             (create)
//! {done: [id], open: [{id, why}]}               -> done; the reason as a note                  (update)
//! ```
//! Made once: by (run, the plan's own id); and a new run of the same feature finds the open ticket with the
//! same title. Results come from models: what is missing or odd is passed over and told, never made up.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Book, BookError, Draft, Origin, Priority, State, Ticket};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    pub created: Vec<String>,
    pub kept: Vec<String>,
    /// What the plan names and nobody knows.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    pub done: Vec<String>,
    pub open: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("the plan waits for itself: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    #[error("`{title}` cannot be a ticket: {why}")]
    Ticket { title: String, why: BookError },
}

/// One part of a plan.
#[derive(Debug)]
struct Part {
    task: String,
    /// The plan has a name for it; else its title is its name.
    named: bool,
    needs: Vec<String>,
    draft: Draft,
}

/// Makes the tickets of a run's plan. Nothing is changed if the plan is refused.
pub fn create(
    book: &mut Book,
    run: &str,
    feature: &str,
    steps: &Map<String, Value>,
    at: &str,
) -> Result<Planned, PlanError> {
    let parts = parts(steps, run, feature);
    refuse_cycle(&parts)?;
    let mut after = book.clone();
    let mut planned = Planned::default();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let mut made: Vec<(String, &Part)> = Vec::new();
    for part in &parts {
        let kept = existing(&after, run, feature, part).map(|ticket| ticket.id.clone());
        let id = match kept {
            Some(id) => {
                let origin = part.draft.origin.clone();
                let planned_now = |ticket: &Ticket| ticket.origin.as_ref().is_some_and(|it| it.run == run);
                // The newest run that planned it is the one whose results will name it.
                let adopt = |ticket: &mut Ticket| {
                    if !planned_now(ticket) {
                        ticket.origin = origin;
                    }
                };
                let _ = after.edit(&id, at, adopt);
                planned.kept.push(id.clone());
                id
            }
            None => {
                let id = after.add(part.draft.clone(), at);
                let title = part.draft.title.clone();
                let id = id.map_err(|why| PlanError::Ticket { title, why })?;
                planned.created.push(id.clone());
                made.push((id.clone(), part));
                id
            }
        };
        ids.insert(part.task.clone(), id);
    }
    for (id, part) in made {
        link(&mut after, &id, part, &ids, &mut planned.notes, at);
    }
    *book = after;
    Ok(planned)
}

/// Blockers by the plan's own names, by title, or by the id of a ticket.
fn link(
    book: &mut Book,
    id: &str,
    part: &Part,
    ids: &BTreeMap<String, String>,
    notes: &mut Vec<String>,
    at: &str,
) {
    let mut blocked_by: Vec<String> = Vec::new();
    for need in &part.needs {
        let titled = |ticket: &&Ticket| same_title(&ticket.title, need) && !ticket.state.closed();
        let by_title = || book.tickets.iter().find(titled).map(|ticket| ticket.id.clone());
        let known = ids.get(need).cloned().or_else(|| book.get(need).map(|ticket| ticket.id.clone()));
        match known.or_else(by_title).filter(|blocker| blocker != id) {
            Some(blocker) if !blocked_by.contains(&blocker) => blocked_by.push(blocker),
            Some(_) => {}
            None => notes.push(format!("{id} depends on `{need}`, which is not in the plan")),
        }
    }
    let _ = book.edit(id, at, |ticket| ticket.blocked_by = blocked_by);
}

/// The ticket that this part has already, or that another run of the feature planned and nobody has finished.
fn existing<'a>(book: &'a Book, run: &str, feature: &str, part: &Part) -> Option<&'a Ticket> {
    let own = |ticket: &&Ticket| ticket.origin == part.draft.origin;
    let of_another_run = |ticket: &&Ticket| {
        let planned_now = ticket.origin.as_ref().is_some_and(|origin| origin.run == run);
        // Two parts of one plan may have the same title; one without a name of its own is just its title.
        let other = !planned_now || !part.named;
        ticket.feature.as_deref() == Some(feature) && !ticket.state.closed() && other
    };
    let alike = |ticket: &&Ticket| of_another_run(ticket) && same_title(&ticket.title, &part.draft.title);
    book.tickets.iter().find(own).or_else(|| book.tickets.iter().find(alike))
}

/// Marks what the run's results say is done, and notes why the rest is not.
pub fn update(book: &mut Book, run: &str, steps: &Map<String, Value>, at: &str) -> Updated {
    let mut updated = Updated::default();
    let (mut done, mut open): (Vec<String>, Vec<(String, String)>) = Default::default();
    for result in results(steps) {
        let left: Vec<(String, String)> = list(result, "open").filter_map(unfinished).collect();
        let finished = list(result, "done").filter_map(Value::as_str).map(str::to_string);
        // A result that says both is not believed.
        done.extend(finished.filter(|id| !left.iter().any(|(other, _)| other == id)));
        open.extend(left);
    }
    open.retain(|(id, _)| !done.contains(id));
    for id in done {
        match meant(book, run, &id) {
            Some(ticket) => {
                let finish = |ticket: &mut Ticket| {
                    if !ticket.state.closed() {
                        ticket.state = State::Done;
                    }
                };
                let _ = book.edit(&ticket, at, finish);
                once(&mut updated.done, ticket);
            }
            None => updated.notes.push(format!("`{id}` is done, but is no ticket of this run")),
        }
    }
    for (id, why) in open {
        let Some(ticket) = meant(book, run, &id) else { continue };
        let tell = |ticket: &mut Ticket| {
            let told = ticket.notes.iter().any(|note| note.text == why && note.run.as_deref() == Some(run));
            if !told && !why.is_empty() {
                ticket.note(&why, Some(run), at);
            }
        };
        let _ = book.edit(&ticket, at, tell);
        once(&mut updated.open, ticket);
    }
    updated
}

/// The ticket that a result of the run names: by the plan's id, or by its own.
fn meant(book: &Book, run: &str, id: &str) -> Option<String> {
    let planned = |ticket: &&Ticket| {
        ticket.origin.as_ref().is_some_and(|origin| origin.run == run && origin.task == id)
    };
    book.tickets.iter().find(planned).or_else(|| book.get(id)).map(|ticket| ticket.id.clone())
}

fn once(list: &mut Vec<String>, id: String) {
    if !list.contains(&id) {
        list.push(id);
    }
}

/// What is left, and why: `{id, why}`, or just the id.
fn unfinished(value: &Value) -> Option<(String, String)> {
    if let Some(id) = value.as_str() {
        return Some((id.into(), String::new()));
    }
    Some((text(value, "id")?, text(value, "why").unwrap_or_default()))
}

fn parts(steps: &Map<String, Value>, run: &str, feature: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for result in results(steps) {
        for (field, needs) in [("tasks", "dependsOn"), ("tickets", "blockedBy")] {
            for value in list(result, field) {
                let Some(mut part) = part(value, needs, run, feature) else { continue };
                let same = |other: &&Part| other.task == part.task;
                let Some(before) = parts.iter().find(same) else {
                    parts.push(part);
                    continue;
                };
                if same_title(&before.draft.title, &part.draft.title) {
                    continue;
                }
                // Two plans use the same name for different things: none of them is lost.
                part.task = format!("{}: {}", part.task, part.draft.title);
                part.draft.origin = Some(Origin { run: run.into(), task: part.task.clone() });
                parts.push(part);
            }
        }
    }
    parts
}

/// `None` for one without a title.
fn part(value: &Value, needs: &str, run: &str, feature: &str) -> Option<Part> {
    let title: String = text(value, "title")?.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return None;
    }
    // A long one is cut, and whole in the detail.
    let short: String = title.chars().take(60).collect();
    let detail = text(value, "detail").unwrap_or_default();
    let (title, detail) = if title.len() > 200 {
        (format!("{short}…"), format!("{title}\n\n{detail}"))
    } else {
        (title, detail)
    };
    let own = text(value, "id");
    let (named, task) = (own.is_some(), own.unwrap_or_else(|| title.clone()));
    let draft = Draft {
        title,
        detail,
        priority: text(value, "priority").and_then(|text| Priority::parse(&text)).unwrap_or_default(),
        files: texts(value, "files"),
        acceptance: texts(value, "acceptance"),
        person: value.get("person") == Some(&Value::Bool(true)),
        feature: Some(feature.into()),
        origin: Some(Origin { run: run.into(), task: task.clone() }),
        ..Draft::default()
    };
    Some(Part { task, named, needs: texts(value, needs), draft })
}

fn refuse_cycle(parts: &[Part]) -> Result<(), PlanError> {
    let numbers: BTreeMap<&str, u32> = parts.iter().map(|part| part.task.as_str()).zip(0_u32..).collect();
    let mut graph = crate::graph::Graph::new(parts.len());
    for (part, from) in parts.iter().zip(0_u32..) {
        for to in part.needs.iter().filter_map(|need| numbers.get(need.as_str())) {
            graph.edge(from, *to);
        }
    }
    let Err(cycle) = graph.order() else { return Ok(()) };
    let names = cycle.0.iter().chain(cycle.0.first()).map(|number| parts[*number as usize].task.clone());
    Err(PlanError::Cycle(names.collect()))
}

/// The results among `steps`: `{state, result, full}` of a step, or a result itself; of a fan-out all of them.
/// The full one, because a filter may have cut the list.
fn results(steps: &Map<String, Value>) -> Vec<&Value> {
    let mut found = Vec::new();
    for step in steps.values() {
        let whole =
            ["full", "result"].into_iter().find_map(|field| step.get(field).filter(|it| !it.is_null()));
        match whole.unwrap_or(step) {
            Value::Array(items) => found.extend(items),
            result => found.push(result),
        }
    }
    found.retain(|result| result.is_object());
    found
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) => Some(text.trim().to_string()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    list(value, field).filter_map(Value::as_str).map(|text| text.trim().to_string()).collect()
}

fn same_title(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    plain(a) == plain(b)
}
