//! What lies in the inbox, for people.

use std::io;
use std::path::PathBuf;

use super::ledger::{Handled, Reader};
use super::name::{Name, is_unfinished};
use super::{Inbox, Wake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    New,
    Taken,
    /// Dropped by somebody and not looked at yet.
    Dropped,
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Place::New => "new",
            Place::Taken => "taken",
            Place::Dropped => "dropped",
        }
    }
}

/// An unhandled wake.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The wake's id, or the file's name where it cannot be read.
    pub id: String,
    pub place: Place,
    /// Tries that failed.
    pub tries: u32,
    /// The wake, or why it cannot be read as one (yet).
    pub wake: Result<Wake, String>,
    pub path: PathBuf,
}

impl Inbox {
    /// Unhandled wakes, in the order in which they will be taken; dropped files last.
    pub fn unhandled(&self) -> io::Result<Vec<Letter>> {
        let mut letters: Vec<(u64, Letter)> = Vec::new();
        for file in self.list(&self.taken_dir())? {
            let Some((name, tries)) = Name::parse_taken(&file) else { continue };
            let path = self.taken_dir().join(&file);
            letters.push((name.seq, self.letter(path, &name.file(), name.label, Place::Taken, tries)));
        }
        for file in self.list(&self.new_dir())?.into_iter().filter(|name| !is_unfinished(name)) {
            let path = self.new_dir().join(&file);
            letters.push(match Name::parse(&file) {
                Some(name) => (name.seq, self.letter(path, &file, name.label, Place::New, 0)),
                None => (u64::MAX, self.letter(path, &file, file.clone(), Place::Dropped, 0)),
            });
        }
        letters.sort_by_key(|(seq, _)| *seq);
        Ok(letters.into_iter().map(|(_, letter)| letter).collect())
    }

    fn letter(&self, path: PathBuf, file: &str, label: String, place: Place, tries: u32) -> Letter {
        let wake = match self.read_wake(&path, file) {
            Ok(read) => read.map_err(|unreadable| unreadable.to_string()),
            Err(error) => Err(format!("it cannot be read: {error}")),
        };
        let id = wake.as_ref().map_or(label, |wake| wake.wake_id.clone());
        Letter { id, place, tries, wake, path }
    }

    /// Handled wakes that the ledger still has, oldest first.
    pub fn handled(&self) -> io::Result<Vec<Handled>> {
        let mut all = Vec::new();
        Reader::new(&self.dir).read(&mut |handled| all.push(handled))?;
        Ok(all)
    }
}
