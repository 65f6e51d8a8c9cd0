//! What is wanted next, apart from starts (`next_start`), in a total order: stops, repeats, the end.

use crate::event::PauseReason;
use crate::run::step::State;
use crate::run::{Judgement, PhaseId, Run, Status, StepId};
use crate::target::HoldReason;
use crate::template::Kind;
use crate::verdict::Verdict;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Stop a running attempt: it lost a race or its siblings gave up.
    Stop(StepId),
    /// Evaluate the phase's `while`.
    Repeat(PhaseId),
    /// A script or a workflow has failed and may try again.
    Retry(StepId),
    /// Everything has settled.
    Finish(Verdict),
    /// Nothing can go on until somebody acts.
    Pause(PauseReason),
}

/// What agents wait for while too many wakes are unhandled; parked like a pool (`TargetParked`).
pub const INBOX: &str = "inbox";

/// Why a step that could be running is not (DESIGN §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    Dependency,
    Slot(String),
    /// A target's quota, until this time if it is known.
    Quota(String, Option<u64>),
    Breaker(String, Option<u64>),
    Budget,
    /// A retry's pause, until this time.
    Retry(u64),
    Approval,
    /// A lost attempt that a person must judge.
    Unknown,
    /// It made way for urgent work.
    Preempted,
    /// The run itself stands still.
    Paused,
}

/// What becomes of a run in the background that nobody owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unowned {
    /// Nothing: it is over.
    Closed,
    /// It needs an owner: the last one died, or what it waited for has come.
    GoesOn,
    /// It stands still until a person acts.
    Waits,
}

impl Run {
    /// `leaves`: its owner does not stay for a known time.
    pub fn unowned(&self, leaves: bool) -> Unowned {
        use PauseReason::{Approval, Budget, Unknown};
        match self.status {
            Status::Finished(_) | Status::Cancelled { .. } => Unowned::Closed,
            Status::Running => Unowned::GoesOn,
            Status::Paused { until: Some(_), .. } if !leaves => Unowned::GoesOn,
            Status::Paused { reason: Approval | Unknown | Budget, .. } if self.acted => Unowned::GoesOn,
            Status::Paused { .. } => Unowned::Waits,
        }
    }

    pub fn decide(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = self.to_stop.iter().map(|&id| Action::Stop(id)).collect();
        actions.extend(self.to_repeat.iter().map(|&id| Action::Repeat(id)));
        actions.extend(self.to_retry.iter().map(|&id| Action::Retry(id)));
        if self.status == Status::Running && actions.is_empty() {
            actions.extend(self.end());
        }
        actions
    }

    fn end(&self) -> Option<Action> {
        let active = &self.active;
        if self.scopes[0].open_phases == 0 {
            return Some(if active.joins_missed > 0 {
                Action::Pause(PauseReason::Join)
            } else {
                Action::Finish(self.verdict())
            });
        }
        if active.slots + active.sleeping + active.backoff + self.ready_count() > 0 {
            return None;
        }
        if active.asking > 0 && self.deadlines().next().is_some() {
            return None;
        }
        if active.asking > 0 {
            return Some(Action::Pause(PauseReason::Approval));
        }
        (active.unknown > 0).then_some(Action::Pause(PauseReason::Unknown))
    }

    /// When questions take their defaults by themselves.
    fn deadlines(&self) -> impl Iterator<Item = u64> {
        self.live_steps().filter_map(|step| match &step.state {
            State::Running(running) if running.ask.is_some() => running.until,
            _ => None,
        })
    }

    /// How the run stands by its phases; meaningful once all of them are judged.
    pub fn verdict(&self) -> Verdict {
        let judged = |j| self.scopes[0].phases.iter().any(|&p| self.phase(p).judged == Some(j));
        if judged(Judgement::Missed) || judged(Judgement::Blocked) {
            Verdict::Failed
        } else if judged(Judgement::Degraded) || !self.shortfalls().is_empty() {
            Verdict::Degraded
        } else {
            Verdict::Succeeded
        }
    }

    pub fn wait_reason(&self, id: StepId) -> Option<Wait> {
        match self.shown_state(id) {
            State::Pending => Some(Wait::Dependency),
            State::Backoff { at } => Some(Wait::Retry(*at)),
            State::Running(running) if running.ask.is_some() => Some(Wait::Approval),
            State::Running(_) if self.asks_of(id).next().is_some() => Some(Wait::Approval),
            State::Unknown => Some(Wait::Unknown),
            State::Ready => self.ready_reason(id),
            State::Open { .. } if !self.is_at_work(id) => self.inner_reason(id),
            _ => None,
        }
    }

    /// What the first step inside of it waits for; other steps only if there is nothing else.
    fn inner_reason(&self, id: StepId) -> Option<Wait> {
        let inside = self.children(id).into_iter().filter_map(|child| self.wait_reason(child));
        let mut reasons: Vec<Wait> = inside.collect();
        let first = reasons.iter().position(|wait| *wait != Wait::Dependency).unwrap_or(0);
        (first < reasons.len()).then(|| reasons.swap_remove(first))
    }

    fn ready_reason(&self, id: StepId) -> Option<Wait> {
        let pools = self.demand(id).pools.iter().map(|(pool, _)| format!("pool:{pool}"));
        let inbox = (self.kind(id) == Kind::Agent).then(|| INBOX.to_string());
        let shared = ["pool:global".to_string()].into_iter().chain(inbox);
        let own = self.targets_of(id).into_iter().chain(pools).chain(shared);
        let parked = own.into_iter().find_map(|target| self.parked.get_key_value(&target));
        if let Some((target, parked)) = parked {
            return Some(match parked.reason {
                HoldReason::Quota | HoldReason::RateLimit => Wait::Quota(target.clone(), parked.until),
                HoldReason::Breaker | HoldReason::Isolated => Wait::Breaker(target.clone(), parked.until),
                HoldReason::Pool => Wait::Slot(target.trim_start_matches("pool:").to_string()),
            });
        }
        match self.status {
            Status::Paused { reason: PauseReason::Budget, .. } if self.demand(id).spends => {
                Some(Wait::Budget)
            }
            Status::Running if self.step(id).preempted => Some(Wait::Preempted),
            Status::Running => self.limiting_pool(id).map(Wait::Slot),
            _ => Some(Wait::Paused),
        }
    }

    /// The pause before a step's next try is over: it queues again. Time passing is no event of its own; the
    /// `step.started` that follows is, and fits a step in either state.
    pub fn backoff_over(&mut self, id: StepId) {
        if matches!(self.step(id).state, State::Backoff { .. }) {
            self.transition(id, State::Ready);
        }
    }

    /// The earliest known time at which a sleeping or backing-off step goes on, if nothing else is under way.
    pub fn only_waits_until(&self) -> Option<u64> {
        if self.active.slots > 0 || self.ready_count() > 0 {
            return None;
        }
        self.steps
            .iter()
            .filter_map(|step| match &step.state {
                State::Backoff { at } => Some(*at),
                State::Running(running) => running.until,
                _ => None,
            })
            .min()
    }
}
