//! What a record can hold: messages are cut to a length that people read, and a record that is still too long
//! fails its step. A run never becomes one that cannot be saved.

use sage_core::event::{End, Event, StepFinished};
use sage_core::policy::FailureClass;
use sage_core::run::State;

use super::{LoopError, RunLoop};
use crate::journal::{JournalError, MAX_LINE_BYTES};

/// Longer messages are data that got into a message.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// Messages come from agents, schemas and scripts; nobody else knows how long they are.
pub(super) fn cut_messages(event: &mut Event) {
    match event {
        Event::StepFinished(event) => cut_end(&mut event.end),
        Event::StepReturned(event) => cut_end(&mut event.end),
        Event::StepRetried(event) => cut(&mut event.message),
        Event::StepParked(event) => cut(&mut event.message),
        Event::StepFellBack(event) => cut(&mut event.why),
        Event::TargetParked(event) => cut(&mut event.message),
        _ => {}
    }
}

fn cut_end(end: &mut End) {
    if let End::Failed { message, .. } = end {
        cut(message);
    }
}

fn cut(message: &mut String) {
    let bytes = message.len();
    if bytes > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push_str(&format!(" [cut off: {bytes} bytes]"));
    }
}

impl RunLoop {
    /// An event whose record is too long was neither folded nor saved: its step fails instead.
    pub(super) fn fail_too_long(&mut self, event: &Event, bytes: usize) -> Result<u64, LoopError> {
        let kind = event.kind();
        let (step, attempt) = match event {
            Event::StepExpanded(event) => (event.step.clone(), None),
            Event::StepFinished(event) => (event.step.clone(), Some((event.attempt, event.ms))),
            _ => return Err(JournalError::TooLong { kind: kind.into(), bytes }.into()),
        };
        let known = self.run.find(&step).map(|id| self.run.step(id));
        let attempts = known.map_or(0, |step| step.attempts);
        debug_assert!(known.is_none_or(|step| !matches!(step.state, State::Succeeded)));
        let (attempt, ms) = attempt.unwrap_or((attempts, 0));
        let limit = MAX_LINE_BYTES >> 20;
        let message = format!("its record `{kind}` has {bytes} bytes; a record holds at most {limit} MiB");
        let end = End::Failed { class: FailureClass::Invalid, message, partial: None };
        self.emit(StepFinished::new(step, attempt, end, ms, Default::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R4
    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut short = "as it is".to_string();
        cut(&mut short);
        assert_eq!(short, "as it is");
        let mut long = "ä".repeat(LONGEST_MESSAGE);
        cut(&mut long);
        assert!(
            long.len() < LONGEST_MESSAGE + 64 && long.ends_with("[cut off: 32768 bytes]"),
            "{}",
            long.len()
        );
    }
}
