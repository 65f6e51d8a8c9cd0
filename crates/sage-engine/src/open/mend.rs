//! What resuming mends besides the journal: a checkpoint that is missing or damaged, results that are gone, and checks
//! that have seen other files than there are now.

use sage_core::event::{Event, Payload, StepLost, StepRechecked};
use sage_core::run::{Output, Run};

use super::find::watermark;
use super::{Engine, Notice, OpenError};
use crate::checkpoint::{self, Loaded};
use crate::image::{self, pointers};
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
                None => match self.damaged_image(&loaded, &run.id) {
                    None if watermark(Some(&loaded), &run.id) == Some(head) => return,
                    damaged => damaged,
                },
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

    /// What is wrong with the results that a checkpoint of this run keeps outside of itself.
    pub(crate) fn damaged_image(&self, loaded: &Loaded, run: &str) -> Option<String> {
        let own = loaded.doc.get("runId").and_then(|id| id.as_str()) == Some(run);
        let (of, error) = pointers::missing(&loaded.doc, &self.blobs(run)).filter(|_| own)?;
        Some(format!("{of}: {error}"))
    }

    /// Steps whose result is not on the disk any more, or not what it was, in the order of the run. A result that
    /// cannot be read for another reason is not lost: making it again would cost what it has cost before.
    pub(crate) fn lost_results(&self, run: &Run) -> Result<Vec<String>, OpenError> {
        let blobs = self.blobs(&run.id);
        let mut lost = Vec::new();
        for step in run.live_steps().filter(|step| step.children.is_none()) {
            let payloads: [Option<&Payload>; 2] = match step.output.as_deref() {
                Some(Output::Leaf { result, full, .. }) => [Some(result), full.as_ref()],
                Some(Output::Whole { result, .. }) => [Some(result), None],
                _ => [None, None],
            };
            for payload in payloads.into_iter().flatten().filter(|payload| payload.is_blob()) {
                match blobs.get(&payload.sha) {
                    Ok(_) => continue,
                    Err(error) if error.is_loss() => lost.push(step.path.to_string()),
                    Err(source) => {
                        return Err(OpenError::Result { step: step.path.to_string(), source });
                    }
                }
                break;
            }
        }
        Ok(lost)
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

    /// Checks that passed for other files than there are now are made again.
    pub(super) fn recheck(
        &self,
        run: &mut Run,
        notices: &mut Vec<Notice>,
        now: u64,
    ) -> Result<Vec<Event>, OpenError> {
        let looks = run.has_looked() && self.refuse_unanswered(run, false).is_ok();
        let Some(look) = looks.then(|| self.executor.look(&self.project.root)).flatten() else {
            return Ok(Vec::new());
        };
        let (mut again, mut events) = (Vec::new(), Vec::new());
        for id in run.stale_checks(look) {
            let step = run.step(id).path.clone();
            again.push(step.to_string());
            let event = Event::from(StepRechecked { step });
            run.apply(&event, now)?;
            events.push(event);
        }
        notices.extend((!again.is_empty()).then_some(Notice::Rechecked(again)));
        Ok(events)
    }
}
