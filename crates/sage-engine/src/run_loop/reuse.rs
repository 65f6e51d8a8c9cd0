//! A step that has a result in this run already: nothing is run, and its file is made to hold that result.
//!
//! A file that is gone, or that another edit of the template has written since, is written again, off the loop.
//! A result that cannot be written again, because only its beginning was kept, is not reused: the step runs.

use sage_core::digest::Digest;
use sage_core::event::StepReused;
use sage_core::run::{State, StepId};

use super::{Input, LoopError, RunLoop};
use crate::output::Written;
use crate::prepare::Start;
use crate::results::{Face, artifacts_of, value_of};
use crate::trouble::Refused;

/// What became of the file of a result that is reused.
#[derive(Debug)]
pub(crate) struct Restored {
    start: Start,
    /// `None`: the file is as it should be.
    file: Result<Option<Written>, Refused>,
}

impl RunLoop {
    pub(super) fn is_reusable(&self, id: StepId, key: Digest) -> bool {
        // A check is about the project as it is now, not about what it was asked.
        let remembers = !self.run.step(id).fresh && !self.run.operation(id).is_check();
        remembers && !self.lookups.unrestored.contains(&id) && self.run.memo.contains_key(&key)
    }

    pub(super) fn reuse(&mut self, id: StepId, start: Start) -> Result<(), LoopError> {
        let known = self.run.memo.get(&start.parts.key()).cloned();
        let (Some(target), Some(known)) = (start.output.clone(), known) else {
            return self.reused(id, &start, None);
        };
        self.held.set_aside(id);
        let (around, sender) = (self.around.clone(), self.sender.clone());
        tokio::spawn(async move {
            let restore = move || {
                let value = value_of(&known, Face::Full, &around.blobs)?;
                around.outputs.restore(&target, &artifacts_of(&known), &value)
            };
            let file = tokio::task::spawn_blocking(restore).await;
            let file = file.unwrap_or_else(|error| Err(format!("internal: {error}").into()));
            let _ = sender.send(Input::Restored(id, Box::new(Restored { start, file }))).await;
        });
        Ok(())
    }

    pub(super) fn restored(&mut self, id: StepId, restored: Restored) -> Result<(), LoopError> {
        self.held.take_back(id);
        let ready = matches!(self.run.step(id).state, State::Ready | State::Backoff { .. });
        if !self.running() || !ready {
            return Ok(());
        }
        match restored.file {
            Ok(file) => self.reused(id, &restored.start, file),
            Err(Refused::Hindered(obstacle)) => self.unprepared(id, obstacle),
            Err(Refused::Invalid(_)) => {
                self.lookups.unrestored.insert(id);
                self.begin(id, restored.start)
            }
        }
    }

    fn reused(&mut self, id: StepId, start: &Start, file: Option<Written>) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        let event = StepReused::new(step, start.parts.key(), start.parts.shortened());
        let event = match file {
            Some(Written { path, aside }) => StepReused { artifacts: Some(vec![path]), aside, ..event },
            None => event,
        };
        self.emit(event).map(drop)
    }
}
