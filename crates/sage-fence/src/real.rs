//! Which file a path means: links are followed one by one, `..` goes up from where a link has led.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many as Linux follows.
const MAX_LINKS: usize = 40;

/// A way through the file system.
#[derive(Debug, Default)]
pub struct Walk {
    /// The real path; what does not exist of it is taken as it is written.
    pub real: PathBuf,
    /// Every entry on the way, links as well: each name stands in a real folder.
    pub passed: Vec<PathBuf>,
    /// A link leads nowhere.
    pub is_broken: bool,
}

enum Step {
    Root,
    Up,
    Into { name: OsString, of_link: bool },
}

/// The real path. `base` must be real. A link that leads nowhere is refused: writing would follow it.
pub fn real(base: &Path, path: &Path) -> io::Result<PathBuf> {
    let walk = walk(base, path)?;
    if walk.is_broken { Err(broken()) } else { Ok(walk.real) }
}

/// A directory of the user's choice by its real path, also if it does not exist yet: links in it are the user's own.
pub fn real_dir(dir: &Path) -> PathBuf {
    let known =
        dir.ancestors().find_map(|above| Some((above.canonicalize().ok()?, dir.strip_prefix(above).ok()?)));
    known.map_or_else(
        || dir.to_path_buf(),
        |(above, rest)| if rest.as_os_str().is_empty() { above } else { above.join(rest) },
    )
}

pub fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "broken link")
}

/// Also through links that lead nowhere.
pub fn walk(base: &Path, path: &Path) -> io::Result<Walk> {
    let mut walk = Walk { real: base.to_path_buf(), ..Walk::default() };
    let mut ahead: VecDeque<Step> = steps(path, false).collect();
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        let (name, of_link) = match step {
            Step::Root => {
                walk.real = PathBuf::from("/");
                continue;
            }
            Step::Up => {
                walk.real.pop();
                continue;
            }
            Step::Into { name, of_link } => (name, of_link),
        };
        let next = walk.real.join(name);
        walk.passed.push(next.clone());
        match next.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::from(rustix::io::Errno::LOOP));
                }
                let target = std::fs::read_link(&next)?;
                steps(&target, true).rev().for_each(|step| ahead.push_front(step));
                continue;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => walk.is_broken |= of_link,
            Err(error) => return Err(error),
        }
        walk.real = next;
    }
    Ok(walk)
}

fn steps(path: &Path, of_link: bool) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(move |part| match part {
        Component::CurDir => None,
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into { name: name.to_owned(), of_link }),
    })
}
