//! Notices when phases are judged: the fold derives it, so no event says so.

use sage_core::event::Event;
use sage_core::run::{Judgement, PhaseId, Run};

#[derive(Debug, Default)]
pub(crate) struct PhaseWatch {
    judged: Vec<Option<Judgement>>,
}

impl PhaseWatch {
    /// Phases that the event has brought to their end.
    pub fn newly_judged(&mut self, run: &Run, event: &Event) -> Vec<PhaseId> {
        if matches!(event, Event::StepStarted(_) | Event::StepSpawned(_) | Event::StepRetried(_)) {
            return Vec::new();
        }
        if matches!(event, Event::RunEdited(_)) {
            self.judged.clear();
        }
        self.judged.resize(run.phases.len(), None);
        let mut newly = Vec::new();
        for (number, (known, phase)) in self.judged.iter_mut().zip(&run.phases).enumerate() {
            if phase.judged.is_some() && *known != phase.judged {
                newly.push(PhaseId(number as u32));
            }
            *known = phase.judged;
        }
        newly
    }
}
