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
    /// Watches steps that have become ready and may not wait for ever. Few templates have any.
    pub(super) fn watch_queue(&mut self) {
        let limited = |p: &sage_core::plan::Plan| {
            p.template.phases.iter().flat_map(|p| &p.operations).any(|o| o.queue_timeout_ms.is_some())
        };
        let any = *self.limits_queue.get_or_insert_with(|| {
            limited(self.run.plan()) || self.run.named_plans().iter().any(|(_, plan)| limited(plan))
        });
        if !any || !self.running() {
            return;
        }
        let now = self.around.clock.now_ms();
        let ready: Vec<(StepId, u64)> =
            self.run.ready_steps().map(|id| (id, self.run.step(id).ready_ms)).collect();
        for (id, since) in ready {
            let Some(limit) = self.run.operation(id).queue_timeout_ms else { continue };
            if self.queued.insert(id, since) != Some(since) {
                let left = since.saturating_add(limit).saturating_sub(now).min(limit);
                self.timers.arm(Instant::now() + Duration::from_millis(left), Timer::Queue(id, since));
            }
        }
    }

    pub(super) fn queue_due(&mut self, id: StepId, since: u64) -> Result<(), LoopError> {
        if !self.running() {
            // The run stands still, which is not the step's fault: it is looked at again when it goes on.
            self.queued.remove(&id);
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
