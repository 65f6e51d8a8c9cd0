//! What processes did since the last look, as `/proc` counts it.
//!
//! Membership is decided when a process is first seen: a descendant of a keeper stays in its tree (keepers are
//! subreapers), and nobody joins one later. So a look reads files of members and of newcomers only.

use std::collections::HashMap;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::crowd::Slice;

pub type Pid = u32;

/// The unit of `stat`: `USER_HZ`, which is the same on every machine that Rust knows.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug, Default)]
pub struct Table {
    /// The tree of each process that was seen; none if it is not ours.
    known: HashMap<Pid, Option<u64>>,
    /// Threads of members: seconds with a processor, and without one.
    threads: HashMap<(Pid, Pid), (f64, f64)>,
    /// Seconds that a tree has used, those of ended processes included.
    used: HashMap<u64, f64>,
    /// Time of a processor that the last look took.
    pub cost: Duration,
}

/// Counters of one process.
struct Counters {
    parent: Pid,
    /// Its own and its ended children's, in clock ticks.
    ticks: u64,
    threads: u64,
}

impl Table {
    /// What each tree did since the last look, or since its start. `None` if the kernel does not count it.
    pub fn look(&mut self, keepers: &[(u64, Pid)]) -> Option<HashMap<u64, Slice>> {
        let before = processor_time();
        self.admit(keepers);
        let mut seen: HashMap<u64, Slice> = keepers.iter().map(|(id, _)| (*id, Slice::default())).collect();
        let mut used: HashMap<u64, f64> = HashMap::new();
        let mut threads = HashMap::new();
        let members = self.known.iter().filter_map(|(pid, tree)| Some((*pid, (*tree)?)));
        for (pid, tree) in members {
            let Some(slice) = seen.get_mut(&tree) else { continue };
            let Some(counters) = Counters::read(pid) else { continue };
            *used.entry(tree).or_default() += counters.ticks as f64 / TICKS_PER_SECOND;
            for (thread, counted) in waits(pid, counters.threads) {
                let (ran, waited) = self.threads.get(&(pid, thread)).copied().unwrap_or_default();
                slice.ran += (counted.0 - ran).max(0.0);
                slice.waited += (counted.1 - waited).max(0.0);
                threads.insert((pid, thread), counted);
            }
        }
        let counted = threads.values().any(|(ran, _)| *ran > 0.0);
        let (ran, waited) = seen.values().fold((0.0, 0.0), |sum, it| (sum.0 + it.ran, sum.1 + it.waited));
        let usual = if ran > 0.0 { waited / ran } else { 0.0 };
        for (tree, slice) in &mut seen {
            let grown = used.get(tree).unwrap_or(&0.0) - self.used.get(tree).unwrap_or(&0.0);
            *slice = with_ended(*slice, grown, usual);
        }
        (self.threads, self.used, self.cost) = (threads, used, processor_time().saturating_sub(before));
        counted.then_some(seen)
    }

    /// Newcomers find their tree by their parent, which may be a newcomer, too.
    fn admit(&mut self, keepers: &[(u64, Pid)]) {
        let Ok(entries) = std::fs::read_dir("/proc") else { return };
        let pids: Vec<Pid> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let mut known: HashMap<Pid, Option<u64>> = HashMap::with_capacity(pids.len());
        let mut new: Vec<(Pid, Pid)> = Vec::new();
        for pid in pids {
            match self.known.get(&pid) {
                Some(tree) => drop(known.insert(pid, *tree)),
                None => new.extend(Counters::read(pid).map(|counters| (pid, counters.parent))),
            }
        }
        known.extend(keepers.iter().map(|(id, keeper)| (*keeper, Some(*id))));
        let mut left = usize::MAX;
        while new.len() < left {
            left = new.len();
            new.retain(|(pid, parent)| match known.get(parent).copied().flatten() {
                Some(tree) => {
                    known.insert(*pid, Some(tree));
                    false
                }
                None => !known.contains_key(pid),
            });
        }
        known.extend(new.into_iter().map(|(pid, _)| (pid, None)));
        self.known = known;
    }
}

/// Processes that came and went between two looks ran, too: they waited as those of their tree that were seen, or,
/// where that is little, as `usual`.
fn with_ended(seen: Slice, grown: f64, usual: f64) -> Slice {
    // Clock ticks are coarse: less than two of them say nothing.
    if (grown - seen.ran) * TICKS_PER_SECOND < 2.0 {
        return seen;
    }
    let waited_per_run = if seen.ran * 4.0 > grown { seen.waited / seen.ran } else { usual };
    Slice { ran: grown, waited: grown * waited_per_run }
}

/// Of this thread: on a busy machine a look lasts longer and costs no more.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Counters {
    fn read(pid: Pid) -> Option<Counters> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Counters::parse(&String::from_utf8_lossy(&stat))
    }

    /// `pid (any name) state parent ...`: the name may hold anything, also parentheses.
    fn parse(stat: &str) -> Option<Counters> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<u64> =
            fields.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let field = |index: usize| fields.get(index).copied();
        let ticks = [11, 12, 13, 14].into_iter().filter_map(field).sum();
        Some(Counters { parent: field(1)? as Pid, ticks, threads: field(17)? })
    }
}

/// Seconds with a processor and without one, by thread.
fn waits(pid: Pid, threads: u64) -> Vec<(Pid, (f64, f64))> {
    if threads <= 1 {
        let own = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok();
        return own
            .and_then(|text| parse_schedstat(&text))
            .map(|counted| (pid, counted))
            .into_iter()
            .collect();
    }
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let tasks = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<Pid>().ok());
    tasks
        .filter_map(|thread| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
            Some((thread, parse_schedstat(&text)?))
        })
        .collect()
}

/// `ns with a processor, ns without one, turns`
fn parse_schedstat(text: &str) -> Option<(f64, f64)> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    Some((fields.next()?? as f64 / 1e9, fields.next()?? as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_whatever_the_name() {
        let stat = "7 (a) R 1 (b) S 3 4 5 0 -1 0 0 0 0 0 10 20 30 40 20 0 6 0 9876 0 0";
        let counters = Counters::parse(stat).unwrap();
        assert_eq!((counters.parent, counters.ticks, counters.threads), (3, 100, 6));
        assert!(Counters::parse("7 (cut").is_none());
        assert_eq!(parse_schedstat("1500000000 500000000 3\n"), Some((1.5, 0.5)));
        assert_eq!(parse_schedstat("x"), None);
    }

    // covers: R18
    #[test]
    fn processes_that_came_and_went_waited_like_the_others() {
        let seen = Slice { ran: 0.1, waited: 0.2 };
        assert_eq!(with_ended(seen, 0.11, 1.0), seen, "too little to say");
        assert_eq!(with_ended(seen, 0.25, 1.0), Slice { ran: 0.25, waited: 0.5 });
        assert_eq!(with_ended(seen, 1.0, 0.5), Slice { ran: 1.0, waited: 0.5 });
        assert_eq!(with_ended(Slice::default(), 1.0, 3.0), Slice { ran: 1.0, waited: 3.0 });
    }
}
