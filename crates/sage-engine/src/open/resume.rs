//! Resuming a run: recover the journal, take over, and go on from there.

use sage_core::event::{Event, OpenMode, PauseReason, RunEdited, RunOpened, RunRewound};
use sage_core::run::{Run, State, Status, Unowned};
use sage_core::verdict::Verdict;

use super::find::watermark;
use super::{Engine, Fold, Notice, OpenError, ResumeRequest, Resumed};
use crate::journal::{self, Journal, JournalError, JournalFile};

/// What shall be different when a run goes on.
struct Change {
    edit: Option<RunEdited>,
    /// The step from which on all runs again.
    from: Option<String>,
    /// Steps that run again because their agent or their files have changed.
    stale: Vec<String>,
}

impl Engine {
    /// Owns the last run of a feature, unless it is complete and nothing was asked to change.
    pub fn resume(&self, feature: &str, request: ResumeRequest) -> Result<Resumed, OpenError> {
        // Looked up first: a feature that does not exist leaves no trace.
        self.load_checkpoint(feature)?;
        let id = self.last_run(feature)?;
        self.project.refuse_strange()?;
        self.refuse_foreign(feature, &id)?;
        self.project.prepare(self.vfs.as_ref())?;
        let mut notices = Vec::new();
        let lock = self.lock(feature, &mut notices)?;
        let id = self.last_run(feature)?;
        self.refuse_foreign(feature, &id)?;
        let dir = self.project.run_dir(&id);
        self.gone(&dir, &id, &mut notices)?;
        let attended = request.unattended.is_none();
        let (mut run, mut journal, file) = self.recover_or_repair(feature, &id, attended, &mut notices)?;
        if let Some(only) = &request.unattended {
            refuse_if_decided(&run, only, &request)?;
        }
        let drifted = if request.edit.is_none() { self.drifted(&run) } else { Vec::new() };
        let refresh = request.refresh && !drifted.is_empty();
        if !refresh && !drifted.is_empty() {
            notices.push(Notice::Drifted { feature: feature.into(), steps: drifted.clone() });
        }
        let lost = self.lost_results(&run)?;
        match run.status {
            Status::Finished(Verdict::Succeeded | Verdict::Degraded)
                if request.edit.is_none() && request.from.is_none() && !refresh && lost.is_empty() =>
            {
                self.mend_checkpoint(&run, journal.head(), &mut notices);
                return Ok(Resumed::Complete { run: Box::new(run), notices });
            }
            Status::Cancelled { resumable: false } => {
                let template = Box::new(run.template);
                return Err(OpenError::NotResumable { feature: feature.into(), template });
            }
            _ => {}
        }
        let now = self.clock.now_ms();
        let again = self.make_again(&mut run, &mut journal, &lost, now)?;
        if !again.is_empty() {
            notices.push(Notice::ResultsLost(again));
        }
        let stale = if refresh { drifted } else { Vec::new() };
        let edited = request.edit.is_some();
        self.change(&mut run, &mut journal, Change { edit: request.edit, from: request.from, stale }, now)?;
        // After an edit all checks are made again.
        if !edited {
            for event in self.recheck(&mut run, &mut notices, now)? {
                journal.append(event.kind(), now, &event)?;
            }
        }
        let unattended = request.unattended.is_some();
        if !unattended {
            self.take_from_background(feature)?;
        }
        // Left to the background when it was new: this is its start.
        let mode = if unattended && run.tally.opened == 0 { OpenMode::Start } else { OpenMode::Resume };
        let opened =
            RunOpened { settings: request.settings, unattended, ..RunOpened::new(mode, std::process::id()) };
        let file = self.open_event(&mut run, &mut journal, file, opened, now)?;
        let owned = self.own(run, journal, file, lock, notices, request.no_wait, false)?;
        Ok(Resumed::Owned(Box::new(owned)))
    }

    fn change(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        change: Change,
        now: u64,
    ) -> Result<(), OpenError> {
        let Change { edit, from, stale } = change;
        if edit.is_some() || from.is_some() || !stale.is_empty() {
            self.refuse_unanswered(run, false)?;
        }
        if let Some(edit) = edit {
            let edited = Event::from(edit);
            run.apply(&edited, now)?;
            journal.append(edited.kind(), now, &edited)?;
        }
        if let Some(from) = from {
            let step = self.find_step(run, &run.feature, &from)?;
            let rewound = Event::from(RunRewound { from: step });
            run.apply(&rewound, now)?;
            journal.append(rewound.kind(), now, &rewound)?;
        }
        if stale.is_empty() { Ok(()) } else { self.refresh(run, journal, &stale, now) }
    }

    /// A step's path or a phase's. Without a round, the newest one is meant.
    pub(super) fn find_step(&self, run: &Run, feature: &str, name: &str) -> Result<String, OpenError> {
        if let Some(number) = run.plan().find(name) {
            return Ok(run.step(run.scopes[0].steps[number as usize]).path.to_string());
        }
        if let Some(number) = run.plan().template.phases.iter().position(|phase| phase.id == name) {
            return Ok(run.phase_path(run.scopes[0].phases[number]));
        }
        match run.find(name) {
            Some(_) => Ok(name.to_string()),
            None => Err(OpenError::no_step(run, feature, name)),
        }
    }

    /// With a living owner nothing that runs is lost.
    pub(super) fn refuse_unanswered(&self, run: &Run, alive: bool) -> Result<(), OpenError> {
        let asks = |id| {
            let lost = matches!(run.step(id).state, State::Unknown)
                || (!alive && matches!(run.step(id).state, State::Running(_)) && run.holds_slot(id));
            lost && run.operation(id).on_unknown.asks(run.step(id).repeatable)
        };
        match run.step_ids().find(|&id| asks(id)) {
            Some(id) => Err(OpenError::Unanswered(run.step(id).path.to_string())),
            None => Ok(()),
        }
    }

    /// Opens the run's journal; one that is damaged or gone is put together from what is left, if somebody is there
    /// to be told or nothing that was finished is lost.
    pub(super) fn recover_or_repair(
        &self,
        feature: &str,
        id: &str,
        attended: bool,
        notices: &mut Vec<Notice>,
    ) -> Result<(Run, Journal, JournalFile), OpenError> {
        let error = match self.recover(feature, id, notices) {
            Err(OpenError::Journal(error)) if error.is_damage() => error,
            recovered => return recovered,
        };
        let loaded = self.own_checkpoint(feature)?;
        let plan = self.plan_repair(feature, id, error, loaded.as_ref(), false)?;
        if !attended && plan.repaired.lost > 0 {
            let (why, lost) = (plan.repaired.why.clone(), plan.repaired.lost);
            return Err(OpenError::NeedsRepair { feature: feature.into(), why, lost });
        }
        notices.push(Notice::Repaired(Box::new(self.carry_out(plan)?)));
        self.recover(feature, id, notices)
    }

    pub(super) fn recover(
        &self,
        feature: &str,
        id: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<(Run, Journal, JournalFile), OpenError> {
        let loaded = self.own_checkpoint(feature)?;
        if let Some(problem) = loaded.as_ref().and_then(|loaded| loaded.problem.as_ref()) {
            let note = Notice::CheckpointFromBackup(problem.to_string());
            if !notices.contains(&note) {
                notices.push(note);
            }
        }
        let watermark = watermark(loaded.as_ref(), id);
        let mut fold = Fold::default();
        let (dir, sealing) = (self.project.run_dir(id), self.sealing(id));
        let recovered =
            journal::recover(&self.vfs, &dir, watermark, &sealing, |record| fold.take::<OpenError>(record));
        let recovered = match recovered {
            Err(OpenError::Journal(JournalError::Foreign { .. })) if !self.vouches(feature, id) => {
                return Err(OpenError::Foreign(feature.into()));
            }
            recovered => recovered.map_err(|error| self.blame(feature, id, error))?,
        };
        if let Some(torn) = &recovered.torn {
            notices.push(Notice::TornTail { bytes: torn.bytes, saved_to: torn.saved_to.clone() });
        }
        Ok((fold.finish()?, recovered.journal, recovered.file))
    }
}

/// For an owner in the background: it was told to go on before the lock was ours, and the run may have been answered,
/// cancelled or resumed since.
fn refuse_if_decided(run: &Run, only: &str, request: &ResumeRequest) -> Result<(), OpenError> {
    let interrupted = matches!(run.status, Status::Paused { reason: PauseReason::Interrupted, .. });
    let goes_on = run.unowned(request.no_wait) == Unowned::GoesOn;
    match only == run.id && (goes_on || (interrupted && request.after_reboot)) {
        true => Ok(()),
        false => Err(OpenError::NotAlone(run.feature.clone())),
    }
}
