//! Progress notifications while a call waits: steps done of all, and what is at work.

use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

use super::call::Call;
use super::wait::Now;

/// News are told at most this often, and that nothing is new at least this often: some clients give up on
/// servers that are silent for long.
const NEWS: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_secs(5);
/// The figure must grow with every message, also where no step has ended since the last one.
const NUDGE: f64 = 0.001;

pub struct Teller {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    last: Option<(Now, Instant)>,
    told: f64,
}

impl Teller {
    /// Only who asked for it is told.
    pub fn of(call: &Call) -> Teller {
        Teller { to: call.token().map(|token| (call.peer().clone(), token)), last: None, told: 0.0 }
    }

    pub async fn tell(&mut self, now: &Now) {
        let Some((peer, token)) = &self.to else { return };
        let due = match &self.last {
            None => true,
            Some((last, at)) => at.elapsed() >= if last == now { SILENCE } else { NEWS },
        };
        if !due {
            return;
        }
        let done = f64::from(now.completed);
        let next = if self.last.is_some() && done <= self.told { self.told + NUDGE } else { done };
        self.told = next;
        self.last = Some((now.clone(), Instant::now()));
        let told = ProgressNotificationParam::new(token.clone(), next)
            .with_total(f64::from(now.total).max(next))
            .with_message(now.message.clone());
        // Who has gone away is not told, and that is all.
        let _ = peer.notify_progress(told).await;
    }
}
