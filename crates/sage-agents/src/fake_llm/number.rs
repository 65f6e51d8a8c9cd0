//! Ids of messages and calls: no two alike, also over servers, for whoever counts usage by message id.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub struct Numbers {
    /// When the server was started.
    origin: u64,
    next: AtomicU64,
}

impl Numbers {
    pub fn new() -> Numbers {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Numbers { origin: since.as_nanos() as u64, next: AtomicU64::new(1) }
    }

    /// Such as `msg_18b2f0c4a1d3e5f7000001`.
    pub fn id(&self, kind: &str) -> String {
        format!("{kind}_{:016x}{:06x}", self.origin, self.next.fetch_add(1, Ordering::Relaxed))
    }
}
