//! How long runs, phases and steps took, as every reader tells it.
//!
//! ```text
//! owned     |--------------------|          |------------|     `elapsed_at`: a process owned the run
//! waited            |xxxxx|                        |xx|        only people or closed targets were waited for
//! active    |-------|     |------|          |------|  |--|     `active_at`: the clock of phases and steps
//! ```
//! On the active clock:
//! - a phase counts from its opening to its judgement;
//! - a fan-out, a sub-workflow or a script counts from its expansion to its end;
//! - any other step counts while it has an attempt. Attempts side by side count once; pauses between attempts, slots
//!   and answers that it waits for do not count.
//!
//! A step therefore never takes longer than its phase, nor a phase longer than the run. What has not ended counts up to
//! the time that the reader passes: `clock_ms` of now, or the last record.

use crate::run::{PhaseId, Run, State, StepId};

/// Time on the run's active clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveTime {
    counted_ms: u64,
    since_ms: Option<u64>,
}

impl ActiveTime {
    pub(super) fn start(&mut self, active_ms: u64) {
        self.since_ms.get_or_insert(active_ms);
    }

    pub(super) fn stop(&mut self, active_ms: u64) {
        *self = ActiveTime { counted_ms: self.ms(active_ms), since_ms: None };
    }

    /// The run's clock begins at 0 again.
    pub(super) fn begin_anew(&mut self) {
        *self = ActiveTime { counted_ms: 0, since_ms: self.since_ms.map(|_| 0) };
    }

    fn ms(&self, active_ms: u64) -> u64 {
        self.counted_ms + self.since_ms.map_or(0, |since| active_ms.saturating_sub(since))
    }
}

impl Run {
    /// Time in which a process owned the run.
    pub fn elapsed_at(&self, at_ms: u64) -> u64 {
        self.tally.earlier_ms + at_ms.saturating_sub(self.tally.turn_ms)
    }

    /// The same without waiting for people and closed targets.
    pub fn active_at(&self, at_ms: u64) -> u64 {
        let waits_ms = if self.only_waits() { at_ms.saturating_sub(self.updated_ms) } else { 0 };
        self.elapsed_at(at_ms).saturating_sub(self.tally.measured.waited_ms + waits_ms)
    }

    /// `elapsed_at` the last record.
    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed_at(self.updated_ms)
    }

    /// `active_at` the last record.
    pub fn active_ms(&self) -> u64 {
        self.elapsed_ms().saturating_sub(self.tally.measured.waited_ms)
    }

    pub fn phase_ms(&self, id: PhaseId, at_ms: u64) -> u64 {
        self.phase(id).time.ms(self.active_at(at_ms))
    }

    pub fn step_ms(&self, id: StepId, at_ms: u64) -> u64 {
        self.step(id).time.ms(self.active_at(at_ms))
    }

    /// Starts or stops the step's time, as its state demands.
    pub(super) fn time_step(&mut self, id: StepId) {
        let counts = match &self.step(id).state {
            State::Running(running) => running.ask.is_none() && self.asks_of(id).next().is_none(),
            State::Open { .. } => true,
            _ => false,
        };
        let active_ms = self.active_ms();
        let time = &mut self.step_mut(id).time;
        if counts { time.start(active_ms) } else { time.stop(active_ms) }
    }
}
