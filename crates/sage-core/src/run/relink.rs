//! Going back: resume, rewind, another round, a phase again.
//!
//! Instead of undoing counters one by one, the steps that shall run again are made pending and every
//! counter is drawn anew from the states, by the same code that settles steps in a live run.

use std::collections::HashSet;

use crate::event::{OpenMode, RunOpened};
use crate::policy::FailureClass;
use crate::run::step::{Children, State};
use crate::run::{Judgement, PhaseId, Run, ScopeId, Status, StepId};
use crate::template::Kind;

impl Run {
    pub(super) fn opened(&mut self, event: &RunOpened, now: u64) {
        self.tally.opened += 1;
        self.tally.loop_earlier = self.tally.loop_time();
        self.tally.loop_turn = Default::default();
        if let Some(settings) = &event.settings {
            // What was under way counts for the old agent, and who waits left the queue by the old priority.
            let ready: Vec<StepId> = self.ready_steps().collect();
            ready.iter().for_each(|&id| self.dequeue(id));
            self.step_ids().for_each(|id| self.settle_cut(id));
            // The newest word counts, whichever way it came.
            if settings.budget != self.settings.budget {
                self.raised.remove(crate::budget::RUN);
            }
            self.settings = settings.clone();
            self.set_caps();
            ready.iter().for_each(|&id| self.enqueue(id));
        }
        // Limits that belonged to the last owner's machine; parked targets are asked again.
        self.changed = Default::default();
        self.parked.clear();
        // Whoever asked is gone with the last owner.
        self.asks.clear();
        if event.mode == OpenMode::Resume && !event.unattended {
            self.tried.clear();
        }
        let was_open = self.status.open();
        // A script that was under way has dealt with what failed, or still will.
        let open = self.scripts.clone();
        for id in self.step_ids() {
            let dealt = self.dealt_with(id, &open);
            self.reopen(id, event, was_open, dealt);
        }
        if event.mode != OpenMode::Signal {
            self.status = Status::Running;
            self.acted = false;
        }
        if event.mode == OpenMode::Resume {
            self.tally.resumed_ms = Some(now);
            self.relink(now);
            self.measure_resume();
        }
    }

    /// A new owner has no attempt under way: what ran is unknown, what failed may try again.
    pub(super) fn reopen(&mut self, id: StepId, event: &RunOpened, was_open: bool, dealt: bool) {
        // A question needs nobody who waits for the answer.
        let asks = matches!(&self.step(id).state, State::Running(running) if running.ask.is_some());
        let durable = asks || self.kind(id) == Kind::Sleep;
        self.settle_cut(id);
        // A person's no stands until the run has ended because of it.
        let refused = self.step(id).failure.as_ref().is_some_and(|f| f.class == FailureClass::Rejected);
        let again = event.mode == OpenMode::Resume && !event.unattended && !(was_open && refused);
        match &self.step(id).state {
            State::Running(_) if !durable => {
                self.step_mut(id).unknown = true;
                let ask = self.operation(id).on_unknown.asks(self.step(id).repeatable);
                self.transition(id, if ask { State::Unknown } else { State::Ready });
            }
            State::Failed | State::Cancelled | State::Blocked if again && !dealt && !self.concluded(id) => {
                self.reset(id)
            }
            // What it needs may be there by now.
            State::Unknown if again && self.is_unchecked(id) => self.reset(id),
            // What becomes of what it holds is judged anew.
            State::Open { cancelling: false, .. } if self.holds_scope(id) => self.step_mut(id).failure = None,
            _ => {}
        }
    }

    fn holds_scope(&self, id: StepId) -> bool {
        matches!(self.step(id).children.as_deref(), Some(Children::Scope(_)))
    }

    /// It failed, but what it belongs to was reached without it (k of n, tolerated): resuming repeats nothing.
    pub(super) fn concluded(&self, id: StepId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if self.phase(self.step(id).phase).judged.is_some_and(|j| j.reached()) {
                return true;
            }
            at = self.holder(id);
            if at.is_some_and(|holder| self.step(holder).state.ok()) {
                return true;
            }
        }
        false
    }

    /// Back to waiting. A step with children stays open for them.
    pub(super) fn reset(&mut self, id: StepId) {
        let phase = self.step(id).phase;
        self.phase_mut(phase).judged_ms = 0;
        self.call_again(id);
        self.script_again(id);
        let step = self.step_mut(id);
        step.failure = None;
        step.output = None;
        step.reused = false;
        step.cached_no_more();
        step.accepted = false;
        step.degraded = false;
        step.checked = None;
        (step.tries, step.delay_ms, step.stall_restarts, step.life_ms) = (0, None, 0, 0);
        step.asked_again = false;
        let state = if step.children.is_some() {
            State::Open { left: 0, failed: 0, cancelling: false }
        } else {
            State::Pending
        };
        self.transition(id, state);
        // It begins with its own way again; out of its lane before its demand changes.
        if self.step_mut(id).alternative.take().is_some() {
            let demand = self.demand_of(id);
            self.step_mut(id).demand = demand;
        }
    }

    /// The step and everything after it run again; what they gave is forgotten.
    pub(super) fn rewind(&mut self, from: Vec<StepId>, now: u64) {
        let mut again: HashSet<StepId> = HashSet::new();
        // The steps around it are open again, but their other children keep what they have.
        let mut around = from.first().and_then(|&id| self.holder(id));
        let mut queue: Vec<StepId> = from.iter().flat_map(|&id| self.called_after(id)).collect();
        queue.extend(from);
        while let Some(id) = around {
            queue.extend(self.called_after(id));
            self.reset(id);
            queue.extend(self.after(id));
            around = self.holder(id);
        }
        while let Some(id) = queue.pop() {
            if again.insert(id) {
                queue.extend(self.after(id));
                queue.extend(self.children(id));
            }
        }
        self.run_again(again);
        self.relink(now);
    }

    pub(super) fn restart_phase(&mut self, phase: PhaseId, now: u64) {
        self.phase_mut(phase).restarts += 1;
        // What is still at work is left alone: its result counts.
        let idle = |id: &StepId| !self.works(*id);
        let mut queue: Vec<StepId> = self.phase(phase).members.iter().copied().filter(idle).collect();
        let mut again: HashSet<StepId> = HashSet::new();
        while let Some(id) = queue.pop() {
            if again.insert(id) {
                queue.extend(self.children(id));
            }
        }
        // It is a try of the step that failed: what was tried before still counts, also of what is laid out anew.
        let tried: Vec<StepId> = again.iter().copied().filter(|&id| self.has_tried(id)).collect();
        for id in tried {
            let step = self.step(id);
            let (path, tries) = (step.path.clone(), (step.tries, step.asked_again));
            self.tried.insert(path, tries);
        }
        let members = self.phase(phase).members.clone();
        self.run_again(again);
        members.into_iter().for_each(|id| self.keep_tries(id));
        self.relink(now);
    }

    fn has_tried(&self, id: StepId) -> bool {
        self.step(id).tries > 0 || self.step(id).asked_again
    }

    /// What was tried of a step before its phase began again.
    pub(super) fn keep_tries(&mut self, id: StepId) {
        if self.tried.is_empty() {
            return;
        }
        let path = self.step(id).path.clone();
        if let Some((tries, asked_again)) = self.tried.remove(&path) {
            let step = self.step_mut(id);
            (step.tries, step.asked_again) = (tries, asked_again);
        }
    }

    fn run_again(&mut self, steps: HashSet<StepId>) {
        let mut steps: Vec<StepId> = steps.into_iter().collect();
        steps.sort_unstable();
        for id in steps {
            self.forget_kept(id);
            if let Some(key) = self.step(id).key {
                self.memo.remove(&key);
            }
            if self.step(id).gone {
                continue;
            }
            self.take_back(id);
            self.step_mut(id).fresh = true;
            self.step_mut(id).verdict = None;
            self.reset(id);
        }
    }

    /// Whether the step, or something inside it, is running.
    pub(super) fn works(&self, id: StepId) -> bool {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            if matches!(self.step(id).state, State::Running(_)) {
                return true;
            }
            queue.extend(self.children(id));
        }
        false
    }

    /// Whether the step, or something inside it, makes progress by itself: waiting, also for a person, is none.
    pub fn is_active(&self, id: StepId) -> bool {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let works = matches!(&self.step(id).state, State::Running(running) if running.ask.is_none());
            if works && self.asks_of(id).next().is_none() {
                return true;
            }
            queue.extend(self.children(id));
        }
        false
    }

    /// Undoes an expansion: what it is expanded from may be another thing the next time.
    pub(super) fn take_back(&mut self, id: StepId) {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let children = self.children(id);
            if let Some(Children::Scope(scope)) = self.step(id).children.as_deref() {
                let scope = *scope;
                self.scope_mut(scope).gone = true;
            }
            for &child in &children {
                // Nobody can name it any more when an attempt that is slow to stop ends.
                self.settle_cut(child);
                self.transition(child, State::Cancelled);
                let path = self.step(child).path.clone();
                self.by_path.remove(&path);
                self.step_mut(child).gone = true;
            }
            queue.extend(children);
        }
        self.step_mut(id).children = None;
    }

    /// The step that this one is a part of: its fan-out, or the sub-workflow's step.
    pub(super) fn holder(&self, id: StepId) -> Option<StepId> {
        self.step(id).item.map(|(fan, _)| fan).or_else(|| self.scope(self.step(id).scope).parent)
    }

    /// Steps that depend on this one directly. An item's dependants are its fan-out's.
    pub(super) fn after(&self, id: StepId) -> Vec<StepId> {
        let step = self.step(id);
        if step.item.is_some() {
            return Vec::new();
        }
        let scope = self.scope(step.scope);
        let needed_by =
            scope.plan.steps[step.plan_step as usize].needed_by.iter().map(|&n| scope.steps[n as usize]);
        let number = self.phase(step.phase).plan_phase;
        let dependants = scope.plan.phases[number as usize].dependants.iter();
        let members = dependants.flat_map(|&p| self.phase(scope.phases[p as usize]).members.iter().copied());
        needed_by.chain(members).collect()
    }

    /// Steps that this one holds: its items, or its sub-workflow's steps.
    pub fn children(&self, id: StepId) -> Vec<StepId> {
        match self.step(id).children.as_deref() {
            Some(Children::Items { steps, .. }) => steps.clone(),
            Some(Children::Scope(scope)) => self.scope(*scope).steps.clone(),
            Some(Children::Calls(calls)) => calls.steps.clone(),
            None => Vec::new(),
        }
    }

    /// Draws all counters anew from the states of the steps.
    pub(super) fn relink(&mut self, now: u64) {
        self.active.joins_missed = 0;
        self.to_repeat.clear();
        self.to_retry.clear();
        self.forget_waiting();
        self.relinking = true;
        let judged: Vec<Option<Judgement>> = self.phases.iter().map(|phase| phase.judged).collect();
        let live: Vec<ScopeId> =
            (0..self.scopes.len() as u32).map(ScopeId).filter(|&s| self.scope_lives(s)).collect();
        for &scope in &live {
            self.relink_scope(scope);
        }
        for id in self.step_ids() {
            self.relink_fan(id);
            self.relink_calls(id);
        }
        for &scope in &live {
            for phase in self.scope(scope).phases.clone() {
                if self.phase(phase).waiting_on == 0 && !self.phase(phase).open {
                    self.open_phase(phase, now);
                }
            }
        }
        // Innermost first, so that a fan-out that is complete again closes before its phase is counted.
        let settled: Vec<StepId> =
            self.step_ids().filter(|&id| self.step(id).state.settled() && self.counts_again(id)).collect();
        for id in settled.into_iter().rev() {
            self.drain(vec![id], now);
        }
        self.close_empty_fans(now);
        self.give_up_leftovers(now);
        self.relinking = false;
        // What was counted once more is no news.
        let mut news = std::mem::take(&mut self.judged_now);
        news.retain(|&id| judged.get(id.0 as usize).copied().flatten() != self.phase(id).judged);
        self.judged_now = news;
        self.recount();
    }

    fn recount(&mut self) {
        let leaves = || self.live_steps().filter(|step| step.children.is_none());
        let total = leaves().count() as u32;
        let settled = leaves().filter(|step| step.state.settled()).count() as u32;
        let failed = leaves().filter(|step| matches!(step.state, State::Failed)).count() as u32;
        (self.tally.total, self.tally.settled, self.tally.failed) = (total, settled, failed);
    }

    /// A scope lives as long as the step that holds it is not done.
    fn scope_lives(&self, scope: ScopeId) -> bool {
        if self.scope(scope).gone {
            return false;
        }
        let Some(parent) = self.scope(scope).parent else {
            return true;
        };
        matches!(self.step(parent).state, State::Open { .. }) && self.scope_lives(self.step(parent).scope)
    }

    fn relink_scope(&mut self, scope: ScopeId) {
        let plan = self.scope(scope).plan.clone();
        let scope_state = self.scope_mut(scope);
        scope_state.open_phases = plan.phases.len() as u32;
        scope_state.released = vec![false; plan.phases.len()];
        for (number, phase) in self.scope(scope).phases.clone().into_iter().enumerate() {
            let waiting_on = plan.phases[number].dependencies.len() as u32;
            let active_ms = self.active_ms();
            let counts = self.phase_mut(phase);
            // It opens again below, unless what it waits for runs again.
            counts.time.stop(active_ms);
            counts.waiting_on = waiting_on;
            (counts.open, counts.judged, counts.repeating, counts.digest) = (false, None, false, None);
            (counts.settled, counts.ok, counts.skipped, counts.degraded_members) = (0, 0, 0, 0);
            for member in counts.members.clone() {
                let needs = plan.steps[self.step(member).plan_step as usize].needs.len() as u32;
                self.step_mut(member).waiting_on = needs + 1;
                if matches!(self.step(member).state, State::Ready) {
                    self.transition(member, State::Pending);
                }
            }
        }
    }

    fn relink_fan(&mut self, id: StepId) {
        let items = self.item_steps(id).to_vec();
        if items.is_empty() {
            return;
        }
        let State::Open { left, failed, .. } = &mut self.step_mut(id).state else {
            return;
        };
        (*left, *failed) = (items.len() as u32, 0);
        for item in items {
            if matches!(self.step(item).state, State::Pending) {
                self.transition(item, State::Ready);
            }
        }
    }

    /// Whether a settled step has still to be counted by the fan-out or phase that it belongs to.
    fn counts_again(&self, id: StepId) -> bool {
        match self.step(id).item {
            Some((fan, _)) => matches!(self.step(fan).state, State::Open { .. }),
            None => {
                let phase = self.phase(self.step(id).phase);
                phase.judged.is_none()
                    && self.scope_lives(phase.scope)
                    && self.scope(phase.scope).steps[self.step(id).plan_step as usize] == id
            }
        }
    }

    fn close_empty_fans(&mut self, now: u64) {
        for id in self.step_ids() {
            let empty = matches!(self.step(id).children.as_deref(), Some(Children::Items { steps, .. }) if steps.is_empty());
            if empty && matches!(self.step(id).state, State::Open { .. }) {
                let mut queue = Vec::new();
                self.close_fan(id, 0, false, &mut queue, now);
                self.drain(queue, now);
            }
        }
    }

    /// `repeat`: lays out another round of the phases from `from` to this one.
    pub(super) fn next_round(&mut self, id: PhaseId, now: u64) {
        let (scope, last) = (self.phase(id).scope, self.phase(id).plan_phase);
        let plan = self.scope(scope).plan.clone();
        let Some(repeat) = &plan.phase(last).repeat else {
            return;
        };
        let Some(first) = plan.template.phases.iter().position(|p| p.id == repeat.from.name) else {
            return;
        };
        let height = self.scope(scope).parent.map_or(0, |parent| self.step(parent).height);
        let numbers = phases_between(&plan, first as u32, last);
        // Loops inside loops have rounds of their own: a new one is later than all of them.
        let newest = numbers.iter().map(|&n| self.phase(self.scope(scope).phases[n as usize]).round).max();
        let round = newest.unwrap_or(1) + 1;
        // The round that ends here was reached; nothing of it is tried again.
        self.phase_mut(id).repeating = false;
        let judgement = self.reached_as(id);
        for &number in &numbers {
            let phase = self.lay_phase(scope, number, round, height);
            let before = self.scope(scope).phases[number as usize];
            let reopened = self.phase(before).judged.is_some();
            if !reopened {
                self.mark_judged(before, judgement, now);
            }
            self.scope_mut(scope).phases[number as usize] = phase;
            self.scope_mut(scope).open_phases += u32::from(reopened);
            for member in self.phase(phase).members.clone() {
                let plan_step = self.step(member).plan_step as usize;
                let scope = self.scope_mut(scope);
                let last = std::mem::replace(&mut scope.steps[plan_step], member);
                scope.before.insert(plan_step as u32, last);
            }
        }
        self.link_round(scope, &numbers, now);
    }

    /// In a new round only the phases and steps of the round are waited for; the rest was reached before.
    fn link_round(&mut self, scope: ScopeId, numbers: &[u32], now: u64) {
        let plan = self.scope(scope).plan.clone();
        for &number in numbers {
            let phase = self.scope(scope).phases[number as usize];
            let inside = |d: &&u32| numbers.contains(d);
            self.phase_mut(phase).waiting_on =
                plan.phases[number as usize].dependencies.iter().filter(inside).count() as u32;
            for member in self.phase(phase).members.clone() {
                let spec = &plan.steps[self.step(member).plan_step as usize];
                let needs =
                    spec.needs.iter().filter(|&&n| numbers.contains(&plan.steps[n as usize].phase)).count();
                self.step_mut(member).waiting_on = needs as u32 + 1;
            }
        }
        for &number in numbers {
            let phase = self.scope(scope).phases[number as usize];
            if self.phase(phase).waiting_on == 0 {
                self.open_phase(phase, now);
            }
        }
    }
}

/// Phases on a way from `first` to `last`, both included, in plan order.
fn phases_between(plan: &crate::plan::Plan, first: u32, last: u32) -> Vec<u32> {
    let reach = |start: u32, next: &dyn Fn(u32) -> Vec<u32>| {
        let mut seen = HashSet::from([start]);
        let mut queue = vec![start];
        while let Some(at) = queue.pop() {
            queue.extend(next(at).into_iter().filter(|&n| seen.insert(n)));
        }
        seen
    };
    let down = reach(first, &|p| plan.phases[p as usize].dependants.clone());
    let up = reach(last, &|p| plan.phases[p as usize].dependencies.clone());
    let mut between: Vec<u32> = down.intersection(&up).copied().collect();
    between.sort_unstable();
    between
}
