//! Which steps are certainly finished when another one starts: its ancestors.
//!
//! Asked for the steps that an expression mentions. A full closure would be quadratic, so one phase's
//! closure is kept at a time and a budget bounds the rest; beyond it everything counts as an ancestor and
//! the engine's strict "undefined" is what remains.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::names::Names;

/// Visits of phases and steps, over all questions of one check.
const BUDGET: u64 = 20_000_000;

pub struct Ancestry<'c, 't> {
    names: &'c Names<'t>,
    budget: Cell<u64>,
    last: RefCell<Option<(u32, Closure)>>,
}

/// Phases that are done as wholes, and single steps besides.
#[derive(Default)]
struct Closure {
    phases: Vec<bool>,
    steps: HashSet<u32>,
}

impl<'c, 't> Ancestry<'c, 't> {
    pub fn new(names: &'c Names<'t>) -> Ancestry<'c, 't> {
        Ancestry { names, budget: Cell::new(BUDGET), last: RefCell::new(None) }
    }

    /// Is `step` done before `operation` starts?
    pub fn has(&self, operation: u32, step: u32) -> bool {
        let (phase, _) = self.names.places[operation as usize];
        if self.in_phase_closure(phase, |closure| closure.has(self.names, step)) {
            return true;
        }
        let needs = &self.names.needs[operation as usize];
        if needs.is_empty() || needs.contains(&step) {
            return !needs.is_empty();
        }
        let mut closure = self.empty();
        self.grow(&mut closure, Vec::new(), needs.clone());
        closure.has(self.names, step) || self.budget.get() == 0
    }

    /// Is the whole phase `before` done before any step of `phase` starts?
    pub fn is_before(&self, before: u32, phase: u32) -> bool {
        self.in_phase_closure(phase, |closure| closure.phases[before as usize])
    }

    /// Is `step` in `phase`, or done before it?
    pub fn has_by_end_of(&self, phase: u32, step: u32) -> bool {
        self.names.places[step as usize].0 == phase
            || self.in_phase_closure(phase, |closure| closure.has(self.names, step))
    }

    /// May `operation` see `step` of the round before, because a repeat goes around both?
    pub fn is_in_loop(&self, operation: u32, step: u32) -> bool {
        let (inner, outer) = (self.names.places[operation as usize].0, self.names.places[step as usize].0);
        let member = |phase: u32, from: u32, end: u32| {
            (phase == end || self.is_before(phase, end)) && (phase == from || self.is_before(from, phase))
        };
        self.names.template.phases.iter().enumerate().any(|(end, phase)| {
            let from = phase.repeat.as_ref().and_then(|repeat| self.names.find_phase(&repeat.from.name));
            from.is_some_and(|from| member(inner, from, end as u32) && member(outer, from, end as u32))
        })
    }

    fn in_phase_closure(&self, phase: u32, ask: impl Fn(&Closure) -> bool) -> bool {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(of, _)| *of != phase) {
            let mut closure = self.empty();
            self.grow(&mut closure, self.names.dependencies[phase as usize].clone(), Vec::new());
            *last = Some((phase, closure));
        }
        self.budget.get() == 0 || last.as_ref().is_some_and(|(_, closure)| ask(closure))
    }

    fn empty(&self) -> Closure {
        Closure { phases: vec![false; self.names.template.phases.len()], steps: HashSet::new() }
    }

    fn grow(&self, closure: &mut Closure, mut phases: Vec<u32>, mut steps: Vec<u32>) {
        let names = self.names;
        loop {
            let left = self.budget.get();
            if left == 0 {
                return;
            }
            self.budget.set(left - 1);
            if let Some(phase) = phases.pop() {
                if !std::mem::replace(&mut closure.phases[phase as usize], true) {
                    phases.extend(&names.dependencies[phase as usize]);
                    let first = names.first[phase as usize] as usize;
                    let members = first..first + names.phase(phase).operations.len();
                    steps.extend(names.needs[members].iter().flatten());
                }
            } else if let Some(step) = steps.pop() {
                if !closure.has(names, step) {
                    closure.steps.insert(step);
                    phases.extend(&names.dependencies[names.places[step as usize].0 as usize]);
                    steps.extend(&names.needs[step as usize]);
                }
            } else {
                return;
            }
        }
    }
}

impl Closure {
    fn has(&self, names: &Names<'_>, step: u32) -> bool {
        self.phases[names.places[step as usize].0 as usize] || self.steps.contains(&step)
    }
}
