//! Follows a run's journal from the outside, as its owner writes it, and folds it into a run.
//!
//! It reads the file and nothing else: it cannot block or slow the owner, and works the same in the owner's
//! process and in any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::event::Event;
use sage_core::run::Run;
use sage_engine::journal::{self, Reader, Record};
use sage_engine::open::{Fold, OpenError};
use sage_engine::vfs::Vfs;

/// Read at once; a long journal is shown piece by piece.
const PIECE_BYTES: u64 = 1 << 20;

/// A record that was just folded: the run as it is after it.
pub(crate) struct News<'a> {
    pub run: &'a Run,
    pub event: &'a Event,
    pub record: Record<'a>,
    /// Old news: to be taken into account, but not told.
    pub silent: bool,
}

pub(crate) struct Tail {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    reader: Reader,
    fold: Fold,
    silent_until: u64,
    /// Read again from the start because something did not fit, and nothing new has come since.
    reread: bool,
}

impl Tail {
    pub fn new(vfs: Arc<dyn Vfs>, run_dir: &Path, silent_until: u64) -> Tail {
        let path = run_dir.join(journal::FILE_NAME);
        Tail { vfs, path, reader: Reader::new(), fold: Fold::default(), silent_until, reread: false }
    }

    pub fn run(&self) -> Option<&Run> {
        self.fold.run()
    }

    /// Takes one more piece of the journal; says whether there was any. A journal that does not exist yet is
    /// an empty one.
    pub fn advance(&mut self, tell: &mut dyn FnMut(News<'_>)) -> Result<bool, OpenError> {
        match self.take_piece(tell) {
            // The owner cuts off what it could not make durable, and a new one cuts off a torn tail. If we had
            // read that already, nothing fits any more: look once more from the start.
            Err(_) if !self.reread => {
                self.silent_until = self.silent_until.max(self.reader.head().seq);
                (self.reader, self.fold, self.reread) = (Reader::new(), Fold::default(), true);
                Ok(true)
            }
            other => other,
        }
    }

    fn take_piece(&mut self, tell: &mut dyn FnMut(News<'_>)) -> Result<bool, OpenError> {
        let piece = match self.vfs.read_from(&self.path, self.reader.next_offset(), PIECE_BYTES) {
            Ok(piece) => piece,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(OpenError::Io { what: "read the journal", source }),
        };
        let (fold, silent_until) = (&mut self.fold, self.silent_until);
        self.reader.feed(&piece, &mut |record: Record<'_>| -> Result<(), OpenError> {
            let event = Event::parse(record.kind, record.data)?;
            fold.apply(&event, record.ts_ms)?;
            if let Some(run) = fold.run() {
                tell(News { run, event: &event, silent: record.seq <= silent_until, record });
            }
            Ok(())
        })?;
        self.reread &= self.reader.head().seq <= silent_until;
        Ok(!piece.is_empty())
    }
}
