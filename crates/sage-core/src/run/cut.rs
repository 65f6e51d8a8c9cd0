//! Attempts that were cut off because their owner was killed: what they are charged with, and the correction once
//! their agent's own records tell more.

use std::sync::Arc;

use super::spend::with_cost;
use crate::budget::Amount;
use crate::event::StepRecovered;
use crate::port::Usage;
use crate::run::{Run, StepId};

/// An attempt that was cut off, as it was charged.
#[derive(Clone, Debug)]
pub struct Cut {
    pub step: Arc<str>,
    pub attempt: u32,
    pub agent: Option<String>,
    pub session: Option<Arc<str>>,
    /// Which owner of the run found it so.
    pub opened: u32,
    pub usage: Usage,
    settled: Amount,
    /// The nodes of the budget tree that it counts in.
    way: Vec<String>,
    unattributed: bool,
}

impl Run {
    /// Whatever was under way when the last owner died is charged with what it had told by then, else with all that
    /// it might have spent.
    pub(super) fn settle_cut(&mut self, id: StepId) {
        let cut: Vec<(u32, Usage)> =
            self.step(id).beside.iter().map(|beside| (beside.attempt, beside.used.clone())).collect();
        for (attempt, used) in cut {
            let told = self.tally.unattributed;
            let way = self.way(id).into_iter().map(str::to_string).collect();
            let (usage, settled) = self.charge(id, attempt, 0, &used, None);
            if self.demand(id).spends {
                let unattributed = self.tally.unattributed > told;
                let (step, session) = (self.step(id).path.clone(), self.step(id).session.clone());
                let (agent, opened) = (self.agent_of(id).map(str::to_string), self.tally.opened);
                self.cut.push(Cut {
                    step,
                    attempt,
                    agent,
                    session,
                    opened,
                    usage,
                    settled,
                    way,
                    unattributed,
                });
            }
        }
    }

    /// The newest attempt of this number that was cut off.
    pub fn cut_attempt(&self, step: &str, attempt: u32) -> Option<&Cut> {
        self.cut.iter().rfind(|cut| &*cut.step == step && cut.attempt == attempt)
    }

    /// Attempts that the present owner found cut off.
    pub fn cut_now(&self) -> impl Iterator<Item = &Cut> {
        self.cut.iter().filter(|cut| cut.opened == self.tally.opened)
    }

    /// The agent's own records tell what it really was.
    pub(super) fn recovered(&mut self, event: &StepRecovered) {
        let found = self.cut.iter().rposition(|cut| cut.step == event.step && cut.attempt == event.attempt);
        let Some(at) = found else { return };
        let cut = &mut self.cut[at];
        let settled = Amount::of(&event.usage, event.usage.cost_micro_usd());
        let usage = with_cost(&event.usage, settled);
        let way: Vec<&str> = cut.way.iter().map(String::as_str).collect();
        self.ledger.correct(&way, cut.settled, settled);
        if std::mem::take(&mut cut.unattributed) {
            self.tally.unattributed = self.tally.unattributed.saturating_sub(1);
        }
        let old = std::mem::replace(&mut cut.usage, usage.clone());
        cut.settled = settled;
        self.tally.usage.subtract(&old);
        self.tally.usage.add(&usage);
        if let Some(id) = self.find(&event.step) {
            let sum = self.step_mut(id).usage.get_or_insert_default();
            sum.subtract(&old);
            sum.add(&usage);
        }
    }
}
