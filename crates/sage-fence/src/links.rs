//! What links at protected names lead to: it configures agents as much as what lies there.
//!
//! ```text
//! .mcp.json -> docs/servers.json        docs/servers.json is protected, also before it exists
//! .sage/templates -> ../tpl             tpl, and everything in it
//! ```

use std::path::{Path, PathBuf};

use sage_core::fence::{PROTECTED, is_private_entry};

use crate::real::walk;

/// Links are looked for this deep in a protected folder, among so many entries at most.
const DEPTH: usize = 4;
const ENTRIES: usize = 4_096;
/// Folders of Sage that nothing is configured by, and in which Sage accepts no links.
const WORK: [&str; 3] = ["worktrees", "handoffs", "types"];

/// The targets of all links at the protected names of `dir` and in the folders there. They need not exist.
pub fn targets(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = ENTRIES;
    for name in PROTECTED {
        look(&dir.join(name), 0, &mut left, &mut found);
    }
    // A link that leads back to a folder above protects nothing: it would be everything.
    found.retain(|target| !dir.starts_with(target));
    found
}

fn look(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let Ok(about) = path.symlink_metadata() else { return };
    let mut folder = path.to_path_buf();
    if about.is_symlink() {
        let Ok(walk) = walk(Path::new("/"), path) else { return };
        found.push(walk.real.clone());
        folder = walk.real;
    } else if !about.is_dir() {
        return;
    }
    if depth == DEPTH {
        return;
    }
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let skipped = match path.file_name().and_then(|own| own.to_str()) {
            Some(".sage") => is_private_entry(&name) || WORK.contains(&name.as_ref()),
            // Of a repository only what starts programs.
            Some(".git") => !["hooks", "config", "info"].contains(&name.as_ref()),
            _ => false,
        };
        if !skipped && entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
            look(&entry.path(), depth + 1, left, found);
        }
    }
}
