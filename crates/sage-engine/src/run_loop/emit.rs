//! What the loop has decided: journalled, folded, and told once it is durable.

use sage_core::event::Event;

use super::effect::Effect;
use super::{LoopError, RunLoop, fit};
use crate::inbox::Inbox;
use crate::journal::JournalError;
use crate::orchestration::OrchestrationLog;
use crate::teller::Listener;

impl RunLoop {
    /// Puts an event in the next batch and folds it. Gives the number of its record.
    pub(super) fn emit(&mut self, event: impl Into<Event>) -> Result<u64, LoopError> {
        let (mut event, now) = (event.into(), self.around.clock.now_ms());
        self.attention.stamp(&mut event);
        fit::cut_messages(&mut event);
        // Before it is folded: what cannot be saved must not have happened. After an error nothing is flushed.
        let seq = match self.journal.append(event.kind(), now, &event) {
            Err(JournalError::TooLong { bytes, .. }) => return self.fail_too_long(&event, bytes),
            appended => appended?,
        };
        self.must_sync |= !matches!(event, Event::StepSpawned(_));
        self.run.apply(&event, now)?;
        if self.poster.is_some()
            && let Some(wake) = Inbox::news(&event, seq, now, &self.run)
        {
            self.after(seq, Effect::Tell { seq, wake: Box::new(wake) });
        }
        if self.monitor.is_some()
            && let Some(entries) = OrchestrationLog::news(&event, seq, now, &self.run)
        {
            self.after(seq, Effect::Log { seq, entries });
        }
        Ok(seq)
    }

    pub(super) fn after(&mut self, seq: u64, effect: Effect) {
        self.effects.push_back((seq, effect));
    }
}
