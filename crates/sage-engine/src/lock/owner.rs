//! A process, named so that it can't be mistaken for another: a pid alone is reused, so it comes with the boot
//! and the moment of its start.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    pub pid: u32,
    /// Empty where the system has none.
    #[serde(default)]
    pub boot_id: String,
    /// In the system's own unit; only ever compared. Empty where the system has none.
    #[serde(default)]
    pub start_time: String,
    pub run: String,
    pub since_ms: u64,
}

/// Why an owner that is named in a free lock isn't there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It died.
    DeadPid,
    /// It died, and another process has its pid.
    RecycledPid,
    /// The machine was started again.
    Reboot,
    /// It lives without its lock, or the system doesn't tell.
    Unknown,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn current(run: impl Into<String>, since_ms: u64) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            boot_id: boot_id(),
            start_time: start_time(pid).unwrap_or_default(),
            run: run.into(),
            since_ms,
        }
    }

    /// Whether that very process runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.is_of_another_boot() && self.runs()
    }

    /// Whether that very process is suspended (Ctrl-Z, `kill -STOP`): it lives and does nothing.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.is_alive() && stat_fields(self.pid).is_some_and(|fields| fields[STATE] == "T")
    }

    /// For an owner whose lock is free.
    #[must_use]
    pub fn staleness(&self) -> Stale {
        if self.is_of_another_boot() {
            Stale::Reboot
        } else if self.runs() {
            Stale::Unknown
        } else if pid_exists(self.pid) && (!cfg!(target_os = "linux") || start_time(self.pid).is_some()) {
            // Another process: one that is only waiting to be buried has no start time for us.
            Stale::RecycledPid
        } else {
            Stale::DeadPid
        }
    }

    fn is_of_another_boot(&self) -> bool {
        let now = boot_id();
        !now.is_empty() && !self.boot_id.is_empty() && now != self.boot_id
    }

    fn runs(&self) -> bool {
        match start_time(self.pid) {
            Some(start_time) => self.start_time.is_empty() || start_time == self.start_time,
            None => !cfg!(target_os = "linux") && pid_exists(self.pid),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => f.write_str("an unknown process"),
            pid => write!(f, "process {pid} (run `{}`)", self.run),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn boot_id() -> String {
    String::new()
}

/// When a process started, in clock ticks since boot. A zombie has ended.
fn start_time(pid: u32) -> Option<String> {
    let mut fields = stat_fields(pid)?;
    match fields[STATE].as_str() {
        "Z" | "X" => None,
        _ => Some(fields.swap_remove(START_TIME)),
    }
}

const STATE: usize = 0;
const START_TIME: usize = 19;

/// `/proc/<pid>/stat` from the state on, if all of it up to the start time is there.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name before may hold anything, spaces and brackets too.
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned);
    let fields: Vec<String> = fields.take(START_TIME + 1).collect();
    (fields.len() > START_TIME).then_some(fields)
}

fn pid_exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| {
        // A process that we may not signal exists too.
        !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    })
}
