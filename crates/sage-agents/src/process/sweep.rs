//! Kills what a keeper could not: every process that carries the marker variables of a run.
//!
//! Used when a keeper was killed by its own child, and by whoever resumes a run whose owner died. A process
//! belongs to the run if its environment says so, or if one of its ancestors belongs to it, whatever it did
//! to its own environment.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::orphan::sweep_orphans;
use super::tree::{self, Process};

/// SIGKILL works within milliseconds; what lives longer than this cannot be killed by us.
const PATIENCE: Duration = Duration::from_secs(10);
const WAVE: Duration = Duration::from_millis(5);

/// Which processes are meant: those of a run, of one of its steps, of one attempt.
#[derive(Clone, Debug)]
pub struct Marker {
    pub run: String,
    pub step: Option<String>,
    pub attempt: Option<u32>,
}

/// What a sweep has done. `left` is what could not be killed: nothing may start in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub killed: Vec<u32>,
    pub left: Vec<u32>,
}

/// Kills every process of `run` (or of one step) but this one and its ancestors, and sees that they are gone.
/// MCP servers of a dead process go with them: one of them may still be at work for the run.
pub fn sweep(run: &str, step: Option<&str>) -> Swept {
    let marker = Marker { run: run.to_string(), step: step.map(str::to_string), attempt: None };
    let mut swept = sweep_marked(&marker, None);
    let orphans = sweep_orphans();
    swept.killed.extend(orphans.killed);
    swept.left.extend(orphans.left);
    swept
}

/// As `sweep`; `session` also finds those of a dead keeper's session that have no marker any more.
pub fn sweep_marked(marker: &Marker, session: Option<u32>) -> Swept {
    let wanted = marker.entries();
    sweep_all(&|process| session == Some(process.session) || has_marker(process.pid, &wanted))
}

/// Kills everything that `is_meant`, with all that descends from it, but not this process and its ancestors.
pub fn sweep_all(is_meant: &dyn Fn(&Process) -> bool) -> Swept {
    let deadline = Instant::now() + PATIENCE;
    let mut swept = Swept::default();
    loop {
        let victims = victims(is_meant);
        if victims.is_empty() {
            return swept;
        }
        if Instant::now() > deadline {
            swept.left = victims.iter().map(|process| process.pid).collect();
            swept.killed.retain(|pid| !swept.left.contains(pid));
            return swept;
        }
        for process in victims {
            if process.signal(Signal::KILL).is_ok() && !swept.killed.contains(&process.pid) {
                swept.killed.push(process.pid);
            }
        }
        std::thread::sleep(WAVE);
    }
}

/// Processes that have the file at `path` open: who still holds a children lock. Empty where it can't be told.
pub fn lock_holders(path: &Path) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = std::fs::metadata(path) else {
        return Vec::new();
    };
    let same = |file: &std::fs::DirEntry| {
        std::fs::metadata(file.path()).is_ok_and(|it| (it.dev(), it.ino()) == (meta.dev(), meta.ino()))
    };
    let holds = |process: &Process| {
        let files = std::fs::read_dir(format!("/proc/{}/fd", process.pid));
        files.is_ok_and(|files| files.flatten().any(|file| same(&file)))
    };
    let me = std::process::id();
    tree::all().iter().filter(|it| it.pid != me && holds(it)).map(|it| it.pid).collect()
}

impl Marker {
    /// The lines of an environment that must all be there.
    fn entries(&self) -> Vec<String> {
        let mut entries = vec![format!("SAGE_RUN={}", self.run)];
        entries.extend(self.step.iter().map(|step| format!("SAGE_STEP={step}")));
        entries.extend(self.attempt.iter().map(|attempt| format!("SAGE_ATTEMPT={attempt}")));
        entries
    }
}

fn victims(is_meant: &dyn Fn(&Process) -> bool) -> Vec<Process> {
    let table = tree::all();
    let spared = tree::lineage(&table, std::process::id());
    let mut found: Vec<Process> = Vec::new();
    for root in table.iter().filter(|process| !spared.contains(&process.pid) && is_meant(process)) {
        found.push(*root);
        found.extend(tree::descendants(&table, root.pid));
    }
    found.retain(|process| !process.zombie && !spared.contains(&process.pid));
    found.sort_unstable_by_key(|process| process.pid);
    found.dedup_by_key(|process| process.pid);
    found
}

fn has_marker(pid: u32, wanted: &[String]) -> bool {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    wanted.iter().all(|entry| environ.split(|byte| *byte == 0).any(|line| line == entry.as_bytes()))
}
