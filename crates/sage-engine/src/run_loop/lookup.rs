//! Steps with `cache`: looked up as soon as they are ready, before they ask for a slot, a budget or a target.
//!
//! ```text
//! ready -> aside -> [prepare, key, read: off the loop] -> hit:  step.cached
//!                                                      -> miss: to the gate; kept after its step.finished
//! ```
//! What must stay true: a lookup holds nothing; whatever goes wrong here, the step runs as if there were no cache.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sage_core::digest::Digest;
use sage_core::event::{CacheMiss, Paid, Payload, StepCached};
use sage_core::run::{Output, Run, State, StepId};
use tokio::task::JoinSet;

use super::effect::Effect;
use super::{Input, LoopError, RunLoop};
use crate::cache::{Conditions, Counts, Hit, Looked, Subject, Ticket};
use crate::evaluate;
use crate::prepare::{Prepared, Request, Start};

/// Lookups under way at once: they read files.
const LOOKUPS: usize = 16;
/// Longer than this no file is waited for: the step runs.
const DEADLINE: Duration = Duration::from_secs(30);
/// At the end of a run, so long for results that are still to be kept.
const KEEPING: Duration = Duration::from_secs(10);

/// What the cache said about a step.
#[derive(Debug)]
pub(crate) struct Known {
    /// `None`: it could not be asked, and will not be.
    ticket: Option<Ticket>,
    looked: Option<Looked>,
    step_key: Digest,
    agent: Option<String>,
}

/// A result to be kept for later runs.
#[derive(Debug)]
pub(super) struct Keep {
    ticket: Ticket,
    result: Payload,
    full: Option<Payload>,
    artifacts: Vec<String>,
    paid: Paid,
}

#[derive(Debug)]
pub(super) struct Lookups {
    waiting: VecDeque<StepId>,
    under_way: usize,
    known: HashMap<StepId, Known>,
    keeping: JoinSet<()>,
    /// Steps whose result in this run cannot be written to its file again: they run.
    pub unrestored: HashSet<StepId>,
    /// What the run had counted when this owner took it.
    before: Counts,
}

impl Lookups {
    pub fn new(run: &Run) -> Lookups {
        Lookups {
            waiting: VecDeque::new(),
            under_way: 0,
            known: HashMap::new(),
            keeping: JoinSet::new(),
            unrestored: HashSet::new(),
            before: counts(run),
        }
    }

    /// What a start has to say of the cache.
    pub fn miss(&self, id: StepId) -> Option<CacheMiss> {
        match &self.known.get(&id)?.looked {
            Some(Looked::Miss(miss)) => Some(miss.clone()),
            _ => None,
        }
    }

    /// Where the step's result is kept, as far as this owner knows.
    pub fn ticket(&self, id: StepId) -> Option<&Ticket> {
        self.known.get(&id)?.ticket.as_ref()
    }
}

fn counts(run: &Run) -> Counts {
    let tally = &run.tally;
    Counts {
        hits: tally.cache_hits.into(),
        misses: tally.cache_misses.into(),
        saved_tokens: tally.cache_saved_tokens,
        saved_ms: tally.cache_saved_ms,
    }
}

impl RunLoop {
    fn caches(&self, id: StepId) -> bool {
        let own = self.around.cache.is_some() && self.run.operation(id).caches();
        own && !self.run.is_fan(id) && !self.run.stands_in(id)
    }

    /// Nobody has asked the cache about it yet.
    pub(super) fn is_unseen(&self, id: StepId) -> bool {
        self.caches(id) && !self.lookups.known.contains_key(&id)
    }

    /// What is known is of another key or another agent: the step was prepared anew, or has fallen back.
    pub(super) fn is_unknown_to_cache(&self, id: StepId, key: Digest) -> bool {
        let same = |known: &Known| known.step_key == key && known.agent.as_deref() == self.run.agent_of(id);
        self.caches(id) && !self.lookups.known.get(&id).is_some_and(same)
    }

    pub(super) fn look_up(&mut self, id: StepId) {
        self.lookups.known.remove(&id);
        self.held.set_aside(id);
        self.lookups.waiting.push_back(id);
    }

    /// Those that have become ready since the last time.
    pub(super) fn look_up_ready(&mut self) {
        for id in self.run.take_cacheable() {
            if self.is_unseen(id) && !self.held.contains(id) {
                self.look_up(id);
            }
        }
        self.begin_lookups();
    }

    pub(super) fn begin_lookups(&mut self) {
        let running = self.running();
        while !running || self.lookups.under_way < LOOKUPS {
            let Some(id) = self.lookups.waiting.pop_front() else { return };
            let ready = matches!(self.run.step(id).state, State::Ready | State::Backoff { .. });
            // Paused or cancelled meanwhile: it is looked up when its time comes.
            if running && ready { self.begin_lookup(id) } else { self.held.take_back(id) }
        }
    }

    fn begin_lookup(&mut self, id: StepId) {
        let around = self.around.clone();
        let subject = Subject::of(&self.run, id, &around.executor, &around.project, &around.run_dir);
        let (Some(cache), Some(subject)) = (around.cache, subject) else {
            self.held.take_back(id);
            return;
        };
        self.lookups.under_way += 1;
        let request = Request::new(&self.run, id);
        let read = !self.run.step(id).fresh && !self.run.settings.no_cache;
        let files = expected_files(&self.run, id);
        let (sender, blobs, now) = (self.sender.clone(), around.blobs, around.clock.now_ms());
        tokio::spawn(async move {
            let store = blobs.clone();
            let (evaluator, project) = (around.evaluator.clone(), around.project.clone());
            let work = move || Ok(request.prepare(&store, evaluator.as_ref(), &project));
            let prepared = evaluate::off_loop("expression", work).await.unwrap_or_else(Prepared::Invalid);
            let Prepared::Start(start) = &prepared else {
                let _ = sender.send(Input::LookedUp(id, prepared, None)).await;
                return;
            };
            let (parts, output) = (start.parts.clone(), start.output.clone());
            let (step_key, agent) = (parts.key(), subject.agent.clone());
            let given_up = Arc::<AtomicBool>::default();
            let output = output.map(|target| (target, around.outputs.clone()));
            let conditions = Conditions { output, files, given_up: given_up.clone() };
            let ask = move || {
                let ticket = subject.ticket(&cache, &parts)?;
                let looked = cache.look_up(&ticket, read, &conditions, &around.project, &blobs, now);
                Ok::<_, String>((ticket, looked))
            };
            let answer = tokio::time::timeout(DEADLINE, tokio::task::spawn_blocking(ask)).await;
            let (prepared, ticket, looked) = match answer {
                Ok(Ok(Ok((ticket, looked)))) => (prepared, Some(ticket), Some(looked)),
                // The template asks for files in a way that cannot be read: repeating does not help.
                Ok(Ok(Err(why))) => (Prepared::Invalid(why), None, None),
                Ok(Err(_)) | Err(_) => {
                    given_up.store(true, Ordering::Relaxed);
                    (prepared, None, None)
                }
            };
            let known = Known { ticket, looked, step_key, agent };
            let _ = sender.send(Input::LookedUp(id, prepared, Some(Box::new(known)))).await;
        });
    }

    pub(super) fn looked_up(
        &mut self,
        id: StepId,
        prepared: Prepared,
        known: Option<Box<Known>>,
    ) -> Result<(), LoopError> {
        self.lookups.under_way -= 1;
        self.held.take_back(id);
        let ready = matches!(self.run.step(id).state, State::Ready | State::Backoff { .. });
        if !self.running() || !ready {
            return Ok(());
        }
        let (start, mut known) = match (prepared, known) {
            (Prepared::Start(start), Some(known)) => (*start, *known),
            (prepared, _) => return self.prepared(id, prepared),
        };
        let memo = self.is_reusable(id, known.step_key);
        let hit = match known.looked.take() {
            Some(Looked::Hit(hit)) if !memo => Some(hit),
            other => {
                known.looked = other;
                None
            }
        };
        self.lookups.known.insert(id, known);
        match hit {
            Some(hit) => self.cached(id, &start, *hit),
            None if memo => self.begin(id, start),
            None => {
                // Prepared; it starts as soon as the run's own limits let it.
                self.gate.keep_prepared(id, start);
                Ok(())
            }
        }
    }

    pub(super) fn cached(&mut self, id: StepId, start: &Start, hit: Hit) -> Result<(), LoopError> {
        let Hit { cache_key, from, age_ms, expires_in_ms, result, full, artifacts, aside, saved } = hit;
        let (step, key, parts) = (self.run.step(id).path.clone(), start.parts.key(), start.parts.shortened());
        self.emit(StepCached {
            step,
            key,
            parts,
            cache_key,
            from,
            age_ms,
            expires_in_ms,
            result,
            full,
            artifacts,
            aside,
            saved,
        })?;
        if let (Some(cache), Some(entry)) = (self.around.cache.clone(), cache_key) {
            let now = self.around.clock.now_ms();
            self.lookups.keeping.spawn_blocking(move || cache.used(&entry, now));
        }
        Ok(())
    }

    /// The step has ended with `seq`: if it gave something that later runs may take, it is kept once that is durable.
    pub(super) fn keep_after(&mut self, seq: u64, id: StepId) {
        let step = self.run.step(id);
        let Some(ticket) = self.lookups.ticket(id) else { return };
        let fits =
            step.key == Some(ticket.step_key) && ticket.subject.agent.as_deref() == self.run.agent_of(id);
        let (State::Succeeded, false, true) = (&step.state, step.degraded, fits) else { return };
        let Some(Output::Leaf { result, full, artifacts, .. }) = step.output.as_deref() else { return };
        let usage = step.usage.as_deref().cloned().unwrap_or_default();
        let keep = Keep {
            ticket: ticket.clone(),
            result: result.clone(),
            full: full.clone(),
            artifacts: artifacts.clone(),
            paid: Paid { ms: step.active_ms, usage },
        };
        self.after(seq, Effect::Keep(Box::new(keep)));
    }

    /// Off the loop. What is not kept is made again by whoever needs it.
    pub(super) fn keep(&mut self, keep: Keep) {
        let Some(cache) = self.around.cache.clone() else { return };
        let (blobs, now) = (self.around.blobs.clone(), self.around.clock.now_ms());
        self.lookups.keeping.spawn_blocking(move || {
            let Keep { ticket, result, full, artifacts, paid } = keep;
            let _ = cache.keep(&ticket, (&result, full.as_ref(), &artifacts), paid, &blobs, now);
        });
    }

    /// Waits a moment for what is still to be kept, and counts.
    pub(super) async fn finish_keeping(&mut self) {
        let all = async { while self.lookups.keeping.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(KEEPING, all).await;
        let more = counts(&self.run).since(self.lookups.before);
        if let Some(cache) = self.around.cache.clone() {
            let _ = tokio::task::spawn_blocking(move || cache.count(more)).await;
        }
    }
}

fn expected_files(run: &Run, id: StepId) -> Vec<String> {
    let files = run.operation(id).expect.as_ref().and_then(|expect| expect.get("files"));
    let files = files.and_then(serde_json::Value::as_array).into_iter().flatten();
    files.filter_map(serde_json::Value::as_str).map(str::to_string).collect()
}
