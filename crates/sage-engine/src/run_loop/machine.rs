//! The machine's own limits: with little memory left, fewer steps run at once, and it is told (R23).

use tokio::time::Instant;

/// How often the machine is looked at.
const LOOK: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Machine {
    /// Below this much free memory one step runs at a time; below twice of it, half as many as usual.
    min_free_bytes: u64,
    looked: Option<Instant>,
    free_bytes: Option<u64>,
}

impl Machine {
    pub fn new(min_free_bytes: u64) -> Machine {
        Machine { min_free_bytes, looked: None, free_bytes: None }
    }

    /// How many may run at once instead of `usual`, and why, if it is fewer.
    pub fn limit(&mut self, usual: u32) -> Option<(u32, String)> {
        if self.min_free_bytes == 0 {
            return None;
        }
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.free_bytes = free_bytes();
        }
        let free = self.free_bytes?;
        let limit = reduced(usual, free, self.min_free_bytes)?;
        let free_mb = free / (1 << 20);
        Some((limit, format!("{limit} at once, because the machine has only {free_mb} MB of memory left")))
    }
}

fn reduced(usual: u32, free: u64, min: u64) -> Option<u32> {
    let limit = if free < min {
        1
    } else if free < min.saturating_mul(2) {
        (usual / 2).max(1)
    } else {
        return None;
    };
    (limit < usual).then_some(limit)
}

/// Memory that could be used without swapping; Linux only, elsewhere nobody knows.
fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R23
    #[test]
    fn little_memory_means_fewer_at_once() {
        let mb = |n: u64| n << 20;
        assert_eq!(reduced(8, mb(4_000), mb(512)), None);
        assert_eq!(reduced(8, mb(900), mb(512)), Some(4));
        assert_eq!(reduced(8, mb(100), mb(512)), Some(1));
        assert_eq!(reduced(1, mb(100), mb(512)), None);
    }
}
