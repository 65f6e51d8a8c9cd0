//! A fork: another run's records come first, then `run.forked`, then what this run does itself.
//!
//! ```text
//! source   run.started ... step.finished a ... step.finished b ... run.finished
//! fork     run.started ... step.finished a ... step.finished b ... run.finished  run.forked(b)  run.opened ...
//! ```
//! What must stay true: results are taken over as they are; what they cost was paid by the source and is counted
//! there only; nothing that the source has under way is taken for an attempt of the fork.

use std::collections::BTreeMap;

use crate::budget::Ledger;
use crate::event::{Been, ForkedFrom, OpenMode, RunForked, RunImported, RunOpened, RunRewound};
use crate::port::Fork;
use crate::run::step::State;
use crate::run::{FoldError, PhaseId, Run, Status, StepId, Tally};
use crate::template::Kind;

impl Run {
    pub(super) fn forked(&mut self, event: &RunForked, now: u64) -> Result<(), FoldError> {
        let was_open = self.status.open();
        let scripts = self.scripts.clone();
        // As for whoever resumes: what failed gets another chance.
        let again = RunOpened::new(OpenMode::Resume, 0);
        for id in self.step_ids() {
            self.leave_to_source(id);
            let dealt = self.dealt_with(id, &scripts);
            self.reopen(id, &again, was_open, dealt);
        }
        self.asks.clear();
        self.parked.clear();
        (self.needs, self.acted) = (None, false);
        self.status = Status::Running;
        self.forks.push(event.from.clone());
        self.call_sessions(&event.sessions);
        self.apply(&RunRewound { from: event.from.step.clone() }.into(), now)?;
        self.begin_account(now);
        Ok(())
    }

    /// The first run of which this one is what came of it: by a fork, or after a loss.
    pub fn origin(&self) -> &str {
        let forked = || self.forks.first().map(|from| from.run.as_str());
        self.origin.as_deref().or_else(forked).unwrap_or(&self.id)
    }

    /// What a checkpoint must know of the runs before.
    pub fn been_before(&self) -> Been {
        let (forks, sessions) = (self.forks.clone(), self.sessions.clone());
        Been { run: Some(self.origin().to_string()), forks, sessions }
    }

    /// After a loss: it is still who it was.
    pub(super) fn been(&mut self, event: &RunImported) {
        if let Some(been) = &event.been {
            (self.origin, self.forks) = (been.run.clone(), been.forks.clone());
            self.call_sessions(&been.sessions);
        }
    }

    /// Where the run was forked from, if it was.
    pub fn forked_from(&self) -> Option<&ForkedFrom> {
        self.forks.last()
    }

    /// The session that is meant by a name.
    pub fn session_called<'a>(&'a self, name: &'a str) -> &'a str {
        self.sessions.get(name).map_or(name, String::as_str)
    }

    /// What the executor has to know before the run goes on as another one.
    pub fn fork_of(&self, run: &str, feature: &str, source: &str) -> Fork {
        let kept = self.live_steps().filter(|step| step.state.settled());
        let older = self.forks.iter().rev().map(|from| from.run.clone());
        Fork {
            sources: std::iter::once(source.to_string()).chain(older.filter(|run| run != source)).collect(),
            run: run.into(),
            feature: feature.into(),
            kept: kept.map(|step| step.path.to_string()).collect(),
            used: self.steps.iter().filter_map(|step| step.session.as_deref().map(str::to_string)).collect(),
            sessions: self.sessions.clone(),
        }
    }

    /// Its attempts are the source's, whatever becomes of them there. Questions and sleeps need nobody.
    fn leave_to_source(&mut self, id: StepId) {
        let asks = matches!(&self.step(id).state, State::Running(running) if running.ask.is_some());
        let durable = asks || self.kind(id) == Kind::Sleep;
        let step = self.step_mut(id);
        step.beside.clear();
        step.preempted = false;
        step.unknown &= matches!(step.state, State::Unknown);
        match step.state {
            State::Running(_) if !durable => self.transition(id, State::Ready),
            State::Backoff { .. } => self.transition(id, State::Ready),
            _ => {}
        }
    }

    /// Who waits for a session waits for the one that stands for it here.
    fn call_sessions(&mut self, sessions: &BTreeMap<String, String>) {
        if sessions.is_empty() {
            return;
        }
        self.sessions.extend(sessions.clone());
        let ready: Vec<StepId> = self.ready_steps().collect();
        ready.iter().for_each(|&id| self.dequeue(id));
        for id in self.step_ids() {
            let demand = self.demand_of(id);
            self.step_mut(id).demand = demand;
        }
        ready.iter().for_each(|&id| self.enqueue(id));
    }

    /// Money, time and attempts begin at nothing.
    fn begin_account(&mut self, now: u64) {
        // Who waits is ranked by the run's start: out of the queue before that changes.
        let ready: Vec<StepId> = self.ready_steps().collect();
        ready.iter().for_each(|&id| self.dequeue(id));
        let mut reused = 0;
        for id in self.step_ids() {
            let step = self.step_mut(id);
            step.usage = None;
            (step.active_ms, step.life_ms) = (0, 0);
            step.time.begin_anew();
            (step.tries, step.delay_ms, step.stall_restarts) = (0, None, 0);
            step.asked_again = false;
            if step.children.is_none() && matches!(step.state, State::Succeeded) {
                step.reused = true;
                reused += 1;
            }
            if !matches!(step.state, State::Running(_)) {
                step.attempts = 0;
            }
            if step.children.is_none() && matches!(step.state, State::Pending | State::Ready) {
                (step.started_ms, step.ended_ms) = (0, 0);
            }
        }
        let Tally { total, settled, failed, .. } = self.tally;
        self.tally = Tally { total, settled, failed, reused, turn_ms: now, ..Tally::default() };
        (self.started_ms, self.updated_ms) = (now, now);
        ready.iter().for_each(|&id| self.enqueue(id));
        // A cap that was raised for the source was raised for what it had spent.
        self.raised.clear();
        self.ledger = Ledger::default();
        self.cut.clear();
        self.set_caps();
        for phase in (0..self.phases.len() as u32).map(PhaseId) {
            let counts = self.phase_mut(phase);
            counts.counts = Default::default();
            counts.time.begin_anew();
            if !self.scope(self.phase(phase).scope).gone {
                self.set_phase_caps(phase);
            }
        }
    }
}
