//! The process table as `/proc` shows it: who descends from whom, and signals that hit the right one.
//!
//! Outside Linux there is no `/proc`: every list is empty, and callers fall back to the process group.

use rustix::process::{Pid, Signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// In clock ticks since boot: with the pid it names one process for ever.
    pub start_time: u64,
    pub zombie: bool,
}

/// When process `pid` started, in clock ticks since boot; `None` if it is gone.
pub fn start_time(pid: u32) -> Option<u64> {
    Process::read(pid).map(|process| process.start_time)
}

impl Process {
    pub fn read(pid: u32) -> Option<Process> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(pid, &String::from_utf8_lossy(&stat))
    }

    /// Sends a signal to this very process, never to a later one with the same pid.
    #[cfg(target_os = "linux")]
    pub fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let pid = raw(self.pid).ok_or(rustix::io::Errno::SRCH)?;
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        if start_time(self.pid) != Some(self.start_time) {
            return Err(rustix::io::Errno::SRCH);
        }
        pidfd_send_signal(handle, signal)
    }

    #[cfg(not(target_os = "linux"))]
    pub fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        rustix::process::kill_process(raw(self.pid).ok_or(rustix::io::Errno::SRCH)?, signal)
    }
}

/// All processes that can be seen, zombies included.
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

/// Everything below `root` in `table`, without `root` itself.
pub fn descendants(table: &[Process], root: u32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in table.iter().filter(|process| process.parent == parent && process.pid != root) {
            if !found.iter().any(|known| known.pid == process.pid) {
                found.push(*process);
                parents.push(process.pid);
            }
        }
    }
    found
}

/// `pid` and all its ancestors.
pub fn lineage(table: &[Process], pid: u32) -> Vec<u32> {
    let mut line = vec![pid];
    while let Some(process) = table.iter().find(|process| Some(&process.pid) == line.last()) {
        if process.parent == 0 || line.contains(&process.parent) {
            break;
        }
        line.push(process.parent);
    }
    line
}

pub fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// `pid (any name) S) state parent group session ...`: the name may hold anything, also parentheses.
pub fn parse_stat(pid: u32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: number(1)? as u32,
        group: number(2)? as u32,
        session: number(3)? as u32,
        start_time: number(19)?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process { pid, parent, group: pid, session: 1, start_time: 0, zombie: false }
    }

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "7 (a) R 1 (b) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9876 0 0";
        let process = parse_stat(7, stat).unwrap();
        assert_eq!((process.parent, process.group, process.session, process.start_time), (3, 4, 5, 9876));
        assert!(parse_stat(7, "7 (cut").is_none());
        assert!(parse_stat(7, "7 (a) S 1 2").is_none());
    }

    #[test]
    fn descendants_are_found_through_the_generations_and_cycles_end() {
        let table =
            [process(2, 1), process(3, 2), process(4, 3), process(9, 1), process(5, 6), process(6, 5)];
        let mut pids: Vec<u32> = descendants(&table, 2).iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
        assert_eq!(descendants(&table, 5).len(), 1);
        assert_eq!(lineage(&table, 4), [4, 3, 2, 1]);
        assert_eq!(lineage(&table, 5), [5, 6]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_recycled_pid_is_not_hit() {
        let me = Process::read(std::process::id()).unwrap();
        let other = Process { start_time: me.start_time + 1, ..me };
        assert_eq!(other.signal(Signal::KILL), Err(rustix::io::Errno::SRCH));
    }
}
