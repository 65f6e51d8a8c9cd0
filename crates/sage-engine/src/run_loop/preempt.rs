//! P0 work does not wait for lesser work (P7): an agent with a resumable session gives its slot away.
//!
//! Only agents that can go on where they were are stopped, one at a time, the least important and youngest
//! first; all other steps finish. Its step is ready again at once and goes on in its session when it is its turn.

use sage_core::event::StepPreempted;
use sage_core::port::Stop;
use sage_core::run::{State, StepId};

use super::gate::Why;
use super::{Ends, Live, LoopError, RunLoop};

const URGENT: u8 = 0;

impl RunLoop {
    /// Called with every turn: cheap as long as nothing urgent waits.
    pub(super) fn make_way(&mut self) -> Result<(), LoopError> {
        if !self.running() || self.live.is_empty() {
            return Ok(());
        }
        let urgent = self.run.urgent_ready().filter(|&id| self.run.priority(id) == URGENT);
        let short = urgent.filter_map(|id| Some((id, self.missing_pool(id)?))).next();
        match short {
            Some((id, pool)) => {
                let by = self.run.step(id).path.to_string();
                self.preempt(&by, &pool)
            }
            None => Ok(()),
        }
    }

    /// The pool that a ready step waits for. The width of a fan-out is no pool that anybody could give back.
    fn missing_pool(&self, id: StepId) -> Option<String> {
        let own = self.run.limiting_pool(id).filter(|pool| pool != "maxParallel");
        own.or_else(|| match self.gate.why(&self.run.lane(id)) {
            Some(Why::Others(pool)) => pool.clone(),
            _ => None,
        })
    }

    /// Other runs wait for a pool that this one holds units of.
    pub(super) fn make_way_for_others(&mut self) -> Result<(), LoopError> {
        if !self.running() || self.live.is_empty() {
            return Ok(());
        }
        match self.gate.pressed(self.around.clock.now_ms()) {
            Some((run, pool)) => self.preempt(&run, &pool),
            None => Ok(()),
        }
    }

    fn preempt(&mut self, by: &str, pool: &str) -> Result<(), LoopError> {
        let yields = |live: &Live| matches!(live.ends, Some(Ends::Yield));
        if self.live.values().any(yields) {
            return Ok(());
        }
        let candidates =
            self.live.iter().filter(|((id, _), live)| self.may_yield(*id, live) && self.holds(*id, pool));
        let victim = candidates.max_by_key(|((id, _), live)| (self.run.priority(*id), live.since));
        let Some((&(id, attempt), _)) = victim else { return Ok(()) };
        let step = self.run.step(id).path.clone();
        self.emit(StepPreempted { step, attempt, by: by.to_string() })?;
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.end_by(Ends::Yield);
        }
        Ok(())
    }

    /// Whether its end would give something of the pool back.
    fn holds(&self, id: StepId, pool: &str) -> bool {
        self.pools_of(id).iter().any(|(name, units, _)| name == pool && *units > 0)
    }

    fn may_yield(&self, id: StepId, live: &Live) -> bool {
        let asks = self.run.asks_of(id).next().is_some();
        let plain =
            live.ends.is_none() && !live.given_up && !live.done && live.stop.get() == Stop::No && !asks;
        let alone = self.live.keys().filter(|(step, _)| *step == id).count() == 1;
        let running = matches!(&self.run.step(id).state, State::Running(running) if !running.stopping);
        let resumes = self.run.agent_of(id).is_some_and(|agent| self.around.executor.resumes(agent));
        plain && alone && running && resumes && self.run.priority(id) > URGENT
    }
}
