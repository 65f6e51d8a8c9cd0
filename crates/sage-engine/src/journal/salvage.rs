//! Reading past damage: every record that is whole by itself, wherever it lies.
//!
//! [`Reader`](super::Reader) stops at the first bad line, because nothing after it is chained to what came before. A
//! record after it is whole if its own SHA-256 says so, whatever became of the lines around it: line ends that were
//! converted, lines that were swapped, doubled or joined, garbage in between. What follows the last good record
//! without a gap goes on with the chain; what comes after a gap is loose, and what it is worth is the caller's to
//! judge.

use std::collections::BTreeMap;
use std::path::Path;

use super::reader::Reader;
use super::record::{self, JOIN, Record, START};
use super::watermark::Watermark;
use super::{FILE_NAME, Head, JournalError, Sealing};
use crate::digest::Digest;
use crate::vfs::Vfs;

/// Places in a bad line where a record may start: a bound on work, far above what damage produces.
const MAX_STARTS: usize = 256;

/// A record that was found by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The line, without what was around it.
    pub line: Vec<u8>,
    pub seq: u64,
    pub epoch: u64,
    pub prev: Digest,
    pub sha: Digest,
}

impl Piece {
    fn of(line: &[u8], record: &Record<'_>) -> Piece {
        let (seq, epoch, prev, sha) = (record.seq, record.epoch, record.prev, record.sha);
        Piece { line: line.to_vec(), seq, epoch, prev, sha }
    }

    /// It was parsed before, and nobody has changed it.
    #[must_use]
    pub fn record(&self) -> Option<Record<'_>> {
        record::parse(&self.line).ok()
    }
}

/// What is left of a damaged journal.
#[derive(Debug, Default)]
pub struct Salvage {
    /// Its beginning, as far as it is as it was written.
    pub good: Vec<u8>,
    /// Records that follow them in the chain, but not in the file as it is.
    pub chained: Vec<Piece>,
    head: Option<Head>,
    pub epoch: u64,
    /// Whole records after a gap, by number. Where several claim one number, none of them is here.
    pub loose: Vec<Piece>,
}

impl Salvage {
    /// The last record of the chain.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head.unwrap_or(Head::EMPTY)
    }

    /// Hands on the records of the chain, the first one first.
    pub fn each_chained<E: From<JournalError>>(
        &self,
        mut on_record: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        Reader::new().feed(&self.good, &mut on_record)?;
        self.chained.iter().filter_map(Piece::record).try_for_each(on_record)
    }
}

/// Reads what is left of the journal in `dir`. A journal that is not there leaves nothing, and neither does one that
/// has another record in the place of one that was acknowledged: nobody can say which of its records are others, too.
///
/// Nor is a record believed that is not sealed with our key.
pub fn salvage(
    vfs: &dyn Vfs,
    dir: &Path,
    watermark: Option<Head>,
    sealing: &Sealing,
) -> Result<Salvage, JournalError> {
    let path = dir.join(FILE_NAME);
    let bytes = match vfs.read(&path, u64::MAX - 1).map_err(JournalError::io("read", &path)) {
        Err(JournalError::Missing { .. } | JournalError::NotAFile { .. }) => return Ok(Salvage::default()),
        bytes => bytes?,
    };
    let (mut reader, mut seen) = (Reader::new(), Watermark::new(watermark));
    let mut see = |record: Record<'_>| -> Result<(), JournalError> {
        seen.see(&record);
        Ok(())
    };
    // Where it stops is where the damage begins.
    if let Err(error @ JournalError::NewerVersion { .. }) = reader.feed(&bytes, &mut see) {
        return Err(error);
    }
    if !sealing.admits(reader.sealed()) {
        reader = own_part(&bytes, sealing)?;
    }
    let rest = usize::try_from(reader.offset()).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
    let mut found: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
    let is_ours = |record: &Record<'_>| sealing.admits(record.sealed.as_ref());
    for line in rest.split(|&byte| byte == b'\n') {
        for piece in pieces(line, &is_ours) {
            let same = found.entry(piece.seq).or_default();
            if !same.contains(&piece) {
                same.push(piece);
            }
        }
    }
    let good = reader.head();
    let mut salvage = Salvage {
        good: bytes[..bytes.len() - rest.len()].to_vec(),
        head: (good != Head::EMPTY).then_some(good),
        epoch: reader.epoch(),
        ..Salvage::default()
    };
    salvage.follow(&mut found);
    let after = salvage.head().seq;
    salvage.loose = found.into_iter().filter(|(seq, _)| *seq > after).filter_map(only).collect();
    let pieces = salvage.chained.iter().chain(&salvage.loose);
    pieces.filter_map(Piece::record).for_each(|record| seen.see(&record));
    Ok(if seen.is_contradicted() { Salvage::default() } else { salvage })
}

/// Read up to the last record that our key sealed: its seal covers all before it, and what was added after it is
/// not ours.
fn own_part(bytes: &[u8], sealing: &Sealing) -> Result<Reader, JournalError> {
    let mut last = 0;
    let mut see = |record: Record<'_>| -> Result<(), JournalError> {
        if sealing.holds(record.sealed.as_ref()) {
            last = record.seq;
        }
        Ok(())
    };
    // The damage after it was found before.
    let _ = Reader::new().feed(bytes, &mut see);
    let mut reader = Reader::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if reader.head().seq == last {
            break;
        }
        reader.feed(line, &mut |_: Record<'_>| -> Result<(), JournalError> { Ok(()) })?;
    }
    Ok(reader)
}

impl Salvage {
    /// Takes what goes on with the chain.
    fn follow(&mut self, found: &mut BTreeMap<u64, Vec<Piece>>) {
        loop {
            let head = self.head();
            let Some(same) = found.remove(&(head.seq + 1)) else { return };
            let fits = |piece: &Piece| piece.prev == head.sha && piece.epoch >= self.epoch;
            let Some(next) = same.iter().find(|piece| fits(piece)).cloned() else {
                found.insert(head.seq + 1, same);
                return;
            };
            self.head = Some(Head { seq: next.seq, sha: next.sha });
            self.epoch = next.epoch;
            self.chained.push(next);
        }
    }
}

fn only((_, mut same): (u64, Vec<Piece>)) -> Option<Piece> {
    let one = same.pop();
    one.filter(|_| same.is_empty())
}

/// The whole records in what should have been one line, as far as they are admitted.
pub(super) fn pieces(line: &[u8], admits: &impl Fn(&Record<'_>) -> bool) -> Vec<Piece> {
    let plain = line.strip_suffix(b"\r").unwrap_or(line);
    let plain = plain.strip_prefix(&[JOIN]).unwrap_or(plain);
    let own = |text: &[u8]| {
        let record = record::parse(text).ok()?;
        Some(admits(&record).then(|| Piece::of(text, &record)))
    };
    if let Some(piece) = own(plain) {
        return piece.into_iter().collect();
    }
    let starts: Vec<usize> = starts(line).take(MAX_STARTS).collect();
    let mut found = Vec::new();
    for (at, &start) in starts.iter().enumerate() {
        // It ends where the line does, or before the next one: what stood between them (the line end, the mark of a
        // batch) was damaged or removed.
        let before = |next: usize| (0..=2).map(move |between| next.saturating_sub(between));
        let ends = starts[at + 1..].iter().flat_map(|&next| before(next));
        let whole = ends
            .chain([line.len()])
            .filter(|&end| end > start)
            .find_map(|end| own(trimmed(&line[start..end])).flatten());
        found.extend(whole);
    }
    found
}

fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'}').map_or(0, |at| at + 1);
    &text[..end]
}

fn starts(line: &[u8]) -> impl Iterator<Item = usize> {
    line.windows(START.len()).enumerate().filter(|(_, window)| *window == START).map(|(at, _)| at)
}
