//! How much a script may use, and the clock that watches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What one isolate may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memory_bytes: usize,
    pub stack_bytes: usize,
    /// Thread CPU time of one slice, not wall time: a busy machine is not the script's fault.
    pub cpu_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 256 << 20, stack_bytes: 1 << 20, cpu_ms: 10_000 }
    }
}

/// Ends the code of an isolate from outside.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Watches one slice. The interrupt handler asks it; it remembers why it said no, for the engine does not.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Thread CPU time in nanoseconds at which the slice ends.
    until_ns: AtomicU64,
    expired: AtomicBool,
    stop: Stop,
}

impl Watch {
    pub fn new(stop: Stop) -> Watch {
        Watch { stop, ..Watch::default() }
    }

    pub fn begin(&self, slice: Duration) {
        let slice = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        self.until_ns.store(thread_cpu_ns().saturating_add(slice), Ordering::Release);
        self.expired.store(false, Ordering::Release);
    }

    /// Whether the code must end now.
    pub fn must_end(&self) -> bool {
        if thread_cpu_ns() >= self.until_ns.load(Ordering::Acquire) {
            self.expired.store(true, Ordering::Release);
        }
        self.is_expired() || self.stop.is_stopped()
    }

    pub fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
