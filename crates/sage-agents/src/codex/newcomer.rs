//! Files that configure agents and did not exist before a turn: the sandbox cannot close those, so they are
//! looked for afterwards and moved out of the project.
//!
//! What was missing is written down before codex starts. A turn that was killed is looked after by the next
//! attempt of the step.

use std::path::{Path, PathBuf};

use sage_fence::private;

use crate::attempt::Attempt;
use crate::outcome::Miss;

const FILE: &str = "newcomers.json";
/// A list of paths.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Watch {
    /// Paths that do not exist before the turn.
    missing: Vec<PathBuf>,
    scratch: PathBuf,
}

impl Watch {
    /// `missing`: what configures agents or git, and does not exist yet.
    pub fn begin(attempt: &Attempt<'_>, missing: Vec<PathBuf>) -> Result<Watch, Miss> {
        let scratch = attempt.cx.scratch.clone();
        for earlier in earlier_attempts(&scratch) {
            Watch { missing: read(&earlier), scratch: earlier }.end()?;
        }
        let text = serde_json::to_vec(&missing).map_err(|error| Miss::invalid(error.to_string()))?;
        attempt.write(FILE, &text)?;
        Ok(Watch { missing, scratch })
    }

    /// Moves what has appeared to the attempt's own directory.
    pub fn end(self) -> Result<(), Miss> {
        let mut moved = Vec::new();
        for path in self.missing.iter().filter(|path| path.symlink_metadata().is_ok()) {
            // Placeholders that codex makes for its sandbox are empty; a killed codex leaves them.
            if is_empty(path) {
                let _ = private::remove_dir(path).or_else(|_| private::remove_file(path));
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let to = self.scratch.join(format!("refused-{}-{name}", moved.len() + 1));
            // Through no link: the agent may have put one in the place of a folder.
            private::rename(path, &to).map_err(|error| {
                Miss::invalid(format!(
                    "the agent made `{}`, and it cannot be moved away: {error}",
                    path.display()
                ))
            })?;
            moved.push(format!("`{}` (moved to `{}`)", path.display(), to.display()));
        }
        let _ = private::remove_file(&self.scratch.join(FILE));
        if moved.is_empty() {
            return Ok(());
        }
        let what = moved.join(", ");
        Err(Miss::unfit(format!("the agent made files that configure agents, which it may not: {what}")))
    }
}

/// Directories of earlier attempts of this step whose turn was not looked after.
fn earlier_attempts(scratch: &Path) -> Vec<PathBuf> {
    let siblings = scratch.parent().map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    siblings.map(|entry| entry.path()).filter(|dir| dir.join(FILE).is_file()).collect()
}

fn read(scratch: &Path) -> Vec<PathBuf> {
    let text = private::read(&scratch.join(FILE), MAX_BYTES).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn is_empty(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => std::fs::read_dir(path).is_ok_and(|mut dir| dir.next().is_none()),
        Ok(about) => about.is_file() && about.len() == 0,
        Err(_) => false,
    }
}
