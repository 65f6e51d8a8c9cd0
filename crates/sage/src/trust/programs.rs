//! Programs that Sage finds in a project's own folders: the TypeScript compiler of `node_modules`.

use std::path::{Path, PathBuf};

use sage_engine::vfs::{DiskFs, Vfs};

use super::Definition;

const TSC: &str = "node_modules/.bin/tsc";
/// A launcher is a few lines.
const MAX_BYTES: u64 = 4 << 20;

/// The compiler in `node_modules` of the project or a folder above it, and what it is trusted by.
pub fn installed_tsc(root: &Path) -> Option<(PathBuf, Definition)> {
    let path = root.ancestors().map(|dir| dir.join(TSC)).find(|path| path.is_file())?;
    // A link is what package managers make; what counts is the file behind it.
    let real = path.canonicalize().ok()?;
    let content = DiskFs::default().read(&real, MAX_BYTES).ok()?;
    let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    Some((path, Definition::program(&shown, &content)))
}
