//! What resuming mends besides the journal: a checkpoint that is missing or damaged, and results that are gone.

use sage_core::event::{Event, Payload, StepLost};
use sage_core::run::{Output, Run, StepId};

use super::find::watermark;
use super::{Engine, Notice, OpenError};
use crate::checkpoint;
use crate::image;
use crate::journal::{Head, Journal};

impl Engine {
    /// Paints a run that nobody drives, unless its checkpoint is whole and of this head.
    pub(super) fn mend_checkpoint(&self, run: &Run, head: Head, notices: &mut Vec<Notice>) {
        let path = self.project.checkpoint(&run.feature);
        let why = match checkpoint::load(self.vfs.as_ref(), &path) {
            Ok(loaded) => match &loaded.problem {
                Some(problem) => Some(problem.to_string()),
                None if !loaded.is_sealed(self.key.as_ref(), &run.feature) => {
                    Some("it was not written by this user".into())
                }
                None if watermark(Some(&loaded), &run.id) == Some(head) => return,
                None => None,
            },
            Err(error) => Some(error.to_string()),
        };
        self.clear_place(&path);
        // A view that cannot be written is written the next time; `sage verify` tells as long as it is damaged.
        let written =
            image::repaint(self.vfs.as_ref(), &path, &self.blobs(&run.id), run, head, self.key.as_ref());
        if written.is_ok() {
            notices.extend(why.map(Notice::CheckpointWritten));
        }
    }

    /// Steps whose result is not on the disk any more, or not what it was, in the order of the run.
    pub(crate) fn lost_results(&self, run: &Run) -> Vec<String> {
        let blobs = self.blobs(&run.id);
        let gone = |payload: &Payload| payload.is_blob() && blobs.get(&payload.sha).is_err();
        let lost = |id: &StepId| match run.step(*id).output.as_deref() {
            Some(Output::Leaf { result, full, .. }) => gone(result) || full.as_ref().is_some_and(gone),
            Some(Output::Whole { result, .. }) => gone(result),
            _ => false,
        };
        let made_here = run.step_ids().filter(|&id| run.step(id).children.is_none());
        made_here.filter(lost).map(|id| run.step(id).path.to_string()).collect()
    }

    /// Those steps run again; what depends on them follows if they give something else.
    pub(super) fn make_again(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        steps: &[String],
        now: u64,
    ) -> Result<Vec<String>, OpenError> {
        let mut again = Vec::new();
        for step in steps {
            let lost = Event::from(StepLost { step: step.as_str().into(), why: "its result is gone".into() });
            // One that another round has followed is nobody's input any more, and cannot run again.
            if run.apply(&lost, now).is_ok() {
                journal.append(lost.kind(), now, &lost)?;
                again.push(step.clone());
            }
        }
        Ok(again)
    }
}
