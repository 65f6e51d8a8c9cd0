//! A run whose journal is damaged or gone, put together from what is left of it.
//!
//! ```text
//! journal     good records, as they are ------\
//!             records that still follow them --+-> new journal: these, what people changed, run.imported
//!             whole records after a gap, by key +        \-> in the place of the damaged one, which is kept aside
//! checkpoint  finished phases, finished calls -/
//! ```
//! A damaged record costs the step that it tells of, and what follows from it if that gives another result.
//! What must stay true: nothing on disk changes before all of the new journal is durable; the damaged file is kept;
//! what contradicts an acknowledged record, or is not sealed with our key, is not believed.

mod checkpoint;
mod loose;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::event::{Acknowledged, Event, KeptResult, RunImported};
use sage_core::policy::OnUnknown;
use sage_core::run::{Run, State, StepId};

use crate::blobs::Blobs;
use crate::checkpoint::Loaded;
use crate::journal::{self, Draft, FILE_NAME, Head, JournalError, QUARANTINE, Salvage, Sealing};
use crate::open::{Engine, Fold, OpenError, watermark};
use crate::sim::SimFs;
use crate::vfs::{self, Vfs};
use checkpoint::{Phases, Shelf};
use loose::Loose;

/// Results in one record: a record must not become too long.
const RESULTS: usize = 256;

/// What a repair keeps and what it costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What is wrong with the journal.
    pub why: String,
    /// Finished steps whose results are kept.
    pub steps: usize,
    /// Phases taken over from the checkpoint.
    pub phases: Vec<String>,
    /// Calls of scripts taken over from the checkpoint.
    pub calls: usize,
    /// Steps whose attempt has no end that could be read: they run again, or a person decides.
    pub again: Vec<String>,
    /// Finished steps whose results are gone, as far as the checkpoint knows of them.
    pub lost: u64,
    /// Where the damaged journal is kept; none if there is no file to keep.
    pub aside: Option<PathBuf>,
}

/// A new journal that has not taken its place yet.
#[derive(Debug)]
pub(crate) struct Plan {
    dir: PathBuf,
    bytes: Vec<u8>,
    pub repaired: Repaired,
}

impl Engine {
    /// What can be put together. Changes nothing on disk but for blobs that the new journal needs, and those not in
    /// a dry run.
    pub(crate) fn plan_repair(
        &self,
        feature: &str,
        id: &str,
        error: JournalError,
        loaded: Option<&Loaded>,
        dry_run: bool,
    ) -> Result<Plan, OpenError> {
        let dir = self.project.run_dir(id);
        let watermark = watermark(loaded, id);
        let sealing = self.sealing(id);
        let salvage = journal::salvage(self.vfs.as_ref(), &dir, watermark, &sealing)?;
        // A checkpoint of another run of the feature says nothing about this one.
        let loaded = loaded.filter(|loaded| loaded.doc.get("runId").and_then(|run| run.as_str()) == Some(id));
        let old = self.blobs(id);
        let memory = Blobs::new(Arc::new(SimFs::new(0)), "/repair");
        let shelf = Shelf { old: &old, new: if dry_run { &memory } else { &old } };
        let builder = Builder { loaded, shelf, sealing, now: self.clock.now_ms(), feature, id };
        builder.build(salvage, watermark, error).map(|(bytes, repaired)| Plan { dir, bytes, repaired })
    }

    /// Puts the new journal in its place; the damaged one is kept aside.
    pub(crate) fn carry_out(&self, plan: Plan) -> Result<Repaired, OpenError> {
        let failed = |source| OpenError::Io { what: "repair the journal", source };
        let Plan { dir, bytes, mut repaired } = plan;
        let (vfs, path) = (self.vfs.as_ref(), dir.join(FILE_NAME));
        vfs::create_dir_durable(vfs, &dir).map_err(failed)?;
        let temp = vfs::write_temp(vfs, &path, &bytes).map_err(failed)?;
        let placed = set_aside(vfs, &dir).and_then(|aside| {
            repaired.aside = aside;
            vfs.rename(&temp, &path)?;
            vfs.sync_dir(&dir)
        });
        placed.inspect_err(|_| vfs::discard(vfs, &temp)).map_err(failed)?;
        Ok(repaired)
    }
}

struct Builder<'a> {
    loaded: Option<&'a Loaded>,
    shelf: Shelf<'a>,
    sealing: Sealing,
    now: u64,
    feature: &'a str,
    id: &'a str,
}

impl Builder<'_> {
    fn build(
        &self,
        salvage: Salvage,
        watermark: Option<Head>,
        error: JournalError,
    ) -> Result<(Vec<u8>, Repaired), OpenError> {
        let mut fold = Fold::default();
        salvage.each_chained(|record| fold.take::<OpenError>(record))?;
        let (mut run, began) = match fold.finish() {
            Ok(run) => (run, None),
            Err(_) => self.begin(error.to_string())?,
        };
        let loose = Loose::gather(&salvage.loose, &mut run, self.now);
        let doc = self.loaded.map(|loaded| &loaded.doc);
        let mut phases = doc.map(|doc| checkpoint::phases(doc, self.shelf)).unwrap_or_default();
        phases.extend(loose.phases.clone());
        let kept = worth_keeping(&run, &mut phases);
        let calls = doc.map(|doc| checkpoint::calls(doc, self.shelf)).unwrap_or_default();
        let calls: Vec<KeptResult> =
            calls.into_iter().filter(|call| !run.memo.contains_key(&call.key)).collect();
        let mut repaired = Repaired {
            why: error.to_string(),
            steps: finished(&run) + loose.steps().iter().filter(|step| !in_phases(&phases, step)).count(),
            phases: kept,
            calls: calls.len(),
            ..Repaired::default()
        };
        repaired.lost = self.lost(&repaired);
        let mut digests = doc.map(|doc| checkpoint::digests(doc, &phases)).unwrap_or_default();
        digests.extend(loose.digests.clone());
        let mut standing = doc.map(|doc| checkpoint::standing(doc, &phases)).unwrap_or_default();
        standing.extend(loose.standing.clone());
        let last = RunImported {
            from: checkpoint::origin(self.loaded).into(),
            digests,
            standing,
            phases,
            lost: u32::try_from(repaired.lost).unwrap_or(u32::MAX),
            results: Vec::new(),
            begun: self.begun(&run, &loose, began.is_some()),
            been: doc.filter(|_| began.is_some()).and_then(checkpoint::been),
            replaces: watermark.map(|Head { seq, sha }| Acknowledged { seq, sha }),
        };
        let results: Vec<KeptResult> = loose.results().cloned().chain(calls).collect();
        let imported = split(results, last);
        let mut events: Vec<Event> = began.into_iter().chain(loose.events).collect();
        for event in imported {
            run.apply(&event, self.now)?;
            events.push(event);
        }
        repaired.again = run
            .live_steps()
            .filter(|step| match &step.state {
                State::Running(running) => running.ask.is_none(),
                _ => step.unknown,
            })
            .map(|step| step.path.to_string())
            .collect();
        Ok((self.seal(&salvage, &events)?, repaired))
    }

    /// Steps that may have begun. Where the journal is gone, those whose author wants to be asked may have: all that
    /// the checkpoint does not call finished.
    fn begun(&self, run: &Run, loose: &Loose, is_gone: bool) -> BTreeMap<String, bool> {
        let (mut begun, ended) = (loose.begun(), loose.steps());
        let asks = |id: &StepId| is_gone && run.operation(*id).on_unknown == OnUnknown::Ask;
        let unsure = run.step_ids().filter(asks).map(|id| run.step(id).path.to_string());
        begun.extend(unsure.filter(|path| !ended.contains(path.as_str())).map(|path| (path, false)));
        begun
    }

    /// Nothing of the journal can be folded: the checkpoint says how the run began.
    fn begin(&self, journal: String) -> Result<(Run, Option<Event>), OpenError> {
        let lost = |why: &str| OpenError::Lost {
            feature: self.feature.into(),
            journal: journal.clone(),
            checkpoint: why.into(),
        };
        let loaded = self.loaded.ok_or_else(|| lost("none of it can be read"))?;
        let mut started = checkpoint::started(&loaded.doc)
            .ok_or_else(|| lost("it does not hold the template, which is too large for it"))?;
        started.run = self.id.into();
        let run = Run::start(&started, self.now)?;
        Ok((run, Some(started.into())))
    }

    fn lost(&self, repaired: &Repaired) -> u64 {
        let Some(doc) = self.loaded.map(|loaded| &loaded.doc) else { return 0 };
        let phases: u64 = repaired.phases.iter().map(|phase| checkpoint::finished_in(doc, phase)).sum();
        let kept = phases + (repaired.steps + repaired.calls) as u64;
        checkpoint::finished(doc).saturating_sub(kept)
    }

    fn seal(&self, salvage: &Salvage, events: &[Event]) -> Result<Vec<u8>, OpenError> {
        let mut bytes = salvage.good.clone();
        for piece in &salvage.chained {
            bytes.extend_from_slice(&piece.line);
            bytes.push(b'\n');
        }
        let mut draft = Draft::after(&self.sealing, salvage.head(), salvage.epoch + 1, bytes);
        for event in events {
            draft.add(event.kind(), self.now, event)?;
        }
        Ok(draft.bytes)
    }
}

/// Leaves in `phases` only what the records do not tell, and gives the names of those that count as taken over.
fn worth_keeping(run: &Run, phases: &mut Phases) -> Vec<String> {
    let known = |path: &str| run.find(path).is_some_and(|id| run.step(id).state.ok());
    for (phase, results) in phases.iter_mut() {
        results.retain(|operation, _| !known(&format!("{phase}/{operation}")));
    }
    phases.retain(|_, results| !results.is_empty());
    phases.keys().cloned().collect()
}

/// Whether a step is, or is part of, one that the checkpoint's phases tell.
fn in_phases(phases: &Phases, step: &str) -> bool {
    let (phase, rest) = step.split_once('/').unwrap_or((step, ""));
    let operation = rest.split(['[', '/']).next().unwrap_or_default();
    phases.get(phase).is_some_and(|results| results.contains_key(operation))
}

fn finished(run: &Run) -> usize {
    run.live_steps().filter(|step| step.children.is_none() && step.state.ok()).count()
}

/// Results by key first: a step that a phase settles then knows its key.
fn split(results: Vec<KeptResult>, last: RunImported) -> Vec<Event> {
    let more = RunImported { from: last.from.clone(), ..RunImported::default() };
    let more = results.chunks(RESULTS).map(|chunk| RunImported { results: chunk.to_vec(), ..more.clone() });
    more.collect::<Vec<_>>().into_iter().chain([last]).map(Event::from).collect()
}

/// Gives what is in the journal's place another name, durably; a file keeps its first one until it is replaced.
fn set_aside(vfs: &dyn Vfs, dir: &Path) -> io::Result<Option<PathBuf>> {
    let path = dir.join(FILE_NAME);
    let meta = match vfs.metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        meta => meta?,
    };
    let home = dir.join(QUARANTINE);
    vfs::create_dir_durable(vfs, &home)?;
    let mut number = 1_u32;
    let aside = loop {
        let aside = home.join(format!("damaged-{number}.jsonl"));
        if !vfs.exists(&aside)? {
            break aside;
        }
        number += 1;
    };
    let linked = meta.is_file && vfs.hard_link(&path, &aside).is_ok();
    match meta.is_file {
        _ if linked => {}
        true => drop(vfs::write_atomic(vfs, &aside, &vfs.read(&path, u64::MAX - 1)?)?),
        false => vfs.rename(&path, &aside)?,
    }
    vfs.sync_dir(&home)?;
    Ok(Some(aside))
}
