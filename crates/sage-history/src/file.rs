//! The file: made for its user alone, and made anew if it is not ours, damaged or of another version.
//!
//! A file that came with a clone is not opened at all: the header of a SQLite file has two numbers of the
//! application's own, and ours are derived from the user's key.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use sage_core::digest::Digest;
use sage_core::seal::Key;

use crate::{History, HistoryError};

pub const FILE_NAME: &str = "history.db";
/// Rises with every change of the schema.
const VERSION: i32 = 1;
/// Beside the file, and gone with it.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Where the numbers are in the header.
const VERSION_AT: usize = 60;
const OWNER_AT: usize = 68;
const HEADER_BYTES: u64 = 100;
/// Another process writes some thousand rows at most.
const PATIENCE: Duration = Duration::from_secs(10);
const SCHEMA: &str = include_str!("schema.sql");

impl History {
    /// Opens the history of the project whose `.sage` this is.
    pub fn open(dir: &Path, key: &Key) -> Result<History, HistoryError> {
        let (path, owner) = (dir.join(FILE_NAME), owner(key));
        match header(&path)? {
            Header::Missing => {}
            found if found == Header::Of(VERSION, owner) => {}
            _ => remove(&path)?,
        }
        match History::at(&path, owner) {
            Err(HistoryError::Database(error)) if is_damage(&error) => {
                remove(&path)?;
                History::at(&path, owner)
            }
            opened => opened,
        }
    }

    /// One that is gone with the process: where nothing can be written.
    pub fn in_memory() -> Result<History, HistoryError> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(SCHEMA)?;
        Ok(History { db })
    }

    fn at(path: &Path, owner: i32) -> Result<History, HistoryError> {
        // SQLite gives its other files the mode of this one.
        sage_fence::private::open_lock(path).map_err(|source| HistoryError::Io {
            what: "create",
            path: path.into(),
            source,
        })?;
        let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
        harden(&db)?;
        // Nothing is lost with it that the journals do not have.
        db.execute_batch("PRAGMA synchronous = OFF;")?;
        if db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
            db.execute_batch(&format!(
                "BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; PRAGMA application_id = {owner}; COMMIT;"
            ))?;
        }
        // After the schema, so that the header of the file itself says whose it is.
        db.execute_batch("PRAGMA journal_mode = WAL;")?;
        Ok(History { db })
    }
}

/// Never through a link, and for one thread.
fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn harden(db: &Connection) -> Result<(), HistoryError> {
    db.busy_timeout(PATIENCE)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(())
}

/// A number that only the holder of the key can write.
fn owner(key: &Key) -> i32 {
    let seal = key.scoped("history", FILE_NAME).seal(&Digest::of(FILE_NAME.as_bytes())).to_string();
    let digits = seal.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    digits.unwrap_or_default() as i32
}

#[derive(Debug, PartialEq)]
enum Header {
    Missing,
    /// Version and owner.
    Of(i32, i32),
    Other,
}

fn header(path: &Path) -> Result<Header, HistoryError> {
    let failed = |source| HistoryError::Io { what: "read", path: path.into(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Header::Missing),
        // Another process is about to write it.
        Ok(meta) if meta.is_file() && meta.len() == 0 => return Ok(Header::Missing),
        Ok(meta) if meta.is_file() => {}
        Ok(_) | Err(_) => return Ok(Header::Other),
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut bytes)).map_err(failed)?;
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(i32::from_be_bytes);
    Ok(match number(VERSION_AT).zip(number(OWNER_AT)) {
        Some((version, owner)) if bytes.starts_with(b"SQLite format 3\0") => Header::Of(version, owner),
        _ => Header::Other,
    })
}

/// The file and what belongs to it. A directory in its place stays, and is told.
fn remove(path: &Path) -> Result<(), HistoryError> {
    let beside = COMPANIONS.iter().map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    for path in beside.chain([path.to_path_buf()]) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(HistoryError::Io { what: "replace", path, source: error });
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}
