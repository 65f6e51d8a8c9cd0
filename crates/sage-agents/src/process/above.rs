//! Whether this process was started by a step: by what is above it, and not only by what it was told.
//!
//! ```text
//! SAGE_STEP in the environment           a step's program
//! the mark (`mark.rs`)                   whatever Sage started, wherever it has gone
//! a step or a keeper among the ancestors the same, also for root, who can remove the mark
//! a chain of ancestors that is cut       unknown, and that counts as no person
//! ```
//! The chain is read from the real `/proc` without crossing a mount, and must end at a process without a parent or
//! at one of another user. Root in a pid namespace of its own can escape this. Outside Linux there is no `/proc`, and
//! the variable is all there is.

use std::sync::OnceLock;

use super::mark;

/// The variable that names a step to its programs.
const STEP: &str = "SAGE_STEP";

/// What started this process, if it cannot be a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Above {
    /// By its path.
    Step(String),
    /// Such as an MCP server.
    Program,
    /// The ancestors cannot be read, and why.
    Unknown(String),
}

impl std::fmt::Display for Above {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Above::Step(step) => write!(f, "the step `{step}`"),
            Above::Program => f.write_str("a program that sage started"),
            Above::Unknown(why) => write!(f, "a process whose ancestors cannot be read ({why})"),
        }
    }
}

/// Whether this process had the mark before it set its own.
static MARKED: OnceLock<bool> = OnceLock::new();

/// The beginning of the binary: it takes the mark itself, so that whatever it starts has it, in whatever way.
pub fn begin() {
    MARKED.get_or_init(mark::is_set);
    mark::set();
}

/// `None` if this process was started by a person, or by something that has nothing to do with Sage.
pub fn above() -> Option<Above> {
    let own = std::env::var(STEP).ok().filter(|step| !step.is_empty());
    let marked = || MARKED.get().copied().unwrap_or_else(mark::is_set).then_some(Above::Program);
    own.map(Above::Step).or_else(|| chain::above(None)).or_else(marked)
}

#[cfg(not(target_os = "linux"))]
mod chain {
    pub fn above(_from: Option<u32>) -> Option<super::Above> {
        None
    }
}

#[cfg(target_os = "linux")]
mod chain {
    use std::collections::HashSet;
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;

    use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
    use rustix::io::Errno;

    use super::super::keeper::KEEPER_ARG;
    use super::super::tree::{parse_stat, raw};
    use super::Above;

    const TRIES: usize = 10;

    /// Above `from`, or above this process.
    pub fn above(from: Option<u32>) -> Option<Above> {
        let walk = || Proc::open().and_then(|proc| proc.walk(from.map_or_else(|| proc.own_pid(), Ok)?));
        let mut walked = walk();
        // An ancestor may end meanwhile; its children then have another one.
        for _ in 1..TRIES {
            if walked.is_ok() {
                break;
            }
            walked = walk();
        }
        walked.unwrap_or_else(|error| Some(Above::Unknown(error.to_string())))
    }

    struct Proc(OwnedFd);

    impl Proc {
        fn open() -> io::Result<Proc> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = rustix::fs::open("/proc", flags, Mode::empty())?;
            match rustix::fs::fstatfs(&dir)?.f_type == PROC_SUPER_MAGIC {
                true => Ok(Proc(dir)),
                false => Err(io::Error::other("/proc is not the process table")),
            }
        }

        /// This process by the number that it has in this table, which may be of a namespace above its own.
        fn own_pid(&self) -> io::Result<u32> {
            let link = rustix::fs::readlinkat(&self.0, "self", Vec::new())?;
            let pid = link.to_str().ok().and_then(|text| text.parse().ok());
            pid.ok_or_else(|| io::Error::other("/proc/self names no process"))
        }

        fn walk(&self, from: u32) -> io::Result<Option<Above>> {
            let (mut pid, mut seen) = (from, HashSet::new());
            while pid != 0 {
                if !seen.insert(pid) {
                    return Err(io::Error::other(format!("/proc/{pid} is its own ancestor")));
                }
                let stat = match self.read(pid, "stat") {
                    Ok(stat) => stat,
                    // Hidden by `hidepid`: what a step starts belongs to the same user.
                    Err(_) if is_of_another_user(pid) => return Ok(None),
                    Err(error) => return Err(io::Error::new(error.kind(), format!("/proc/{pid}: {error}"))),
                };
                if let Some(step) = self.step(pid) {
                    return Ok(Some(Above::Step(step)));
                }
                if self.is_keeper(pid) {
                    return Ok(Some(Above::Program));
                }
                let stat = parse_stat(pid, &String::from_utf8_lossy(&stat));
                pid = stat.ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is damaged")))?.parent;
            }
            Ok(None)
        }

        /// As a process was told when it started. The environment of other users cannot be read.
        fn step(&self, pid: u32) -> Option<String> {
            let environ = self.read(pid, "environ").ok()?;
            let mut entries = environ.split(|&byte| byte == 0);
            let value = entries.find_map(|entry| entry.strip_prefix(b"SAGE_STEP="))?;
            Some(String::from_utf8_lossy(value).into_owned()).filter(|step| !step.is_empty())
        }

        fn is_keeper(&self, pid: u32) -> bool {
            let arguments = self.read(pid, "cmdline").unwrap_or_default();
            arguments.split(|&byte| byte == 0).nth(1) == Some(KEEPER_ARG.as_bytes())
        }

        /// Nothing that is mounted over a part of the table.
        fn read(&self, pid: u32, name: &str) -> io::Result<Vec<u8>> {
            let path = format!("{pid}/{name}");
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
            let opened = match rustix::fs::openat2(&self.0, &path, flags, Mode::empty(), resolve) {
                // A kernel, or a sandbox, without the call.
                Err(Errno::NOSYS | Errno::PERM) => {
                    rustix::fs::openat(&self.0, &path, flags | OFlags::NOFOLLOW, Mode::empty())
                }
                opened => opened,
            };
            let mut bytes = Vec::new();
            File::from(opened?).read_to_end(&mut bytes)?;
            Ok(bytes)
        }
    }

    fn is_of_another_user(pid: u32) -> bool {
        raw(pid).is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::PERM))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn an_ancestor_that_is_a_step_is_found_whatever_its_children_forget() {
        let mut parent = std::process::Command::new("sh")
            .args(["-c", "env -i sleep 60 & echo $!; wait"])
            .env(STEP, "p/x")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(parent.stdout.take().unwrap()), &mut line)
            .unwrap();
        let child: u32 = line.trim().parse().unwrap();
        assert_eq!(chain::above(Some(child)), Some(Above::Step("p/x".into())));
        let pid = super::super::tree::raw(child).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        parent.wait().unwrap();
        assert_eq!(chain::above(Some(1)), None);
        // A chain that is cut proves nothing.
        assert!(matches!(chain::above(Some(child)), Some(Above::Unknown(_))));
    }
}
