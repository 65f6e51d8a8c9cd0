//! Files of Sage's own, reached by their real path: no part of the path may be a link.
//!
//! A clone can bring links at any depth of `.sage`, and a step can make one while a run goes on. So the kernel refuses
//! links while it opens a path (`openat2`; elsewhere part by part), and whatever is created, renamed or removed is
//! named in a directory that is held open meanwhile.
//! What must stay true: the directory in which a name changes belongs to this user; nothing that is removed is
//! followed, nor is another file system that is mounted in it. Callers make the beginning of a path real: the
//! project's root, the user's own directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::beneath;

const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIR_MODE: Mode = Mode::from_raw_mode(0o700);

/// Something other than a regular file where a file was expected.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is {what}, not a regular file", path.display())]
pub struct NotRegular {
    pub path: PathBuf,
    pub what: &'static str,
}

/// A link on the way to a file of Sage's own.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is a symlink; sage follows none to its own files", path.display())]
pub struct Linked {
    pub path: PathBuf,
}

/// What stands at a name of a directory.
#[derive(Clone, Debug)]
pub struct Listed {
    pub name: OsString,
    pub kind: FileType,
}

/// Whether a file belongs to this user. As in git, root by sudo may use what belongs to the user who called sudo.
pub fn is_ours(uid: u32) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let caller = || std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok());
    uid == me || (me == 0 && caller() == Some(uid))
}

/// Opens a regular file and nothing else; never waits, whatever is in its place.
pub fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    // NONBLOCK: a FIFO in the file's place must be refused, not waited for. Regular files ignore it.
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = if flags.contains(OFlags::CREATE) {
        Place::of_ours(path)?.open(flags)
    } else {
        no_links(path, flags, Mode::empty())
    };
    let file = match opened {
        Ok(fd) => File::from(fd),
        Err(error) => return Err(refusal(path, error)),
    };
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind => Err(not_regular(path, kind)),
    }
}

/// Makes a directory and its missing parents, 0700 whatever the umask. One that is there must be this user's.
pub fn create_dir_all(dir: &Path) -> io::Result<()> {
    let made = open_or_make(dir)?;
    check_owner(dir, &rustix::fs::fstat(&made)?)
}

fn open_or_make(dir: &Path) -> io::Result<OwnedFd> {
    match open_dir(dir, OFlags::PATH) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.file_name().is_some() => {}
        opened => return opened,
    }
    open_or_make(parent(dir))?;
    make_dir(dir)?;
    open_dir(dir, OFlags::PATH)
}

/// Makes one directory, 0700; nothing if it is there.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    let place = Place::of(dir)?;
    match rustix::fs::mkdirat(&place.dir, place.name, DIR_MODE) {
        // A umask may have taken bits away.
        Ok(()) => place.set_mode(DIR_MODE),
        // Another process was faster.
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Closes a directory to other users.
pub fn close_to_others(dir: &Path) -> io::Result<()> {
    let open = open_dir(dir, OFlags::RDONLY)?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&open)?.st_mode);
    let is_open = mode.intersects(Mode::RWXG | Mode::RWXO);
    if is_open { Ok(rustix::fs::fchmod(&open, DIR_MODE)?) } else { Ok(()) }
}

/// The entries of a directory, in no order.
pub fn list(dir: &Path) -> io::Result<Vec<Listed>> {
    entries(&open_dir(dir, OFlags::RDONLY)?)
}

/// Moves a file or directory; what is at `to` is replaced, a link there is not followed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (Place::of_ours(from)?, Place::of_ours(to)?);
    Ok(rustix::fs::renameat(&from.dir, from.name, &to.dir, to.name)?)
}

/// Exchanges two names of one directory.
pub fn exchange(one: &Path, two: &Path) -> io::Result<()> {
    let (one, two) = (Place::of_ours(one)?, Place::of_ours(two)?);
    Ok(rustix::fs::renameat_with(&one.dir, one.name, &two.dir, two.name, RenameFlags::EXCHANGE)?)
}

pub fn hard_link(original: &Path, link: &Path) -> io::Result<()> {
    let (original, link) = (Place::of_ours(original)?, Place::of_ours(link)?);
    Ok(rustix::fs::linkat(&original.dir, original.name, &link.dir, link.name, AtFlags::empty())?)
}

/// Makes a named pipe that only this user can open.
pub fn make_pipe(path: &Path) -> io::Result<()> {
    let place = Place::of_ours(path)?;
    Ok(rustix::fs::mknodat(&place.dir, place.name, FileType::Fifo, FILE_MODE, 0)?)
}

pub fn remove_file(path: &Path) -> io::Result<()> {
    let place = Place::of_ours(path)?;
    Ok(rustix::fs::unlinkat(&place.dir, place.name, AtFlags::empty())?)
}

/// Removes an empty directory.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    let place = Place::of_ours(path)?;
    Ok(rustix::fs::unlinkat(&place.dir, place.name, AtFlags::REMOVEDIR)?)
}

/// Removes what is there, a directory with everything in it. Links are removed, not followed; another file system
/// that is mounted in it is an error.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let place = Place::of_ours(path)?;
    let device = rustix::fs::fstat(&place.dir)?.st_dev;
    remove_at(place.dir.as_fd(), place.name, device as _)
}

fn remove_at(dir: BorrowedFd<'_>, name: &OsStr, device: u64) -> io::Result<()> {
    let about = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(about.st_mode as _) != FileType::Directory {
        return Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?);
    }
    if about.st_dev as u64 != device {
        return Err(io::Error::other(format!("`{}` is another file system", name.display())));
    }
    let place = Place { dir: dir.try_clone_to_owned()?, name };
    // Programs leave directories behind that nobody may write to, not even their owner.
    if !Mode::from_raw_mode(about.st_mode).contains(Mode::RWXU) {
        place.set_mode(DIR_MODE)?;
    }
    let inner = place.open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
    for entry in entries(&inner)? {
        remove_at(inner.as_fd(), &entry.name, device)?;
    }
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

/// A name in a directory that is held open.
struct Place<'a> {
    dir: OwnedFd,
    name: &'a OsStr,
}

impl<'a> Place<'a> {
    fn of(path: &'a Path) -> io::Result<Place<'a>> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Place { dir: open_dir(parent(path), OFlags::PATH)?, name })
    }

    /// In a directory of another user, who could exchange what is in it, nothing is made and nothing removed.
    fn of_ours(path: &'a Path) -> io::Result<Place<'a>> {
        let place = Place::of(path)?;
        check_owner(parent(path), &rustix::fs::fstat(&place.dir)?)?;
        Ok(place)
    }

    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
        Ok(rustix::fs::openat(&self.dir, self.name, flags, mode)?)
    }

    /// Of a directory. It need not be readable: it is named by a descriptor, which is no link by now.
    #[cfg(target_os = "linux")]
    fn set_mode(&self, mode: Mode) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let dir = self.open(OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        if Mode::from_raw_mode(rustix::fs::fstat(&dir)?.st_mode) & DIR_MODE == mode {
            return Ok(());
        }
        Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), mode)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn set_mode(&self, mode: Mode) -> io::Result<()> {
        Ok(rustix::fs::chmodat(&self.dir, self.name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_owner(dir: &Path, about: &Stat) -> io::Result<()> {
    if is_ours(about.st_uid) {
        return Ok(());
    }
    let message = format!("`{}` belongs to another user", dir.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn open_dir(dir: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    no_links(dir, flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
        match dir.is_symlink() {
            true => io::Error::new(io::ErrorKind::InvalidInput, Linked { path: dir.to_owned() }),
            false => linked(dir, error),
        }
    })
}

fn entries(dir: &OwnedFd) -> io::Result<Vec<Listed>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not tell.
            FileType::Unknown => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) => FileType::from_raw_mode(about.st_mode as _),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        found.push(Listed { name: name.to_owned(), kind });
    }
    Ok(found)
}

fn no_links(path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    match beneath::no_links(path, flags, mode) {
        Some(opened) => opened,
        None => part_by_part(path, flags),
    }
}

/// Where the kernel cannot do it at once.
fn part_by_part(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let begin = if path.is_absolute() { "/" } else { "." };
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(begin, through, Mode::empty())?;
    let mut parts = path.components().filter(|part| *part != Component::RootDir).peekable();
    if parts.peek().is_none() {
        return beneath::step(&dir, Path::new("."), flags);
    }
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_none() { flags } else { through };
        dir = beneath::step(&dir, Path::new(part.as_os_str()), flags)?;
    }
    Ok(dir)
}

/// A refusal to open a link, FIFO or directory is told as what it is, not as `ELOOP` or `ENXIO`.
fn refusal(path: &Path, error: io::Error) -> io::Error {
    let error = linked(path, error);
    match path.symlink_metadata() {
        Ok(about) if !about.is_file() && error.get_ref().is_none() => not_regular(path, about.file_type()),
        _ => error,
    }
}

/// Names the link that is on the way.
fn linked(path: &Path, error: io::Error) -> io::Error {
    if error.get_ref().is_some() || error.kind() == io::ErrorKind::NotFound {
        return error;
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    match above.into_iter().find(|dir| dir.is_symlink()) {
        Some(link) => io::Error::new(io::ErrorKind::InvalidInput, Linked { path: link.to_owned() }),
        None => error,
    }
}

fn not_regular(path: &Path, kind: std::fs::FileType) -> io::Error {
    let what = match kind {
        kind if kind.is_symlink() => "a symlink",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_block_device() || kind.is_char_device() => "a device",
        _ => "something else",
    };
    io::Error::new(io::ErrorKind::InvalidInput, NotRegular { path: path.to_owned(), what })
}
