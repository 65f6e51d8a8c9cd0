//! What records after a gap are worth.
//!
//! Such a record is whole, but something before it is not known, so it cannot be folded. A finished attempt is worth
//! its result all the same: the start before it names the key, and the key covers everything that the result follows
//! from. What a person changed (the template, a budget, what shall run again) is done again in its place. Everything
//! else follows from these and is found out anew.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use sage_core::digest::Digest;
use sage_core::event::{End, Event, KeptResult, OpenMode, RunOpened, Standing};
use sage_core::run::Run;
use sage_core::template::Kind;

use super::checkpoint::Phases;
use crate::journal::Piece;

/// What was gathered.
#[derive(Debug, Default)]
pub(super) struct Loose {
    /// In their order; they fit the run that was folded so far.
    pub events: Vec<Event>,
    pub phases: Phases,
    pub digests: BTreeMap<String, Digest>,
    pub standing: BTreeMap<String, Standing>,
    results: Vec<(Arc<str>, KeptResult)>,
    keys: HashMap<(Arc<str>, u32), Start>,
    /// Attempts that began, with whether they may begin twice, and have not ended; and results without a key.
    begun: BTreeMap<Arc<str>, bool>,
    /// Steps that went another way: what they gave only stands in for a result.
    fallen: HashSet<Arc<str>>,
    /// The run was given up for good, and nobody has opened it since.
    closed: Option<Event>,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    key: Digest,
    approval: bool,
}

impl Loose {
    /// Reads `pieces` in their order; `run` is what the records before them amount to, and follows.
    pub fn gather(pieces: &[Piece], run: &mut Run, now: u64) -> Loose {
        let mut loose = Loose::default();
        for record in pieces.iter().filter_map(Piece::record) {
            if let Ok(event) = Event::parse(record.kind, record.data) {
                loose.take(event, run, now);
            }
        }
        loose.events.extend(loose.closed.take());
        loose
    }

    pub fn results(&self) -> impl Iterator<Item = &KeptResult> {
        self.results.iter().map(|(_, kept)| kept)
    }

    /// Paths of steps that have a result here.
    pub fn steps(&self) -> HashSet<&str> {
        self.results.iter().map(|(path, _)| &**path).collect()
    }

    /// Steps that may have had effects which nothing tells of, and whether twice would do no harm.
    pub fn begun(&self) -> BTreeMap<String, bool> {
        self.begun.iter().map(|(path, repeatable)| (path.to_string(), *repeatable)).collect()
    }

    /// The attempt has an end, whatever it is.
    fn note_end(&mut self, event: &Event) {
        let step = match event {
            Event::StepFinished(it) => &it.step,
            Event::StepRetried(it) => &it.step,
            Event::StepParked(it) => &it.step,
            Event::StepCached(it) => &it.step,
            Event::StepReused(it) => &it.step,
            Event::StepAnswered(it) => &it.step,
            _ => return,
        };
        self.begun.remove(step);
    }

    fn take(&mut self, event: Event, run: &mut Run, now: u64) {
        self.note_end(&event);
        match event {
            Event::StepStarted(started) => {
                self.begun.insert(started.step.clone(), started.repeatable);
                let approval = started.parts.read().get("kind") == Some(&short_kind(Kind::Approval));
                let start = Start { key: started.key, approval };
                self.keys.insert((started.step, started.attempt), start);
            }
            Event::StepHedged(hedged) => {
                let before = self.start(run, &hedged.step, hedged.attempt.saturating_sub(1));
                self.keys.extend(before.map(|start| ((hedged.step, hedged.attempt), start)));
            }
            Event::StepSpawned(spawned) => drop(self.begun.entry(spawned.step).or_insert(false)),
            Event::StepFellBack(fallen) => drop(self.fallen.insert(fallen.step)),
            Event::StepFinished(finished) => {
                let start = self.start(run, &finished.step, finished.attempt);
                let is_orphan = start.is_none() && matches!(finished.end, End::Succeeded { .. });
                if let (End::Succeeded { result, full, artifacts, changed }, Some(Start { key, .. })) =
                    (finished.end, start)
                {
                    let kept = KeptResult { key, step: None, result, full, artifacts, changed };
                    self.keep(run, finished.step, kept);
                } else if is_orphan {
                    // It has ended, and its result belongs to nothing that is known.
                    self.begun.insert(finished.step, false);
                }
            }
            Event::StepCached(cached) if cached.expires_in_ms.is_some() => {
                let (key, result, full) = (cached.key, cached.result, cached.full);
                let kept =
                    KeptResult { key, step: None, result, full, artifacts: cached.artifacts, changed: None };
                self.keep(run, cached.step, kept);
            }
            Event::StepAnswered(answered) if answered.choice != "reject" => {
                let last = self.keys.iter().filter(|((step, _), _)| *step == answered.step);
                let last = last.max_by_key(|((_, attempt), _)| *attempt).map(|(_, start)| *start);
                let start = last.or_else(|| self.start(run, &answered.step, 0));
                if let Some(Start { key, approval: true }) = start {
                    let (full, artifacts) = (None, Vec::new());
                    let kept = KeptResult {
                        key,
                        step: None,
                        result: answered.result,
                        full,
                        artifacts,
                        changed: None,
                    };
                    self.keep(run, answered.step, kept);
                }
            }
            Event::RunImported(imported) => {
                self.results.extend(imported.results.into_iter().map(|kept| (Arc::from(""), kept)));
                self.phases.extend(imported.phases);
                self.digests.extend(imported.digests);
                self.standing.extend(imported.standing);
            }
            other => self.take_change(other, run, now),
        }
    }

    /// What a person, or the run itself, has changed about how it goes on.
    fn take_change(&mut self, event: Event, run: &mut Run, now: u64) {
        match event {
            Event::RunOpened(opened) => {
                self.closed = None;
                let signal = RunOpened { mode: OpenMode::Signal, ..opened };
                if signal.settings.is_some() {
                    self.change(signal.into(), run, now);
                }
            }
            Event::RunCancelled(cancelled) if !cancelled.resumable => {
                self.closed = Some(cancelled.into());
            }
            Event::RunRewound(rewound) => {
                let again = run.followers(&rewound.from);
                self.results.retain(|(path, _)| !again.contains(&*top(path)));
                self.change(rewound.into(), run, now);
            }
            Event::PhaseRestarted(restarted) => {
                let phase = format!("{}/", top(&restarted.phase));
                self.results.retain(|(path, _)| !path.starts_with(&phase));
                self.change(restarted.into(), run, now);
            }
            Event::RunEdited(_) | Event::RunForked(_) | Event::BudgetRaised(_) => {
                self.change(event, run, now)
            }
            _ => {}
        }
    }

    /// Only what fits: a record that is missing may be why it does not.
    fn change(&mut self, event: Event, run: &mut Run, now: u64) {
        if run.apply(&event, now).is_ok() {
            self.events.push(event);
        }
    }

    fn keep(&mut self, run: &Run, step: Arc<str>, kept: KeptResult) {
        let fallen = self.fallen.contains(&step)
            || run.find(&step).is_some_and(|id| run.step(id).alternative.is_some());
        if !fallen {
            self.results.push((step.clone(), KeptResult { step: Some(step), ..kept }));
        }
    }

    /// How an attempt began: as a loose record says, or as the run knows it.
    fn start(&self, run: &Run, step: &Arc<str>, attempt: u32) -> Option<Start> {
        let known = || {
            let id = run.find(step)?;
            let (key, approval) = (run.step(id).key?, run.kind(id) == Kind::Approval);
            (attempt == 0 || run.step(id).attempts == attempt).then_some(Start { key, approval })
        };
        self.keys.get(&(step.clone(), attempt)).copied().or_else(known)
    }
}

fn short_kind(kind: Kind) -> String {
    Digest::of(kind.name().as_bytes()).short()
}

/// The step of the template that a path belongs to: `fan/each[2]/phase/op` and `fan@2/each` are parts of `fan/each`.
fn top(path: &str) -> String {
    let mut parts = path.splitn(3, '/');
    let phase = parts.next().unwrap_or_default().split('@').next().unwrap_or_default();
    match parts.next() {
        Some(step) => format!("{phase}/{}", step.split('[').next().unwrap_or_default()),
        None => phase.to_string(),
    }
}
