//! Standing still until a known time: the owner stays, and goes on by itself.

use std::time::Duration;

use sage_core::event::{PauseReason, RunContinued, RunPaused};
use sage_core::run::Status;
use sage_core::target::HoldReason;
use tokio::time::Instant;

use super::gate::Why;
use super::timers::Timer;
use super::{LoopError, RunLoop};

/// How often a waiting owner looks whether the reason is gone earlier than it was said.
const LOOK: Duration = Duration::from_secs(1);

impl RunLoop {
    /// Nothing runs, and everything that could is held by a target or a budget.
    pub(super) fn pause_if_parked(&mut self) -> Result<(), LoopError> {
        let active = &self.run.active;
        let timed = if self.options.no_wait { 0 } else { active.sleeping + active.backoff };
        let moving = active.slots + timed > 0;
        if self.run.status != Status::Running || !self.idle() || moving || self.run.ready_count() == 0 {
            return Ok(());
        }
        let Some((reason, until)) = self.parked() else { return Ok(()) };
        let needs = self.needs().filter(|_| reason == PauseReason::Budget);
        self.emit(RunPaused { needs, until, ..RunPaused::new(reason) })?;
        if let Some(until) = until.filter(|_| !self.options.no_wait) {
            let ms = until.saturating_sub(self.around.clock.now_ms());
            self.waiting = Some(until);
            self.timers.arm(Instant::now() + Duration::from_millis(ms).min(LOOK), Timer::Continue);
        }
        Ok(())
    }

    /// The first budget that is too small, in words.
    fn needs(&self) -> Option<String> {
        self.run.ready_lanes().find_map(|lane| match self.gate.why(lane) {
            Some(Why::Budget(short)) => Some(short.to_string()),
            _ => None,
        })
    }

    /// Why every ready lane is closed, if only time or a person can open one; with the earliest known time.
    fn parked(&self) -> Option<(PauseReason, Option<u64>)> {
        let mut known: Option<(u64, PauseReason)> = None;
        let mut person = None;
        for lane in self.run.ready_lanes() {
            match self.gate.why(lane)? {
                Why::Others(_) | Why::Inbox(_) => return None,
                Why::Budget(_) => person = Some(PauseReason::Budget),
                Why::Target(_, hold) => {
                    let reason = match hold.reason {
                        HoldReason::Quota | HoldReason::RateLimit => PauseReason::Quota,
                        HoldReason::Breaker | HoldReason::Isolated | HoldReason::Pool => PauseReason::Breaker,
                    };
                    match hold.until {
                        Some(until) if known.is_none_or(|(at, _)| until < at) => {
                            known = Some((until, reason))
                        }
                        Some(_) => {}
                        None if hold.reason == HoldReason::Isolated => {
                            person = person.or(Some(reason));
                        }
                        // Another run is trying it out: it will be over soon.
                        None => return None,
                    }
                }
            }
        }
        known.map(|(until, reason)| (reason, Some(until))).or(person.map(|reason| (reason, None)))
    }

    /// The time has come, or the reason is gone: go on.
    pub(super) fn continue_due(&mut self) -> Result<(), LoopError> {
        let Some(until) = self.waiting else { return Ok(()) };
        let now = self.around.clock.now_ms();
        // Asked only before the time: asking takes from the target what the step itself will need.
        let early = now < until;
        if early && (self.is_in_trouble() || (self.run.ready_count() > 0 && !self.open_again())) {
            let ms = until - now;
            self.timers.arm(Instant::now() + Duration::from_millis(ms).min(LOOK), Timer::Continue);
            return Ok(());
        }
        self.go_on()
    }

    pub(super) fn go_on(&mut self) -> Result<(), LoopError> {
        self.waiting = None;
        self.forget_trouble();
        self.gate.reopen();
        self.emit(RunContinued {})?;
        self.queue_anew();
        Ok(())
    }

    /// Somebody reset the target, or raised a limit: one of those at the gate could go now.
    fn open_again(&mut self) -> bool {
        let held = Default::default();
        let mut heads = Vec::new();
        let mut seen: Vec<sage_core::run::Lane> = Vec::new();
        while let Some(id) = self.run.next_start(&held, |lane| seen.contains(lane)) {
            seen.push(self.run.lane(id));
            heads.push(id);
        }
        let open = heads.into_iter().any(|id| self.ask(id).is_ok());
        self.gate.leaves_tickets();
        open
    }
}
