//! The attempts of a run, gathered event by event.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Transaction, params};
use sage_core::event::{End, Event};
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::run::Run;

use crate::rows::int;

#[derive(Debug)]
pub struct Attempt {
    step: Arc<str>,
    attempt: u32,
    agent: Option<String>,
    model: Option<String>,
    session: Option<String>,
    started_ms: u64,
    end: Option<Ended>,
    usage: Usage,
}

#[derive(Debug)]
struct Ended {
    at_ms: u64,
    active_ms: Option<u64>,
    outcome: &'static str,
    failure: Option<(FailureClass, String)>,
}

#[derive(Debug, Default)]
pub struct Attempts {
    /// In the order of their starts.
    all: Vec<Attempt>,
    by_name: HashMap<(Arc<str>, u32), usize>,
}

impl Attempts {
    pub fn finish(self) -> Vec<Attempt> {
        self.all
    }

    /// `run` is what it had become with this event.
    pub fn take(&mut self, event: &Event, at_ms: u64, run: &Run) {
        match event {
            Event::StepStarted(it) => self.start(&it.step, it.attempt, at_ms, run, it.agent.clone()),
            Event::StepHedged(it) => self.start(&it.step, it.attempt, at_ms, run, None),
            Event::StepSession(it) => {
                if let Some(attempt) = self.find(&it.step, it.attempt) {
                    attempt.session = Some(it.session.clone()).filter(|session| !session.is_empty());
                }
            }
            Event::StepUsed(it) => self.use_up(&it.step, it.attempt, &it.usage),
            Event::StepRecovered(it) => self.use_up(&it.step, it.attempt, &it.usage),
            Event::StepFinished(it) => {
                let (outcome, failure) = match &it.end {
                    End::Succeeded { .. } => ("succeeded", None),
                    End::Skipped { .. } => ("skipped", None),
                    End::Failed { class, message, .. } => ("failed", Some((*class, message.clone()))),
                    End::Stopped => ("stopped", None),
                };
                self.end(&it.step, it.attempt, at_ms, Some(it.ms), outcome, failure);
                self.use_up(&it.step, it.attempt, &it.usage);
            }
            Event::StepRetried(it) => {
                let failure = Some((it.class, it.message.clone()));
                self.end(&it.step, it.attempt, at_ms, Some(it.ms), "failed", failure);
                self.use_up(&it.step, it.attempt, &it.usage);
            }
            Event::StepParked(it) => {
                let failure = Some((it.class, it.message.clone()));
                self.end(&it.step, it.attempt, at_ms, Some(it.ms), "refused", failure);
                self.use_up(&it.step, it.attempt, &it.usage);
            }
            Event::StepCharged(it) => {
                let failure = it.class.map(|class| (class, String::new()));
                let outcome = if failure.is_some() { "failed" } else { "stopped" };
                self.end(&it.step, it.attempt, at_ms, Some(it.ms), outcome, failure);
                self.use_up(&it.step, it.attempt, &it.usage);
            }
            // Its owner died with it; the next one has taken the run.
            Event::RunOpened(_) => self.lose(at_ms),
            // So far it was another run, which has these rows itself.
            Event::RunForked(_) => *self = Attempts::default(),
            _ => {}
        }
    }

    fn start(&mut self, step: &Arc<str>, attempt: u32, at_ms: u64, run: &Run, agent: Option<String>) {
        let id = run.find(step);
        let agent = agent.or_else(|| id.and_then(|id| run.agent_of(id)).map(str::to_string));
        let model = id.and_then(|id| run.model_of(id)).map(str::to_string);
        self.by_name.insert((step.clone(), attempt), self.all.len());
        let (step, session, usage) = (step.clone(), None, Usage::default());
        self.all.push(Attempt { step, attempt, agent, model, session, started_ms: at_ms, end: None, usage });
    }

    fn find(&mut self, step: &Arc<str>, attempt: u32) -> Option<&mut Attempt> {
        let at = *self.by_name.get(&(step.clone(), attempt))?;
        self.all.get_mut(at)
    }

    /// All that it has used so far, told anew each time.
    fn use_up(&mut self, step: &Arc<str>, attempt: u32, usage: &Usage) {
        if let Some(attempt) = self.find(step, attempt).filter(|_| !usage.is_empty()) {
            attempt.usage = usage.clone();
        }
    }

    fn end(
        &mut self,
        step: &Arc<str>,
        attempt: u32,
        at_ms: u64,
        active_ms: Option<u64>,
        outcome: &'static str,
        failure: Option<(FailureClass, String)>,
    ) {
        if let Some(attempt) = self.find(step, attempt) {
            attempt.end = Some(Ended { at_ms, active_ms, outcome, failure });
        }
    }

    fn lose(&mut self, at_ms: u64) {
        for attempt in self.all.iter_mut().filter(|attempt| attempt.end.is_none()) {
            attempt.end = Some(Ended { at_ms, active_ms: None, outcome: "lost", failure: None });
        }
    }
}

impl Attempt {
    pub fn write(&self, db: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
        let end = self.end.as_ref();
        let failure = end.and_then(|end| end.failure.as_ref());
        let text =
            "INSERT OR REPLACE INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        db.prepare_cached(text)?.execute(params![
            run,
            &*self.step,
            self.attempt,
            self.agent,
            self.usage.model.as_ref().or(self.model.as_ref()),
            self.session,
            int(self.started_ms),
            end.map(|end| int(end.at_ms)),
            end.and_then(|end| end.active_ms).map(int),
            end.map(|end| end.outcome),
            failure.map(|(class, _)| class.name()),
            failure.map(|(_, message)| message.as_str()).filter(|message| !message.is_empty()),
        ])?;
        if self.usage.is_empty() {
            return Ok(());
        }
        let usage = &self.usage;
        let text = "INSERT OR REPLACE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        db.prepare_cached(text)?.execute(params![
            run,
            &*self.step,
            self.attempt,
            usage.model,
            usage.input.map(int),
            usage.cache_read.map(int),
            usage.cache_write.map(int),
            usage.output.map(int),
            usage.reasoning.map(int),
            usage.cost_usd,
            usage.cost_estimated,
        ])?;
        Ok(())
    }
}
