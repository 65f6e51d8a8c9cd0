//! The first record of a journal: the run and the feature that it belongs to.
//!
//! A journal whose line ends were converted, or that has something before its first line, still says whose it is:
//! its records are whole, and `repair` keeps them. An error of the system is told as such: a journal that cannot be
//! read for the moment must not be taken for one that belongs to nobody.

use std::io;
use std::path::Path;

use sage_core::event::{Event, RunStarted};

use super::record::{MAX_LINE_BYTES, Record};
use super::{FILE_NAME, salvage};
use crate::vfs::{NotRegular, Vfs};

/// Most first lines are shorter.
const PIECE_BYTES: u64 = 16 << 10;
/// Lines of a damaged journal that are searched: what was put before the first record is short.
const LINES: usize = 64;

/// What the first record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    pub run: String,
    pub feature: String,
    /// Which run of its feature it is; older versions did not count them.
    pub number: Option<u32>,
}

/// Reads the beginning of the journal in `dir`. `None` if there is no journal, or its first record is damaged.
pub fn first(vfs: &dyn Vfs, dir: &Path) -> io::Result<Option<First>> {
    let path = dir.join(FILE_NAME);
    let mut piece_bytes = PIECE_BYTES;
    loop {
        let piece = match vfs.read_from(&path, 0, piece_bytes) {
            Err(error) if is_no_file(&error) => return Ok(None),
            piece => piece?,
        };
        let is_all = (piece.len() as u64) < piece_bytes;
        let lines: Vec<&[u8]> = piece.split(|&byte| byte == b'\n').take(LINES + 1).collect();
        // The last one may be cut.
        let whole = &lines[..lines.len() - 1];
        let found = whole.iter().find_map(|line| started(line));
        if found.is_some() || is_all || whole.len() >= LINES || piece_bytes > MAX_LINE_BYTES as u64 {
            return Ok(found);
        }
        piece_bytes *= 4;
    }
}

fn started(line: &[u8]) -> Option<First> {
    let is_first = |record: &Record<'_>| record.seq == 1;
    let pieces = salvage::pieces(line, &is_first);
    pieces.iter().filter_map(salvage::Piece::record).find_map(|record| {
        match Event::parse(record.kind, record.data) {
            Ok(Event::RunStarted(started)) => {
                let RunStarted { run, feature, number, .. } = started;
                Some(First { run, feature, number })
            }
            _ => None,
        }
    })
}

/// Nothing is there, or something that is no file: that is damage, and no error of the system.
pub(super) fn is_no_file(error: &io::Error) -> bool {
    let replaced = error.get_ref().is_some_and(|inner| inner.is::<NotRegular>());
    replaced || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
