//! A look at one detached run: what is to be done with it now.

use std::io;

use sage_core::event::PauseReason;
use sage_core::run::{Status, Unowned};

use super::record::{Over, Record};
use super::restart::{self, Restart};
use crate::journal;
use crate::lock::{self, Owner};
use crate::open::{Engine, OpenError};

/// What a look found; the record says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Somebody has it.
    Owned(Owner),
    /// It needs an owner, and whoever looked starts one.
    Start(Record),
    /// It needs an owner, but not before this time.
    Later(u64),
    /// It waits for a person.
    Waits,
    /// It has ended: its record is removed.
    Gone(&'static str),
    GaveUp(String),
    /// A person stopped it, or it was given up before, or it is no longer in the background.
    Over,
}

impl Engine {
    /// Length of the run's journal: whether something has happened since the last look.
    pub fn journal_bytes(&self, run: &str) -> u64 {
        let path = self.project.run_dir(run).join(journal::FILE_NAME);
        self.vfs.metadata(&path).map_or(0, |meta| meta.len)
    }

    /// Neither stopped nor waiting for a person, as far as its record and the length of its journal tell.
    pub fn goes_on(&self, record: &Record) -> bool {
        let quiet = |bytes| self.journal_bytes(&record.run) == bytes;
        let stopped_by_shutdown =
            record.is_of_another_boot() && !matches!(record.over, Some(Over::GaveUp { .. }));
        stopped_by_shutdown || (record.over.is_none() && !record.quiet_bytes.is_some_and(quiet))
    }

    /// Decides about one run in the background, while nobody else can decide about it.
    pub fn look_after(&self, feature: &str) -> io::Result<Look> {
        self.records().change(feature, |record| match record {
            Some(record) => self.look(record),
            // It ended, or a person took it, a moment ago.
            None => (None, Look::Over),
        })
    }

    /// Its owner could not be started: nothing of it is counted.
    pub fn not_started(&self, feature: &str) -> io::Result<()> {
        self.records().change(feature, |record| {
            let without = |mut record: Record| {
                record.starts.pop();
                record
            };
            (record.map(without), ())
        })
    }

    /// What its owner leaves behind: nothing if the run is over, a mark if it waits for a person.
    pub fn leave(&self, feature: &str) -> io::Result<()> {
        self.records().change(feature, |record| {
            let Some(record) = record else { return (None, ()) };
            match self.look(record.clone()) {
                (after, Look::Gone(_) | Look::Waits) => (after, ()),
                _ => (Some(record), ()),
            }
        })
    }

    fn look(&self, record: Record) -> (Option<Record>, Look) {
        let record = record.in_this_boot();
        if record.over.is_some() {
            return (Some(record), Look::Over);
        }
        if let Some(owner) = lock::peek(&self.project.lock(&record.feature)) {
            return (Some(record), Look::Owned(owner));
        }
        // Before it is read: whatever is written later is seen the next time.
        let bytes = self.journal_bytes(&record.run);
        let snapshot = match self.read(&record.feature) {
            Ok(snapshot) if snapshot.run.id == record.run => snapshot,
            Ok(_) => return (None, Look::Gone("another run has taken its place")),
            Err(OpenError::Unknown(_)) => return (None, Look::Gone("its run is gone")),
            // Whoever resumes it may be able to mend it, or says what is wrong.
            Err(error) => return self.restart(record.clone(), record.settled, &error.to_string()),
        };
        let run = &snapshot.run;
        let interrupted = matches!(run.status, Status::Paused { reason: PauseReason::Interrupted, .. });
        match run.unowned(record.no_wait) {
            Unowned::Waits if interrupted && record.after_reboot => {
                self.restart(record, run.tally.settled, "its process died each time")
            }
            Unowned::Closed => (None, Look::Gone(run.status.name())),
            Unowned::Waits => {
                let record = Record { quiet_bytes: Some(bytes), after_reboot: false, ..record };
                (Some(record), Look::Waits)
            }
            Unowned::GoesOn => {
                let mut record = Record { after_reboot: false, ..record };
                // Its last owner did not die: it left, and a person has acted since.
                if record.quiet_bytes.take().is_some() {
                    record.starts.clear();
                }
                self.restart(record, run.tally.settled, "its process died each time")
            }
        }
    }

    fn restart(&self, record: Record, settled: u32, why: &str) -> (Option<Record>, Look) {
        let now = self.clock.now_ms();
        match restart::next(&record, settled, now) {
            Restart::At(at) => (Some(record), Look::Later(at)),
            Restart::Now => {
                let replaced = u32::from(!record.starts.is_empty());
                let mut record = restart::started(record, settled, now);
                record.restarts += replaced;
                record.boot_id = lock::boot_id();
                (Some(record.clone()), Look::Start(record))
            }
            Restart::Never => {
                let (restarts, minutes) = (restart::RESTARTS as u32, restart::WINDOW_MS / 60_000);
                let over = Over::GaveUp { restarts, why: why.into() };
                let told = format!("gave up after {restarts} restarts in {minutes} min: {why}");
                (Some(Record { over: Some(over), ..record }), Look::GaveUp(told))
            }
        }
    }
}
