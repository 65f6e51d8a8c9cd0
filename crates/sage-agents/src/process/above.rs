//! Whether this process was started by a step: by what is above it, and not only by what it was told.
//!
//! Everything that Sage starts has a keeper above it, which is the reaper of the whole tree: a program that forgets
//! its environment, forks away or starts a session of its own still has it. A variable alone could be unset.
//! Outside Linux there is no `/proc`, and the variable is all there is.

use super::keeper::KEEPER_ARG;
use super::tree::Process;

/// The variable that names a step to its programs.
const STEP: &str = "SAGE_STEP";
/// Deeper than any tree of processes.
const MAX_DEPTH: usize = 256;

/// What started this process, if Sage did: a step by its path, else a program such as an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Above {
    Step(String),
    Program,
}

impl std::fmt::Display for Above {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Above::Step(step) => write!(f, "the step `{step}`"),
            Above::Program => f.write_str("a program that sage started"),
        }
    }
}

/// `None` if this process was started by a person, or by something that has nothing to do with Sage.
pub fn above() -> Option<Above> {
    let own = std::env::var(STEP).ok().filter(|step| !step.is_empty());
    own.map(Above::Step).or_else(|| among_ancestors(std::process::id()))
}

fn among_ancestors(pid: u32) -> Option<Above> {
    let mut pid = pid;
    for _ in 0..MAX_DEPTH {
        if let Some(step) = step_of(pid) {
            return Some(Above::Step(step));
        }
        if is_keeper(pid) {
            return Some(Above::Program);
        }
        pid = Process::read(pid).map(|process| process.parent).filter(|&parent| parent > 1)?;
    }
    None
}

/// As a process was told when it started.
fn step_of(pid: u32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environ.split(|&byte| byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(b"SAGE_STEP="))?;
    Some(String::from_utf8_lossy(value).into_owned()).filter(|step| !step.is_empty())
}

fn is_keeper(pid: u32) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|&byte| byte == 0).nth(1) == Some(KEEPER_ARG.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    #[cfg(target_os = "linux")]
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
        assert_eq!(among_ancestors(child), Some(Above::Step("p/x".into())));
        let pid = super::super::tree::raw(child).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        parent.wait().unwrap();
        assert_eq!(among_ancestors(1), None);
    }
}
