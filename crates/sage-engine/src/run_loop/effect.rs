//! Effects: what the world sees. Carried out only after their event is durable, and harmless when repeated.

use std::sync::Arc;

use sage_core::policy::FailureClass;
use sage_core::port::{Message, Messages, Nudge, Permission, StepCall, StepCx, Stop, StopSignal, Usage};
use sage_core::run::{State, StepId};
use serde_json::Value;
use tokio::time::Instant;

use super::timers::Timer;
use super::{Input, Live, RunLoop};
use crate::control;
use crate::inbox::Wake;
use crate::limits::Permit;
use crate::perform::{Attempt, Checks, Ended, Unkept};
use crate::prepare::{Facts, Wanted};
use crate::project::Project;
use crate::trouble::{Obstacle, Trouble};

/// Of a result that cannot be stored, where nobody wants to wait: some seconds.
const UNKEPT_TRIES: usize = 3;

pub(super) enum Effect {
    /// Start an attempt whose intent is durable.
    Spawn { id: StepId, call: Box<StepCall>, checks: Box<Checks>, permit: Option<Permit> },
    /// Wake the step at a time that counts from its intent: the disk's time is not added to it.
    Arm { timer: Timer, at: Instant },
    /// An agent's question is answered.
    Reply(super::asks::Reply, Permission),
    /// A person's message reaches the attempt.
    Message(Messages, Message),
    /// A signal's event is durable: its file may go.
    Acknowledge(String),
    /// Later runs may take it.
    Keep(Box<super::lookup::Keep>),
    /// Others are told of it.
    Tell { seq: u64, wake: Box<Wake> },
    /// Monitors are told.
    Log { seq: u64, entries: Vec<Value> },
}

impl Effect {
    /// Telling others and keeping for others change nothing of the run: nobody need wait for it.
    pub(super) fn is_of_the_run(&self) -> bool {
        !matches!(self, Effect::Tell { .. } | Effect::Log { .. } | Effect::Keep(_))
    }
}

impl RunLoop {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn { id, call, checks, permit } => self.spawn(id, call, checks, permit),
            Effect::Arm { timer, at } => self.timers.arm(at, timer),
            // An agent that is gone needs no answer.
            Effect::Reply(reply, permission) => drop(reply.send(permission)),
            Effect::Message(messages, message) => messages.send(message),
            Effect::Acknowledge(id) => {
                control::acknowledge(self.around.vfs.as_ref(), &self.around.run_dir, &id)
            }
            Effect::Keep(keep) => self.keep(*keep),
            Effect::Tell { seq, wake } => {
                if let Some(poster) = &self.poster {
                    poster.tell(seq, *wake);
                }
            }
            Effect::Log { seq, entries } => {
                if let Some(monitor) = &self.monitor {
                    monitor.tell(seq, entries);
                }
            }
        }
    }

    /// Waits a moment for what is still to be told, off the loop's own thread where it can.
    pub(super) async fn finish_posts(&mut self, durable: bool) {
        let (poster, monitor) = (self.poster.take(), self.monitor.take());
        let head = self.durable.seq;
        // Without a journal that can be trusted, the next owner looks for itself.
        if durable && (poster.is_some() || monitor.is_some()) {
            let finish = move || {
                poster.iter().for_each(|poster| poster.finish(head));
                monitor.iter().for_each(|monitor| monitor.finish(head));
            };
            let _ = tokio::task::spawn_blocking(finish).await;
        }
    }

    fn spawn(&mut self, id: StepId, call: Box<StepCall>, checks: Box<Checks>, permit: Option<Permit>) {
        let attempt = call.attempt;
        let step = self.run.step(id);
        let begun = step.beside.iter().any(|beside| beside.attempt == attempt);
        if !begun {
            return;
        }
        let now = Instant::now();
        let hedged = self.run.operation(id).hedge.is_some();
        let mut live = Live {
            stop: StopSignal::default(),
            nudge: Nudge::default(),
            crowd: Default::default(),
            since: now,
            last_progress: now,
            nudges: 0,
            usage: Usage::default(),
            journals_usage: false,
            signal: None,
            reports: Default::default(),
            messages: Default::default(),
            replies: Default::default(),
            advice: Default::default(),
            asking_since: None,
            thought: Default::default(),
            permit,
            ends: None,
            given_up: false,
            done: false,
            again: hedged.then(|| (call.clone(), checks.clone())),
        };
        // Given up between its intent and now: it ends before it begins, by the same way as all others.
        if !matches!(step.state, State::Running(_)) {
            live.given_up = true;
            live.stop.set(Stop::Now);
        }
        if self.stopping != Stop::No {
            live.stop.set(self.stopping);
        }
        // Its target refused somebody while this intent was on its way to the disk: it waits, unasked.
        let shut = self.gate.is_shut(&self.run.targets_of(id));
        if shut {
            live.permit = None;
        }
        let work = self.attempt(id, call, *checks, &live);
        let stopped = live.stop.get() == Stop::Now;
        self.live.insert((id, attempt), live);
        self.arm_watches(id, attempt);
        let (sender, vfs) = (self.sender.clone(), self.around.vfs.clone());
        tokio::spawn(async move {
            let scratch = work.cx.scratch.clone();
            let ended = match vfs.create_dir_all(&scratch) {
                _ if stopped => Ended::stopped(),
                _ if shut => {
                    Ended::failed(FailureClass::RateLimit, "its target refuses calls; it was not asked")
                }
                Ok(()) => guarded(work).await,
                Err(error) => {
                    let message = format!("cannot create `{}`: {error}", scratch.display());
                    match Trouble::of_state(&error, &message) {
                        Some(trouble) => Ended::hindered(Obstacle::Trouble(trouble), Usage::default()),
                        None => Ended::failed(FailureClass::Transient, message),
                    }
                }
            };
            // A loop that is gone has already been told to stop everything.
            let _ = sender.send(Input::Ended(id, attempt, ended)).await;
        });
    }

    fn attempt(&self, id: StepId, call: Box<StepCall>, checks: Checks, live: &Live) -> Attempt {
        let (attempt, progress, reports) = (call.attempt, self.sender.clone(), live.reports.clone());
        let cx = StepCx {
            project: self.around.project.clone(),
            scratch: Project::scratch(&self.around.run_dir, &call.path, attempt),
            children_lock: self.around.children_lock.clone(),
            proofs: live.permit.as_ref().map(Permit::proofs).unwrap_or_default(),
            stop: live.stop.clone(),
            nudge: live.nudge.clone(),
            questions: super::asks::desk(&self.sender, &self.around, id, attempt),
            messages: live.messages.clone(),
            watch: checks.watch(),
            crowd: live.crowd.clone(),
            prices: self.around.prices.clone(),
            capped: self.run.ledger.has_caps(),
            // Progress is a courtesy: when the loop is behind, it is dropped rather than waited for.
            progress: Arc::new(move |what| {
                drop(progress.try_send(Input::Progress(id, attempt, reports.keep(what))));
            }),
        };
        let (no_wait, sender) = (self.options.no_wait, self.sender.clone());
        // One that the loop is too busy for is told again with the next try.
        let tell =
            move |trouble: &Trouble| drop(sender.try_send(Input::Unkept(id, attempt, trouble.clone())));
        Attempt {
            unkept: Unkept { tell: Box::new(tell), tries: no_wait.then_some(UNKEPT_TRIES) },
            executor: self.around.executor.clone(),
            blobs: self.around.blobs.clone(),
            evaluator: self.around.evaluator.clone(),
            outputs: self.around.outputs.clone(),
            facts: Facts::of(&self.run, id, &Wanted { direct: true, ..Wanted::default() }),
            cx,
            call: *call,
            checks,
        }
    }
}

/// A panic in an adapter is that step's failure, not the run's.
async fn guarded(work: Attempt) -> Ended {
    match tokio::spawn(work.perform()).await {
        Ok(ended) => ended,
        Err(error) => {
            let message = format!("internal: the step's adapter broke off: {error}");
            Ended::failed(FailureClass::Lost, message)
        }
    }
}
