//! The last look: before a run ends, checks that passed before it waited, or before an agent worked, are compared with
//! the files once more.
//!
//! Meanwhile the files can change, also by an agent that was only to read. A check holds for the files that it saw, so
//! one that saw other files runs again. A run looks once: what changes while that check runs is not noticed.

use sage_core::digest::Digest;
use sage_core::event::StepRechecked;

use super::{Input, LoopError, RunLoop};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLook {
    NotYet,
    Under,
    Done,
}

impl RunLoop {
    /// Whether the end has to wait for the look. Starts it.
    pub(super) fn looks_once_more(&mut self) -> bool {
        if self.last_look == LastLook::NotYet && self.run.went_on_after_check() {
            self.last_look = LastLook::Under;
            let (executor, project) = (self.around.executor.clone(), self.around.project.clone());
            let sender = self.sender.clone();
            tokio::spawn(async move {
                let look = tokio::task::spawn_blocking(move || executor.look(&project));
                let _ = sender.send(Input::Looked(look.await.unwrap_or_default())).await;
            });
        }
        self.last_look == LastLook::Under
    }

    /// A project that cannot be read says nothing about the check.
    pub(super) fn looked_once_more(&mut self, look: Option<Digest>) -> Result<(), LoopError> {
        self.last_look = LastLook::Done;
        for id in look.map(|look| self.run.stale_checks(look)).unwrap_or_default() {
            let step = self.run.step(id).path.clone();
            self.emit(StepRechecked { step })?;
        }
        Ok(())
    }
}
