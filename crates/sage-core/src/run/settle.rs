//! What follows when a step settles: dependants become ready or blocked, phases are judged, fan-outs and
//! sub-workflows close. All of it is derived, so none of it needs an event of its own.
//!
//! `transition` is the only place where a step's state changes; it keeps every counter true.

use std::sync::Arc;

use crate::digest::Digest;
use crate::policy::{FailureClass, Join, OnFailure, OnJoin};
use crate::run::step::{Children, Failure, Output, PhaseOutput, State};
use crate::run::{Judgement, PhaseId, Run, ScopeId, StepId};
use crate::template::Kind;

/// Steps that settled and whose consequences are still to be drawn.
pub(super) type Queue = Vec<StepId>;

impl Run {
    pub(super) fn transition(&mut self, id: StepId, next: State) {
        let next = match next {
            State::Ready if self.waits_behind(id) => State::Pending,
            State::Ready if self.asks_about_lost(id) => State::Unknown,
            next => next,
        };
        let old = std::mem::replace(&mut self.step_mut(id).state, next);
        self.count_spender(id, &old);
        self.leave(id, &old);
        self.enter(id);
        self.time_step(id);
    }

    /// An attempt of it was lost, and a person decides about that.
    fn asks_about_lost(&self, id: StepId) -> bool {
        let step = self.step(id);
        step.unknown && self.holds_slot(id) && self.operation(id).on_unknown.asks(step.repeatable)
    }

    fn leave(&mut self, id: StepId, old: &State) {
        match old {
            State::Ready => self.dequeue(id),
            State::Running(running) => {
                let asking = running.ask.is_some();
                self.count_running(id, asking, -1);
                (0..running.hedges).for_each(|_| self.count_running(id, false, -1));
                self.to_stop.remove(&id);
            }
            State::Backoff { .. } => self.active.backoff -= 1,
            State::Open { .. } => {
                self.occupy(id, -1);
                self.scripts.remove(&id);
                self.to_stop.remove(&id);
                self.to_retry.remove(&id);
            }
            State::Unknown => self.active.unknown -= 1,
            settled if settled.settled() => self.count_settled(id, matches!(settled, State::Failed), -1),
            _ => {}
        }
    }

    fn enter(&mut self, id: StepId) {
        match &self.step(id).state {
            State::Ready => self.enqueue(id),
            State::Running(running) => {
                let asking = running.ask.is_some();
                self.count_running(id, asking, 1);
            }
            State::Backoff { .. } => self.active.backoff += 1,
            State::Open { .. } => {
                self.occupy(id, 1);
                if self.calls(id).is_some() {
                    self.scripts.insert(id);
                }
            }
            State::Unknown => self.active.unknown += 1,
            settled if settled.settled() => {
                let failed = matches!(settled, State::Failed);
                self.count_settled(id, failed, 1);
            }
            _ => {}
        }
    }

    fn count_running(&mut self, id: StepId, asking: bool, by: i32) {
        self.occupy(id, by);
        let counter = if asking {
            &mut self.active.asking
        } else if self.kind(id) == Kind::Sleep {
            &mut self.active.sleeping
        } else {
            &mut self.active.slots
        };
        *counter = counter.saturating_add_signed(by);
    }

    /// An attempt beside the first one takes a slot of its own.
    pub(super) fn count_hedges(&mut self, id: StepId, by: i32) {
        if let State::Running(running) = &mut self.step_mut(id).state {
            running.hedges = running.hedges.saturating_add_signed(by);
            self.count_running(id, false, by);
        }
    }

    /// Steps that only hold others are not counted: their children are.
    fn count_settled(&mut self, id: StepId, failed: bool, by: i32) {
        if self.step(id).children.is_some() {
            return;
        }
        self.tally.settled = self.tally.settled.saturating_add_signed(by);
        if failed {
            self.tally.failed = self.tally.failed.saturating_add_signed(by);
        }
    }

    /// Puts a step in a settled state and draws all consequences.
    pub(super) fn settle(&mut self, id: StepId, state: State, now: u64) {
        self.step_mut(id).ended_ms = now;
        self.transition(id, state);
        self.drain(vec![id], now);
    }

    pub(super) fn drain(&mut self, mut queue: Queue, now: u64) {
        while let Some(id) = queue.pop() {
            self.made_again(id);
            match self.step(id).item {
                Some((fan, _)) => self.item_settled(fan, id, &mut queue, now),
                None => self.member_settled(id, &mut queue, now),
            }
        }
    }

    fn item_settled(&mut self, fan: StepId, id: StepId, queue: &mut Queue, now: u64) {
        if self.step(id).call.is_some() {
            return self.call_settled(fan, id, queue, now);
        }
        let (ok, degraded) = (self.step(id).state.ok(), self.step(id).degraded);
        self.step_mut(fan).degraded |= degraded;
        let State::Open { left, failed, cancelling } = &mut self.step_mut(fan).state else {
            return;
        };
        *left -= 1;
        *failed += u32::from(!ok);
        let (left, failed, cancelling) = (*left, *failed, *cancelling);
        if left == 0 {
            self.close_fan(fan, failed, cancelling, queue, now);
        } else if !cancelling && failed > self.allowed_failures(fan) && self.fails_fast(fan) {
            self.cancel_children(fan, queue, now);
        }
    }

    fn allowed_failures(&self, fan: StepId) -> u32 {
        let items = self.item_steps(fan).len() as u32;
        self.operation(fan).tolerate.map_or(0, |tolerate| tolerate.allowed(items))
    }

    fn fails_fast(&self, id: StepId) -> bool {
        let phase = self.phase(self.step(id).phase);
        self.scope(phase.scope).plan.phase(phase.plan_phase).on_failure == OnFailure::FailFast
    }

    pub fn item_steps(&self, fan: StepId) -> &[StepId] {
        match self.step(fan).children.as_deref() {
            Some(Children::Items { steps, .. }) => steps,
            _ => &[],
        }
    }

    pub(super) fn close_fan(
        &mut self,
        fan: StepId,
        failed: u32,
        cancelling: bool,
        queue: &mut Queue,
        now: u64,
    ) {
        let items = self.item_steps(fan).to_vec();
        let allowed = self.allowed_failures(fan);
        let state = if cancelling && failed > allowed && !self.fails_fast(fan) {
            State::Cancelled
        } else if failed > allowed {
            let message = format!("{failed} of {} items failed", items.len());
            self.step_mut(fan).failure = Some(Box::new(Failure::new(FailureClass::Failed, message)));
            State::Failed
        } else {
            let outputs = items.iter().map(|&id| self.step(id).output.clone()).collect();
            self.step_mut(fan).output = Some(Arc::new(Output::list(outputs)));
            self.step_mut(fan).degraded |= failed > 0;
            State::Succeeded
        };
        self.close(fan, state, queue, now);
    }

    pub(super) fn close(&mut self, id: StepId, state: State, queue: &mut Queue, now: u64) {
        self.step_mut(id).ended_ms = now;
        self.transition(id, state);
        queue.push(id);
    }

    fn member_settled(&mut self, id: StepId, queue: &mut Queue, now: u64) {
        let (ok, skipped) = (self.step(id).state.ok(), matches!(self.step(id).state, State::Skipped));
        let (scope, phase, degraded) = (self.step(id).scope, self.step(id).phase, self.step(id).degraded);
        self.release_needs(id, ok, queue, now);
        let counts = self.phase_mut(phase);
        counts.settled += 1;
        counts.ok += u32::from(ok);
        counts.skipped += u32::from(skipped);
        counts.degraded_members += u32::from(degraded);
        let spec = self.scope(scope).plan.phase(self.phase(phase).plan_phase);
        let race_won = ok && !skipped && spec.join.is_race() && self.race_won(phase, spec.join);
        // Only a failure of its own: those that are cancelled for it would each cancel all the others again.
        let give_up = spec.on_failure == OnFailure::FailFast && matches!(self.step(id).state, State::Failed);
        if race_won || give_up {
            self.cancel_members(phase, queue, now);
        }
        self.judge(phase, queue, now);
    }

    /// Enough have succeeded: those who are still under way have lost.
    fn race_won(&self, id: PhaseId, join: Join) -> bool {
        let phase = self.phase(id);
        let members = phase.members.len() as u32 - phase.skipped;
        phase.ok - phase.skipped >= join.needed(members)
    }

    fn release_needs(&mut self, settled: StepId, ok: bool, queue: &mut Queue, now: u64) {
        let (scope, plan_step) = (self.step(settled).scope, self.step(settled).plan_step);
        let round = self.phase(self.step(settled).phase).round;
        let plan = self.scope(scope).plan.clone();
        for &dependant in &plan.steps[plan_step as usize].needed_by {
            let id = self.scope(scope).steps[dependant as usize];
            // Those outside of a loop were told by its first round.
            let outside = round > 1 && self.phase(self.step(id).phase).round != round;
            if outside && !self.relinking {
                continue;
            }
            if !matches!(self.step(id).state, State::Pending) {
                continue;
            }
            if ok {
                self.satisfy(id, now);
            } else {
                self.close(id, State::Blocked, queue, now);
            }
        }
    }

    /// One thing less to wait for.
    fn satisfy(&mut self, id: StepId, now: u64) {
        let step = self.step_mut(id);
        step.waiting_on = step.waiting_on.saturating_sub(1);
        if step.waiting_on == 0 && matches!(step.state, State::Pending) {
            step.ready_ms = now;
            self.transition(id, State::Ready);
        }
    }

    pub(super) fn open_phase(&mut self, id: PhaseId, now: u64) {
        let active_ms = self.active_ms();
        let phase = self.phase_mut(id);
        phase.open = true;
        phase.time.start(active_ms);
        if phase.opened_ms == 0 {
            phase.opened_ms = now;
        }
        for member in phase.members.clone() {
            self.satisfy(member, now);
        }
    }

    /// How a phase was reached whose members have all settled: nobody misses those who lost a race.
    pub(super) fn reached_as(&self, id: PhaseId) -> Judgement {
        let phase = self.phase(id);
        let race = self.scope(phase.scope).plan.phase(phase.plan_phase).join.is_race();
        let missing = (phase.ok as usize) < phase.members.len() && !race;
        // Others may win a race against a check, but not against what it found.
        let lost_check = || phase.members.iter().any(|&id| !self.step(id).state.ok() && self.holds_unmet(id));
        let degraded = phase.degraded_members > 0 || missing || lost_check();
        if degraded { Judgement::Degraded } else { Judgement::Reached }
    }

    /// Judges a phase once all its members have settled.
    pub(super) fn judge(&mut self, id: PhaseId, queue: &mut Queue, now: u64) {
        let phase = self.phase(id);
        if phase.judged.is_some() || phase.repeating || (phase.settled as usize) < phase.members.len() {
            return;
        }
        let spec = self.scope(phase.scope).plan.phase(phase.plan_phase);
        let members = phase.members.len() as u32 - phase.skipped;
        let succeeded = phase.ok - phase.skipped;
        // When a run is relinked, a phase may be counted before the ones that once opened it.
        let blocked = |&id: &StepId| matches!(self.step(id).state, State::Blocked);
        let judgement = if !phase.open && phase.members.iter().all(blocked) {
            Judgement::Blocked
        } else if succeeded < spec.join.needed(members) {
            Judgement::Missed
        } else {
            self.reached_as(id)
        };
        let repeats = spec.repeat.as_ref().is_some_and(|repeat| phase.round < repeat.max);
        if judgement.reached() && repeats {
            self.phase_mut(id).repeating = true;
            self.to_repeat.insert(id);
        } else {
            self.conclude(id, judgement, queue, now);
        }
    }

    /// The phase is judged for good: tell those after it, and close its scope if it was the last.
    pub(super) fn conclude(&mut self, id: PhaseId, judgement: Judgement, queue: &mut Queue, now: u64) {
        let digest = self.phase_digest(id);
        self.mark_judged(id, judgement, now);
        let phase = self.phase_mut(id);
        phase.digest = Some(digest);
        phase.repeating = false;
        let (scope, number) = (phase.scope, phase.plan_phase);
        let plan = self.scope(scope).plan.clone();
        let pauses = plan.phase(number).on_join == OnJoin::Pause && !self.being_cancelled(scope);
        if judgement == Judgement::Missed && pauses {
            self.active.joins_missed += 1;
        }
        self.scope_mut(scope).open_phases -= 1;
        let told = std::mem::replace(&mut self.scope_mut(scope).released[number as usize], true);
        for &dependant in &plan.phases[number as usize].dependants {
            let dependant = self.scope(scope).phases[dependant as usize];
            // A later round is news only to those who take part in it.
            if told && self.phase(dependant).round != self.phase(id).round {
                continue;
            }
            if judgement.reached() {
                let phase = self.phase_mut(dependant);
                phase.waiting_on = phase.waiting_on.saturating_sub(1);
                if phase.waiting_on == 0 && !phase.open {
                    self.open_phase(dependant, now);
                }
            } else {
                self.block_members(dependant, queue, now);
            }
        }
        if self.scope(scope).open_phases == 0 {
            self.close_scope(scope, queue, now);
        }
    }

    /// Whether a step around the scope is being given up.
    fn being_cancelled(&self, scope: ScopeId) -> bool {
        let mut at = self.scope(scope).parent;
        while let Some(id) = at {
            if matches!(self.step(id).state, State::Open { cancelling: true, .. }) {
                return true;
            }
            at = self.holder(id);
        }
        false
    }

    fn phase_digest(&self, id: PhaseId) -> Digest {
        let members = &self.phase(id).members;
        let shas: Vec<Digest> = members
            .iter()
            .flat_map(|&m| {
                let step = self.step(m);
                let output = step.output.as_ref().map_or_else(Output::none, |o| o.sha());
                [Digest::of(Run::path_without_index(&step.path).as_bytes()), output]
            })
            .collect();
        Digest::of_all(&shas)
    }

    fn block_members(&mut self, phase: PhaseId, queue: &mut Queue, now: u64) {
        for member in self.phase(phase).members.clone() {
            if matches!(self.step(member).state, State::Pending) {
                self.close(member, State::Blocked, queue, now);
            }
        }
    }

    fn cancel_members(&mut self, phase: PhaseId, queue: &mut Queue, now: u64) {
        for member in self.phase(phase).members.clone() {
            self.cancel(member, queue, now);
        }
    }

    pub(super) fn cancel_children(&mut self, id: StepId, queue: &mut Queue, now: u64) {
        if let State::Open { cancelling, .. } = &mut self.step_mut(id).state {
            *cancelling = true;
        }
        // A script ends by itself once it has been told.
        if self.calls(id).is_some_and(|calls| calls.returned.is_none()) {
            self.to_stop.insert(id);
        }
        let children = self.children(id);
        // Depth is the nesting of sub-workflows, which validation bounds.
        children.into_iter().for_each(|child| self.cancel(child, queue, now));
    }

    fn cancel(&mut self, id: StepId, queue: &mut Queue, now: u64) {
        let no_process = self.kind(id) == Kind::Sleep || self.kind(id) == Kind::Approval;
        let wants_retry = self.wants_retry(id);
        match &mut self.step_mut(id).state {
            State::Running(_) if no_process => self.close(id, State::Cancelled, queue, now),
            State::Running(running) => {
                running.stopping = true;
                self.to_stop.insert(id);
            }
            // All in it has ended: nobody would close it any more.
            State::Open { .. } if wants_retry => self.close(id, State::Cancelled, queue, now),
            State::Open { .. } => self.cancel_children(id, queue, now),
            settled if settled.settled() => {}
            _ => self.close(id, State::Cancelled, queue, now),
        }
    }

    pub(super) fn close_scope(&mut self, scope: ScopeId, queue: &mut Queue, now: u64) {
        let Some(parent) = self.scope(scope).parent else {
            return;
        };
        let State::Open { cancelling, .. } = self.step(parent).state else {
            return;
        };
        let judgements: Vec<_> =
            self.scope(scope).phases.iter().filter_map(|&p| self.phase(p).judged).collect();
        let state = if judgements.iter().all(|j| j.reached()) {
            self.step_mut(parent).degraded = judgements.contains(&Judgement::Degraded);
            self.step_mut(parent).output = Some(Arc::new(Output::phases(self.scope_outputs(scope))));
            self.step_mut(parent).failure = None;
            State::Succeeded
        } else if cancelling && self.step(parent).failure.is_none() {
            State::Cancelled
        } else {
            // Of one that was given up it is known why.
            let missed = self.missed_joins(scope);
            let class = self.step_mut(parent).failure.get_or_insert(missed).class;
            if self.may_retry(parent, class) {
                return;
            }
            State::Failed
        };
        self.close(parent, state, queue, now);
    }

    fn missed_joins(&self, scope: ScopeId) -> Box<Failure> {
        let scope = self.scope(scope);
        let missed = scope.phases.iter().filter(|&&p| self.phase(p).judged == Some(Judgement::Missed));
        let names: Vec<String> = missed.map(|&p| self.phase(p).label(&scope.plan)).collect();
        let message = format!("phase {} did not reach its join", names.join(", "));
        Box::new(Failure::new(FailureClass::Failed, message))
    }

    /// Results by phase and operation, the newest round's.
    pub fn scope_outputs(&self, scope: ScopeId) -> Vec<PhaseOutput> {
        let scope = self.scope(scope);
        let outputs = |phase: PhaseId| {
            let members = self.phase(phase).members.iter().map(|&id| {
                let output = self.step(id).output.clone().unwrap_or_else(|| Arc::new(Output::Null));
                (Arc::from(self.operation(id).id.as_str()), output)
            });
            let label = Arc::from(scope.plan.phase(self.phase(phase).plan_phase).id.as_str());
            (label, members.collect())
        };
        scope.phases.iter().map(|&phase| outputs(phase)).collect()
    }
}
