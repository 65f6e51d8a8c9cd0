//! Going on from a checkpoint when the journal is gone or damaged.
//!
//! A new run with a new journal takes over the finished phases, and what scripts had called, as its first events;
//! the damaged journal stays where it is, untouched, and the person is told. All else runs again.

use std::collections::BTreeMap;

use sage_core::digest::Digest;
use sage_core::event::*;
use sage_core::run::Run;
use serde_json::{Map, Value};

use crate::blobs::Blobs;
use crate::checkpoint::{Loaded, Source};
use crate::journal::{self, Journal, JournalError, JournalFile, Record};
use crate::open::{Engine, Notice, OpenError};
use crate::results::pack;

pub(crate) fn import(
    engine: &Engine,
    feature: &str,
    lost: &str,
    error: JournalError,
    loaded: Option<Loaded>,
    notices: &mut Vec<Notice>,
) -> Result<(Run, Journal, JournalFile), OpenError> {
    let Some(loaded) = loaded else { return Err(no_checkpoint(error, "none can be read")) };
    let Some(mut started) = frozen(&loaded.doc).or_else(|| first_event(engine, lost)) else {
        return Err(no_checkpoint(error, "it does not say with which template"));
    };
    let id = format!("run_{}", ulid::Ulid::generate());
    started.run = id.clone();
    let blobs = engine.blobs(&id);
    let old = engine.blobs(lost);
    let phases = phases(&loaded.doc, &old, &blobs);
    let calls = crate::image::calls::read(&loaded.doc, &old, &blobs);
    let called = calls.iter().map(Vec::len).sum();
    let from = if loaded.from == Source::Main { "checkpoint" } else { "backup" };
    notices.push(Notice::Imported {
        why: error.to_string(),
        phases: phases.keys().cloned().collect(),
        calls: called,
        kept: engine.project.run_dir(lost),
    });
    debug_assert_eq!(started.feature, feature);
    let now = engine.clock.now_ms();
    let mut run = Run::start(&started, now)?;
    let lost = lost_steps(&loaded.doc, &phases).saturating_sub(called as u32);
    let been = loaded.doc.get("been").and_then(|been| serde_json::from_value(been.clone()).ok());
    let first = RunImported { from: from.into(), phases, lost, results: Vec::new(), been };
    let more =
        |results| RunImported { phases: BTreeMap::new(), lost: 0, results, been: None, ..first.clone() };
    let more: Vec<RunImported> = calls.into_iter().map(more).collect();
    let imported: Vec<Event> = std::iter::once(first).chain(more).map(Event::from).collect();
    for event in &imported {
        run.apply(event, now)?;
    }
    let file = JournalFile::create(&engine.vfs, &engine.project.run_dir(&id))?;
    let mut journal = Journal::new();
    let started = Event::from(started);
    journal.append(started.kind(), now, &started)?;
    for event in &imported {
        journal.append(event.kind(), now, event)?;
    }
    Ok((run, journal, file))
}

fn no_checkpoint(journal: JournalError, why: &str) -> OpenError {
    OpenError::Lost { journal, checkpoint: why.into() }
}

/// The first record of a damaged journal is often whole.
fn first_event(engine: &Engine, run: &str) -> Option<RunStarted> {
    let path = engine.project.run_dir(run).join(journal::FILE_NAME);
    let bytes = engine.vfs.read(&path, 128 << 20).ok()?;
    let mut first = None;
    // The damage comes later, or nothing is found.
    let _ = journal::Reader::new().feed(&bytes, &mut |record: Record<'_>| -> Result<(), JournalError> {
        if first.is_none()
            && let Ok(Event::RunStarted(started)) = Event::parse(record.kind, record.data)
        {
            first = Some(started);
        }
        Ok(())
    });
    first
}

/// What the checkpoint itself says about how the run began.
fn frozen(doc: &Map<String, Value>) -> Option<RunStarted> {
    serde_json::from_value(doc.get("started")?.clone()).ok()
}

fn phases(doc: &Map<String, Value>, old: &Blobs, new: &Blobs) -> BTreeMap<String, BTreeMap<String, Payload>> {
    let mut all = BTreeMap::new();
    for (id, phase) in doc.get("checkpoints").and_then(Value::as_object).into_iter().flatten() {
        if phase.get("status").and_then(Value::as_str) != Some("completed") {
            continue;
        }
        if let Some(mut results) = results(phase.get("results"), old, new) {
            // What has no result in a phase that was reached without it runs again.
            for without in ["failed", "unfinished"] {
                let names = phase.get(without).and_then(Value::as_array).into_iter().flatten();
                names.filter_map(Value::as_str).for_each(|name| drop(results.remove(name)));
            }
            all.insert(id.clone(), results);
        }
    }
    all
}

/// Steps that the checkpoint calls finished, but whose phases could not be taken over.
fn lost_steps(doc: &Map<String, Value>, kept: &BTreeMap<String, BTreeMap<String, Payload>>) -> u32 {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
    let finished = count(doc.get("progress").and_then(|progress| progress.get("completed")));
    let steps = |id: &String| {
        let phase = doc.get("checkpoints").and_then(|phases| phases.get(id));
        count(phase.and_then(|phase| phase.get("metrics")?.get("completedOperations")))
    };
    finished.saturating_sub(kept.keys().map(steps).sum()) as u32
}

/// A phase counts only as a whole: one missing result and all of it runs again.
fn results(value: Option<&Value>, old: &Blobs, new: &Blobs) -> Option<BTreeMap<String, Payload>> {
    let value = value?;
    let pointed = value.get("blob").and_then(Value::as_str).filter(|_| value.get("bytes").is_some());
    let loaded = match pointed {
        Some(sha) => {
            let bytes = old.get(&sha.parse::<Digest>().ok()?).ok()?;
            let wrapped: Value = serde_json::from_slice(&bytes).ok()?;
            wrapped.get(0)?.clone()
        }
        None => value.clone(),
    };
    let pack_one = |(id, result): (&String, &Value)| Some((id.clone(), pack(result, new).ok()?));
    loaded.as_object()?.iter().map(pack_one).collect()
}
