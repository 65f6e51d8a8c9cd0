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
        // Time in which nobody could start is not the step's: after each stop everybody's time begins anew.
        let watched = self.run.take_impatient();
        for id in watched {
            let (step, operation) = (self.run.step(id), self.run.operation(id));
            let Some(limit) = operation.queue_timeout_ms.filter(|_| step.attempts == 0) else { continue };
            let timer = Timer::Queue(id, step.ready_ms, self.stops);
            self.timers.arm(Instant::now() + Duration::from_millis(limit), timer);
        }
    }

    /// The run goes on after it stood still.
    pub(super) fn queue_anew(&mut self) {
        self.stops += 1;
        self.run.all_impatient();
    }

    pub(super) fn queue_due(&mut self, id: StepId, since: u64, stops: u32) -> Result<(), LoopError> {
        let step = self.run.step(id);
        let waits = matches!(step.state, State::Ready) && step.ready_ms == since && step.attempts == 0;
        if !waits || stops != self.stops || !self.running() {
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
