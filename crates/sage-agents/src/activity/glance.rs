//! What an attempt does at this moment, as one line: its last activity, or the last line that its program printed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sage_core::text::without_escapes;

use super::FILE;
use super::entry::last_line;
use super::reader::{entries, piece};

/// The end of a file in which the newest entry is looked for; a longer one is looked for in more.
const TAIL_BYTES: [u64; 2] = [16 << 10, 1 << 20];
/// The end of a program's output in which its last line is looked for.
const LINE_BYTES: u64 = 4 << 10;
const OUTPUTS: [&str; 2] = ["stdout.log", "stderr.log"];

/// Of the attempt whose directory it is; `None` if there is nothing to tell.
pub fn now(scratch: &Path) -> Option<String> {
    let activity = scratch.join(FILE);
    match stamp(&activity) {
        Some((bytes, _)) => newest_entry(&activity, bytes),
        None => last_output(scratch),
    }
}

fn newest_entry(path: &Path, bytes: u64) -> Option<String> {
    TAIL_BYTES.into_iter().find_map(|most| {
        let tail = piece(path, bytes.saturating_sub(most), most).ok()?;
        entries(&tail).rev().find_map(|entry| entry.what.brief())
    })
}

fn last_output(scratch: &Path) -> Option<String> {
    let paths = OUTPUTS.map(|name| scratch.join(name));
    let written = |path: &&PathBuf| stamp(path).filter(|(bytes, _)| *bytes > 0);
    let newest = paths
        .iter()
        .filter(|path| written(path).is_some())
        .max_by_key(|path| written(path).map(|it| it.1))?;
    let (bytes, _) = stamp(newest)?;
    let tail = piece(newest, bytes.saturating_sub(LINE_BYTES), LINE_BYTES).ok()?;
    let tail = without_escapes(&String::from_utf8_lossy(&tail));
    last_line(&tail).map(str::to_string)
}

type Stamp = (u64, SystemTime);

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.len(), meta.modified().ok()?))
}

/// Looks at many attempts again and again: files that have not changed are read once.
#[derive(Debug, Default)]
pub struct Glances {
    known: HashMap<PathBuf, Known>,
}

#[derive(Debug)]
struct Known {
    stamps: [Option<Stamp>; 3],
    text: Option<String>,
    /// Asked for since the last `forget_unseen`.
    seen: bool,
}

impl Glances {
    pub fn at(&mut self, scratch: &Path) -> Option<String> {
        let [out, err] = OUTPUTS;
        let stamps = [FILE, out, err].map(|name| stamp(&scratch.join(name)));
        let fresh = self.known.get_mut(scratch).filter(|known| known.stamps == stamps);
        if let Some(known) = fresh {
            known.seen = true;
            return known.text.clone();
        }
        let text = now(scratch);
        self.known.insert(scratch.to_path_buf(), Known { stamps, text: text.clone(), seen: true });
        text
    }

    /// Attempts that nobody asked for since the last call are over.
    pub fn forget_unseen(&mut self) {
        self.known.retain(|_, known| std::mem::take(&mut known.seen));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{What, Writer};
    use super::*;

    // covers: R8
    #[test]
    fn the_newest_tool_or_message_is_what_an_agent_does() {
        let dir = tempfile::tempdir().unwrap();
        let mut glances = Glances::default();
        std::fs::write(dir.path().join("stdout.log"), "{\"type\":\"raw\"}\n").unwrap();
        let mut writer = Writer::open(dir.path());
        assert_eq!(glances.at(dir.path()), None, "the raw protocol is not shown");
        writer.write(What::Tool { tool: "Bash".into(), input: "ls".into() });
        writer.write(What::Usage { tokens: 1, cost_usd: None, cost_estimated: false });
        assert_eq!(glances.at(dir.path()).as_deref(), Some("Bash ls"));
        writer.write(What::Message { text: format!("{}\nthe end", "long ".repeat(10_000)) });
        assert_eq!(glances.at(dir.path()).as_deref(), Some("the end"));
        assert_eq!(glances.at(dir.path()).as_deref(), Some("the end"));
        glances.forget_unseen();
        glances.forget_unseen();
        assert!(glances.known.is_empty());
    }

    // covers: R8
    #[test]
    fn a_program_shows_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(now(dir.path()), None);
        std::fs::write(dir.path().join("stdout.log"), "").unwrap();
        std::fs::write(dir.path().join("stderr.log"), "one\n\u{1b}[1m 10%\r 90%\u{1b}[0m\n\n").unwrap();
        assert_eq!(now(dir.path()).as_deref(), Some("90%"));
    }
}
