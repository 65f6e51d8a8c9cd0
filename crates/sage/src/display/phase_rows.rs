//! Rows of phases: one line each, with what is worth seeing of their steps below.

use sage_core::run::{Judgement, Phase, PhaseId, StepId};

use super::phase_text::outcome_text;
use super::rows::{Left, Rank, Row, Rows};
use super::text::{Line, Tone, clock_text, plural, time_text};
use super::walk;

impl Rows<'_> {
    /// Phases that will never open, together.
    pub(super) fn blocked_row(&self, first: PhaseId, last: PhaseId, group: &[PhaseId], indent: usize) -> Row {
        let mut row = self.phase_row(first, indent);
        let steps: usize = group.iter().map(|&phase| self.run.phase(phase).members.len()).sum();
        let label = |id| self.run.phase(id).label(&self.run.scope(self.run.phase(id).scope).plan);
        row.name.1 = format!("{} … {}", label(first), label(last));
        let text = format!("{} blocked in {} phases", plural(steps as u64, "step"), group.len());
        row.details = Line::of(Tone::Dim, &text);
        row.stands_for = Some((Left::Pending, steps as u32));
        row
    }

    /// Rounds of a `repeat` with failures that still count: no later round lacks nothing.
    pub(super) fn earlier_rounds(&mut self, newest: PhaseId, indent: usize) {
        let phase = self.run.phase(newest);
        if phase.round == 1 || phase.judged == Some(Judgement::Reached) {
            return;
        }
        let same = |id: &PhaseId| {
            let earlier = self.run.phase(*id);
            (earlier.scope, earlier.plan_phase) == (phase.scope, phase.plan_phase) && *id < newest
        };
        let degraded = |id: &PhaseId| self.run.phase(*id).judged == Some(Judgement::Degraded);
        let rounds: Vec<PhaseId> = (0..newest.0).map(PhaseId).filter(same).filter(degraded).collect();
        rounds.into_iter().for_each(|round| self.phase(round, indent));
    }

    pub(super) fn phase(&mut self, id: PhaseId, indent: usize) {
        let phase = self.run.phase(id);
        let at = self.rows.len();
        self.rows.push(self.phase_row(id, indent));
        match phase.judged {
            Some(Judgement::Reached) if self.whole => {
                let inside = walk::counted(self.run, phase);
                self.spenders(&inside, indent + 1);
            }
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

    fn phase_row(&self, id: PhaseId, indent: usize) -> Row {
        let phase = self.run.phase(id);
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
            details: self.phase_details(id),
            rank,
            stands_for: left.map(|left| (left, phase.members.len() as u32)),
            goes_on: false,
            works: None,
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

    fn phase_details(&self, id: PhaseId) -> Line {
        let phase = self.run.phase(id);
        let mut details = Line::default();
        let inside = walk::counted(self.run, phase);
        let counted = plural(inside.len() as u64, "step");
        let elapsed_ms = self.run.phase_ms(id, self.clock_ms);
        match phase.judged {
            Some(Judgement::Blocked) => details.fact(Tone::Dim, &format!("{counted} blocked")),
            Some(judgement) => {
                let kept = inside.iter().filter(|&&id| self.run.is_reused(id)).count();
                let tone = if judgement == Judgement::Reached { Tone::Dim } else { Tone::Warn };
                details.fact(tone, &outcome_text(self.run, phase));
                match kept {
                    0 => {}
                    all if all == inside.len() => details.fact(Tone::Dim, "reused"),
                    some => details.fact(Tone::Dim, &format!("{some} reused")),
                }
                details.fact(Tone::Dim, &time_text(elapsed_ms));
                self.used(inside.iter().copied(), &mut details);
            }
            None if phase.open => {
                let done = inside.iter().filter(|&&id| self.run.step(id).state.ok()).count();
                details.fact(Tone::Plain, &format!("{done}/{}", inside.len()));
                if self.owned {
                    details.fact(Tone::Dim, &clock_text(elapsed_ms));
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
}
