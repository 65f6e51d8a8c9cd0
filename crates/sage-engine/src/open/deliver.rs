//! Signals from outside: to a living owner through its box, else by owning the run for a moment.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sage_core::event::{OpenMode, RunOpened};
use sage_core::run::{Run, State, Status};
use sage_core::template::Kind;

use super::{Engine, Notice, OpenError};
use crate::control::{self, Signal};
use crate::lock::FeatureLock;

/// Time for a living owner to take a signal: it looks every 50 ms, and commits before it acknowledges.
const SIGNAL_TAKEN: Duration = Duration::from_secs(10);

/// How long a look at the box lasts before the lock is tried again.
const LOOK: Duration = Duration::from_millis(300);

impl Engine {
    /// Tells a run to pause, to end, or what a person decided. Works with and without a living owner.
    pub async fn deliver(&self, feature: &str, signal: Signal) -> Result<Run, OpenError> {
        self.project.refuse_strange()?;
        let snapshot = self.read(feature)?;
        if snapshot.is_foreign && !self.accepts_foreign {
            return Err(OpenError::Foreign(feature.into()));
        }
        refuse_misfit(&snapshot.run, snapshot.owner.is_some(), feature, &signal)?;
        // It would be no different from one that a step wrote.
        if self.key.is_none() && signal.is_a_persons() {
            return Err(OpenError::NoKey);
        }
        let sent = control::send(self.vfs.as_ref(), &snapshot.dir, &signal, self.key.as_ref())
            .map_err(|source| OpenError::Io { what: "send the signal", source })?;
        let deadline = Instant::now() + SIGNAL_TAKEN;
        loop {
            let mut notices = Vec::new();
            match self.lock(feature, &mut notices) {
                // The owner may end without having looked; then the signal is ours to deliver.
                Err(OpenError::Owned { .. }) if control::wait_taken(&sent, LOOK) => {
                    return refuse_late(self.read(feature)?.run, &sent, &signal);
                }
                Err(OpenError::Owned { .. }) if Instant::now() < deadline => {}
                Err(error) => {
                    self.withdraw(&sent);
                    return Err(match error {
                        OpenError::Owned { owner, .. } => OpenError::Deaf(owner),
                        error => error,
                    });
                }
                Ok(lock) => {
                    let now = self.read(feature)?;
                    if !self.vfs.exists(&sent).unwrap_or(true) {
                        return refuse_late(now.run, &sent, &signal);
                    }
                    if let Err(misfit) = refuse_misfit(&now.run, false, feature, &signal) {
                        self.withdraw(&sent);
                        return Err(misfit);
                    }
                    return refuse_late(self.deliver_alone(feature, lock, notices).await?, &sent, &signal);
                }
            }
        }
    }

    /// A signal that nobody took must not surprise a later owner.
    fn withdraw(&self, sent: &Path) {
        let _ = self.vfs.remove_file(sent);
    }

    async fn deliver_alone(
        &self,
        feature: &str,
        lock: Arc<FeatureLock>,
        mut notices: Vec<Notice>,
    ) -> Result<Run, OpenError> {
        let id = self.last_run(feature)?;
        self.gone(&self.project.run_dir(&id), &id, &mut notices)?;
        let (mut run, mut journal, file) = self.recover(feature, &id, &mut notices)?;
        let now = self.clock.now_ms();
        let opened = RunOpened::new(OpenMode::Signal, std::process::id());
        let file = self.open_event(&mut run, &mut journal, file, opened, now)?;
        let owned = self.own(run, journal, file, lock, notices, false, true)?;
        owned
            .drive()
            .await
            .map_err(|error| OpenError::Io { what: "deliver", source: std::io::Error::other(error) })
    }
}

/// Of several answers to one question the first that is durable counts: its event carries the signal's id. The
/// senders of the others learn which one that was.
fn refuse_late(run: Run, sent: &Path, signal: &Signal) -> Result<Run, OpenError> {
    let id = sent.file_stem().map(|id| id.to_string_lossy().into_owned()).unwrap_or_default();
    match signal {
        Signal::Answer { step, .. } if !run.signals.contains(&id) => Err(answered(&run, step)),
        Signal::Message { step, .. } if !run.signals.contains(&id) => {
            Err(not_listening(&run, step, "it ended before the message reached it".into()))
        }
        _ => Ok(run),
    }
}

fn not_listening(run: &Run, step: &str, why: String) -> OpenError {
    OpenError::NotListening { feature: run.feature.clone(), step: step.into(), why }
}

/// The error for a question that has an answer already.
pub fn answered(run: &Run, step: &str) -> OpenError {
    let answer = run.find(step).and_then(|id| run.answer_of(id));
    OpenError::Answered { feature: run.feature.clone(), step: step.into(), answer }
}

fn refuse_misfit(run: &Run, owned: bool, feature: &str, signal: &Signal) -> Result<(), OpenError> {
    let not_open = |what| OpenError::NotOpen { feature: feature.into(), status: run.status.name(), what };
    match signal {
        // Its owner waits for a known time and would go on by itself.
        Signal::Pause if owned && matches!(run.status, Status::Paused { until: Some(_), .. }) => Ok(()),
        Signal::Pause if run.status != Status::Running => Err(not_open("pause")),
        Signal::Cancel { .. } | Signal::Clear if !run.status.open() => Err(not_open("cancel")),
        Signal::Raise { node, .. } if run.ledger.node(node).is_none() && node != sage_core::budget::RUN => {
            let known: Vec<&str> = run.ledger.nodes().map(|(name, _)| name).collect();
            Err(OpenError::NoBudget { node: node.clone(), known: known.join(", ") })
        }
        Signal::Answer { .. } if matches!(run.status, Status::Cancelled { .. }) => Err(not_open("answer")),
        Signal::Answer { step, choice, .. } => {
            let id = run.find(step).ok_or_else(|| OpenError::no_step(run, feature, step))?;
            match &run.step(id).state {
                State::Unknown => Ok(()),
                State::Running(running) => match &running.ask {
                    Some(ask) if choice == "reject" || ask.choices.contains(choice) => Ok(()),
                    Some(ask) => Err(OpenError::NoChoice {
                        step: step.clone(),
                        choice: choice.clone(),
                        choices: ask.choices.join(", "),
                    }),
                    // An agent's question lives as long as its agent.
                    None if owned && run.asks_of(id).next().is_some() => match choice.as_str() {
                        "approve" | "reject" => Ok(()),
                        _ => Err(OpenError::NoChoice {
                            step: step.clone(),
                            choice: choice.clone(),
                            choices: "approve, reject".into(),
                        }),
                    },
                    None => Err(OpenError::NoQuestion { step: step.clone(), state: "running" }),
                },
                state if state.settled() && run.kind(id) == Kind::Approval => Err(answered(run, step)),
                state => Err(OpenError::NoQuestion { step: step.clone(), state: state.name() }),
            }
        }
        Signal::Message { step, .. } => {
            let id = run.find(step).ok_or_else(|| OpenError::no_step(run, feature, step))?;
            let state = run.shown_state(id);
            match state {
                _ if run.kind(id) != Kind::Agent => {
                    let why = format!("it is a {} step, not an agent", run.kind(id).name());
                    Err(not_listening(run, step, why))
                }
                State::Running(_) if owned => Ok(()),
                State::Running(_) => Err(not_listening(run, step, "no process owns the run".into())),
                _ => Err(not_listening(run, step, format!("it is {}", run.state_name(id)))),
            }
        }
        _ => Ok(()),
    }
}
