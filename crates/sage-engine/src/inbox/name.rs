//! Names of files in the inbox: `<number>-<sender>-<label>.json`, in `taken` with `.t<failed tries>` behind.
//!
//! The number sorts, so a listing is the order of the posts; the sender is a piece of the session's hash, so who
//! waits behind whom is known without opening anything.

use sage_core::digest::Digest;

const DIGITS: usize = 16;
const LABEL_CHARS: usize = 80;
const ENDING: &str = ".json";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub seq: u64,
    pub sender: String,
    pub label: String,
}

impl Name {
    pub fn new(seq: u64, session: &str, label: &str) -> Name {
        Name { seq, sender: Digest::of(session.as_bytes()).short(), label: label_of(label) }
    }

    /// As it is called in `new` and `dead`.
    pub fn file(&self) -> String {
        format!("{:0DIGITS$}-{}-{}{ENDING}", self.seq, self.sender, self.label)
    }

    /// As it is called in `taken`.
    pub fn taken(&self, tries: u32) -> String {
        format!("{}.t{tries}", self.file())
    }

    /// A name that we gave, in `new` or `dead`. Others are dropped files.
    pub fn parse(file: &str) -> Option<Name> {
        let (number, rest) = file.strip_suffix(ENDING)?.split_once('-')?;
        let (sender, label) = rest.split_once('-')?;
        let is_number = number.len() == DIGITS && number.bytes().all(|c| c.is_ascii_digit());
        let is_sender = sender.len() == 12 && sender.bytes().all(|c| c.is_ascii_hexdigit());
        let fits = is_number && is_sender && !label.is_empty();
        fits.then(|| Name { seq: number.parse().unwrap_or(0), sender: sender.into(), label: label.into() })
    }

    /// A name in `taken`, with the tries that failed.
    pub fn parse_taken(file: &str) -> Option<(Name, u32)> {
        let (file, tries) = file.rsplit_once(".t")?;
        Some((Name::parse(file)?, tries.parse().ok()?))
    }
}

/// An id as a piece of a file name: readable, and unique by a piece of its hash when it had to be changed.
pub fn label_of(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !id.is_empty() && id.len() <= LABEL_CHARS && id.chars().all(plain) {
        return id.into();
    }
    let readable: String =
        id.chars().map(|c| if plain(c) { c } else { '.' }).take(LABEL_CHARS - 13).collect();
    format!("{readable}-{}", Digest::of(id.as_bytes()).short())
}

/// Files that are still being written by a program with manners: they get their real name later.
pub fn is_unfinished(file: &str) -> bool {
    file.starts_with('.') || [".tmp", ".part", ".swp", "~"].iter().any(|end| file.ends_with(end))
}
