//! What is known of a detached run: small, whole or not there, changed by one process at a time.
//!
//! A record makes a process start, so it counts only if this user wrote it, and wrote it here: it is sealed for the
//! real path of its directory. A record that came with a repository or with a copy of the project is no record.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_core::seal::{self, Key};
use serde::{Deserialize, Serialize};

use crate::lock::{boot_id, lock_within};
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
    /// The boot in which its last owner was started; empty where the system has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The machine was restarted, which interrupted its owner: it goes on all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_reboot: bool,
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
    /// Somebody ended the supervisor, or the machine was shut down.
    Stopped,
    /// Its owners die without getting anywhere.
    GaveUp { restarts: u32, why: String },
}

impl Record {
    pub fn new(feature: &str, run: &str, no_wait: bool, now_ms: u64) -> Record {
        let (feature, run) = (feature.into(), run.into());
        // Whoever writes it starts the first owner.
        let (starts, boot_id) = (vec![now_ms], boot_id());
        Record { feature, run, no_wait, since_ms: now_ms, starts, boot_id, ..Record::default() }
    }

    /// The machine was restarted since its last owner was started.
    pub fn is_of_another_boot(&self) -> bool {
        let now = boot_id();
        !now.is_empty() && !self.boot_id.is_empty() && now != self.boot_id
    }

    /// As the first look after a restart of the machine leaves it: what the shutdown stopped goes on.
    pub(super) fn in_this_boot(self) -> Record {
        if !self.is_of_another_boot() {
            return self;
        }
        let over = self.over.filter(|over| *over != Over::Stopped);
        Record { over, boot_id: boot_id(), after_reboot: true, quiet_bytes: None, starts: Vec::new(), ..self }
    }
}

/// The records of a project.
#[derive(Clone, Debug)]
pub struct Records {
    dir: PathBuf,
    user: Option<Key>,
}

impl Records {
    pub fn new(state: &Path, user: Option<&Key>) -> Records {
        Records { dir: state.join("detached"), user: user.cloned() }
    }

    fn key(&self) -> Option<Key> {
        let place = self.dir.canonicalize().ok()?;
        Some(self.user.as_ref()?.scoped("background", &place.to_string_lossy()))
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
        let text = String::from_utf8(bytes).ok().filter(|text| seal::is_sealed(text, self.key().as_ref()))?;
        serde_json::from_str(&text).ok().filter(|record: &Record| record.feature == feature)
    }

    /// Writes a new record in place of any other; durable when this returns. Without a key it would not be read back.
    pub fn put(&self, record: &Record) -> io::Result<()> {
        if self.user.is_none() {
            return Err(io::Error::other("it cannot be sealed: there is no user key"));
        }
        vfs::create_dir_durable(&DiskFs::default(), &self.dir)?;
        self.change(&record.feature, |_| (Some(record.clone()), ()))
    }

    /// Removes what lies in the place of a record and is none.
    pub fn discard(&self, feature: &str) -> io::Result<()> {
        match self.get(feature).is_some() || !self.path(feature).exists() {
            true => Ok(()),
            false => DiskFs::default().remove_file(&self.path(feature)),
        }
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
                let text = seal::document_text(&record, self.key().as_ref()).map_err(io::Error::other)?;
                vfs::write_atomic(&disk, &self.path(feature), text.as_bytes())?;
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
        let records = Records::new(state.path(), Some(&Key::new(&[1; 32])));
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

    // covers: S1, R17
    #[test]
    fn a_record_of_another_user_or_another_place_is_none() {
        let (state, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mine, other) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
        let records = Records::new(state.path(), Some(&mine));
        records.put(&Record::new("a", "run_1", false, 5)).unwrap();
        assert_eq!(Records::new(state.path(), Some(&other)).list(), []);
        assert_eq!(Records::new(state.path(), None).list(), []);
        std::fs::create_dir(copy.path().join("detached")).unwrap();
        std::fs::copy(records.path("a"), copy.path().join("detached/a.json")).unwrap();
        assert_eq!(Records::new(copy.path(), Some(&mine)).list(), []);
        let text = std::fs::read_to_string(records.path("a")).unwrap();
        std::fs::write(records.path("a"), text.replace("run_1", "run_2")).unwrap();
        assert_eq!(records.list(), []);
        assert!(Records::new(state.path(), None).put(&Record::default()).is_err());
        // What is put later takes its place.
        records.put(&Record::new("a", "run_3", false, 5)).unwrap();
        assert_eq!(records.get("a").unwrap().run, "run_3");
    }

    // covers: S1
    #[test]
    fn what_cannot_be_read_is_no_record() {
        let state = tempfile::tempdir().unwrap();
        let records = Records::new(state.path(), Some(&Key::new(&[1; 32])));
        records.put(&Record::new("a", "run_1", false, 5)).unwrap();
        std::fs::write(records.path("b"), "{").unwrap();
        std::fs::copy(records.path("a"), records.path("c")).unwrap();
        assert_eq!(records.list().iter().map(|r| r.feature.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
