//! Making batches durable, off the loop.

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
    Thread { batches: std::sync::mpsc::SyncSender<Batch>, busy: bool },
    Inline(Box<JournalFile>),
}

fn commit(file: &mut JournalFile, batch: &Batch) -> Result<Head, JournalError> {
    file.commit(batch)?;
    Ok(file.head())
}

impl Committer {
    pub(super) fn new(mut file: JournalFile, mode: CommitMode, inputs: mpsc::Sender<Input>) -> Committer {
        if mode == CommitMode::Inline {
            return Committer::Inline(Box::new(file));
        }
        // One batch at a time: the loop sends the next only after the last was acknowledged.
        let (batches, queue) = std::sync::mpsc::sync_channel::<Batch>(1);
        std::thread::spawn(move || {
            for batch in queue {
                let result = commit(&mut file, &batch);
                let failed = result.is_err();
                if inputs.blocking_send(Input::Committed(result)).is_err() || failed {
                    break;
                }
            }
        });
        Committer::Thread { batches, busy: false }
    }
}

impl RunLoop {
    /// Sends what is pending to the disk unless the disk is busy. True if something became durable at once.
    pub(super) async fn flush(&mut self) -> Result<bool, LoopError> {
        if matches!(self.committer, Committer::Thread { busy: true, .. }) {
            return Ok(false);
        }
        let Some(batch) = self.journal.take_batch() else {
            self.end_if_quiet();
            return Ok(false);
        };
        match &mut self.committer {
            Committer::Inline(file) => {
                let head = commit(file, &batch)?;
                self.committed(head)?;
                Ok(true)
            }
            Committer::Thread { batches, busy } => {
                *busy = true;
                if batches.send(batch).is_err() {
                    let path = self.around.run_dir.clone();
                    return Err(
                        JournalError::Poisoned { path, cause: "the committer has ended".into() }.into()
                    );
                }
                Ok(false)
            }
        }
    }

    pub(super) fn committed(&mut self, head: Head) -> Result<(), LoopError> {
        if let Committer::Thread { busy, .. } = &mut self.committer {
            *busy = false;
        }
        self.durable = head;
        while self.effects.front().is_some_and(|(seq, _)| *seq <= head.seq) {
            if let Some((_, effect)) = self.effects.pop_front() {
                self.carry_out(effect);
            }
        }
        self.image.paint(&self.run, head);
        Ok(())
    }
}
