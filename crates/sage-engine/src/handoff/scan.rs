//! Reads all handoffs from their files. A file that cannot be read is told of and left alone.

use std::path::{Path, PathBuf};

use sage_core::handoff::Handoff;

use super::{HandoffError, MAX_BYTES, Store, io_error};

#[derive(Debug, Default)]
pub struct Scanned {
    pub handoffs: Vec<Handoff>,
    damaged: Vec<(PathBuf, String)>,
}

impl Scanned {
    pub fn notes(&self) -> Vec<String> {
        let note = |(path, why): &(PathBuf, String)| {
            format!("`{}` cannot be read ({why}); it is left as it is", path.display())
        };
        self.damaged.iter().map(note).collect()
    }
}

impl Store {
    pub(super) fn scan(&self) -> Result<Scanned, HandoffError> {
        let mut scanned = Scanned::default();
        let list = |dir: &Path| self.vfs.list(dir).map_err(|source| io_error("read", dir, source));
        for day in list(&self.dir)?.into_iter().filter(|name| is_day(name)) {
            let dir = self.dir.join(day);
            for name in list(&dir)?.into_iter().filter(|name| name.ends_with(".json")) {
                let path = dir.join(name);
                match self.load(&path) {
                    Ok(handoff) => scanned.handoffs.push(handoff),
                    Err(why) => scanned.damaged.push((path, why)),
                }
            }
        }
        Ok(scanned)
    }

    fn load(&self, path: &Path) -> Result<Handoff, String> {
        let bytes = self.vfs.read(path, MAX_BYTES as u64).map_err(|error| error.to_string())?;
        let handoff: Handoff = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        // A copy under another name would be a second handoff with the same id.
        if !path.ends_with(handoff.file()) {
            return Err(format!("its content belongs into `{}`", handoff.file()));
        }
        Ok(handoff)
    }
}

/// `2026-01-31`
fn is_day(name: &str) -> bool {
    let shape = |(place, byte): (usize, u8)| {
        if [4, 7].contains(&place) { byte == b'-' } else { byte.is_ascii_digit() }
    };
    name == "undated" || (name.len() == 10 && name.bytes().enumerate().all(shape))
}
