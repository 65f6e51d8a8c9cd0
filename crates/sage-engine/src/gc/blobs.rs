//! Blobs that no record names: somebody was killed between a blob and the record that was to name it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::{Category, Fate, Gc};
use crate::lock::lock_within;
use crate::{checkpoint, journal};

/// A journal is read in pieces.
const PIECE_BYTES: u64 = 4 << 20;
const HEX: usize = 64;

impl Gc<'_> {
    pub(super) fn sweep_blobs(&mut self) {
        let runs = self.engine.project.runs();
        for run in self.names(&runs) {
            let dir = runs.join(&run).join("blobs");
            let names = self.names(&dir);
            let old = |name: &String| name.len() == HEX && self.is_abandoned(&dir.join(name));
            let old: Vec<String> = names.into_iter().filter(old).collect();
            if !old.is_empty() && matches!(self.fate(&run), Fate::Closed { .. }) {
                self.sweep_blobs_of(&run, &dir, &old);
            }
        }
    }

    /// Nobody may open the run meanwhile: a blob that is there already would be taken for kept.
    fn sweep_blobs_of(&mut self, run: &str, dir: &Path, names: &[String]) {
        let Some(feature) = self.engine.feature_of(run) else { return };
        let Ok(_held) = lock_within(&self.engine.project.lock(&feature), Duration::ZERO) else { return };
        let checkpoint = self.engine.project.checkpoint(&feature);
        let backup = checkpoint::backup_path(&checkpoint);
        let mut named = BTreeSet::new();
        let journal = self.engine.project.run_dir(run).join(journal::FILE_NAME);
        for (path, needed) in [(journal, true), (checkpoint, false), (backup, false)] {
            if self.names_in(&path, &mut named).is_err() && needed {
                return;
            }
        }
        for name in names.iter().filter(|name| !named.contains(*name)) {
            self.remove_file(Category::Blobs, &dir.join(name));
        }
    }

    /// Everything in a file that looks like the name of a blob: too much is harmless here.
    fn names_in(&self, path: &Path, names: &mut BTreeSet<String>) -> std::io::Result<()> {
        let (mut offset, mut rest) = (0, Vec::new());
        loop {
            let piece = self.vfs().read_from(path, offset, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(());
            }
            offset += piece.len() as u64;
            rest.extend(piece);
            let words = rest.split(|byte| !byte.is_ascii_hexdigit()).filter(|word| word.len() == HEX);
            names.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
            // A name may lie across two pieces.
            rest.drain(..rest.len().saturating_sub(HEX));
        }
    }
}
