//! Active time: how long a run, or a phase, had something running. Waiting for people, slots or times is free.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sage_core::event::{Crowded, End, PauseReason, StepFinished};
use sage_core::policy::FailureClass;
use sage_core::run::{PhaseId, Running, State, StepId};
use tokio::time::Instant;

use super::timers::Timer;
use super::{LoopError, RunLoop};

#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    counted: Duration,
    since: Option<Instant>,
}

impl Stopwatch {
    /// Starts or stops. True if it started: then its limit must be watched.
    pub(super) fn set(&mut self, active: bool) -> bool {
        match (self.since, active) {
            (None, true) => self.since = Some(Instant::now()),
            (Some(since), false) => {
                self.counted += since.elapsed();
                self.since = None;
            }
            _ => return false,
        }
        active
    }

    pub(super) fn active(&self) -> Duration {
        self.counted + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(super) fn runs(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn left(&self, limit_ms: u64) -> Duration {
        Duration::from_millis(limit_ms).saturating_sub(self.active())
    }
}

#[derive(Debug, Default)]
pub(super) struct Stopwatches {
    run: Stopwatch,
    phases: HashMap<PhaseId, Stopwatch>,
    /// Of open scripts and workflows that have a limit.
    pub(super) steps: BTreeMap<StepId, Stopwatch>,
}

impl RunLoop {
    /// Called after every burst of inputs: keeps the watches in step with what runs.
    pub(super) fn watch(&mut self) {
        let active = self.run.active.slots + self.run.active.sleeping > self.run.asking_steps();
        let limit = self.run.settings.timeout_ms;
        if self.watches.run.set(active)
            && let Some(limit) = limit
        {
            self.timers.arm(Instant::now() + self.watches.run.left(limit), Timer::RunLimit);
        }
        for phase in self.timed_phases() {
            self.watch_phase(phase);
        }
        self.watch_steps();
    }

    /// Phases with a limit that are open. Few templates have any.
    fn timed_phases(&self) -> Vec<PhaseId> {
        if !self.run.plan().template.phases.iter().any(|p| p.timeout_ms.is_some())
            && self.run.scopes.len() == 1
        {
            return Vec::new();
        }
        let open = |id: &PhaseId| {
            let phase = self.run.phase(*id);
            phase.open && phase.judged.is_none() && self.phase_limit_ms(*id).is_some()
        };
        (0..self.run.phases.len() as u32).map(PhaseId).filter(open).collect()
    }

    fn phase_limit_ms(&self, id: PhaseId) -> Option<u64> {
        let phase = self.run.phase(id);
        self.run.scope(phase.scope).plan.phase(phase.plan_phase).timeout_ms
    }

    fn watch_phase(&mut self, id: PhaseId) {
        let members = self.run.phase(id).members.clone();
        let active = members.iter().any(|&m| self.run.is_active(m));
        let limit = self.phase_limit_ms(id);
        let watch = self.watches.phases.entry(id).or_default();
        if watch.set(active)
            && let Some(limit) = limit
        {
            self.timers.arm(Instant::now() + watch.left(limit), Timer::PhaseLimit(id));
        }
    }

    pub(super) fn run_limit(&mut self) {
        let Some(limit) = self.run.settings.timeout_ms else { return };
        let left = self.watches.run.left(limit);
        if left.is_zero() {
            if self.pausing.is_none() {
                self.stop_all(PauseReason::Timeout);
            }
        } else if self.watches.run.since.is_some() {
            self.timers.arm(Instant::now() + left, Timer::RunLimit);
        }
    }

    pub(super) fn phase_limit(&mut self, id: PhaseId) -> Result<(), LoopError> {
        let (Some(limit), Some(watch)) = (self.phase_limit_ms(id), self.watches.phases.get(&id)) else {
            return Ok(());
        };
        let left = watch.left(limit);
        // A run that stands still is looked at again when it goes on.
        if !self.running() {
            return Ok(());
        }
        if !left.is_zero() {
            if watch.since.is_some() {
                self.timers.arm(Instant::now() + left, Timer::PhaseLimit(id));
            }
            return Ok(());
        }
        let message = format!("phase `{}` took longer than {limit} ms", self.run.phase_path(id));
        for step in self.working_in(id) {
            self.time_out(step, &message)?;
        }
        Ok(())
    }

    /// Leaf steps of the phase that run or wait to run, also inside fan-outs and sub-workflows.
    fn working_in(&self, id: PhaseId) -> Vec<StepId> {
        let mut queue = self.run.phase(id).members.clone();
        let mut found = Vec::new();
        while let Some(step) = queue.pop() {
            match &self.run.step(step).state {
                State::Running(_) | State::Ready | State::Backoff { .. } => found.push(step),
                State::Open { .. } => queue.extend(self.run.children(step)),
                _ => {}
            }
        }
        found.sort_unstable();
        found
    }

    fn time_out(&mut self, id: StepId, message: &str) -> Result<(), LoopError> {
        // Settled meanwhile by what happened to a sibling.
        if !matches!(self.run.step(id).state, State::Running(_) | State::Ready | State::Backoff { .. }) {
            return Ok(());
        }
        let newest = self.run.step(id).attempts;
        let (mut ms, mut usage, mut crowded) = (0, Default::default(), None);
        for ((step, attempt), live) in &mut self.live {
            if *step == id {
                if *attempt == newest {
                    (ms, usage) = (live.since.elapsed().as_millis() as u64, live.usage.clone());
                    // It has not ended yet: nobody has said what it lost.
                    crowded = Some(Crowded::Unknown);
                }
                live.given_up = true;
                live.stop.set(sage_core::port::Stop::Now);
            }
        }
        let step = self.run.step(id).path.clone();
        let spent = self.spent(id, newest, &usage);
        let end = End::Failed { class: FailureClass::Timeout, message: message.to_string(), partial: None };
        let finished = StepFinished::new(step, newest, end, ms, usage);
        self.emit(StepFinished { spent, crowded, ..finished }).map(drop)
    }

    /// Timers of steps that were under way when the run was last saved.
    pub(super) fn rearm(&mut self) {
        let now = self.around.clock.now_ms();
        for id in self.run.step_ids() {
            self.watch_step(id);
            self.retry_at_once(id);
            let step = self.run.step(id);
            // A clock that was set back must not make a pause longer than it was meant to be.
            let (until, meant, timer) = match &step.state {
                State::Running(Running { until: Some(until), since_ms, ask, .. }) => {
                    let timer = if ask.is_some() {
                        Timer::Deadline(id, step.attempts)
                    } else {
                        Timer::Wake(id, step.attempts)
                    };
                    (*until, until.saturating_sub(*since_ms), timer)
                }
                State::Backoff { at } => (*at, step.delay_ms.unwrap_or(0), Timer::Retry(id, step.attempts)),
                _ => continue,
            };
            let wait = until.saturating_sub(now).min(meant);
            self.timers.arm(Instant::now() + Duration::from_millis(wait), timer);
        }
    }
}
