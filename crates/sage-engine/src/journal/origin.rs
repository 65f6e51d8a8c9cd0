//! The end of a journal: its last whole record carries the seal that covers all before it, and so tells who wrote it.

use std::path::Path;

use super::record::{self, JOIN, MAX_LINE_BYTES, Record};
use super::{FILE_NAME, Head, Sealing};
use crate::vfs::Vfs;

/// Most last lines are shorter.
const PIECE_BYTES: u64 = 8 << 10;

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

/// Reads the end of the journal in `dir`. Whether the rest of it is whole is not checked.
pub fn origin(vfs: &dyn Vfs, dir: &Path, sealing: &Sealing) -> Origin {
    let of = |record: &Record<'_>| match sealing.holds(record.sealed.as_ref()) {
        true => Origin::Own,
        false => Origin::Foreign,
    };
    last(vfs, dir, of).unwrap_or(Origin::Empty)
}

/// The last whole record of the journal in `dir`.
pub fn last_head(vfs: &dyn Vfs, dir: &Path) -> Option<Head> {
    last(vfs, dir, |record| record.head())
}

fn last<T>(vfs: &dyn Vfs, dir: &Path, of: impl Fn(&Record<'_>) -> T) -> Option<T> {
    let path = dir.join(FILE_NAME);
    let len = vfs.metadata(&path).ok()?.len;
    let mut piece_bytes = PIECE_BYTES;
    loop {
        let offset = len.saturating_sub(piece_bytes);
        let piece = vfs.read_from(&path, offset, piece_bytes).ok()?;
        if let Some(found) = last_record(&piece, offset == 0, &of) {
            return Some(found);
        }
        if offset == 0 || piece_bytes > 2 * MAX_LINE_BYTES as u64 {
            return None;
        }
        piece_bytes *= 16;
    }
}

/// Of the last whole line in `piece`; its first one may be cut, unless the piece begins the file.
fn last_record<T>(piece: &[u8], is_start: bool, of: &impl Fn(&Record<'_>) -> T) -> Option<T> {
    let end = piece.iter().rposition(|&byte| byte == b'\n')?;
    let lines: Vec<&[u8]> = piece[..end].split(|&byte| byte == b'\n').collect();
    let cut = usize::from(!is_start);
    lines.iter().skip(cut).rev().find_map(|line| {
        let record = record::parse(line.strip_prefix(&[JOIN]).unwrap_or(line)).ok()?;
        Some(of(&record))
    })
}
