//! Opening a journal after whatever happened to it.
//!
//! Reads to the first line that isn't a good next record, then judges the rest: bytes that only a power cut
//! during the last, unacknowledged batch explains are a torn tail, kept aside and cut off; anything else is
//! corruption, and nothing on disk changes.
//! What must stay true: the bytes that are cut off are durable elsewhere before the cut; a crash at any moment
//! of a recovery leaves something that the next recovery understands; what is handed to the fold is durable
//! before this returns, because a killed writer may have left it in the page cache only.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::seal::Sealed;

use super::reader::Reader;
use super::record::{self, BadLine, JOIN, Record, START};
use super::watermark::Watermark;
use super::writer::{Journal, JournalFile};
use super::{FILE_NAME, Head, JournalError, QUARANTINE, Sealing};
use crate::vfs::{self, Vfs};

/// What an owner makes in the run's directory once the first record is durable.
const AFTER_FIRST_RECORD: &[&str] = &["children.lock", "control", "steps"];

/// Read at a time: large enough to be quick, small enough to hold a thousand at once.
const PIECE_BYTES: u64 = 1 << 20;

/// More unreadable bytes than this were not left by one torn batch.
const MAX_TORN_BYTES: u64 = 128 << 20;

/// A disk writes no less than this at once, so a write that was cut off leaves whole sectors of zeros.
const SECTOR_BYTES: usize = 512;

/// Lines inside damaged lines that are looked at: a bound on work, far above what damage produces.
const MAX_CANDIDATES: usize = 1000;

/// A journal that is ready to go on.
#[derive(Debug)]
pub struct Recovered {
    /// Appends with the next epoch.
    pub journal: Journal,
    pub file: JournalFile,
    /// Unacknowledged bytes that were cut off, now or by a recovery that was interrupted; worth telling people.
    pub torn: Option<Torn>,
}

/// A tail that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The record that would have come next.
    pub seq: u64,
    pub offset: u64,
    pub bytes: u64,
    pub saved_to: PathBuf,
}

/// What [`check`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    pub head: Head,
    /// The seal of the last record.
    pub sealed: Option<Sealed>,
    pub epoch: u64,
    /// Bytes of good records.
    pub good_bytes: u64,
    /// Bytes after them: a torn tail, or a writer at work.
    pub tail_bytes: u64,
}

/// Verifies the journal in `dir` and opens it for writing.
///
/// `on_record` sees every good record in order; after an error, what it saw must be dropped. `watermark` is the
/// last record known to be acknowledged. A journal of another user is refused before anything on disk changes,
/// unless `sealing` accepts it.
pub fn recover<E: From<JournalError>>(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    watermark: Option<Head>,
    sealing: &Sealing,
    on_record: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Recovered, E> {
    let path = dir.join(FILE_NAME);
    let survey = survey(vfs.as_ref(), &path, watermark, on_record)?;
    // Without a record there is nothing in it to be believed.
    if survey.head != Head::EMPTY && !sealing.admits(survey.sealed.as_ref()) {
        return Err(JournalError::Foreign { path }.into());
    }
    Ok(open(vfs.as_ref(), dir, path, &survey, watermark, sealing)?)
}

/// Verifies the journal in `dir` and changes nothing, also while its owner writes.
pub fn check<E: From<JournalError>>(
    vfs: &dyn Vfs,
    dir: &Path,
    watermark: Option<Head>,
    on_record: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Checked, E> {
    let survey = survey(vfs, &dir.join(FILE_NAME), watermark, on_record)?;
    Ok(Checked {
        head: survey.head,
        sealed: survey.sealed,
        epoch: survey.epoch,
        good_bytes: survey.good_bytes,
        tail_bytes: survey.tail.len() as u64,
    })
}

/// A journal as it was found, judged fit to go on.
struct Survey {
    head: Head,
    sealed: Option<Sealed>,
    epoch: u64,
    good_bytes: u64,
    tail: Vec<u8>,
}

/// Tells the reader's errors, which are to be judged, from those of the caller's fold.
enum Stop<E> {
    Journal(JournalError),
    Caller(E),
}

impl<E> From<JournalError> for Stop<E> {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

fn survey<E: From<JournalError>>(
    vfs: &dyn Vfs,
    path: &Path,
    watermark: Option<Head>,
    mut on_record: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Survey, E> {
    let mut reader = Reader::new();
    let mut watermark = Watermark::new(watermark);
    let mut sink = |record: Record<'_>| {
        watermark.see(&record);
        if watermark.is_contradicted() && !watermark.is_replaced_in(vfs, path)? {
            watermark.judge(record.head())?;
        }
        on_record(record).map_err(Stop::Caller)
    };
    let damage = loop {
        let piece =
            vfs.read_from(path, reader.next_offset(), PIECE_BYTES).map_err(JournalError::io("read", path))?;
        if piece.is_empty() {
            break None;
        }
        match reader.feed(&piece, &mut sink) {
            Ok(()) => {}
            Err(Stop::Journal(error @ JournalError::Corrupt { .. })) => break Some(error),
            Err(Stop::Journal(error)) => return Err(error.into()),
            Err(Stop::Caller(error)) => return Err(error),
        }
    };
    let tail = read_tail(vfs, path, &reader, damage)?;
    watermark.judge(reader.head())?;
    // The first write cannot have been torn if something was done after it.
    if reader.head() == Head::EMPTY && has_begun(vfs, vfs::parent(path)) {
        let what = if tail.is_empty() { "it is empty" } else { "no record can be read" };
        return Err(JournalError::Corrupt { line: 1, offset: 0, what: what.into() }.into());
    }
    Ok(Survey {
        head: reader.head(),
        sealed: reader.sealed().copied(),
        epoch: reader.epoch(),
        good_bytes: reader.offset(),
        tail,
    })
}

/// Whether the run's directory holds what is only made after the first record is durable.
fn has_begun(vfs: &dyn Vfs, dir: &Path) -> bool {
    vfs.list(dir).is_ok_and(|names| names.iter().any(|name| AFTER_FIRST_RECORD.contains(&name.as_str())))
}

/// The bytes after the good records, if a torn write explains them.
fn read_tail(
    vfs: &dyn Vfs,
    path: &Path,
    reader: &Reader,
    damage: Option<JournalError>,
) -> Result<Vec<u8>, JournalError> {
    if damage.is_none() && reader.next_offset() == reader.offset() {
        return Ok(Vec::new());
    }
    let tail =
        vfs.read_from(path, reader.offset(), MAX_TORN_BYTES + 1).map_err(JournalError::io("read", path))?;
    match damage {
        Some(damage) if tail.len() as u64 > MAX_TORN_BYTES || was_whole(&tail, reader.offset()) => {
            Err(damage)
        }
        _ => Ok(tail),
    }
}

/// Whether something in the tail proves that its beginning once was whole and synced.
///
/// A good record that starts a batch proves it for all before. A good record that was synced together with the
/// one before it does so too, unless a sector before it was never written.
fn was_whole(tail: &[u8], offset: u64) -> bool {
    let mut tried = 0;
    let mut start = 0;
    for line in tail.split_inclusive(|&byte| byte == b'\n') {
        let Some(line_body) = line.strip_suffix(b"\n") else {
            break;
        };
        for at in candidates(line_body) {
            tried += 1;
            if tried > MAX_CANDIDATES {
                return true;
            }
            // Also with another line end: somebody has converted the file.
            let text = line_body[at..].strip_suffix(b"\r").unwrap_or(&line_body[at..]);
            let good = matches!(record::parse(text), Ok(_) | Err(BadLine::Newer(_)));
            let joined = at.checked_sub(1).is_some_and(|before| matches!(line_body[before], JOIN | 0));
            if good && !(joined && has_hole(&tail[..start + at], offset)) {
                return true;
            }
        }
        start += line.len();
    }
    false
}

/// Where a record may start in a line; inside of it too, in case the line break before it was damaged.
fn candidates(line: &[u8]) -> impl Iterator<Item = usize> {
    line.windows(START.len()).enumerate().filter(|(_, window)| *window == START).map(|(at, _)| at)
}

/// Whether a sector, or the part of the first one that lies in `bytes`, is all zeros.
fn has_hole(bytes: &[u8], offset: u64) -> bool {
    let first = SECTOR_BYTES - (offset % SECTOR_BYTES as u64) as usize;
    let Some((first, rest)) = bytes.split_at_checked(first) else {
        return false;
    };
    let zeros = |sector: &[u8]| sector.iter().all(|&byte| byte == 0);
    zeros(first) || rest.chunks_exact(SECTOR_BYTES).any(zeros)
}

fn open(
    vfs: &dyn Vfs,
    dir: &Path,
    path: PathBuf,
    survey: &Survey,
    watermark: Option<Head>,
    sealing: &Sealing,
) -> Result<Recovered, JournalError> {
    let torn = match survey.tail.len() {
        0 => untold(vfs, dir, survey).map_err(JournalError::io("look into", &dir.join(QUARANTINE)))?,
        bytes => Some((quarantine(vfs, dir, survey)?, bytes as u64)),
    };
    let mut file = vfs.open_append(&path).map_err(JournalError::io("open", &path))?;
    if !survey.tail.is_empty() {
        file.set_len(survey.good_bytes).map_err(JournalError::io("truncate", &path))?;
    }
    // What the watermark names was acknowledged, so it is durable; records beyond may not be.
    if torn.is_some() || watermark != Some(survey.head) {
        file.sync_all().map_err(JournalError::io("sync", &path))?;
    }
    // The first record is only written once the file's entry is durable.
    if survey.head == Head::EMPTY {
        vfs::sync_between(vfs, vfs::parent(dir), dir).map_err(JournalError::io("sync", dir))?;
    }
    Ok(Recovered {
        journal: Journal::resume(sealing, survey.head, survey.epoch.saturating_add(1)),
        file: JournalFile::resume(path, file, survey.head, survey.good_bytes),
        torn: torn.map(|(saved_to, bytes)| Torn {
            seq: survey.head.seq + 1,
            offset: survey.good_bytes,
            bytes,
            saved_to,
        }),
    })
}

/// A tail that an earlier recovery cut off just before it was interrupted. Once a record follows, it was told.
fn untold(vfs: &dyn Vfs, dir: &Path, survey: &Survey) -> io::Result<Option<(PathBuf, u64)>> {
    let mut last = None;
    for serial in 0_u64.. {
        let path = quarantined(dir, survey, serial);
        if !vfs.exists(&path)? {
            break;
        }
        let bytes = vfs.metadata(&path)?.len;
        last = Some((path, bytes));
    }
    Ok(last)
}

fn quarantined(dir: &Path, survey: &Survey, serial: u64) -> PathBuf {
    dir.join(QUARANTINE).join(format!("torn-{}-{serial}.bin", survey.head.seq + 1))
}

/// Keeps the torn bytes, durably. Another attempt at the same recovery finds and uses the same file.
fn quarantine(vfs: &dyn Vfs, dir: &Path, survey: &Survey) -> Result<PathBuf, JournalError> {
    let home = dir.join(QUARANTINE);
    let failed = |source| JournalError::Io { op: "save a torn tail in", path: home.clone(), source };
    vfs.create_dir_all(&home).map_err(failed)?;
    vfs.sync_dir(dir).map_err(failed)?;
    for serial in 0_u64.. {
        let path = quarantined(dir, survey, serial);
        if keep(vfs, &path, &survey.tail).map_err(failed)? {
            vfs.sync_dir(&home).map_err(failed)?;
            return Ok(path);
        }
    }
    Err(failed(io::ErrorKind::AlreadyExists.into()))
}

/// Whether `path` now holds `bytes`; not so if it holds something else already.
fn keep(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if vfs.exists(path)? {
        let same = vfs.metadata(path)?.len == bytes.len() as u64
            && vfs.read(path, MAX_TORN_BYTES).is_ok_and(|found| found == bytes);
        if same {
            vfs.open_append(path)?.sync_all()?;
        }
        return Ok(same);
    }
    let temp = vfs::write_temp(vfs, path, bytes)?;
    vfs.rename(&temp, path).inspect_err(|_| vfs::discard(vfs, &temp))?;
    Ok(true)
}
