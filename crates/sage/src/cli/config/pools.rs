//! Pools that every project has: what a step can weigh on, sized after the machine unless `sage.toml` says it.

use std::collections::BTreeMap;

/// Steps that wait for disks and networks; more at once gain nothing on most machines.
const IO: u32 = 8;
/// Where nobody says how much memory there is.
const MEMORY_GIB: u32 = 8;

/// `cpu`: cores. `memory`: GiB. `io`: steps.
pub fn defaults() -> BTreeMap<String, u32> {
    let sizes = [("cpu", cores()), ("memory", memory_gib()), ("io", IO)];
    sizes.into_iter().map(|(name, size)| (name.to_string(), size)).collect()
}

pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(4, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

fn memory_gib() -> u32 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    total_gib(&text).unwrap_or(MEMORY_GIB)
}

/// Rounded: a machine of 16 GiB reports a little less.
fn total_gib(meminfo: &str) -> Option<u32> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    u32::try_from((kb + (1 << 19)) >> 20).ok().map(|gib| gib.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_whole_gib() {
        assert_eq!(total_gib("MemTotal:       16303412 kB\nMemFree: 1 kB\n"), Some(16));
        assert_eq!(total_gib("MemTotal: 1000 kB\n"), Some(1));
        assert_eq!(total_gib("nothing"), None);
        assert!(defaults().values().all(|size| *size > 0));
    }
}
