//! Sessions on disk: whole files or none, one writer at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use sage_core::seal::{self, Key};
use sage_fence::private;
use serde::Serialize;
use serde_json::Value;

use super::record::{Parent, Record, VERSION};

/// A turn has a prompt and an answer, each as long as what is kept of an output.
const MAX_BYTES: u64 = 128 << 20;

const SESSION: &str = "session.json";

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("there is no session `{0}`")]
    Unknown(String),
    #[error("session `{0}` exists already")]
    Exists(String),
    #[error("`{0}` is not a name of a session: use a-z, 0-9 and -, at most 100")]
    Name(String),
    #[error("session `{0}` is at work; wait for its step or stop it")]
    Busy(String),
    #[error("session `{id}` was written by a newer sage (version {found})")]
    Newer { id: String, found: u32 },
    #[error("session `{0}` was not written by this user on this machine")]
    Foreign(String),
    #[error("session `{id}` cannot be read: {why}")]
    Damaged { id: String, why: String },
    #[error("session `{0}` has no conversation yet that could be forked")]
    Empty(String),
    #[error("cannot use `{}`: {source}", path.display())]
    Disk { path: PathBuf, source: io::Error },
}

/// All sessions of a project.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    /// The user's: what is not sealed with it came with a repository, and is not continued.
    key: Option<Key>,
}

/// Held while a session is used; freed by death.
#[derive(Debug)]
pub struct SessionLock(File);

impl SessionLock {
    /// The lock of a file that was deleted protects nothing: the next one makes another file.
    pub(super) fn is_current(&self, store: &Store, id: &str) -> bool {
        let named = store.path(id).join("lock").metadata();
        let same =
            self.0.metadata().and_then(|own| named.map(|it| (own.dev(), own.ino()) == (it.dev(), it.ino())));
        same.unwrap_or(false)
    }
}

impl Store {
    pub fn new(dir: PathBuf, key: Option<Key>) -> Store {
        Store { dir, key }
    }

    /// The key for one file of a session.
    fn scoped(&self, id: &str, name: &str) -> Option<Key> {
        self.key.as_ref().map(|key| key.scoped("session", &format!("{id}/{name}")))
    }

    pub fn path(&self, id: &str) -> PathBuf {
        self.dir.join(id)
    }

    /// All of them, newest first; unreadable ones with the reason.
    pub fn list(&self) -> io::Result<Vec<Result<Record, SessionError>>> {
        let entries = match private::list(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
        let ids = names.filter(|name| check_id(name).is_ok());
        let mut found: Vec<Result<Record, SessionError>> =
            ids.map(|id| self.load(&id)).filter(|it| !matches!(it, Err(SessionError::Unknown(_)))).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.as_ref().map_or(0, |record| record.updated_ms)));
        Ok(found)
    }

    pub fn load(&self, id: &str) -> Result<Record, SessionError> {
        use io::ErrorKind::{FileTooLarge, InvalidData, InvalidInput};
        check_id(id)?;
        let path = self.path(id).join(SESSION);
        let damaged = |why: String| SessionError::Damaged { id: id.to_string(), why };
        let text = match private::read_text(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SessionError::Unknown(id.to_string()));
            }
            // What is there is damaged, or no file at all: that says nothing about the disk.
            Err(error) if matches!(error.kind(), FileTooLarge | InvalidData | InvalidInput) => {
                return self.rebuild(id, None).ok_or_else(|| damaged(error.to_string()));
            }
            Err(source) => return Err(SessionError::Disk { path, source }),
        };
        let value: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            // Torn by a power cut: its turns tell the same.
            Err(error) => return self.rebuild(id, None).ok_or_else(|| damaged(error.to_string())),
        };
        match value.get("v").and_then(Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => {
                Err(SessionError::Newer { id: id.to_string(), found: found.try_into().unwrap_or(u32::MAX) })
            }
            _ if !seal::is_sealed(&text, self.scoped(id, SESSION).as_ref()) => {
                Err(SessionError::Foreign(id.to_string()))
            }
            _ => serde_json::from_value(value).map_err(|error| damaged(error.to_string())),
        }
    }

    pub fn save(&self, record: &Record, synced: bool) -> Result<(), SessionError> {
        self.write(&record.id, SESSION, record, synced)
    }

    /// A turn's prompt and answer, counted from 1.
    pub fn save_turn(&self, id: &str, number: usize, turn: &Value, synced: bool) -> Result<(), SessionError> {
        self.write(id, &format!("turn-{number}.json"), turn, synced)
    }

    /// `None` if it is not there, damaged, or not this user's.
    pub fn load_turn(&self, id: &str, number: usize) -> Option<Value> {
        let name = format!("turn-{number}.json");
        let text = private::read_text(&self.path(id).join(&name), MAX_BYTES).ok()?;
        let sealed = seal::is_sealed(&text, self.scoped(id, &name).as_ref());
        serde_json::from_str(&text).ok().filter(|turn: &Value| sealed && turn.is_object())
    }

    pub fn save_handoff(&self, id: &str, handoff: &impl Serialize) -> Result<(), SessionError> {
        self.write(id, "handoff.json", handoff, false)
    }

    /// The right to use a session; `None` while somebody else has it.
    pub fn lock(&self, id: &str) -> Result<Option<SessionLock>, SessionError> {
        check_id(id)?;
        let dir = self.path(id);
        let disk = |path: &Path, source| SessionError::Disk { path: path.to_path_buf(), source };
        private::create_dir_all(&dir).map_err(|error| disk(&dir, error))?;
        let path = dir.join("lock");
        let file = private::open_lock(&path).map_err(|error| disk(&path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(SessionLock(file)).filter(|lock| lock.is_current(self, id))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(disk(&path, error.into())),
        }
    }

    fn held(&self, id: &str) -> Result<SessionLock, SessionError> {
        self.lock(id)?.ok_or_else(|| SessionError::Busy(id.to_string()))
    }

    pub fn create(&self, record: &Record) -> Result<(), SessionError> {
        let _lock = self.held(&record.id)?;
        match self.load(&record.id) {
            Err(SessionError::Unknown(_)) => self.save(record, true),
            _ => Err(SessionError::Exists(record.id.clone())),
        }
    }

    /// A session of its own that knows all that `id` knows now.
    pub fn fork(&self, id: &str, new: &str) -> Result<Record, SessionError> {
        let _lock = self.held(id)?;
        let of = self.load(id)?;
        let Some(conversation) = of.conversation.clone() else {
            return Err(SessionError::Empty(id.to_string()));
        };
        let mut record = Record::new(new, &of.agent, of.role.clone(), true, now_ms());
        record.parent = Some(Parent { session: of.id, conversation, turns: of.turns.len(), exact: false });
        record.counters = of.counters;
        record.context_tokens = of.context_tokens;
        self.create(&record)?;
        Ok(record)
    }

    /// The agent's own copy of the conversation is the agent's, and stays.
    pub fn delete(&self, id: &str) -> Result<(), SessionError> {
        self.load(id).or_else(|error| match error {
            SessionError::Unknown(_) => Err(error),
            _ => Ok(Record::new(id, "", None, false, 0)),
        })?;
        let _lock = self.held(id)?;
        let path = self.path(id);
        private::remove_all(&path).map_err(|source| SessionError::Disk { path, source })
    }

    fn write(
        &self,
        id: &str,
        name: &str,
        content: &impl Serialize,
        synced: bool,
    ) -> Result<(), SessionError> {
        let dir = self.path(id);
        let path = dir.join(name);
        let written = private::create_dir_all(&dir).and_then(|()| {
            let key = self.scoped(id, name);
            let text = seal::document_text(content, key.as_ref()).map_err(io::Error::other)?;
            let text = text.as_bytes();
            if synced { private::write_durable(&path, text) } else { private::write(&path, text) }
        });
        written.map_err(|source| SessionError::Disk { path, source })
    }
}

/// A session's id is a file name that needs no quoting anywhere.
pub fn check_id(id: &str) -> Result<(), SessionError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = !id.is_empty() && id.len() <= 100 && id.chars().all(plain) && !id.starts_with('-');
    if good { Ok(()) } else { Err(SessionError::Name(id.to_string())) }
}

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("sessions"), Some(Key::new(&[1; 32])));
        (dir, store)
    }

    // covers: S3
    #[test]
    fn sessions_are_made_listed_forked_and_deleted() {
        let (_dir, store) = store();
        assert!(store.list().unwrap().is_empty());
        let mut record = Record::new("planner-claude-1", "claude", Some("planner".into()), true, 5);
        store.create(&record).unwrap();
        assert!(matches!(store.create(&record), Err(SessionError::Exists(_))));
        assert!(matches!(store.fork("planner-claude-1", "copy"), Err(SessionError::Empty(_))));
        record.conversation = Some("abc".into());
        store.save(&record, false).unwrap();
        let fork = store.fork("planner-claude-1", "copy").unwrap();
        assert_eq!(fork.parent.unwrap().conversation, "abc");
        assert_eq!(store.list().unwrap().len(), 2);
        let held = store.lock("copy").unwrap();
        assert!(matches!(store.delete("copy"), Err(SessionError::Busy(_))));
        drop(held);
        store.delete("copy").unwrap();
        assert!(matches!(store.load("copy"), Err(SessionError::Unknown(_))));
        for bad in ["", "../x", "A", "-x", "a/b"] {
            assert!(matches!(store.load(bad), Err(SessionError::Name(_))), "{bad}");
        }
    }

    // covers: S3
    #[test]
    fn what_cannot_be_read_is_told_and_never_guessed() {
        let (_dir, store) = store();
        store.create(&Record::new("x", "claude", None, true, 1)).unwrap();
        let path = store.path("x").join("session.json");
        std::fs::write(&path, "{\"v\": 1").unwrap();
        assert!(matches!(store.load("x"), Err(SessionError::Damaged { .. })));
        std::fs::write(&path, "{\"v\": 99}").unwrap();
        assert!(matches!(store.load("x"), Err(SessionError::Newer { found: 99, .. })));
        assert_eq!(store.list().unwrap().len(), 1);
        store.delete("x").unwrap();
    }

    // covers: S3, R17
    #[test]
    fn a_session_that_came_with_a_repository_is_told_and_never_continued() {
        let (_dir, store) = store();
        let mut record = Record::new("x", "claude", None, true, 1);
        record.conversation = Some("theirs".into());
        store.create(&record).unwrap();
        store.save_turn("x", 1, &serde_json::json!({"answer": "ours"}), false).unwrap();
        assert_eq!(store.load_turn("x", 1).unwrap()["answer"], "ours");
        let other = Store { key: Some(Key::new(&[2; 32])), ..store.clone() };
        for store in [&other, &Store { key: None, ..store.clone() }] {
            assert!(matches!(store.load("x"), Err(SessionError::Foreign(_))));
            assert!(matches!(store.fork("x", "y"), Err(SessionError::Foreign(_))));
            assert!(store.load_turn("x", 1).is_none());
        }
        // A file of one session is none of another, and an edited one is none at all.
        store.create(&Record::new("y", "claude", None, true, 1)).unwrap();
        let copied = std::fs::copy(store.path("x").join(SESSION), store.path("y").join(SESSION));
        assert!(copied.is_ok() && matches!(store.load("y"), Err(SessionError::Foreign(_))));
        let turn = store.path("x").join("turn-1.json");
        let text = std::fs::read_to_string(&turn).unwrap();
        std::fs::write(&turn, text.replace("ours", "forged")).unwrap();
        assert!(store.load_turn("x", 1).is_none());
        other.delete("x").unwrap();
    }
}
