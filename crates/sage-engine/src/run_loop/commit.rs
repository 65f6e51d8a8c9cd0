//! Making batches durable, off the loop.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use super::{Input, LoopError, RunLoop};
use crate::journal::{Batch, Head, JournalError, JournalFile};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// A thread of its own: records pile up for the next batch while it waits for the disk.
    Thread,
    /// On the loop itself: for simulations, which must be deterministic.
    Inline,
}

pub(super) enum Committer {
    Thread {
        batches: SyncSender<Batch>,
        busy: bool,
        thread: JoinHandle<()>,
    },
    Inline(Box<JournalFile>),
    /// Nothing is written any more.
    Closed,
}

/// What a commit has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durable {
    head: Head,
    /// How often the journal was written anew because its name had been taken away.
    put_back: u32,
}

fn commit(file: &mut JournalFile, batch: &Batch) -> Result<Durable, JournalError> {
    file.commit(batch)?;
    Ok(Durable { head: file.head(), put_back: file.times_put_back() })
}

/// Where the journal is, as far as a look from outside tells: a run that writes nothing for hours must notice, too.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    journal: Option<PathBuf>,
    seen: Option<(u64, u64)>,
    put_back: u32,
}

impl Whereabouts {
    pub fn new(file: &JournalFile, mode: CommitMode) -> Whereabouts {
        let journal = (mode == CommitMode::Thread).then(|| file.path().to_owned());
        let mut new = Whereabouts { journal, ..Whereabouts::default() };
        new.seen = new.look();
        new
    }

    fn look(&self) -> Option<(u64, u64)> {
        let meta = std::fs::symlink_metadata(self.journal.as_ref()?).ok()?;
        Some((meta.dev(), meta.ino()))
    }
}

impl Committer {
    pub(super) fn new(file: JournalFile, mode: CommitMode, inputs: mpsc::Sender<Input>) -> Committer {
        if mode == CommitMode::Inline {
            return Committer::Inline(Box::new(file));
        }
        // One batch at a time: the loop sends the next only after the last was acknowledged.
        let (batches, queue) = std::sync::mpsc::sync_channel::<Batch>(1);
        let (hand_over, handed) = std::sync::mpsc::sync_channel::<JournalFile>(1);
        let worker = std::thread::Builder::new().spawn(move || {
            let Ok(mut file) = handed.recv() else { return };
            for batch in queue {
                let result = commit(&mut file, &batch);
                let failed = result.is_err();
                if inputs.blocking_send(Input::Committed(result)).is_err() || failed {
                    break;
                }
            }
        });
        match worker {
            Ok(thread) => {
                // It waits for nothing else.
                let _ = hand_over.send(file);
                Committer::Thread { batches, busy: false, thread }
            }
            // No thread to be had: the loop writes by itself, which is slower and as safe.
            Err(_) => Committer::Inline(Box::new(file)),
        }
    }
}

impl RunLoop {
    /// Waits for a batch that is on its way: once the run is given back, this process writes to its journal no more.
    pub(super) fn close_journal(&mut self) {
        // The committer must not wait for a loop that takes no more inputs.
        self.inputs.close();
        if let Committer::Thread { batches, thread, .. } =
            std::mem::replace(&mut self.committer, Committer::Closed)
        {
            drop(batches);
            // One that panicked writes nothing either.
            let _ = thread.join();
        }
    }
}

impl RunLoop {
    /// Sends what is pending to the disk unless the disk is busy. True if something became durable at once.
    pub(super) async fn flush(&mut self) -> Result<bool, LoopError> {
        if matches!(self.committer, Committer::Thread { busy: true, .. }) {
            return Ok(false);
        }
        // That a process was started must outlive this one, not the machine: the next record syncs it as well.
        let synced = std::mem::take(&mut self.must_sync) || !self.effects.is_empty();
        let batch = match synced {
            true if self.journal.pending() == 0 && self.journal.head() != self.durable => {
                Some(self.journal.sync())
            }
            true => self.journal.take_batch(),
            false => self.journal.take_unsynced(),
        };
        let Some(batch) = batch else {
            self.end_if_quiet();
            return Ok(false);
        };
        match &mut self.committer {
            Committer::Inline(file) => {
                let durable = commit(file, &batch)?;
                self.committed(durable)?;
                Ok(true)
            }
            Committer::Thread { batches, busy, .. } => {
                *busy = true;
                batches.send(batch).map(|()| false).map_err(|_| self.poisoned())
            }
            Committer::Closed => Err(self.poisoned()),
        }
    }

    fn poisoned(&self) -> LoopError {
        let (path, cause) = (self.around.run_dir.clone(), "the committer has ended".into());
        JournalError::Poisoned { path, cause }.into()
    }

    /// Looks whether the journal is where it was; if not, the committer sees to it without waiting for a record.
    pub(super) fn look_for_journal(&mut self) -> Result<(), LoopError> {
        let displaced =
            self.whereabouts.journal.is_some() && self.whereabouts.look() != self.whereabouts.seen;
        match &mut self.committer {
            Committer::Thread { batches, busy: busy @ false, .. } if displaced => {
                *busy = true;
                let nothing = self.journal.sync();
                batches.send(nothing).map_err(|_| self.poisoned())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn committed(&mut self, durable: Durable) -> Result<(), LoopError> {
        let Durable { head, put_back } = durable;
        if put_back != self.whereabouts.put_back {
            self.whereabouts.put_back = put_back;
            self.say("warning: the run's journal was removed or replaced; it was written anew".into());
            self.miss_results();
        }
        self.whereabouts.seen = self.whereabouts.look();
        if let Committer::Thread { busy, .. } = &mut self.committer {
            *busy = false;
        }
        self.durable = head;
        while self.effects.front().is_some_and(|(seq, _)| *seq <= head.seq) {
            if let Some((_, effect)) = self.effects.pop_front() {
                self.carry_out(effect);
            }
        }
        self.paint();
        Ok(())
    }

    /// Folds nothing until all that was folded is durable: a moment in which the run can be painted. A run that is
    /// always busy would never have one.
    pub(super) async fn catch_up_disk(&mut self) -> Result<(), LoopError> {
        let mut later = Vec::new();
        loop {
            self.must_sync = true;
            self.flush().await?;
            if self.journal.head() == self.durable {
                break;
            }
            match self.inputs.recv().await {
                Some(Input::Committed(result)) => self.committed(result?)?,
                Some(input) => later.push(input),
                None => break,
            }
        }
        for input in later {
            self.handle(input).await?;
        }
        Ok(())
    }
}
