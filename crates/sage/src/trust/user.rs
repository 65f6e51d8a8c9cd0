//! The user's own directory, outside of every project: `$XDG_STATE_HOME/sage`.

use std::path::PathBuf;

use sage_core::seal::Key;
use sage_engine::user_key;

/// `None` without a home: a directory that all users share proves nothing.
pub fn dir() -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")))?;
    Some(sage_fence::real_dir(&state.join("sage")))
}

/// The key if there is one. Creates nothing.
pub fn key() -> Option<Key> {
    user_key::read(&dir()?).ok().flatten()
}

/// The key, created if there is none; else why state cannot be sealed.
pub fn make_key() -> Result<Key, String> {
    let dir = dir().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    user_key::read_or_create(&dir).map_err(|error| format!("{}: {error}", dir.display()))
}
