//! `sage repair`: what resuming would mend, on its own, and without doing it if only the plan is wanted.

use sage_core::run::Run;

use super::{Engine, Fold, Notice, OpenError};
use crate::checkpoint::Loaded;
use crate::journal::{self, JournalError};
use crate::repair::Repaired;

/// What was, or would be, repaired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    pub run: String,
    /// The journal, if it was damaged.
    pub journal: Option<Repaired>,
    /// Why the checkpoint was written anew.
    pub checkpoint: Option<String>,
    /// Steps whose results are gone: they run again when the run is resumed.
    pub lost: Vec<String>,
}

impl Repair {
    /// Nothing was wrong.
    pub fn is_nothing(&self) -> bool {
        self.journal.is_none() && self.checkpoint.is_none() && self.lost.is_empty()
    }
}

impl Engine {
    /// Repairs the last run of a feature, or says what a repair would do.
    pub fn repair(&self, feature: &str, dry_run: bool) -> Result<Repair, OpenError> {
        let id = self.last_run(feature)?;
        self.refuse_foreign(feature, &id)?;
        if dry_run {
            return self.would_repair(feature, &id);
        }
        self.project.prepare(self.vfs.as_ref())?;
        let mut notices = Vec::new();
        let _lock = self.lock(feature, &mut notices)?;
        let id = self.last_run(feature)?;
        self.refuse_foreign(feature, &id)?;
        self.gone(&self.project.run_dir(&id), &id, &mut notices)?;
        let (run, journal, _file) = self.recover_or_repair(feature, &id, true, &mut notices)?;
        self.mend_checkpoint(&run, journal.head(), &mut notices);
        let mut repair = Repair { lost: self.lost_results(&run)?, run: id, ..Repair::default() };
        for notice in notices {
            match notice {
                Notice::Repaired(repaired) => repair.journal = Some(*repaired),
                Notice::CheckpointWritten(why) => repair.checkpoint = Some(why),
                _ => {}
            }
        }
        Ok(repair)
    }

    fn would_repair(&self, feature: &str, id: &str) -> Result<Repair, OpenError> {
        let loaded = self.own_checkpoint(feature)?;
        let mut repair = Repair { run: id.into(), ..Repair::default() };
        repair.checkpoint = match &loaded {
            None => Some("there is none that can be read".into()),
            Some(Loaded { problem: Some(problem), .. }) => Some(problem.to_string()),
            Some(loaded) => self.damaged_image(loaded, id),
        };
        match self.fold_alone(feature, id) {
            Ok(run) => repair.lost = self.lost_results(&run)?,
            Err(OpenError::Journal(error)) if error.is_damage() => {
                let plan = self.plan_repair(feature, id, error, loaded.as_ref(), true)?;
                repair.journal = Some(plan.repaired);
            }
            Err(error) => return Err(error),
        }
        Ok(repair)
    }

    fn fold_alone(&self, feature: &str, id: &str) -> Result<Run, OpenError> {
        let loaded = self.own_checkpoint(feature)?;
        let (dir, mut fold) = (self.project.run_dir(id), Fold::default());
        let watermark = super::watermark(loaded.as_ref(), id);
        let checked =
            journal::check(self.vfs.as_ref(), &dir, watermark, |record| fold.take::<OpenError>(record));
        let checked = checked.map_err(|error| self.blame(feature, id, error))?;
        if !self.sealing(id).admits(checked.sealed.as_ref()) {
            return Err(JournalError::Foreign { path: dir.join(journal::FILE_NAME) }.into());
        }
        fold.finish().map_err(|_| JournalError::Missing { path: dir.join(journal::FILE_NAME) }.into())
    }
}
