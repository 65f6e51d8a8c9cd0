//! Obstacles that are not the steps': the machine's trouble, and results that are gone from the disk.
//!
//! ```text
//! trouble  -> the step waits, nothing more starts -> all that runs has ended -> run.paused, until -> run.continued
//! unkept   -> its attempt holds the result and stores it when it can; nothing more starts meanwhile
//! lost     -> the step waits, nothing more starts -> all that runs has ended -> step.lost: its maker runs again
//! ```
//! An attempt that ends well proves that the machine has something to give again: then the rest goes on at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::event::{Payload, RunPaused, StepLost, StepParked};
use sage_core::policy::FailureClass;
use sage_core::port::Stop;
use sage_core::run::{Failure, Output, Status, StepId};
use tokio::time::Instant;

use super::effect::Effect;
use super::ended::Over;
use super::timers::Timer;
use super::{LoopError, RunLoop};
use crate::trouble::{Obstacle, Trouble};

/// Between two looks: short at first, because most troubles pass quickly.
const LOOKS_MS: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/// A result that is gone as often as this does not come back by making it again.
const LOSSES: u32 = 3;
/// As wide as this is as wide as any run.
const WIDE: usize = 64;

/// What keeps the run from starting anything, or as much as it could.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    trouble: Option<Trouble>,
    /// Times that trouble was met since an attempt last ended well.
    rounds: usize,
    /// So many at once are known to find what they need; one more for each that ends well.
    width: Option<usize>,
    lost: Vec<Digest>,
    /// How often each step had to make its result again.
    losses: HashMap<Arc<str>, u32>,
}

/// How long until the next look.
pub(crate) fn pause_before(round: usize) -> Duration {
    Duration::from_millis(LOOKS_MS[round.min(LOOKS_MS.len() - 1)])
}

impl RunLoop {
    /// An attempt that never got to its work, or whose work could not be kept: its step waits, with all its tries.
    /// What it used is charged.
    pub(super) fn hindered(&mut self, over: Over, obstacle: Obstacle) -> Result<(), LoopError> {
        if let Obstacle::Lost(digest) = &obstacle
            && let Some(message) = self.cannot_make_again(digest)
        {
            return self.fail(over, Failure::new(FailureClass::Invalid, message));
        }
        let nothing = (!over.worked()).then(Default::default);
        let spent = self.spent(over.id, over.attempt, &over.usage).or(nothing);
        let Over { id, attempt, ms, usage, crowded, .. } = over;
        let (step, class, message) =
            (self.run.step(id).path.clone(), FailureClass::System, obstacle.to_string());
        self.emit(StepParked { step, attempt, class, message, ms, usage, partial: None, spent, crowded })?;
        self.meet(obstacle);
        Ok(())
    }

    /// The attempt holds its result. Whatever else was started now could not be kept either.
    pub(super) fn unkept(&mut self, id: StepId, attempt: u32, trouble: Trouble) {
        let Some(live) = self.live.get_mut(&(id, attempt)) else { return };
        if !std::mem::replace(&mut live.done, true) {
            let (step, cause) = (&self.run.step(id).path, &trouble.cause);
            self.say(format!("warning: cannot store the result of `{step}`: {cause}; retrying"));
        }
        self.meet(Obstacle::Trouble(trouble));
    }

    /// A step that could not even be prepared: nothing has happened to it.
    pub(super) fn unprepared(&mut self, id: StepId, obstacle: Obstacle) -> Result<(), LoopError> {
        if let Obstacle::Lost(digest) = &obstacle
            && let Some(message) = self.cannot_make_again(digest)
        {
            return self.invalid(id, message);
        }
        self.meet(obstacle);
        Ok(())
    }

    /// The `while` of a phase could not see what it asks about: it is evaluated again later.
    pub(super) fn hindered_condition(&mut self, obstacle: Obstacle) -> Result<(), LoopError> {
        self.meet(obstacle);
        Ok(())
    }

    fn meet(&mut self, obstacle: Obstacle) {
        let obstacles = &mut self.obstacles;
        match obstacle {
            Obstacle::Lost(digest) if obstacles.lost.contains(&digest) => {}
            Obstacle::Lost(digest) => obstacles.lost.push(digest),
            Obstacle::Trouble(trouble) => {
                if obstacles.trouble.replace(trouble).is_none() {
                    obstacles.rounds += 1;
                }
                obstacles.width = Some(self.live.len().max(1));
                // What still runs may give back what was lacking, and is worth waiting for.
                self.timers.arm(Instant::now() + pause_before(obstacles.rounds - 1), Timer::Trouble);
            }
        }
    }

    /// The run's directory was taken away: results that went with it are made again, or the user is told.
    pub(super) fn miss_results(&mut self) {
        let (vfs, blobs) = (&self.around.vfs, &self.around.blobs);
        let gone =
            |payload: &&Payload| payload.is_blob() && !vfs.exists(&blobs.path(&payload.sha)).unwrap_or(true);
        let outputs = self.run.live_steps().filter(|step| step.children.is_none());
        let payloads = outputs.filter_map(|step| step.output.as_deref()).flat_map(|output| match output {
            Output::Leaf { result, full, .. } => [Some(result), full.as_ref()],
            Output::Whole { result, .. } => [Some(result), None],
            _ => [None, None],
        });
        let gone: Vec<Digest> = payloads.flatten().filter(gone).map(|payload| payload.sha).collect();
        if self.run.status == Status::Running {
            gone.into_iter().for_each(|digest| self.meet(Obstacle::Lost(digest)));
        } else if !gone.is_empty() {
            let feature = &self.run.feature;
            self.say(format!("warning: results are gone; `sage resume {feature}` makes them again"));
        }
    }

    /// An attempt has done its work: the machine has something to give again.
    pub(super) fn relieve(&mut self) {
        let obstacles = &mut self.obstacles;
        (obstacles.trouble, obstacles.rounds) = (None, 0);
        obstacles.width = obstacles.width.map(|width| width + 1).filter(|&width| width < WIDE);
    }

    /// Whether one more may be started, as far as the machine is concerned.
    pub(super) fn may_start(&self) -> bool {
        let obstacles = &self.obstacles;
        let begun = || {
            let spawns = self.effects.iter().filter(|(_, effect)| matches!(effect, Effect::Spawn { .. }));
            self.live.len() + spawns.count()
        };
        let clear = obstacles.trouble.is_none() && obstacles.lost.is_empty();
        clear && obstacles.width.is_none_or(|width| begun() < width)
    }

    /// The time to look again while others run. A run that stands still is woken by its own timer.
    pub(super) fn trouble_due(&mut self) {
        if self.waiting.is_none() {
            self.obstacles.trouble = None;
        }
    }

    /// Nothing runs any more, and nothing can be started.
    pub(super) fn pause_if_hindered(&mut self) -> Result<(), LoopError> {
        if self.run.status != Status::Running || !self.idle() || self.stopping != Stop::No {
            return Ok(());
        }
        self.make_lost_again()?;
        let Some(Trouble { reason, cause }) = self.obstacles.trouble.clone() else { return Ok(()) };
        let pause = pause_before(self.obstacles.rounds.saturating_sub(1));
        let until = self.around.clock.now_ms().saturating_add(pause.as_millis() as u64);
        self.emit(RunPaused { needs: Some(cause), until: Some(until), ..RunPaused::new(reason) })?;
        if !self.options.no_wait {
            self.waiting = Some(until);
            self.timers.arm(Instant::now() + pause, Timer::Continue);
        }
        Ok(())
    }

    /// The run was stopped by the machine, and nobody but time can say when it goes on.
    pub(super) fn is_in_trouble(&self) -> bool {
        self.obstacles.trouble.is_some()
    }

    pub(super) fn forget_trouble(&mut self) {
        self.obstacles.trouble = None;
    }

    /// Those who made what is gone make it again. What depends on it follows only if it is another result then.
    fn make_lost_again(&mut self) -> Result<(), LoopError> {
        for digest in std::mem::take(&mut self.obstacles.lost) {
            let why = Obstacle::Lost(digest).to_string();
            // One after the other: with the first one, others may have been taken back.
            while let Some(&id) = self.run.makers_of(&digest).first() {
                let step = self.run.step(id).path.clone();
                *self.obstacles.losses.entry(step.clone()).or_default() += 1;
                self.emit(StepLost { step, why: why.clone() })?;
                // What was prepared may have seen it.
                self.gate.forget_prepared();
            }
        }
        Ok(())
    }

    /// Why nobody can make a result again, if so.
    fn cannot_make_again(&self, digest: &Digest) -> Option<String> {
        let makers = self.run.makers_of(digest);
        let losses = &self.obstacles.losses;
        let often = |id: &StepId| losses.get(&self.run.step(*id).path).is_some_and(|&n| n >= LOSSES);
        let text = Obstacle::Lost(*digest).to_string();
        match makers.iter().find(|id| often(id)) {
            Some(&id) => {
                Some(format!("{text}, although `{}` made it {LOSSES} times again", self.run.step(id).path))
            }
            None if makers.is_empty() => Some(format!("{text}, and no finished step made it")),
            None => None,
        }
    }
}
