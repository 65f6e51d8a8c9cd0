//! What is known of a detached run: small, whole or not there, changed by one process at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lock::lock_within;
use crate::vfs::{self, DiskFs, Vfs};

const MAX_RECORD_BYTES: u64 = 64 << 10;
/// A change takes milliseconds, or as long as folding a large journal; who waits longer waits for a stopped process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A run that goes on without a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub feature: String,
    pub run: String,
    /// Its owner leaves instead of waiting for a known time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
    pub since_ms: u64,
    /// When owners were started since the run last made progress.
    #[serde(default)]
    pub starts: Vec<u64>,
    /// Steps that had settled at the last start: more or fewer is progress.
    #[serde(default)]
    pub settled: u32,
    /// How often an owner had to be replaced.
    #[serde(default)]
    pub restarts: u32,
    /// The journal's length when the run was found to wait for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_bytes: Option<u64>,
    /// Why nobody starts it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
}

/// Why a run in the background is left alone until a person resumes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Over {
    /// Somebody ended the supervisor.
    Stopped,
    /// Its owners die without getting anywhere.
    GaveUp { restarts: u32, why: String },
}

impl Record {
    pub fn new(feature: &str, run: &str, no_wait: bool, now_ms: u64) -> Record {
        let (feature, run) = (feature.into(), run.into());
        // Whoever writes it starts the first owner.
        Record { feature, run, no_wait, since_ms: now_ms, starts: vec![now_ms], ..Record::default() }
    }
}

/// The records of a project.
#[derive(Clone, Debug)]
pub struct Records {
    dir: PathBuf,
}

impl Records {
    pub fn new(state: &Path) -> Records {
        Records { dir: state.join("detached") }
    }

    fn path(&self, feature: &str) -> PathBuf {
        self.dir.join(format!("{feature}.json"))
    }

    /// All that can be read. One directory listing where there are none.
    pub fn list(&self) -> Vec<Record> {
        let names = DiskFs::default().list(&self.dir).unwrap_or_default();
        names.iter().filter_map(|name| self.get(name.strip_suffix(".json")?)).collect()
    }

    pub fn get(&self, feature: &str) -> Option<Record> {
        let bytes = DiskFs::default().read(&self.path(feature), MAX_RECORD_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &Record| record.feature == feature)
    }

    /// Writes a new record in place of any other; durable when this returns.
    pub fn put(&self, record: &Record) -> io::Result<()> {
        vfs::create_dir_durable(&DiskFs::default(), &self.dir)?;
        self.change(&record.feature, |_| (Some(record.clone()), ()))
    }

    pub fn remove(&self, feature: &str) -> io::Result<()> {
        if self.get(feature).is_none() {
            return Ok(());
        }
        self.change(feature, |_| (None, ()))
    }

    /// Changes one record, while nobody else can change any.
    pub fn change<T>(
        &self,
        feature: &str,
        change: impl FnOnce(Option<Record>) -> (Option<Record>, T),
    ) -> io::Result<T> {
        let disk = DiskFs::default();
        let _lock = lock_within(&self.dir.join("lock"), LOCK_TIMEOUT)?;
        let before = self.get(feature);
        let (after, answer) = change(before.clone());
        match after {
            Some(record) if Some(&record) != before.as_ref() => {
                let mut text = serde_json::to_vec(&record)?;
                text.push(b'\n');
                vfs::write_atomic(&disk, &self.path(feature), &text)?;
            }
            None if before.is_some() => {
                disk.remove_file(&self.path(feature))?;
                disk.sync_dir(&self.dir)?;
            }
            _ => {}
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S1
    #[test]
    fn a_record_is_kept_changed_and_removed() {
        let state = tempfile::tempdir().unwrap();
        let records = Records::new(state.path());
        assert_eq!(records.list(), []);
        records.remove("a").unwrap();
        let a = Record::new("a", "run_1", true, 5);
        records.put(&a).unwrap();
        records.put(&Record::new("b", "run_2", false, 6)).unwrap();
        assert_eq!(records.list().len(), 2);
        assert_eq!(records.get("a"), Some(a.clone()));
        let stop = |record: Option<Record>| {
            (record.map(|record| Record { over: Some(Over::Stopped), ..record }), ())
        };
        records.change("a", stop).unwrap();
        assert_eq!(records.get("a").unwrap().over, Some(Over::Stopped));
        records.change("c", stop).unwrap();
        records.remove("a").unwrap();
        assert_eq!(records.list().len(), 1);
    }

    // covers: S1
    #[test]
    fn what_cannot_be_read_is_no_record() {
        let state = tempfile::tempdir().unwrap();
        let records = Records::new(state.path());
        records.put(&Record::new("a", "run_1", false, 5)).unwrap();
        std::fs::write(records.path("b"), "{").unwrap();
        std::fs::copy(records.path("a"), records.path("c")).unwrap();
        assert_eq!(records.list().iter().map(|r| r.feature.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
