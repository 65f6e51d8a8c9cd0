//! Rows of phases: one line each, with what is worth seeing of their steps below.

use sage_core::policy::Join;
use sage_core::run::{Judgement, Phase, PhaseId, State, StepId};

use super::rows::{Left, Rank, Row, Rows};
use super::text::{Line, Tone, clock_text, plural, time_text};
use super::walk;

impl Rows<'_> {
    /// Phases that will never open, together.
    pub(super) fn blocked_row(&self, first: PhaseId, last: PhaseId, group: &[PhaseId], indent: usize) -> Row {
        let mut row = self.phase_row(self.run.phase(first), indent);
        let steps: usize = group.iter().map(|&phase| self.run.phase(phase).members.len()).sum();
        let label = |id| self.run.phase(id).label(&self.run.scope(self.run.phase(id).scope).plan);
        row.name.1 = format!("{} … {}", label(first), label(last));
        let text = format!("{} blocked in {} phases", plural(steps as u64, "step"), group.len());
        row.details = Line::of(Tone::Dim, &text);
        row.stands_for = Some((Left::Pending, steps as u32));
        row
    }

    pub(super) fn phase(&mut self, id: PhaseId, indent: usize) {
        let phase = self.run.phase(id);
        let at = self.rows.len();
        self.rows.push(self.phase_row(phase, indent));
        match phase.judged {
            Some(Judgement::Reached | Judgement::Blocked) => {}
            Some(Judgement::Degraded | Judgement::Missed) => {
                for &member in &phase.members {
                    self.failures(member, indent + 1);
                }
            }
            None if phase.open => {
                for &member in &phase.members {
                    self.step(member, indent + 1);
                }
                // A phase matters as much as the most important of its steps.
                let best = self.rows[at + 1..].iter().map(|row| row.rank).min();
                self.rows[at].rank = best.unwrap_or(Rank::Running);
            }
            None => {}
        }
    }

    fn phase_row(&self, phase: &Phase, indent: usize) -> Row {
        let (sign, tone, rank, left) = match phase.judged {
            Some(Judgement::Reached) => ((Tone::Good, "✓"), Tone::Plain, Rank::PhaseDone, Some(Left::Done)),
            Some(Judgement::Degraded) => ((Tone::Warn, "!"), Tone::Plain, Rank::PhaseDone, Some(Left::Done)),
            Some(Judgement::Missed) => ((Tone::Bad, "✗"), Tone::Plain, Rank::Failed, None),
            Some(Judgement::Blocked) => ((Tone::Dim, "-"), Tone::Dim, Rank::PhaseAhead, Some(Left::Pending)),
            None if !self.run.status.open() => {
                let left = (!phase.open).then_some(Left::Pending);
                ((Tone::Dim, "-"), Tone::Dim, Rank::PhaseAhead, left)
            }
            None if phase.open => (self.phase_sign(phase), Tone::Bold, Rank::Running, None),
            None => ((Tone::Dim, "○"), Tone::Dim, Rank::PhaseAhead, Some(Left::Pending)),
        };
        Row {
            indent,
            sign,
            name: (tone, phase.label(&self.run.scope(phase.scope).plan)),
            details: self.phase_details(phase),
            rank,
            stands_for: left.map(|left| (left, phase.members.len() as u32)),
            goes_on: false,
        }
    }

    fn phase_sign(&self, phase: &Phase) -> (Tone, &'static str) {
        let asks =
            |&id: &StepId| walk::leaves(self.run, id).into_iter().any(|leaf| self.run.waits_for_person(leaf));
        if walk::phase_works(self.run, phase) {
            self.spinner()
        } else if phase.members.iter().any(asks) {
            (Tone::Warn, "?")
        } else {
            (Tone::Dim, "◌")
        }
    }

    fn phase_details(&self, phase: &Phase) -> Line {
        let mut details = Line::default();
        let members = phase.members.len() as u32;
        let counted = plural(u64::from(members), "step");
        match phase.judged {
            Some(Judgement::Blocked) => details.fact(Tone::Dim, &format!("{counted} blocked")),
            Some(judgement) => {
                let inside = walk::counted(self.run, phase);
                let kept = inside.iter().filter(|&&id| self.run.is_reused(id)).count();
                match judgement {
                    Judgement::Reached => details.fact(Tone::Dim, &plural(inside.len() as u64, "step")),
                    _ => details.fact(Tone::Warn, &self.join_text(phase)),
                }
                match kept {
                    0 => {}
                    all if all == inside.len() => details.fact(Tone::Dim, "reused"),
                    some => details.fact(Tone::Dim, &format!("{some} reused")),
                }
                details.fact(Tone::Dim, &time_text(walk::phase_ms(self.run, phase, self.clock_ms)));
            }
            None if phase.open => {
                details.fact(Tone::Plain, &format!("{}/{members}", phase.ok));
                if self.owned {
                    details.fact(Tone::Dim, &clock_text(walk::phase_ms(self.run, phase, self.clock_ms)));
                }
                if let Some(left) = self.forecast.phase_text(phase) {
                    details.fact(Tone::Dim, &left);
                }
            }
            None if !self.run.status.open() => details.fact(Tone::Dim, &format!("{counted} cancelled")),
            None => {
                details.fact(Tone::Dim, &counted);
                let plan = &self.run.scope(phase.scope).plan;
                let before = &plan.phases[phase.plan_phase as usize].dependencies;
                let names: Vec<&str> = before.iter().map(|&p| plan.phase(p).id.as_str()).collect();
                if !names.is_empty() {
                    details.fact(Tone::Dim, &format!("after {}", names.join(", ")));
                }
            }
        }
        details
    }

    /// Why a phase is degraded of which every step succeeded: `, 2 failures tolerated, 1 fallback used`.
    fn shortfall_text(&self, phase: &Phase) -> String {
        let inside: Vec<StepId> = phase.members.iter().flat_map(|&id| walk::leaves(self.run, id)).collect();
        let count = |wanted: &dyn Fn(StepId) -> bool| inside.iter().filter(|&&id| wanted(id)).count() as u64;
        let failed = count(&|id| matches!(self.run.step(id).state, State::Failed));
        let stood_in = count(&|id| self.run.stood_in(id));
        let unchecked = count(&|id| self.run.went_without(id));
        let facts = [
            (failed, format!(", {} tolerated", plural(failed, "failure"))),
            (stood_in, format!(", {} used", plural(stood_in, "fallback"))),
            (unchecked, format!(", {unchecked} not checked")),
        ];
        facts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
    }

    fn join_text(&self, phase: &Phase) -> String {
        let join = self.run.scope(phase.scope).plan.phase(phase.plan_phase).join;
        let members = phase.members.len() as u32 - phase.skipped;
        let (ok, needed) = (phase.ok - phase.skipped, join.needed(members));
        match join {
            _ if ok == members => {
                let why = self.shortfall_text(phase);
                format!("{}{why}", plural(u64::from(members), "step"))
            }
            _ if ok >= needed => format!("{ok} of {members} succeeded"),
            Join::All => format!("{ok} of {members} succeeded"),
            _ => format!("{ok} of {members} succeeded, {needed} needed"),
        }
    }
}
