//! How long a step may wait for its turn (`timeout.queue`).

use std::time::Duration;

use sage_core::event::{End, StepFinished};
use sage_core::policy::FailureClass;
use sage_core::run::{State, StepId};
use sage_core::wire::wait_text;
use tokio::time::Instant;

use super::timers::Timer;
use super::{LoopError, RunLoop};

impl RunLoop {
    /// Watches steps that have become ready and may not wait for ever.
    pub(super) fn watch_queue(&mut self) {
        if !self.running() {
            return;
        }
        let mut watched = self.run.take_impatient();
        watched.append(&mut self.waited_through);
        let now = self.around.clock.now_ms();
        for id in watched {
            let (step, operation) = (self.run.step(id), self.run.operation(id));
            let Some(limit) = operation.queue_timeout_ms.filter(|_| step.attempts == 0) else { continue };
            let left = step.ready_ms.saturating_add(limit).saturating_sub(now).min(limit);
            let timer = Timer::Queue(id, step.ready_ms);
            self.timers.arm(Instant::now() + Duration::from_millis(left), timer);
        }
    }

    pub(super) fn queue_due(&mut self, id: StepId, since: u64) -> Result<(), LoopError> {
        if !self.running() {
            // The run stands still, which is not the step's fault: it is looked at again when it goes on.
            self.waited_through.push(id);
            return Ok(());
        }
        let step = self.run.step(id);
        // It has begun meanwhile.
        if !matches!(step.state, State::Ready) || step.ready_ms != since || step.attempts > 0 {
            return Ok(());
        }
        let Some(limit) = self.run.operation(id).queue_timeout_ms else { return Ok(()) };
        let why =
            self.run.wait_reason(id).map(|wait| format!(" for {}", wait_text(&wait))).unwrap_or_default();
        let limit = humantime::format_duration(Duration::from_millis(limit));
        let message = format!("waited longer than {limit}{why}");
        let (step, attempt) = (step.path.clone(), step.attempts);
        let end = End::Failed { class: FailureClass::Timeout, message, partial: None };
        self.emit(StepFinished::new(step, attempt, end, 0, Default::default())).map(drop)
    }
}
