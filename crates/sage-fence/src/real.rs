//! Which file a path means: links are followed, `..` goes up from where a link has led.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The real path; what does not exist of it is taken as it is written. `base` must be real. A link that leads
/// nowhere is refused: writing would follow it.
pub fn real(base: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut real = base.to_path_buf();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => real = PathBuf::from("/"),
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                real.push(name);
                match real.symlink_metadata() {
                    Ok(about) if about.is_symlink() => real = real.canonicalize().map_err(broken)?,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(real)
}

fn broken(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "broken link"),
        _ => error,
    }
}
