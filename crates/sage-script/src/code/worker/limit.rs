//! What the kernel holds the process to, whatever its code finds out about the engine.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::CPU_EXIT;
use crate::code::limits::CodeLimits;

/// Between two looks at the CPU time.
const LOOK: Duration = Duration::from_millis(20);
/// The engine notices first where it can, and says where the code was.
const MARGIN_MS: u64 = 60;
/// Beside JavaScript's own memory: messages, and the text of the code.
const ADDRESS_MARGIN: u64 = 192 << 20;

/// No new files, nothing written to any, no core dump, an end to CPU time and memory.
pub fn outside(limits: &CodeLimits) {
    // Read first: afterwards no file can be opened.
    let used = address_space();
    set(Resource::Core, 0);
    set(Resource::Fsize, 0);
    set(Resource::Nofile, 3);
    // Whole seconds, for the case that the watchdog does not run.
    set(Resource::Cpu, limits.cpu_ms.div_ceil(1_000) + 1);
    if let Some(used) = used {
        set(Resource::As, used + limits.memory_bytes + ADDRESS_MARGIN);
    }
}

/// No processes and no threads any more.
pub fn processes() {
    set(Resource::Nproc, 0);
}

/// A limit that is lower already stays.
fn set(resource: Resource, value: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
}

/// In bytes; `None` where there is no `/proc`.
fn address_space() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

/// Ends the process when its CPU time is used up.
pub fn watch(cpu_ms: u64) -> std::io::Result<()> {
    let watching = std::thread::Builder::new().spawn(move || {
        loop {
            std::thread::sleep(LOOK);
            if cpu_time_ms() > cpu_ms + MARGIN_MS {
                std::process::exit(i32::from(CPU_EXIT));
            }
        }
    });
    watching.map(drop)
}

fn cpu_time_ms() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
