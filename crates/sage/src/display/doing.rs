//! What running steps do at this moment, for those of them that are on the screen.

use std::path::{Path, PathBuf};

use sage_agents::activity::Glances;
use sage_core::run::{Run, StepId};
use sage_engine::project::Project;

/// Nothing is known of a run whose directory is not given.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    run_dir: Option<PathBuf>,
    glances: Glances,
}

impl Doing {
    pub fn of_run(run_dir: &Path) -> Doing {
        Doing { run_dir: Some(run_dir.to_path_buf()), glances: Glances::default() }
    }

    /// One line, as the step's program or agent has written it.
    pub fn now(&mut self, run: &Run, id: StepId) -> Option<String> {
        let step = run.step(id);
        self.glances.at(&Project::scratch(self.run_dir.as_ref()?, &step.path, step.attempts.max(1)))
    }

    /// A picture is done: what was not on it is forgotten.
    pub fn painted(&mut self) {
        self.glances.forget_unseen();
    }
}
