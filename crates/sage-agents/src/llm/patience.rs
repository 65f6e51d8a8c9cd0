//! The clocks of an attempt that has no process: how long it may take, and how long nothing may move.

use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::StepCall;
use tokio::time::Instant;

use crate::outcome::Miss;

#[derive(Debug)]
pub struct Patience {
    started: Instant,
    moved: Instant,
    timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
}

impl Patience {
    pub fn new(call: &StepCall) -> Patience {
        let now = Instant::now();
        Patience {
            started: now,
            moved: now,
            timeout: call.timeout_ms.map(Duration::from_millis),
            idle_timeout: call.idle_timeout_ms.map(Duration::from_millis),
        }
    }

    /// Something moved.
    pub fn moved(&mut self) {
        self.moved = Instant::now();
    }

    /// This time does not count.
    pub fn excuse(&mut self, time: Duration) {
        self.started += time;
        self.moved = Instant::now();
    }

    /// Ends with the reason as soon as it took too long.
    pub async fn over(&self) -> Miss {
        let timeout =
            self.timeout.and_then(|limit| Some((self.started.checked_add(limit)?, "timed out after", limit)));
        let idle = self
            .idle_timeout
            .and_then(|limit| Some((self.moved.checked_add(limit)?, "idle: no progress for", limit)));
        let Some((at, what, limit)) = [timeout, idle].into_iter().flatten().min() else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(at).await;
        let message = format!("{what} {}", humantime::format_duration(limit));
        Miss::failed(FailureClass::Timeout, message)
    }
}
