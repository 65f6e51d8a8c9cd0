//! What a checkpoint tells of a run whose journal does not: how it began, finished phases, finished calls of scripts.

use std::collections::BTreeMap;

use sage_core::digest::Digest;
use sage_core::event::{Been, KeptResult, Payload, RunStarted, Standing};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::blobs::Blobs;
use crate::checkpoint::{Loaded, Source};
use crate::image::pointers::pointer;
use crate::results::pack;

/// Phase id -> operation id -> result.
pub(super) type Phases = BTreeMap<String, BTreeMap<String, Payload>>;

/// Reads results from the run's blobs and puts what has to be kept anew into others, or into the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shelf<'a> {
    pub old: &'a Blobs,
    pub new: &'a Blobs,
}

/// Where it came from, as events name it.
pub(super) fn origin(loaded: Option<&Loaded>) -> &'static str {
    match loaded.map(|loaded| loaded.from) {
        Some(Source::Main) => "checkpoint",
        Some(Source::Backup) => "backup",
        None => "journal",
    }
}

/// How the run began, if the checkpoint says it: large templates are left out of it.
pub(super) fn started(doc: &Map<String, Value>) -> Option<RunStarted> {
    serde_json::from_value(doc.get("started")?.clone()).ok()
}

pub(super) fn been(doc: &Map<String, Value>) -> Option<Been> {
    serde_json::from_value(doc.get("been")?.clone()).ok()
}

/// Steps that it calls finished.
pub(super) fn finished(doc: &Map<String, Value>) -> u64 {
    doc.get("progress").and_then(|progress| progress.get("completed")).and_then(Value::as_u64).unwrap_or(0)
}

/// A new journal begins with the first round; `research@2` is the newest round of `research`.
fn without_round(phase: &str) -> &str {
    phase.split_once('@').map_or(phase, |(id, _)| id)
}

fn phase_of<'a>(doc: &'a Map<String, Value>, id: &str) -> Option<&'a Value> {
    let mut phases = doc.get("checkpoints")?.as_object()?.iter();
    phases.find(|(name, _)| without_round(name) == id).map(|(_, phase)| phase)
}

/// Steps of a phase that it calls finished.
pub(super) fn finished_in(doc: &Map<String, Value>, phase: &str) -> u64 {
    let metrics = phase_of(doc, phase).and_then(|phase| phase.get("metrics"));
    metrics.and_then(|metrics| metrics.get("completedOperations")?.as_u64()).unwrap_or(0)
}

pub(super) fn calls(doc: &Map<String, Value>, shelf: Shelf<'_>) -> Vec<KeptResult> {
    crate::image::calls::read(doc, shelf.old, shelf.new).into_iter().flatten().collect()
}

/// Whole, finished phases: one missing result and all of it runs again.
pub(super) fn phases(doc: &Map<String, Value>, shelf: Shelf<'_>) -> Phases {
    let mut all = BTreeMap::new();
    for (id, phase) in doc.get("checkpoints").and_then(Value::as_object).into_iter().flatten() {
        if phase.get("status").and_then(Value::as_str) != Some("completed") {
            continue;
        }
        if let Some(mut results) = results(phase.get("results"), shelf) {
            // What has no result in a phase that was reached without it runs again.
            for without in ["failed", "unfinished"] {
                let names = phase.get(without).and_then(Value::as_array).into_iter().flatten();
                names.filter_map(Value::as_str).for_each(|name| drop(results.remove(name)));
            }
            all.insert(without_round(id).to_string(), results);
        }
    }
    all
}

/// Of those phases: digests of results that were put together from others, by path.
pub(super) fn digests(doc: &Map<String, Value>, phases: &Phases) -> BTreeMap<String, Digest> {
    let of_phase = |phase: &String| {
        let digests = phase_of(doc, phase)?.get("digests")?.as_object()?;
        let one = |(operation, sha): (&String, &Value)| {
            Some((format!("{phase}/{operation}"), sha.as_str()?.parse().ok()?))
        };
        Some(digests.iter().filter_map(one).collect::<Vec<_>>())
    };
    phases.keys().filter_map(of_phase).flatten().collect()
}

/// Of those phases: what their results do not say themselves, by path.
pub(super) fn standing(doc: &Map<String, Value>, phases: &Phases) -> BTreeMap<String, Standing> {
    let of_phase = |phase: &String| {
        let standing = phase_of(doc, phase)?.get("standing")?.as_object()?;
        let one = |(operation, told): (&String, &Value)| {
            Some((format!("{phase}/{operation}"), Standing::deserialize(told).ok()?))
        };
        Some(standing.iter().filter_map(one).collect::<Vec<_>>())
    };
    phases.keys().filter_map(of_phase).flatten().collect()
}

fn results(value: Option<&Value>, shelf: Shelf<'_>) -> Option<BTreeMap<String, Payload>> {
    let value = value?;
    let loaded = match pointer(value) {
        Some(sha) => {
            let bytes = shelf.old.get(&sha).ok()?;
            let wrapped: Value = serde_json::from_slice(&bytes).ok()?;
            wrapped.get(0)?.clone()
        }
        None => value.clone(),
    };
    let pack_one = |(id, result): (&String, &Value)| Some((id.clone(), pack(result, shelf.new).ok()?));
    loaded.as_object()?.iter().map(pack_one).collect()
}
