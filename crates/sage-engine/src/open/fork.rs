//! Forking a run: another run that goes on from a step of it, with all that was found out before.
//!
//! ```text
//! source's journal --read only--> sealed anew + run.forked + run.opened --\
//! source's blobs   --linked-----------------------------------------------+-> forks/<run> --rename--> runs/<run>
//! sessions, worktrees: the executor makes them ready ---------------------/
//! ```
//! What must stay true: the source is not touched, so it may be running; the fork is there as a whole or not at
//! all; it needs nothing of the source later, which may be removed.

use std::collections::BTreeSet;
use std::path::Path;

use sage_core::digest::Digest;
use sage_core::event::{Event, ForkedFrom, OpenMode, RunEdited, RunForked, RunOpened, RunRewound, Settings};
use sage_core::port::Fork;
use sage_core::run::Run;
use serde_json::Value;
use serde_json::value::RawValue;

use super::find::watermark;
use super::{Engine, Fold, OpenError, Owned};
use crate::blobs::Blobs;
use crate::journal::{self, Draft, Record};
use crate::lock;
use crate::vfs;

#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The feature whose last run is forked.
    pub source: String,
    /// This run of it instead.
    pub run: Option<String>,
    /// A step's path, or a phase's: it and everything after it runs again.
    pub from: String,
    /// The fork's own name.
    pub feature: String,
    pub title: String,
    pub edit: Option<RunEdited>,
    pub settings: Option<Settings>,
    pub no_wait: bool,
}

/// The source's records as the fork's first ones.
#[derive(Default)]
struct Prefix {
    fold: Fold,
    records: Vec<(String, u64, Box<RawValue>)>,
    blobs: BTreeSet<Digest>,
}

impl Engine {
    /// Owns a new run that has taken over what the source's last run had finished.
    pub fn fork(&self, request: ForkRequest) -> Result<Owned, OpenError> {
        let source = match &request.run {
            Some(run) => run.clone(),
            None => self.last_run(&request.source)?,
        };
        self.refuse_taken(&request.feature)?;
        let id = self.new_run_id(&request.feature)?;
        let mut prefix = self.prefix(&request, &source, &id)?;
        let (forked, now) = (self.fork_event(&prefix, &request, &source)?, self.clock.now_ms());
        // Tried first: what does not fit leaves nothing behind.
        let (fork, mut own) = prefix.try_out(&request, &id, forked, now)?;
        let mut notices = Vec::new();
        if let Some(run) = prefix.fold.run_mut().filter(|_| request.edit.is_none()) {
            let checks = self.recheck(run, &mut notices, now)?;
            // The last one opens the fork.
            own.splice(own.len() - 1..own.len() - 1, checks);
        }
        self.project.prepare(self.vfs.as_ref())?;
        let lock = self.lock(&request.feature, &mut notices)?;
        self.refuse_taken(&request.feature)?;
        let sessions = self.executor.fork(&fork).map_err(OpenError::Fork)?;
        if let Some(Event::RunForked(forked)) = own.first_mut() {
            forked.sessions = sessions;
        }
        let aside = self.project.forks().join(&id);
        let made = self.make(&aside, &id, &source, &prefix, &own, now);
        let placed = made.and_then(|()| self.place(&aside, &id));
        if let Err(error) = placed {
            // The error is what is worth telling; what is left here is removed by `sage gc`.
            let _ = self.vfs.remove_dir_all(&aside);
            return Err(error);
        }
        self.take_from_background(&request.feature)?;
        let (run, journal, file) = self.recover(&request.feature, &id, &mut notices)?;
        self.own(run, journal, file, lock, notices, request.no_wait, false)
    }

    fn refuse_taken(&self, feature: &str) -> Result<(), OpenError> {
        match self.load_checkpoint(feature)?.is_some() || self.find_latest(feature)?.is_some() {
            true => Err(OpenError::Taken(feature.into())),
            false => Ok(()),
        }
    }

    /// Reads the source, also while its owner writes, and folds it under the fork's name.
    fn prefix(&self, request: &ForkRequest, source: &str, id: &str) -> Result<Prefix, OpenError> {
        let loaded = self.own_checkpoint(&request.source)?;
        let (dir, mut prefix) = (self.project.run_dir(source), Prefix::default());
        let watermark = watermark(loaded.as_ref(), source);
        let checked =
            journal::check(self.vfs.as_ref(), &dir, watermark, |record| prefix.take(record, request, id))?;
        if !self.accepts_foreign && !self.sealing(source).holds(checked.sealed.as_ref()) {
            return Err(OpenError::Foreign(request.source.clone()));
        }
        match prefix.fold.run() {
            Some(_) => Ok(prefix),
            None => Err(OpenError::Unknown(request.source.clone())),
        }
    }

    fn fork_event(
        &self,
        prefix: &Prefix,
        request: &ForkRequest,
        source: &str,
    ) -> Result<RunForked, OpenError> {
        let run: &Run = prefix.fold.run().ok_or(OpenError::Unknown(request.source.clone()))?;
        // What a living owner has under way is not lost.
        let alive = lock::peek(&self.project.lock(&request.source)).is_some();
        self.refuse_unanswered(run, alive)?;
        let step = self.find_step(run, &request.source, &request.from)?;
        let from = ForkedFrom { run: source.into(), feature: request.source.clone(), step };
        Ok(RunForked { from, sessions: Default::default() })
    }

    /// The whole fork, durable, where nobody looks for runs.
    fn make(
        &self,
        aside: &Path,
        id: &str,
        source: &str,
        prefix: &Prefix,
        own: &[Event],
        now: u64,
    ) -> Result<(), OpenError> {
        let failed = |source| OpenError::Io { what: "make the fork", source };
        let vfs = self.vfs.as_ref();
        vfs::create_dir_durable(vfs, aside).map_err(failed)?;
        self.link_blobs(&self.project.run_dir(source).join("blobs"), &aside.join("blobs"), &prefix.blobs)?;
        let mut draft = Draft::new(&self.sealing(id));
        for (kind, ts_ms, data) in &prefix.records {
            draft.add(kind, *ts_ms, data)?;
        }
        for event in own {
            draft.add(event.kind(), now, event)?;
        }
        vfs::write_atomic(vfs, &aside.join(journal::FILE_NAME), &draft.bytes).map_err(failed)
    }

    /// A blob never changes, so both runs can have the same file; where that is not possible it is copied.
    fn link_blobs(&self, from: &Path, to: &Path, blobs: &BTreeSet<Digest>) -> Result<(), OpenError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let failed = |source| OpenError::Io { what: "take over the results", source };
        let vfs = self.vfs.as_ref();
        vfs::create_dir_durable(vfs, to).map_err(failed)?;
        let (old, new) = (Blobs::new(self.vfs.clone(), from), Blobs::new(self.vfs.clone(), to));
        for digest in blobs {
            // Data of steps may look like a blob's name.
            if !vfs.exists(&old.path(digest)).map_err(failed)? {
                continue;
            }
            if vfs.hard_link(&old.path(digest), &new.path(digest)).is_err() {
                let bytes = old.get(digest).map_err(|error| failed(std::io::Error::other(error)))?;
                new.put(&bytes).map_err(|error| failed(std::io::Error::other(error)))?;
            }
        }
        vfs.sync_dir(to).map_err(failed)
    }

    /// From one moment to the next it is there, also after a power cut.
    fn place(&self, aside: &Path, id: &str) -> Result<(), OpenError> {
        let failed = |source| OpenError::Io { what: "put the fork into its place", source };
        let (vfs, runs) = (self.vfs.as_ref(), self.project.runs());
        vfs::create_dir_durable(vfs, &runs).map_err(failed)?;
        vfs.sync_dir(aside).map_err(failed)?;
        vfs.rename(aside, &self.project.run_dir(id)).map_err(failed)?;
        vfs.sync_dir(&runs).map_err(failed)?;
        vfs.sync_dir(&self.project.forks()).map_err(failed)
    }
}

impl Prefix {
    fn take(&mut self, record: Record<'_>, request: &ForkRequest, id: &str) -> Result<(), OpenError> {
        let unwritten = |source: serde_json::Error| OpenError::Io {
            what: "take over the source's records",
            source: source.into(),
        };
        let mut event = Event::parse(record.kind, record.data)?;
        let mut data = RawValue::from_string(record.data.to_owned()).map_err(unwritten)?;
        if let Event::RunStarted(started) = &mut event {
            (started.run, started.feature) = (id.into(), request.feature.clone());
            // Nothing else has this name.
            started.number = Some(1);
            started.title = request.title.clone();
            data = serde_json::value::to_raw_value(&event).map_err(unwritten)?;
        }
        self.fold.apply(&event, record.ts_ms)?;
        // Most records name none, and need not be looked through.
        if data.get().contains("\"bytes\":") {
            let value: Value = serde_json::from_str(data.get()).unwrap_or_default();
            name_blobs(&value, &mut self.blobs);
        }
        self.records.push((record.kind.to_string(), record.ts_ms, data));
        Ok(())
    }

    /// What the executor has to make ready, and the records that follow the source's.
    fn try_out(
        &mut self,
        request: &ForkRequest,
        id: &str,
        forked: RunForked,
        now: u64,
    ) -> Result<(Fork, Vec<Event>), OpenError> {
        let ForkedFrom { run: source, step, .. } = forked.from.clone();
        let mut own = vec![Event::from(forked)];
        self.fold.apply(&own[0], now)?;
        let unknown = || OpenError::Unknown(request.source.clone());
        let fork = self.fold.run().ok_or_else(unknown)?.fork_of(id, &request.feature, &source);
        if let Some(edit) = request.edit.clone() {
            let edited = Event::from(edit);
            self.fold.apply(&edited, now)?;
            own.push(edited);
            // A new layout has forgotten what shall run again.
            let run = self.fold.run().ok_or_else(unknown)?;
            if run.find(&step).is_some() || run.find_phase(&step).is_some() {
                own.push(RunRewound { from: step }.into());
            }
        }
        let opened = RunOpened::new(OpenMode::Start, std::process::id());
        own.push(RunOpened { settings: request.settings.clone(), ..opened }.into());
        Ok((fork, own))
    }
}

/// Every payload in a record that is kept outside of it.
fn name_blobs(value: &Value, blobs: &mut BTreeSet<Digest>) {
    match value {
        Value::Object(fields) => {
            let sha = fields.get("sha").and_then(Value::as_str).filter(|_| fields.contains_key("bytes"));
            blobs.extend(sha.and_then(|sha| sha.parse::<Digest>().ok()));
            fields.values().for_each(|value| name_blobs(value, blobs));
        }
        Value::Array(items) => items.iter().for_each(|value| name_blobs(value, blobs)),
        _ => {}
    }
}
