//! What all pictures say about a step or a phase, in words.

use sage_core::plan::Plan;
use sage_core::policy::{Join, OnFailure, OnJoin};
use sage_core::run::{Run, State, StepId};

use super::Drawn;

/// Looks of a step; `None` of a run means that only the plan is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Pending,
    Waiting,
    Running,
    Interrupted,
    Asking,
    Succeeded,
    Degraded,
    Failed,
    Left,
}

impl Class {
    pub const ALL: [Class; 9] = [
        Class::Pending,
        Class::Waiting,
        Class::Running,
        Class::Interrupted,
        Class::Asking,
        Class::Succeeded,
        Class::Degraded,
        Class::Failed,
        Class::Left,
    ];

    pub fn of(drawn: Drawn<'_>, id: StepId) -> Class {
        let run = drawn.run;
        let step = run.step(id);
        match run.shown_state(id) {
            State::Pending => Class::Pending,
            State::Ready | State::Backoff { .. } => Class::Waiting,
            State::Running(running) if running.ask.is_some() => Class::Asking,
            State::Unknown => Class::Asking,
            State::Open { .. } if !run.is_at_work(id) => Class::Waiting,
            State::Running(_) | State::Open { .. } if !drawn.driven => Class::Interrupted,
            State::Running(_) | State::Open { .. } => Class::Running,
            State::Succeeded if step.degraded => Class::Degraded,
            State::Succeeded => Class::Succeeded,
            State::Failed => Class::Failed,
            State::Skipped | State::Blocked | State::Cancelled => Class::Left,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Class::Pending => "pending",
            Class::Waiting => "waiting",
            Class::Running => "running",
            Class::Interrupted => "interrupted",
            Class::Asking => "asking",
            Class::Succeeded => "succeeded",
            Class::Degraded => "degraded",
            Class::Failed => "failed",
            Class::Left => "notrun",
        }
    }

    /// Fill and line; readable with black text.
    pub fn colours(self) -> (&'static str, &'static str) {
        match self {
            Class::Pending => ("#ffffff", "#9ca3af"),
            Class::Waiting => ("#f3f4f6", "#6b7280"),
            Class::Running => ("#cffafe", "#0891b2"),
            Class::Interrupted => ("#ffedd5", "#ea580c"),
            Class::Asking => ("#fef3c7", "#d97706"),
            Class::Succeeded => ("#dcfce7", "#16a34a"),
            Class::Degraded => ("#fef9c3", "#ca8a04"),
            Class::Failed => ("#fee2e2", "#dc2626"),
            Class::Left => ("#e5e7eb", "#9ca3af"),
        }
    }
}

/// The step of a run that stands for a step of its plan: the newest round's.
pub(super) fn step_of(run: &Run, number: u32) -> StepId {
    run.scopes[0].steps[number as usize]
}

/// Calls of a script that have one name, one after the other; the worst of them stands for all.
pub(super) struct CallGroup {
    pub name: String,
    pub shown: StepId,
    pub count: usize,
}

/// What a script has called, in the order in which it did, and how many more groups there are than `most`.
pub(super) fn call_groups(drawn: Drawn<'_>, script: StepId, most: usize) -> (Vec<CallGroup>, usize) {
    let run = drawn.run;
    let mut groups: Vec<CallGroup> = Vec::new();
    for &id in run.calls(script).map(|calls| calls.steps.as_slice()).unwrap_or_default() {
        let name = Run::path_without_index(&run.step(id).path);
        match groups.last_mut().filter(|last| last.name == name) {
            Some(group) => {
                group.count += 1;
                if Class::of(drawn, id) == Class::Failed {
                    group.shown = id;
                }
            }
            None => groups.push(CallGroup { name, shown: id, count: 1 }),
        }
    }
    let left_out = groups.len().saturating_sub(most);
    groups.truncate(most);
    (groups, left_out)
}

impl CallGroup {
    /// `shell`, `agent x3`
    pub fn kind_text(&self, run: &Run) -> String {
        let kind = run.operation(self.shown).kind.name();
        if self.count > 1 { format!("{kind} x{}", self.count) } else { kind.into() }
    }
}

/// `agent research.market`, `shell, fan-out`, ...
pub(super) fn kind_text(plan: &Plan, number: u32) -> String {
    let operation = plan.operation(number);
    let mut text = operation.kind.name().to_string();
    if operation.type_name != text {
        text.push_str(&format!(" {}", operation.type_name));
    }
    if operation.foreach.is_some() {
        text.push_str(
            match operation.max_parallel {
                Some(width) => format!(", fan-out ({width} at once)"),
                None => ", fan-out".into(),
            }
            .as_str(),
        );
    }
    if operation.when.is_some() {
        text.push_str(", conditional");
    }
    text
}

/// What the phase does other than wait for all of its steps; empty for the usual one.
pub(super) fn policy_text(plan: &Plan, number: u32) -> String {
    let phase = plan.phase(number);
    let mut parts = Vec::new();
    match phase.join {
        Join::All => {}
        Join::Any => parts.push("join: any, the first one wins".to_string()),
        Join::AtLeastCount(count) => parts.push(format!("join: at least {count}")),
        Join::AtLeastShare(share) => parts.push(format!("join: at least {:.0} %", share * 100.0)),
        Join::FirstCount(count) => parts.push(format!("join: the first {count} win")),
        Join::FirstShare(share) => parts.push(format!("join: the first {:.0} % win", share * 100.0)),
    }
    if phase.on_join == OnJoin::Pause {
        parts.push("else pause".into());
    }
    if phase.on_failure == OnFailure::FailFast {
        parts.push("fail fast".into());
    }
    if let Some(repeat) = &phase.repeat {
        parts.push(format!("repeats from {}, at most {} times", repeat.from.name, repeat.max));
    }
    parts.join(", ")
}

/// Phases in an order in which each comes after those it depends on.
pub(super) fn phases_in_order(plan: &Plan) -> Vec<u32> {
    let first_level = |&phase: &u32| {
        let steps = plan.phases[phase as usize].steps.clone();
        steps.map(|step| plan.steps[step as usize].level).min().unwrap_or(0)
    };
    let mut phases: Vec<u32> = (0..plan.phases.len() as u32).collect();
    phases.sort_by_key(first_level);
    phases
}
