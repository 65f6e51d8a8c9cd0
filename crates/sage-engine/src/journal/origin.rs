//! Who wrote a journal, told by its end alone: the last whole record carries the seal that covers all before it.

use std::path::Path;

use super::record::{self, JOIN, MAX_LINE_BYTES};
use super::{FILE_NAME, Sealing};
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
    let path = dir.join(FILE_NAME);
    let Ok(len) = vfs.metadata(&path).map(|meta| meta.len) else { return Origin::Empty };
    let mut piece_bytes = PIECE_BYTES;
    loop {
        let offset = len.saturating_sub(piece_bytes);
        let Ok(piece) = vfs.read_from(&path, offset, piece_bytes) else { return Origin::Empty };
        if let Some(origin) = last_record(&piece, offset == 0, sealing) {
            return origin;
        }
        if offset == 0 || piece_bytes > 2 * MAX_LINE_BYTES as u64 {
            return Origin::Empty;
        }
        piece_bytes *= 16;
    }
}

/// Of the last whole line in `piece`; its first one may be cut, unless the piece begins the file.
fn last_record(piece: &[u8], is_start: bool, sealing: &Sealing) -> Option<Origin> {
    let end = piece.iter().rposition(|&byte| byte == b'\n')?;
    let lines: Vec<&[u8]> = piece[..end].split(|&byte| byte == b'\n').collect();
    let cut = usize::from(!is_start);
    lines.iter().skip(cut).rev().find_map(|line| {
        let record = record::parse(line.strip_prefix(&[JOIN]).unwrap_or(line)).ok()?;
        Some(if sealing.holds(record.sealed.as_ref()) { Origin::Own } else { Origin::Foreign })
    })
}
