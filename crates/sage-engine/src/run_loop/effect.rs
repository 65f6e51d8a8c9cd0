//! Effects: what the world sees. Carried out only after their event is durable, and harmless when repeated.

use std::sync::Arc;

use sage_core::port::{StepCall, StepCx, Stop, StopSignal};
use sage_core::run::{State, StepId};
use tokio::time::Instant;

use super::timers::Timer;
use super::{Input, Live, RunLoop};
use crate::control;
use crate::perform::{Attempt, Checks};
use crate::prepare::{Facts, Wanted};
use crate::project::Project;

pub(super) enum Effect {
    /// Start an attempt whose intent is durable.
    Spawn { id: StepId, call: Box<StepCall>, checks: Box<Checks> },
    /// Wake the step at a time that counts from its intent: the disk's time is not added to it.
    Arm { timer: Timer, at: Instant },
    /// A signal's event is durable: its file may go.
    Acknowledge(String),
}

impl RunLoop {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn { id, call, checks } => self.spawn(id, *call, *checks),
            Effect::Arm { timer, at } => self.timers.arm(at, timer),
            Effect::Acknowledge(id) => {
                control::acknowledge(self.around.vfs.as_ref(), &self.around.run_dir, &id)
            }
        }
    }

    fn spawn(&mut self, id: StepId, call: StepCall, checks: Checks) {
        // Given up between its intent and now.
        let step = self.run.step(id);
        if !matches!(step.state, State::Running(_)) || step.attempts != call.attempt {
            return;
        }
        let (attempt, stop) = (call.attempt, StopSignal::default());
        if self.stopping != Stop::No {
            stop.set(self.stopping);
        }
        let sender = self.sender.clone();
        let progress = self.sender.clone();
        let cx = StepCx {
            project: self.around.project.clone(),
            scratch: Project::scratch(&self.around.run_dir, &call.path, attempt),
            children_lock: self.around.children_lock.clone(),
            stop: stop.clone(),
            nudge: Default::default(),
            // Progress is a courtesy: when the loop is behind, it is dropped rather than waited for.
            progress: Arc::new(move |what| drop(progress.try_send(Input::Progress(id, attempt, what)))),
        };
        let work = Attempt {
            executor: self.around.executor.clone(),
            blobs: self.around.blobs.clone(),
            facts: Facts::of(&self.run, id, &Wanted { direct: true, ..Wanted::default() }),
            cx,
            call,
            checks,
        };
        let vfs = self.around.vfs.clone();
        self.live.insert(id, Live { attempt, stop, since: Instant::now() });
        tokio::spawn(async move {
            let scratch = work.cx.scratch.clone();
            let (end, usage) = match vfs.create_dir_all(&scratch) {
                Ok(()) => guarded(work).await,
                Err(error) => {
                    let message = format!("cannot create `{}`: {error}", scratch.display());
                    let class = sage_core::policy::FailureClass::Transient;
                    (sage_core::event::End::Failed { class, message, partial: None }, Default::default())
                }
            };
            // A loop that is gone has already been told to stop everything.
            let _ = sender.send(Input::Ended(id, attempt, end, usage)).await;
        });
    }
}

/// A panic in an adapter is that step's failure, not the run's.
async fn guarded(work: Attempt) -> (sage_core::event::End, sage_core::port::Usage) {
    match tokio::spawn(work.perform()).await {
        Ok(ended) => ended,
        Err(error) => {
            let message = format!("internal: the step's adapter broke off: {error}");
            let class = sage_core::policy::FailureClass::Lost;
            (sage_core::event::End::Failed { class, message, partial: None }, Default::default())
        }
    }
}
