//! Driving an owned run to its end, also across a disk that cannot be written for a while.
//!
//! ```text
//! drive -> the journal cannot be written -> the loop ends, its children are gone -> wait -> recover, fold, open again -> drive
//! ```
//! After a failed write nobody knows what of the fold is on the disk, so the run in memory is dropped and read anew.
//! What must stay true: the lock is held all the time; no child of the loop before lives when the next one begins.

use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{OpenMode, RunOpened};
use sage_core::run::Run;

use super::{Engine, OpenError, Owned, history, register};
use crate::lock::FeatureLock;
use crate::run_loop::{Interrupts, LoopError, RunLoop, Stopped, pause_before};
use crate::trouble::Trouble;

impl Owned {
    /// Runs to the end or a pause, keeps the registry true, and gives the run back.
    pub async fn drive(self) -> Result<Run, LoopError> {
        let Owned { mut run_loop, lock, engine, no_wait, .. } = self;
        let (feature, id) = (run_loop.run().feature.clone(), run_loop.run().id.clone());
        let state = engine.project.state();
        let result = loop {
            match run_loop.drive().await {
                Ok((run, used)) => {
                    register(&state, &run, 0);
                    history::save(&state, &used);
                    break Ok(run);
                }
                Err(stopped) => {
                    let place = Place { engine: &engine, lock: &lock, feature: &feature, id: &id, no_wait };
                    match place.stand_by(*stopped).await {
                        Ok(next) => run_loop = next,
                        Err(error) => break Err(error),
                    }
                }
            }
        };
        drop(lock);
        result
    }
}

/// The run that is waited with.
struct Place<'a> {
    engine: &'a Engine,
    lock: &'a Arc<FeatureLock>,
    feature: &'a str,
    id: &'a str,
    no_wait: bool,
}

impl Place<'_> {
    /// Waits until the journal can be written again; then the run goes on where its journal says it is.
    async fn stand_by(&self, stopped: Stopped) -> Result<RunLoop, LoopError> {
        let Stopped { error, mut interrupts, tell } = stopped;
        let LoopError::Storage(journal) = &error else { return Err(error) };
        let Some(trouble) = Trouble::of_journal(journal) else { return Err(error) };
        if self.no_wait {
            return Err(LoopError::Paused(trouble.cause));
        }
        let say = |line: String| tell.iter().for_each(|tell| tell(line.clone()));
        say(format!("warning: {}; waiting until the run can be saved", trouble.cause));
        for round in 0.. {
            if interrupted(&mut interrupts, pause_before(round)).await {
                return Err(LoopError::Interrupted(trouble.cause));
            }
            match self.open_again() {
                Ok(next) => {
                    say("the run can be saved again; it goes on".into());
                    return Ok(next.in_place_of(interrupts, tell));
                }
                Err(OpenError::Journal(journal)) if Trouble::of_journal(&journal).is_some() => {}
                Err(OpenError::Journal(journal)) => return Err(LoopError::Storage(journal)),
                Err(OpenError::Fold(fold)) => return Err(LoopError::Fold(fold)),
                // Other files than the journal: as passing as the journal itself was.
                Err(_) => {}
            }
        }
        Err(LoopError::Paused(trouble.cause))
    }

    /// As the next owner would, with the lock that is ours already.
    fn open_again(&self) -> Result<RunLoop, OpenError> {
        let (engine, mut notices) = (self.engine, Vec::new());
        engine.gone(&engine.project.run_dir(self.id), self.id, &mut notices)?;
        let (mut run, mut journal, file) = engine.recover(self.feature, self.id, &mut notices)?;
        let opened = RunOpened { unattended: true, ..RunOpened::new(OpenMode::Resume, std::process::id()) };
        let file = engine.open_event(&mut run, &mut journal, file, opened, engine.clock.now_ms())?;
        let owned = engine.own(run, journal, file, self.lock.clone(), notices, self.no_wait, false)?;
        Ok(owned.run_loop)
    }
}

/// Whether somebody interrupted before the time was over.
async fn interrupted(interrupts: &mut Interrupts, time: Duration) -> bool {
    tokio::time::timeout(time, interrupts.next()).await.is_ok()
}
