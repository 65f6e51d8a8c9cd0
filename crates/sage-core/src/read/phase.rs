//! A phase: its join, its dependencies and its operations with their ids.

use std::collections::{HashMap, HashSet};

use super::fields::{Fields, expected};
use super::place::Place;
use super::{Library, bounded, id, limits, operation, policies};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Data, Node};
use crate::template::{Named, Operation, Phase, Repeat};

pub const PHASE_FIELDS: &[&str] = &[
    "id",
    "name",
    "join",
    "onJoin",
    "onFailure",
    "dependencies",
    "operations",
    "timeout",
    "repeat",
    "budget",
];

pub const REPEAT_FIELDS: &[&str] = &["from", "while", "max"];

/// More rounds than this are a loop that forgot to end.
const MAX_ROUNDS: u32 = 1_000;

pub fn read(
    node: &Node<'_>,
    place: &Place<'_>,
    library: &Library,
    problems: &mut Diagnostics,
) -> Option<Phase> {
    let fields = Fields::new(node, place, PHASE_FIELDS, problems)?;
    if fields.get("id").is_none() {
        fields.missing("id", problems);
    }
    let id = id(&fields, problems).unwrap_or_default();
    Some(Phase {
        name: bounded(&fields, "name", 50, problems).unwrap_or_else(|| id.clone()),
        span: fields.get("id").map_or(node.span, |id| id.span),
        join: policies::join(&fields, problems),
        on_join: policies::on_join(&fields, problems),
        on_failure: policies::on_failure(&fields, problems),
        dependencies: fields.names("dependencies", problems),
        operations: operations(&fields, library, problems),
        timeout_ms: fields.timeout_ms("timeout", problems),
        repeat: repeat(&fields, &id, problems),
        budget: limits::budget(&fields, problems),
        id,
    })
}

fn operations(fields: &Fields<'_, '_>, library: &Library, problems: &mut Diagnostics) -> Vec<Operation> {
    let Some(node) = fields.get("operations") else {
        return Vec::new();
    };
    let place = fields.place.field("operations");
    let mut operations = Vec::new();
    match &node.data {
        Data::Seq(items) => {
            operations.reserve(items.len());
            for (index, item) in items.iter().enumerate() {
                operations.extend(operation::read(item, &place.index(index), library, problems));
            }
        }
        Data::Map(_) => operations.extend(operation::read(node, &place, library, problems)),
        _ => problems.push(expected("a list of operations, or one operation", node, &place)),
    }
    name_operations(&mut operations);
    operations
}

/// Operations without an id get the last part of their type; repeats get `-2`, `-3`.
fn name_operations(operations: &mut [Operation]) {
    if operations.iter().all(|operation| !operation.id.is_empty()) {
        return;
    }
    let taken: HashSet<String> =
        operations.iter().map(|o| o.id.clone()).filter(|id| !id.is_empty()).collect();
    let mut counts: HashMap<String, u32> = HashMap::new();
    for operation in operations.iter_mut().filter(|operation| operation.id.is_empty()) {
        let base = operation.type_name.rsplit('.').next().unwrap_or(&operation.type_name);
        let count = counts.entry(base.to_owned()).or_default();
        operation.id = loop {
            *count += 1;
            let id = if *count == 1 { base.to_owned() } else { format!("{base}-{count}") };
            if !taken.contains(&id) {
                break id;
            }
        };
    }
}

fn repeat(fields: &Fields<'_, '_>, own: &str, problems: &mut Diagnostics) -> Option<Repeat> {
    let node = fields.get("repeat")?;
    let place = fields.place.field("repeat");
    let repeat = Fields::new(node, &place, REPEAT_FIELDS, problems)?;
    let from = match (repeat.text("from", problems), repeat.get("from")) {
        (Some(text), Some(node)) => Named { name: text.to_owned(), span: node.span },
        _ => Named { name: own.to_owned(), span: node.span },
    };
    for name in ["while", "max"] {
        if repeat.get(name).is_none() {
            repeat.missing(name, problems);
        }
    }
    let while_ = repeat.condition("while", problems)?;
    let max = repeat.count("max", 1, MAX_ROUNDS, problems)?;
    if max == 1 {
        let message = "`max: 1` is the first round only: nothing is repeated";
        problems.push(Diagnostic::warning(place.field("max"), node.span, message));
    }
    Some(Repeat { from, while_, max })
}
