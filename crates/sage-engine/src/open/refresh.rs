//! Finished steps that were made from something else than what is there now: another agent, other declared files.
//! Inside a run they are not made again by themselves, because finished work stays; it is told, and can be asked for.

use sage_core::event::{Event, RunRewound};
use sage_core::run::{Run, State, StepId};

use super::{Engine, OpenError};
use crate::cache::{Cache, Subject};
use crate::journal::Journal;
use crate::prepare::{Prepared, Request};

impl Engine {
    /// Paths of finished steps with `cache` that would have another cache key now, in the order of the run.
    pub(super) fn drifted(&self, run: &Run) -> Vec<String> {
        let finished = |id: &StepId| {
            let step = run.step(*id);
            matches!(step.state, State::Succeeded) && !step.degraded && step.cache.is_some()
        };
        let Some(cache) = self.cache.as_ref().map(Cache::of_a_moment) else { return Vec::new() };
        let other = run.step_ids().filter(finished).filter(|&id| self.has_drifted(run, id, &cache));
        other.map(|id| run.step(id).path.to_string()).collect()
    }

    fn has_drifted(&self, run: &Run, id: StepId, cache: &Cache) -> bool {
        let known = run.step(id).cache.as_ref().and_then(|known| known.key);
        let subject =
            Subject::of(run, id, &self.executor, &self.project.root, &self.project.run_dir(&run.id));
        let (Some(known), Some(subject)) = (known, subject) else { return false };
        match Request::new(run, id).prepare(&self.blobs(&run.id), self.evaluator.as_ref(), &self.project.root)
        {
            Prepared::Start(start) => {
                subject.ticket(cache, &start.parts).is_ok_and(|ticket| ticket.key != known)
            }
            _ => false,
        }
    }

    /// These steps, and what depends on them, run again.
    pub(super) fn refresh(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        drifted: &[String],
        now: u64,
    ) -> Result<(), OpenError> {
        for step in drifted {
            // One that depends on another of them runs again already.
            if !run.find(step).is_some_and(|id| run.step(id).state.settled()) {
                continue;
            }
            let rewound = Event::from(RunRewound { from: step.clone() });
            run.apply(&rewound, now)?;
            journal.append(rewound.kind(), now, &rewound)?;
        }
        Ok(())
    }
}
