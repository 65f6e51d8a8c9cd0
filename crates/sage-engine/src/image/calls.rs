//! What scripts have called, in the checkpoint: a lost journal must not cost all of it again.
//!
//! ```text
//! "calls": { "chunks": [{blob, bytes}, ..], "recent": [{key, result}, ..] }
//! ```
//! A full chunk is a blob that is written once; what is not yet one is in the image itself. So an image stays small,
//! and painting the next one costs what has ended since.

use std::collections::BTreeMap;

use sage_core::digest::Digest;
use sage_core::event::{KeptResult, Payload};
use sage_core::run::{CallEnd, Children, Output, Run, StepId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::blobs::Blobs;
use crate::results::{pack, unpack};

/// Results of so many bytes make a chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// Of many scripts that have little each, more than this in all makes smaller chunks.
const RECENT_BYTES: usize = 256 * 1024;
/// What a result takes besides itself.
const AROUND_BYTES: usize = 250;

/// The chunks of each script.
#[derive(Debug, Default)]
pub struct Kept {
    chunks: BTreeMap<StepId, Vec<Chunk>>,
}

/// Some ends of calls, one after the other. Serials only grow, so the first, the last and their number tell them.
#[derive(Debug)]
struct Chunk {
    first: u32,
    last: u32,
    ends: usize,
    blob: Pointer,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pointer {
    blob: Digest,
    bytes: usize,
}

impl Kept {
    /// `None` if nothing was called that is not part of a finished phase.
    pub fn image(&mut self, run: &Run, blobs: &Blobs) -> Option<Value> {
        let scripts: Vec<StepId> = run.step_ids().filter(|&id| is_under_way(run, id)).collect();
        self.chunks.retain(|id, _| scripts.contains(id));
        let mut rests: Vec<Rest> = scripts.iter().map(|&id| self.follow(run, id, blobs)).collect();
        if rests.iter().map(|rest| rest.bytes).sum::<usize>() > RECENT_BYTES {
            let much = RECENT_BYTES / (2 * rests.len());
            rests.iter_mut().filter(|rest| rest.bytes >= much).for_each(|rest| self.close(run, rest, blobs));
        }
        let of = |id: &StepId| self.chunks.get(id).into_iter().flatten().map(|chunk| chunk.blob);
        let chunks: Vec<Pointer> = scripts.iter().flat_map(of).collect();
        let recent: Vec<KeptResult> = rests.into_iter().flat_map(|rest| rest.results).collect();
        (!chunks.is_empty() || !recent.is_empty()).then(|| json!({"chunks": chunks, "recent": recent}))
    }

    /// Makes chunks of what has ended in a script, as far as it fills them; gives the rest and its size.
    fn follow(&mut self, run: &Run, id: StepId, blobs: &Blobs) -> Rest {
        let nothing = Rest { script: id, from: 0, results: Vec::new(), bytes: 0 };
        let Some(calls) = run.calls(id) else { return nothing };
        let chunks = self.chunks.entry(id).or_default();
        let mut at = 0;
        let known = chunks.iter().take_while(|chunk| {
            let is_it = chunk.is(calls.ended.get(at..at + chunk.ends).unwrap_or_default());
            at += if is_it { chunk.ends } else { 0 };
            is_it
        });
        let known = known.count();
        // What ran again, and all after it, is gathered anew.
        chunks.truncate(known);
        let (mut results, mut bytes, mut from) = (Vec::new(), 0, at);
        for (place, end) in calls.ended.iter().enumerate().skip(at) {
            if let Some(&step) = calls.steps.get(end.number as usize) {
                gather(run, step, &mut results, &mut bytes);
            }
            if bytes >= CHUNK_BYTES
                && let Some(blob) = stored(&results, blobs)
            {
                let (first, last) = (calls.ended[from].serial, end.serial);
                chunks.push(Chunk { first, last, ends: place + 1 - from, blob });
                (results, bytes, from) = (Vec::new(), 0, place + 1);
            }
        }
        Rest { script: id, from, results, bytes }
    }

    /// Makes a chunk of what would not have filled one.
    fn close(&mut self, run: &Run, rest: &mut Rest, blobs: &Blobs) {
        let ends = run.calls(rest.script).and_then(|calls| calls.ended.get(rest.from..)).unwrap_or_default();
        let (Some(first), Some(last), Some(blob)) = (ends.first(), ends.last(), stored(&rest.results, blobs))
        else {
            return;
        };
        let chunk = Chunk { first: first.serial, last: last.serial, ends: ends.len(), blob };
        self.chunks.entry(rest.script).or_default().push(chunk);
        rest.results.clear();
    }
}

/// What a script has besides its chunks.
struct Rest {
    script: StepId,
    /// The first end of it.
    from: usize,
    results: Vec<KeptResult>,
    bytes: usize,
}

impl Chunk {
    fn is(&self, ends: &[CallEnd]) -> bool {
        matches!((ends.first(), ends.last()), (Some(first), Some(last)) if (first.serial, last.serial) == (self.first, self.last))
    }
}

/// A script whose results are not yet those of a phase that was reached: only such a phase is taken over as one.
fn is_under_way(run: &Run, id: StepId) -> bool {
    if run.calls(id).is_none() {
        return false;
    }
    let mut top = run.step(id);
    while let Some(holder) = top.item.map(|(fan, _)| fan).or(run.scope(top.scope).parent) {
        top = run.step(holder);
    }
    !run.phase(top.phase).judged.is_some_and(|judged| judged.reached())
}

/// What a call gave, or what the steps of a workflow that it was gave. Scripts in there have their own ends.
fn gather(run: &Run, id: StepId, results: &mut Vec<KeptResult>, bytes: &mut usize) {
    let step = run.step(id);
    match (step.children.as_deref(), step.key, step.output.as_deref()) {
        _ if !step.state.ok() => {}
        (None, Some(key), Some(Output::Leaf { result, full, artifacts, changed, .. })) if !step.degraded => {
            let size = |payload: &Payload| payload.json.as_ref().map_or(0, |json| json.get().len());
            *bytes += AROUND_BYTES + size(result) + full.as_ref().map_or(0, size);
            let (result, full, artifacts) = (result.clone(), full.clone(), artifacts.clone());
            results.push(KeptResult { key, step: None, result, full, artifacts, changed: *changed });
        }
        (Some(Children::Items { .. } | Children::Scope(_)), ..) => {
            run.children(id).into_iter().for_each(|child| gather(run, child, results, bytes));
        }
        _ => {}
    }
}

fn stored(results: &[KeptResult], blobs: &Blobs) -> Option<Pointer> {
    let text = serde_json::to_vec(results).ok()?;
    Some(Pointer { blob: blobs.put(&text).ok()?, bytes: text.len() })
}

/// What a checkpoint has of calls, in pieces that fit a record. What cannot be read runs again.
pub(crate) fn read(doc: &Map<String, Value>, old: &Blobs, new: &Blobs) -> Vec<Vec<KeptResult>> {
    let Some(calls) = doc.get("calls") else { return Vec::new() };
    let pointers = calls.get("chunks").and_then(Value::as_array).into_iter().flatten();
    let chunk = |pointer: &Value| {
        let pointer: Pointer = serde_json::from_value(pointer.clone()).ok()?;
        serde_json::from_slice::<Vec<KeptResult>>(&old.get(&pointer.blob).ok()?).ok()
    };
    let recent = calls.get("recent").and_then(|recent| serde_json::from_str(&recent.to_string()).ok());
    let chunks = pointers.filter_map(chunk).chain(recent);
    let moved = chunks.map(|chunk| chunk.into_iter().filter_map(|kept| moved(kept, old, new)).collect());
    moved.filter(|chunk: &Vec<KeptResult>| !chunk.is_empty()).collect()
}

/// The same result among the blobs of the new run.
fn moved(kept: KeptResult, old: &Blobs, new: &Blobs) -> Option<KeptResult> {
    let one = |payload: &Payload| pack(&unpack(payload, old).ok()?, new).ok();
    let full = match &kept.full {
        Some(full) => Some(one(full)?),
        None => None,
    };
    Some(KeptResult { result: one(&kept.result)?, full, ..kept })
}
