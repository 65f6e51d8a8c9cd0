//! The end of a journal: its last whole record carries the seal that covers all before it, and so tells who wrote it.

use std::io;
use std::path::Path;

use super::first::is_no_file;
use super::record::{self, JOIN, MAX_LINE_BYTES, Record};
use super::{FILE_NAME, Head, Sealing};
use crate::vfs::Vfs;

/// Most last lines are shorter.
const PIECE_BYTES: u64 = 8 << 10;
/// What is read at once of those that are not.
const MOST_PIECE_BYTES: u64 = 1 << 20;

/// Where a journal comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This user wrote it, on this machine.
    Own,
    /// It has records, and no valid seal.
    Foreign,
    /// It has no whole record: there is nothing in it to believe.
    Empty,
}

/// Reads the end of the journal in `dir`. Whether the rest of it is whole is not checked. An error is the system's: it
/// says nothing about the journal.
pub fn origin(vfs: &dyn Vfs, dir: &Path, sealing: &Sealing) -> io::Result<Origin> {
    let of = |record: &Record<'_>| match sealing.holds(record.sealed.as_ref()) {
        true => Origin::Own,
        false => Origin::Foreign,
    };
    match last(vfs, dir, of) {
        Err(error) if is_no_file(&error) => Ok(Origin::Empty),
        last => Ok(last?.unwrap_or(Origin::Empty)),
    }
}

/// The last whole record of the journal in `dir`.
pub fn last_head(vfs: &dyn Vfs, dir: &Path) -> Option<Head> {
    last(vfs, dir, |record| record.head()).ok().flatten()
}

/// Lines from the end on; what was never acknowledged, and what is no record, is passed over. Only one line at a time
/// is in memory, and at most the room of two lines is looked through.
fn last<T>(vfs: &dyn Vfs, dir: &Path, of: impl Fn(&Record<'_>) -> T) -> io::Result<Option<T>> {
    let path = dir.join(FILE_NAME);
    let len = vfs.metadata(&path)?.len;
    let furthest = len.saturating_sub(2 * MAX_LINE_BYTES as u64);
    let mut before = break_before(vfs, &path, len, furthest)?;
    while let Some(end) = before {
        before = break_before(vfs, &path, end, furthest)?;
        // Without a break before it, it is the first line of the file or cut.
        let Some(from) = before.map(|at| at + 1).or((furthest == 0).then_some(0)) else { break };
        if let Some(found) = read_record(vfs, &path, from, end, &of)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Of the line between two places, if it is a whole record.
fn read_record<T>(
    vfs: &dyn Vfs,
    path: &Path,
    from: u64,
    end: u64,
    of: &impl Fn(&Record<'_>) -> T,
) -> io::Result<Option<T>> {
    if end - from > MAX_LINE_BYTES as u64 {
        return Ok(None);
    }
    let line = vfs.read_from(path, from, end - from)?;
    // Also with another line end: somebody has converted the file.
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    Ok(record::parse(line.strip_prefix(&[JOIN]).unwrap_or(line)).ok().map(|record| of(&record)))
}

/// Where the last line break before `end` is, not further back than `furthest`.
fn break_before(vfs: &dyn Vfs, path: &Path, end: u64, furthest: u64) -> io::Result<Option<u64>> {
    let (mut end, mut piece_bytes) = (end, PIECE_BYTES);
    while end > furthest {
        let from = end.saturating_sub(piece_bytes).max(furthest);
        let piece = vfs.read_from(path, from, end - from)?;
        if let Some(at) = piece.iter().rposition(|&byte| byte == b'\n') {
            return Ok(Some(from + at as u64));
        }
        end = from;
        piece_bytes = MOST_PIECE_BYTES;
    }
    Ok(None)
}
