//! How much longer? From what finished steps took, along the longest way that is left, and over the slots.
//!
//! It says nothing rather than guess: while a step is left whose kind has not been seen, there is no estimate.
//! Waiting for people is not counted; nobody knows.

use std::collections::HashMap;

use sage_core::run::{Children, Phase, Run, ScopeId, State, Status, StepId};
use sage_core::template::Kind;

use super::text::clock_text;
use super::walk;

/// `~12s left`, or nothing.
pub(crate) fn left_text(run: &Run, now_ms: u64) -> Option<String> {
    text(left_ms(run, now_ms)?)
}

fn text(left_ms: u64) -> Option<String> {
    // Later than expected: it will be done when it is done.
    (left_ms > 0).then(|| format!("~{} left", clock_text(rounded(left_ms))))
}

/// What is left of each phase, by what has been seen so far.
pub(crate) struct Forecast<'a>(Option<Remaining<'a>>);

impl<'a> Forecast<'a> {
    pub fn of(run: &'a Run, now_ms: u64, moves: bool) -> Forecast<'a> {
        // With a single phase the whole run's estimate says it already.
        let tells = moves && run.phases.len() > 1;
        Forecast(tells.then(|| Remaining { run, now_ms, seen: Seen::of(run) }))
    }

    /// `~3s left` of an open phase in which something is at work, or nothing: how long it waits is not known.
    pub fn phase_text(&self, phase: &Phase) -> Option<String> {
        let remaining = self.0.as_ref().filter(|it| walk::phase_works(it.run, phase))?;
        let left = remaining.phase(phase)?;
        text(left.over(remaining.run))
    }
}

/// Whole seconds, and coarser the further away: an estimate shall not look like a measurement.
fn rounded(ms: u64) -> u64 {
    let unit = match ms {
        0..60_000 => 1_000,
        60_000..600_000 => 10_000,
        _ => 60_000,
    };
    ms.div_ceil(unit) * unit
}

/// Milliseconds until the run ends, if there is something to go on.
pub fn left_ms(run: &Run, now_ms: u64) -> Option<u64> {
    if run.status != Status::Running || only_waits(run) {
        return None;
    }
    let remaining = Remaining { run, now_ms, seen: Seen::of(run) };
    let work = remaining.scope(ScopeId(0))?;
    Some(work.over(run))
}

/// Nothing is at work, and what could be waits for people, targets or slots of others: how long is not known.
fn only_waits(run: &Run) -> bool {
    let active = &run.active;
    if active.slots + active.sleeping + active.backoff > 0 || !run.open_scripts().is_empty() {
        return false;
    }
    let ready = |id: &StepId| matches!(run.step(*id).state, State::Ready);
    match run.step_ids().find(ready) {
        Some(id) => run.wait_reason(id).is_some(),
        None => active.asking + active.unknown > 0,
    }
}

/// Mean active times of finished steps.
#[derive(Default)]
struct Seen {
    by_fan: HashMap<StepId, Mean>,
    by_type: HashMap<String, Mean>,
    by_kind: HashMap<Kind, Mean>,
}

#[derive(Clone, Copy, Default)]
struct Mean {
    sum_ms: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ms: u64) {
        self.sum_ms += ms;
        self.count += 1;
    }

    fn ms(self) -> u64 {
        self.sum_ms / self.count.max(1)
    }
}

impl Seen {
    fn of(run: &Run) -> Seen {
        let mut seen = Seen::default();
        for id in run.step_ids() {
            let step = run.step(id);
            let ran =
                matches!(step.state, State::Succeeded | State::Failed) && !step.reused && step.attempts > 0;
            if !ran || step.children.is_some() {
                continue;
            }
            if let Some((fan, _)) = step.item {
                seen.by_fan.entry(fan).or_default().add(step.active_ms);
            }
            let operation = run.operation(id);
            match seen.by_type.get_mut(&operation.type_name) {
                Some(mean) => mean.add(step.active_ms),
                None => seen.by_type.entry(operation.type_name.clone()).or_default().add(step.active_ms),
            }
            seen.by_kind.entry(operation.kind).or_default().add(step.active_ms);
        }
        seen
    }

    /// What a step like this one takes: its siblings in the fan-out know best, then the same operation, then
    /// the same kind.
    fn typical_ms(&self, run: &Run, id: StepId) -> Option<u64> {
        let operation = run.operation(id);
        let fan = run.step(id).item.map_or(id, |(fan, _)| fan);
        let mean = self.by_fan.get(&fan).or_else(|| self.by_type.get(&operation.type_name));
        mean.or_else(|| self.by_kind.get(&operation.kind)).map(|mean| mean.ms())
    }
}

/// What is left of something.
#[derive(Clone, Copy, Default)]
struct Left {
    /// One step after the other along the longest way.
    path_ms: u64,
    /// Sum over all steps that occupy a slot.
    slots_ms: u64,
}

impl Left {
    /// On as many slots as the run has.
    fn over(self, run: &Run) -> u64 {
        let width = if run.settings.sequential { 1 } else { run.settings.parallel.max(1) };
        self.path_ms.max(self.slots_ms / u64::from(width))
    }
}

struct Remaining<'a> {
    run: &'a Run,
    now_ms: u64,
    seen: Seen,
}

impl Remaining<'_> {
    /// Steps by level: whatever a step depends on has a lower one.
    fn scope(&self, scope: ScopeId) -> Option<Left> {
        let scope = self.run.scope(scope);
        let plan = &scope.plan;
        let mut finish = vec![0u64; plan.steps.len()];
        let mut phase_done = vec![0u64; plan.phases.len()];
        let mut total = Left::default();
        for number in plan.batches().into_iter().flatten() {
            let spec = &plan.steps[number as usize];
            let left = self.step(scope.steps[number as usize])?;
            let needs = spec.needs.iter().map(|&need| finish[need as usize]);
            let phases =
                plan.phases[spec.phase as usize].dependencies.iter().map(|&phase| phase_done[phase as usize]);
            let end = needs.chain(phases).max().unwrap_or(0) + left.path_ms;
            finish[number as usize] = end;
            let done = &mut phase_done[spec.phase as usize];
            *done = end.max(*done);
            total.path_ms = total.path_ms.max(end);
            total.slots_ms += left.slots_ms;
        }
        Some(total)
    }

    /// Only what is in the phase: its members and what they need of each other.
    fn phase(&self, phase: &Phase) -> Option<Left> {
        let plan = &self.run.scope(phase.scope).plan;
        let mut members = phase.members.clone();
        members.sort_by_key(|&id| plan.steps[self.run.step(id).plan_step as usize].level);
        let (mut finish, mut total) = (HashMap::new(), Left::default());
        for id in members {
            let (number, left) = (self.run.step(id).plan_step, self.step(id)?);
            let needs = plan.steps[number as usize].needs.iter();
            let end = needs.filter_map(|need| finish.get(need)).max().unwrap_or(&0) + left.path_ms;
            finish.insert(number, end);
            total.path_ms = total.path_ms.max(end);
            total.slots_ms += left.slots_ms;
        }
        Some(total)
    }

    fn step(&self, id: StepId) -> Option<Left> {
        let step = self.run.step(id);
        if step.state.settled() {
            return Some(Left::default());
        }
        match step.children.as_deref() {
            Some(Children::Scope(scope)) => self.scope(*scope),
            Some(Children::Items { steps, .. }) => self.items(id, steps),
            // Nobody knows what a script will still call.
            Some(Children::Calls(_)) => None,
            None => self.leaf(id),
        }
    }

    fn items(&self, fan: StepId, items: &[StepId]) -> Option<Left> {
        let mut total = Left::default();
        let mut sum_ms = 0;
        for &item in items {
            let left = self.step(item)?;
            total.path_ms = total.path_ms.max(left.path_ms);
            total.slots_ms += left.slots_ms;
            sum_ms += left.path_ms;
        }
        if let Some(width) = self.run.operation(fan).max_parallel {
            total.path_ms = total.path_ms.max(sum_ms / u64::from(width.max(1)));
        }
        Some(total)
    }

    fn leaf(&self, id: StepId) -> Option<Left> {
        let (step, operation) = (self.run.step(id), self.run.operation(id));
        let pause_ms = match step.state {
            State::Backoff { at } => at.saturating_sub(self.now_ms),
            _ => 0,
        };
        let work_ms = match operation.kind {
            Kind::Approval => 0,
            Kind::Sleep => self.sleep_ms(id)?,
            Kind::Workflow if step.children.is_none() => self.workflow_ms(id)?,
            _ => self.seen.typical_ms(self.run, id)?.saturating_sub(self.elapsed_ms(id)),
        };
        let slots_ms = if self.run.operation(id).kind.holds_slot() { work_ms } else { 0 };
        Some(Left { path_ms: pause_ms + work_ms, slots_ms })
    }

    fn elapsed_ms(&self, id: StepId) -> u64 {
        match &self.run.step(id).state {
            State::Running(running) => self.now_ms.saturating_sub(running.since_ms),
            _ => 0,
        }
    }

    /// A sleep says how long it is; one with an expression in it says so when it starts.
    fn sleep_ms(&self, id: StepId) -> Option<u64> {
        if let State::Running(running) = &self.run.step(id).state
            && let Some(until) = running.until
        {
            return Some(until.saturating_sub(self.now_ms));
        }
        let params = &self.run.operation(id).params;
        let given = params.get("ms").or_else(|| params.get("for"));
        let given = given.and_then(|value| sage_core::duration::from_json(value).ok());
        given.or_else(|| self.seen.typical_ms(self.run, id))
    }

    /// A sub-workflow that has not been laid out: as deep as its plan, each step as long as the mean of all.
    fn workflow_ms(&self, id: StepId) -> Option<u64> {
        let all = self.seen.by_kind.values().fold(Mean::default(), |all, mean| Mean {
            sum_ms: all.sum_ms + mean.sum_ms,
            count: all.count + mean.count,
        });
        let name = self.run.operation(id).params.get("template")?.as_str()?;
        let depth = self.run.plan_named(name).map_or(1, |plan| plan.depth);
        (all.count > 0).then(|| all.ms() * u64::from(depth))
    }
}
