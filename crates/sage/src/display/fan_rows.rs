//! Rows of fan-outs: one with a bar, and below it what is at work and what needs somebody's eye.

use sage_core::run::{State, StepId};

use super::rows::{FAN_FAILURES, Rank, Row, Rows};
use super::text::{Line, Tone, clock_text};
use super::walk;
use super::why::wait_phrase;

/// Running items that are listed below a fan-out.
const FAN_RUNNING: usize = 8;

impl Rows<'_> {
    pub(super) fn fan_row(&self, id: StepId, items: &[StepId], indent: usize) -> Row {
        let mut row = self.step_row(id, indent);
        let count = |wanted: &dyn Fn(&State) -> bool| {
            items.iter().filter(|&&i| wanted(self.run.shown_state(i))).count()
        };
        let done = count(&State::ok);
        let running = count(&|state| {
            matches!(state, State::Running(r) if r.ask.is_none()) || matches!(state, State::Open { .. })
        });
        let failed = count(&|state| matches!(state, State::Failed));
        let mut details = Line::default();
        if matches!(self.run.shown_state(id), State::Open { .. }) {
            let columns = if self.width >= 100 { 20 } else { 10 };
            details.append(bar(done, items.len(), columns));
            details.push(Tone::Plain, " ");
        }
        details.push(Tone::Plain, &format!("{done}/{}", items.len()));
        if running > 0 && self.owned {
            details.fact(Tone::Plain, &format!("{running} running"));
        }
        if failed > 0 {
            details.fact(Tone::Bad, &format!("{failed} failed"));
        }
        details.fact(Tone::Dim, &clock_text(self.elapsed_ms(id)));
        // Last: where it is narrow the numbers matter more.
        if let Some(waiting) = self.fan_waiting(items) {
            details.fact(Tone::Dim, &waiting);
        }
        row.details = details;
        row.stands_for = Some((self.weight(id).1, items.len() as u32));
        row
    }

    /// `3 wait for a slot`: how many items could start but for something, and what the first one waits for.
    fn fan_waiting(&self, items: &[StepId]) -> Option<String> {
        let mut waiting = items.iter().filter(|&&id| matches!(self.run.shown_state(id), State::Ready));
        let wait = self.run.wait_reason(*waiting.next()?)?;
        let phrase = wait_phrase(self.run, &wait, self.now_ms)?;
        let count = waiting.count() + 1;
        Some(format!("{count} {} {phrase}", if count == 1 { "waits" } else { "wait" }))
    }

    /// Below a fan-out only what is at work and what needs somebody's eye is listed.
    pub(super) fn fan_troubles(&mut self, items: &[StepId], indent: usize) {
        let leaves: Vec<StepId> =
            items.iter().flat_map(|&item| walk::leaves_and_failures(self.run, item)).collect();
        let (mut failures, mut running) = (0, 0);
        for id in leaves {
            match self.weight(id).0 {
                Rank::Asking => {}
                Rank::Failed if failures < FAN_FAILURES => failures += 1,
                Rank::Running if running < FAN_RUNNING && self.works(id) => running += 1,
                _ => continue,
            }
            let at = self.rows.len();
            self.leaf(id, self.inner_name(id), indent);
            // The fan-out's own row counts them.
            self.rows[at..].iter_mut().for_each(|row| row.stands_for = None);
        }
    }
}

fn bar(done: usize, all: usize, columns: usize) -> Line {
    let full = (done * columns).checked_div(all).unwrap_or(columns);
    Line::of(Tone::Good, &"█".repeat(full)).with(Tone::Dim, &"░".repeat(columns - full))
}
