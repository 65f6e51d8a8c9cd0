//! The deliverer's turn: one process delivers at a time, and if it dies the next one learns over what.
//!
//! The lock is the kernel's, so death frees it. Its text says what the deliverer is doing at this very moment;
//! it is emptied when that is done, so a text that the next one finds is the cause of a death.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::Inbox;
use super::name::Name;
use crate::lock::lock_within;

const MAX_TEXT: usize = 512;
const RECORDING: &str = "recording";

/// What a deliverer that died was doing.
#[derive(Debug, PartialEq, Eq)]
pub enum Doing {
    Nothing,
    /// Handing this wake to its handler, after so many failed tries.
    Handling(Name, u32),
    /// Writing down what was handled.
    Recording,
}

#[derive(Debug)]
pub struct Turn {
    lock: File,
}

impl Turn {
    /// The turn and what the one before was doing when it died; `None` if somebody has it.
    pub fn take(inbox: &Inbox, patience: Duration) -> io::Result<Option<(Turn, Doing)>> {
        let lock = match lock_within(&inbox.dir.join("deliver.lock"), patience) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = [0; MAX_TEXT];
        let length = lock.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]);
        let doing = match text.lines().next().unwrap_or_default() {
            RECORDING => Doing::Recording,
            line => {
                Name::parse_taken(line).map_or(Doing::Nothing, |(name, tries)| Doing::Handling(name, tries))
            }
        };
        Ok(Some((Turn { lock }, doing)))
    }

    pub fn handling(&self, name: &Name, tries: u32) -> io::Result<()> {
        self.say(&name.taken(tries))
    }

    pub fn recording(&self) -> io::Result<()> {
        self.say(RECORDING)
    }

    pub fn rest(&self) -> io::Result<()> {
        self.say("")
    }

    /// One write: a kill leaves the old text or the new one.
    fn say(&self, what: &str) -> io::Result<()> {
        self.lock.write_all_at(format!("{what}\n").as_bytes(), 0)
    }
}
