//! The checkpoint: the readable image of a run, painted from the fold (MCP_TOOLS "Checkpoint file").
//!
//! Painted after every phase and status change, and at most once a second in between, by a thread that takes
//! only the newest request. It names the journal's durable head, so a journal that lost its tail is noticed.
//! What must stay true: an image shows what is durable and nothing else. It is painted only while the fold and the
//! journal on disk are at the same record, and never after a write that failed.

pub(crate) mod calls;
mod newer;
pub(crate) mod pointers;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::event::{RunStarted, Standing};
use sage_core::run::{Output, PhaseId, Run, Status, StepId};
use sage_core::seal::Key;
use sage_core::wire::{self, PhaseResult, WorkflowMetrics};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::blobs::Blobs;
use crate::checkpoint::{self, CheckpointError};
use crate::journal::Head;
use crate::registry;
use crate::results::{Face, pack, value_of};
use crate::run_loop::{CommitMode, Surroundings};
use crate::vfs::Vfs;
use newer::Newer;

/// Between two images while nothing remarkable happens.
const PACE: Duration = Duration::from_secs(1);
/// Between two images while phases end quickly: painting all of them after each would be quadratic.
const PHASE_PACE: Duration = Duration::from_millis(100);
/// Results of a phase beyond this are a pointer to a blob: an image stays well below 1 MB (R4).
const INLINE_BYTES: usize = 32 * 1024;

/// Paints when it is time to.
#[derive(Debug)]
pub struct Painter {
    easel: Arc<Easel>,
    thread: Option<std::thread::JoinHandle<()>>,
    blobs: Arc<Blobs>,
    last: (Instant, Status, u32),
    /// The head of the last image.
    shown: Option<Head>,
    calls: calls::Kept,
    finished: Finished,
    newer: Option<Newer>,
    /// Something was committed that the last image does not show.
    behind: bool,
    /// Since when an image is due that could not be painted: the fold was ahead of the disk.
    late_since: Option<Instant>,
}

/// Results of finished phases as images show them. They are made once: a phase that is done does not change.
#[derive(Debug, Default)]
struct Finished(BTreeMap<PhaseId, (Digest, Value)>);

#[derive(Debug)]
struct Easel {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// Where the readable registry is; a simulated disk has none.
    registry: Option<PathBuf>,
    key: Option<Key>,
    next: Mutex<Next>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Next {
    image: Option<Map<String, Value>>,
    closed: bool,
}

impl Easel {
    fn save(&self, image: Map<String, Value>) {
        if let Some(state) = &self.registry {
            registered(state, &image);
        }
        // The journal is the truth: an image that cannot be saved is painted again with the next change.
        let _ = checkpoint::seal(image, self.key.as_ref())
            .and_then(|bytes| checkpoint::save(self.vfs.as_ref(), &self.path, &bytes));
    }

    fn work(&self) {
        loop {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            while next.image.is_none() && !next.closed {
                next = self.changed.wait(next).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(image) = next.image.take() else { return };
            drop(next);
            self.save(image);
        }
    }
}

/// The registry says `paused` while a run waits for a known time; how it ends is told by its owner.
fn registered(state: &Path, image: &Map<String, Value>) {
    let text = |name: &str| image.get(name).and_then(Value::as_str).unwrap_or_default();
    let (run, status) = (text("runId"), text("status"));
    let outdated = |entry: &registry::Entry| entry.run_id == run && entry.status != status;
    if !matches!(status, "running" | "paused") || !registry::read(state).0.iter().any(outdated) {
        return;
    }
    // It is for people: the run goes on without it.
    let _ = registry::update(state, |entries| {
        for entry in entries.iter_mut().filter(|entry| outdated(entry)) {
            (entry.status, entry.updated_at) = (status.into(), text("lastUpdatedAt").into());
        }
    });
}

impl Painter {
    pub fn new(around: &Surroundings, mode: CommitMode, run: &Run) -> Painter {
        let easel = Arc::new(Easel {
            vfs: around.vfs.clone(),
            path: around.checkpoint.clone(),
            registry: around
                .checkpoint
                .parent()
                .filter(|_| mode == CommitMode::Thread)
                .map(Path::to_path_buf),
            key: checkpoint::scoped(around.key.as_ref(), &run.feature),
            next: Mutex::default(),
            changed: Condvar::new(),
        });
        let worker = (mode == CommitMode::Thread).then(|| {
            let easel = easel.clone();
            std::thread::Builder::new().spawn(move || easel.work())
        });
        Painter {
            easel,
            // Without a thread for it, the loop saves its images itself.
            thread: worker.and_then(Result::ok),
            blobs: around.blobs.clone(),
            // What a run is like when it is taken, its journal says.
            last: (Instant::now(), run.status, run.scopes[0].open_phases),
            shown: None,
            calls: Default::default(),
            finished: Default::default(),
            newer: newer_fields(around.vfs.as_ref(), &around.checkpoint, run),
            behind: false,
            late_since: None,
        }
    }

    /// Called after each commit. `folded` is the last record that `run` knows.
    pub fn paint(&mut self, run: &Run, durable: Head, folded: Head) {
        let now = (Instant::now(), run.status, run.scopes[0].open_phases);
        let (at, status, phases) = self.last;
        let waited = now.0.duration_since(at);
        let due = status != now.1 || (phases != now.2 && waited >= PHASE_PACE) || waited >= PACE;
        self.behind = !due || folded != durable;
        if due && folded != durable {
            self.late_since.get_or_insert(now.0);
        } else if due {
            self.last = now;
            self.late_since = None;
            let image = self.whole(run, durable);
            self.request(image);
        }
    }

    /// Called now and then while nothing is committed: paints what the pace held back.
    pub fn catch_up(&mut self, run: &Run, durable: Head, folded: Head) {
        if self.behind {
            self.paint(run, durable, folded);
        }
    }

    /// An image has been due for a while, and the fold was ahead of the disk each time.
    pub fn is_late(&self) -> bool {
        self.late_since.is_some_and(|since| since.elapsed() >= PHASE_PACE)
    }

    fn whole(&mut self, run: &Run, durable: Head) -> Map<String, Value> {
        let mut image = paint(run, durable, &self.blobs, &mut self.finished);
        image.extend(self.calls.image(run, &self.blobs).map(|calls| ("calls".to_string(), calls)));
        if let Some(newer) = &self.newer {
            newer.put_into(&mut image);
        }
        self.shown = Some(durable);
        image
    }

    fn request(&self, image: Map<String, Value>) {
        if self.thread.is_none() {
            return self.easel.save(image);
        }
        self.easel.next.lock().unwrap_or_else(PoisonError::into_inner).image = Some(image);
        self.easel.changed.notify_one();
    }

    /// The last image; on disk when this returns.
    pub fn finish(&mut self, run: &Run, durable: Head) {
        if self.shown != Some(durable) {
            let image = self.whole(run, durable);
            self.request(image);
        }
        self.close();
    }

    /// No more images; the ones before are on disk when this returns.
    pub fn close(&mut self) {
        self.easel.next.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.easel.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A painter that panicked has nothing more to save.
            let _ = thread.join();
        }
    }
}

/// What the run's last image has that this version does not know.
fn newer_fields(vfs: &dyn Vfs, path: &Path, run: &Run) -> Option<Newer> {
    let last = checkpoint::load(vfs, path).ok()?;
    let own = last.doc.get("runId").and_then(Value::as_str) == Some(&run.id);
    Newer::of(&last.doc).filter(|_| own)
}

/// Saves the image of a run that nobody drives: its last one is missing, damaged or behind.
pub fn repaint(
    vfs: &dyn Vfs,
    path: &Path,
    blobs: &Blobs,
    run: &Run,
    durable: Head,
    key: Option<&Key>,
) -> Result<(), CheckpointError> {
    let mut image = image(run, durable, blobs);
    image.extend(calls::Kept::default().image(run, blobs).map(|calls| ("calls".to_string(), calls)));
    if let Some(newer) = newer_fields(vfs, path, run) {
        newer.put_into(&mut image);
    }
    let key = checkpoint::scoped(key, &run.feature);
    checkpoint::save(vfs, path, &checkpoint::seal(image, key.as_ref())?)
}

impl Finished {
    /// What a phase gave; null unless it is done, and where a blob is missing: an image is never worth stopping for.
    fn results(&mut self, run: &Run, id: PhaseId, blobs: &Blobs) -> Value {
        let phase = run.phase(id);
        let Some(digest) = phase.digest.filter(|_| phase.judged.is_some()) else {
            self.0.remove(&id);
            return Value::Null;
        };
        if let Some((known, results)) = self.0.get(&id)
            && *known == digest
        {
            return results.clone();
        }
        let whole = Cell::new(true);
        let value = |output: &Output| {
            let value = value_of(output, Face::Filtered, blobs);
            whole.set(whole.get() && value.is_ok());
            value.unwrap_or_default()
        };
        let results = shortened(PhaseResult::of(run, id, run.updated_ms, &value).results, blobs);
        if whole.get() {
            self.0.insert(id, (digest, results.clone()));
        }
        results
    }
}

/// The document, without version and checksum.
pub fn image(run: &Run, durable: Head, blobs: &Blobs) -> Map<String, Value> {
    paint(run, durable, blobs, &mut Finished::default())
}

fn paint(run: &Run, durable: Head, blobs: &Blobs, finished: &mut Finished) -> Map<String, Value> {
    let mut checkpoints = Map::new();
    for &id in &run.scopes[0].phases {
        let phase = run.phase(id);
        if phase.open || phase.judged.is_some() {
            let result = PhaseResult::of(run, id, run.updated_ms, &|_| Value::Null);
            let mut shown = phase_image(result, finished.results(run, id, blobs));
            if let Some(digests) = digests(run, id) {
                shown["digests"] = digests;
            }
            if let Some(standing) = standing(run, id) {
                shown["standing"] = standing;
            }
            checkpoints.insert(run.phase_path(id), shown);
        }
    }
    let metrics = serde_json::to_value(WorkflowMetrics::of(run)).unwrap_or_default();
    let Value::Object(mut image) = json!({
        "feature": run.feature,
        "title": run.title,
        "template": run.plan().template.name,
        "runId": run.id,
        "phase": wire::current_phase(run),
        "status": run.status.name(),
        "verdict": wire::verdict_of(run).map(|v| v.name()),
        "progress": wire::Progress::of(run),
        "checkpoints": checkpoints,
        "decisions": decisions(run, blobs),
        "startedAt": wire::rfc3339(run.started_ms),
        "lastUpdatedAt": wire::rfc3339(run.updated_ms),
        "metrics": metrics,
        "journal": durable,
    }) else {
        return Map::new();
    };
    let (reason, until) = wire::pause(run);
    for (name, told) in [("pauseReason", reason), ("until", until)] {
        image.extend(told.map(|told| (name.to_string(), Value::String(told))));
    }
    if let Some(started) = how_it_began(run) {
        image.insert("started".into(), started);
    }
    if let Ok(been) = serde_json::to_value(run.been_before()) {
        image.insert("been".into(), been);
    }
    image
}

/// Enough to begin again if the journal is lost; templates that would make the image large are left out.
fn how_it_began(run: &Run) -> Option<Value> {
    let templates = run.templates.iter().chain([&run.template]).map(|t| t.text.len()).sum::<usize>();
    if templates > INLINE_BYTES {
        return None;
    }
    let started = RunStarted {
        core: run.core,
        run: run.id.clone(),
        feature: run.feature.clone(),
        title: run.title.clone(),
        template: run.template.clone(),
        templates: run.templates.clone(),
        inputs: run.inputs.clone(),
        settings: run.settings.clone(),
        number: run.number,
    };
    serde_json::to_value(started).ok()
}

/// A result as an image shows it. Missing blobs show as null: an image is never worth stopping for.
fn result_value(output: &Output, blobs: &Blobs) -> Value {
    value_of(output, Face::Filtered, blobs).unwrap_or(Value::Null)
}

/// Of results that are put together from others: their digest is not that of their JSON, and keys are made of it.
fn digests(run: &Run, id: PhaseId) -> Option<Value> {
    let put_together = |&member: &StepId| {
        let output = run.step(member).output.as_deref()?;
        let composite = matches!(output, Output::List { .. } | Output::Phases { .. } | Output::Whole { .. });
        composite.then(|| (run.operation(member).id.clone(), Value::String(output.sha().to_string())))
    };
    let digests: Map<String, Value> = run.phase(id).members.iter().filter_map(put_together).collect();
    (!digests.is_empty()).then_some(Value::Object(digests))
}

/// What results do not say themselves: without it, a run that goes on without its journal would look better than it is.
fn standing(run: &Run, id: PhaseId) -> Option<Value> {
    let of_member = |&member: &StepId| {
        let standing = run.standing(member);
        let told = (standing != Standing::default()).then(|| serde_json::to_value(standing).ok())?;
        Some((run.operation(member).id.clone(), told?))
    };
    let standing: Map<String, Value> = run.phase(id).members.iter().filter_map(of_member).collect();
    (!standing.is_empty()).then_some(Value::Object(standing))
}

fn phase_image(result: PhaseResult, results: Value) -> Value {
    let mut image = json!({
        "phaseId": result.phase_id,
        "status": result.status,
        "results": results,
        "timestamp": result.started_at,
        "metrics": result.metrics,
    });
    if let Some(at) = result.completed_at {
        image["completedAt"] = at.into();
    }
    if !result.failed.is_empty() {
        image["failed"] = result.failed.into();
    }
    if !result.unfinished.is_empty() {
        image["unfinished"] = result.unfinished.into();
    }
    if let Some(error) = result.error {
        image["error"] = error.into();
    }
    image
}

/// Large results stay in a blob: `{"blob": sha256, "bytes": n}`.
fn shortened(results: Value, blobs: &Blobs) -> Value {
    if results.to_string().len() <= INLINE_BYTES {
        return results;
    }
    match pack(&json!([results]), blobs) {
        Ok(payload) if payload.is_blob() => json!({"blob": payload.sha, "bytes": payload.bytes}),
        _ => results,
    }
}

/// What people decided, for those who come later.
fn decisions(run: &Run, blobs: &Blobs) -> Vec<Value> {
    let approvals = run.step_ids().filter(|&id| run.kind(id) == sage_core::template::Kind::Approval);
    approvals
        .filter_map(|id| {
            let step = run.step(id);
            let result = result_value(step.output.as_deref()?, blobs);
            Some(json!({"step": step.path.as_ref(), "decision": result, "at": wire::rfc3339(step.ended_ms)}))
        })
        .collect()
}
