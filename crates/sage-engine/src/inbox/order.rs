//! The order of posts: numbers that only grow, whoever posts, whatever the clock says.
//!
//! The last number is the text of the lock file itself and is drawn and used under that lock, so two posts never
//! share a number and a later post never has a smaller one. A killed process leaves a gap, nothing else: the
//! text is one write, and a write of the page cache outlives its process. Only the machine can lose it, so the
//! text names the boot; of another boot, or unreadable, it is corrected by what lies in the inbox. That is
//! enough: the order matters among wakes that are not handled yet, and they are there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use super::Inbox;
use super::name::Name;
use crate::lock::{boot_id, lock_within};

/// A number is drawn within microseconds; who waits longer waits for a stopped process.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_TEXT: usize = 128;
/// Nobody posts that often: a file with such a number got its name from somebody else.
const IMPLAUSIBLE: u64 = 1_000_000_000_000_000;

fn path(inbox: &Inbox) -> PathBuf {
    inbox.dir.join("order.lock")
}

/// The right to draw numbers, until it is dropped.
#[derive(Debug)]
pub struct Order {
    file: File,
    boot: String,
    last: u64,
}

impl Order {
    pub fn take(inbox: &Inbox) -> io::Result<Order> {
        let file = lock_within(&path(inbox), PATIENCE)?;
        let mut text = [0; MAX_TEXT];
        let length = file.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]);
        let (number, written_in) =
            text.lines().next().and_then(|line| line.split_once(' ')).unwrap_or_default();
        let (boot, known) = (boot_id(), number.parse::<u64>().ok());
        let mut last = known.unwrap_or(0);
        if known.is_none() || boot.is_empty() || boot != written_in {
            last = last.max(highest(inbox)?);
        }
        Ok(Order { file, boot, last })
    }

    /// A number that nothing in the inbox has.
    pub fn next(&mut self) -> io::Result<u64> {
        let next = self.last + 1;
        // Of one length, so that a shorter text never has the end of a longer one behind it.
        let text = format!("{next:020} {}\n", self.boot);
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.last = next;
        Ok(next)
    }
}

fn highest(inbox: &Inbox) -> io::Result<u64> {
    let mut highest = 0;
    for dir in [inbox.new_dir(), inbox.dead_dir(), inbox.taken_dir()] {
        let names = inbox.list(&dir)?;
        let numbers = names
            .iter()
            .filter_map(|name| Name::parse(name).or_else(|| Name::parse_taken(name).map(|(name, _)| name)));
        let plausible = numbers.map(|name| name.seq).filter(|seq| *seq < IMPLAUSIBLE);
        highest = highest.max(plausible.max().unwrap_or(0));
    }
    Ok(highest)
}
