//! Signals to a run's owner from other processes: pause, cancel, approve, reject, messages to agents.
//!
//! A signal is a file that appears whole in `<run>/control/` and is removed once its event is durable, so it
//! survives the owner and its disappearance is the acknowledgement. Its name is its dedupe key: the event
//! carries it, and a signal found again after a crash has no second effect.
//! Signals are sealed for their run and their name: a file that a step or a repository put there is set aside.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sage_core::seal::{self, Key};
use serde::{Deserialize, Serialize};

use crate::vfs::{self, Vfs};

/// How often an owner looks for signals. A look is one directory listing.
pub const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "camelCase")]
pub enum Signal {
    Pause,
    #[serde(rename_all = "camelCase")]
    Cancel {
        resumable: bool,
    },
    /// A budget may spend more, or less, from now on.
    #[serde(rename_all = "camelCase")]
    Raise {
        node: String,
        cap: sage_core::budget::Cap,
    },
    /// What has not begun is given up.
    Clear,
    /// A person says something to the agent of a running step.
    Message {
        step: String,
        text: String,
        by: String,
    },
    #[serde(rename_all = "camelCase")]
    Answer {
        step: String,
        choice: String,
        by: String,
        message: Option<String>,
        /// Which of several questions of an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<String>,
        /// What the tool shall be given instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<serde_json::Value>,
    },
}

impl Signal {
    /// A plain yes.
    pub fn approve(step: &str, by: &str) -> Signal {
        let (choice, message, ask, input) = ("approve".into(), None, None, None);
        Signal::Answer { step: step.into(), choice, by: by.into(), message, ask, input }
    }

    /// Only a person may send it.
    pub fn is_a_persons(&self) -> bool {
        matches!(self, Signal::Answer { .. } | Signal::Raise { .. } | Signal::Message { .. })
    }
}

/// A signal with its dedupe key.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: String,
    pub signal: Signal,
}

pub fn dir(run_dir: &Path) -> PathBuf {
    run_dir.join("control")
}

/// The key for one signal.
fn scoped(user: Option<&Key>, run_dir: &Path, id: &str) -> Option<Key> {
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy();
    user.map(|key| key.scoped("signal", &format!("{run}/{id}")))
}

pub fn send(vfs: &dyn Vfs, run_dir: &Path, signal: &Signal, user: Option<&Key>) -> io::Result<PathBuf> {
    let dir = dir(run_dir);
    vfs.create_dir_all(&dir)?;
    let id = ulid::Ulid::generate().to_string();
    let key = scoped(user, run_dir, &id);
    let text = seal::document_text(signal, key.as_ref()).map_err(io::Error::other)?;
    let (temporary, path) = (dir.join(format!(".{id}")), dir.join(format!("{id}.json")));
    let mut file = vfs.create_new(&temporary)?;
    vfs::write_all(file.as_mut(), text.as_bytes())?;
    file.sync_all()?;
    vfs.rename(&temporary, &path)?;
    vfs.sync_dir(&dir)?;
    Ok(path)
}

/// Waits until the owner has taken the signal. False if it did not within the time.
pub fn wait_taken(path: &Path, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    while Instant::now() < deadline {
        if !path.exists() {
            return true;
        }
        std::thread::sleep(POLL / 5);
    }
    !path.exists()
}

/// What lies in the box, oldest first (ids sort by time). Files that are unreadable or not sealed by this user are
/// set aside, once. Without a key there is nothing to tell them by: only what needs no person is taken.
pub fn receive(vfs: &dyn Vfs, run_dir: &Path, user: Option<&Key>) -> Vec<Delivery> {
    const MAX_BYTES: u64 = 1 << 20;
    let dir = dir(run_dir);
    let Ok(names) = vfs.list(&dir) else { return Vec::new() };
    let mut deliveries = Vec::new();
    for name in names {
        let Some(id) = name.strip_suffix(".json").filter(|id| !id.starts_with('.')) else { continue };
        let path = dir.join(&name);
        let text = vfs.read(&path, MAX_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let key = scoped(user, run_dir, id);
        let read = text.and_then(|text| Some((serde_json::from_str::<Signal>(&text).ok()?, text)));
        match read {
            Some((signal, text)) => {
                let is_ours = match &key {
                    Some(key) => seal::is_sealed(&text, Some(key)),
                    None => !signal.is_a_persons(),
                };
                if is_ours {
                    deliveries.push(Delivery { id: id.to_string(), signal });
                } else {
                    drop(vfs.rename(&path, &dir.join(format!("{id}.foreign"))));
                }
            }
            None => drop(vfs.rename(&path, &dir.join(format!("{id}.unreadable")))),
        }
    }
    deliveries
}

pub fn acknowledge(vfs: &dyn Vfs, run_dir: &Path, id: &str) {
    // Left behind, it is recognised by its id the next time.
    let _ = vfs.remove_file(&dir(run_dir).join(format!("{id}.json")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::DiskFs;

    // covers: R17
    #[test]
    fn without_a_key_no_file_is_a_persons_answer() {
        let run = tempfile::tempdir().unwrap();
        let disk = DiskFs::default();
        let answer = send(&disk, run.path(), &Signal::approve("p/ok", "me"), None).unwrap();
        send(&disk, run.path(), &Signal::Pause, None).unwrap();
        let taken = receive(&disk, run.path(), None);
        assert_eq!(taken.iter().map(|it| &it.signal).collect::<Vec<_>>(), [&Signal::Pause]);
        assert!(answer.with_extension("foreign").exists());
    }
}
