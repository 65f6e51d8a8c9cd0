//! What people say to running agents: journaled, then given to the attempt.

use sage_core::event::StepMessaged;
use sage_core::port::Message;
use sage_core::template::Kind;

use super::effect::Effect;
use super::{LoopError, RunLoop};

impl RunLoop {
    /// Said to the newest attempt of a step. One that has ended, or is being ended, hears nothing more: the sender
    /// learns that from the journal, which does not have the message.
    pub(super) fn message(
        &mut self,
        step: &str,
        text: String,
        by: String,
        id: &str,
    ) -> Result<(), LoopError> {
        let Some(found) = self.run.find(step).filter(|&found| self.run.kind(found) == Kind::Agent) else {
            return Ok(());
        };
        let attempt = self.run.step(found).attempts;
        let live = self.live.get(&(found, attempt));
        let live = live.filter(|live| !live.done && !live.given_up && live.ends.is_none());
        let messages = live.map(|live| live.messages.clone()).filter(|messages| !messages.is_closed());
        let Some(messages) = messages else { return Ok(()) };
        let (step, signal) = (self.run.step(found).path.clone(), id.to_string());
        let message = Message { id: signal.clone(), text: text.clone() };
        let seq = self.emit(StepMessaged { step, attempt, by, text, signal })?;
        self.after(seq, Effect::Message(messages, message));
        Ok(())
    }
}
