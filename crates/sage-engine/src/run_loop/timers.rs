//! Timers of a loop, on the monotonic clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sage_core::run::{PhaseId, StepId};
use tokio::time::Instant;

use crate::control;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A sleep ends; the attempt guards against a timer of an earlier life.
    Wake(StepId, u32),
    /// A retry may start.
    Retry(StepId, u32),
    /// An approval takes its default.
    Deadline(StepId, u32),
    /// The run, or a phase, may have used up its active time.
    RunLimit,
    PhaseLimit(PhaseId),
    /// A script or a workflow may have used up its active time.
    StepLimit(StepId),
    /// One that failed may try again: looked up when it is due.
    Again,
    /// A question of an agent may have waited for too long.
    Asks,
    /// A lane that was refused may ask again.
    Gate,
    /// The time that a standing run waits for.
    Continue,
    /// The machine may have what it lacked.
    Trouble,
    /// An attempt is slow / shows no progress.
    Hedge(StepId, u32),
    Stall(StepId, u32),
    /// An attempt that used too much has had its last word.
    OverBudget(StepId, u32),
    /// What an attempt has used so far is journaled.
    Used(StepId, u32),
    /// A step has been ready for as long as it may wait; guarded by when it became ready and how often the run
    /// has stood still since.
    Queue(StepId, u64, u32),
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Timer)>>,
    poll: Option<Instant>,
}

impl Timers {
    pub fn arm(&mut self, at: Instant, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub fn due(&mut self) -> Option<Timer> {
        let now = Instant::now();
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }

    /// When to look for signals next.
    pub fn next_poll(&mut self) -> Instant {
        *self.poll.get_or_insert_with(|| Instant::now() + control::POLL)
    }

    pub fn polled(&mut self) {
        self.poll = None;
    }
}

/// The time itself; never, where there is none.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
