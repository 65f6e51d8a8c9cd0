//! Runs and the tickets that they belong to. The run's journal is the truth: it names the ticket in its inputs,
//! and whoever was killed before the ticket knew of the run's end is made up for by whoever looks next.

use sage_core::run::{Run, State as StepState, Status, Step, Work};
use sage_core::ticket::{BookError, Ended, State, ticket_of};
use sage_core::verdict::Verdict;
use serde_json::{Map, Value};

use super::{Store, TicketError};
use crate::journal;
use crate::open::{Engine, Fold, OpenError};

/// Steps that a note names. What they printed stays in the run: tickets are for git, outputs may hold secrets.
const NAMED: usize = 3;

impl Store {
    /// The run has begun or goes on: its ticket is in progress.
    pub fn began(&self, inputs: &Map<String, Value>, run: &str) -> Result<(), TicketError> {
        let Some(id) = ticket_of(inputs) else { return Ok(()) };
        self.change(|book, at| {
            book.began(id, run, at);
            Ok::<(), BookError>(())
        })
    }

    /// What the run's end means for its ticket. A run that is open has no end.
    pub fn ended(&self, run: &Run) -> Result<(), TicketError> {
        let (Some(id), Some(how)) = (ticket_of(&run.inputs), end_of(run)) else { return Ok(()) };
        self.change(|book, at| {
            book.ended(id, &run.id, &how, at);
            Ok::<(), BookError>(())
        })
    }

    /// Looks after tickets in progress whose run of this project has ended without anybody telling them.
    pub fn settle(&self, engine: &Engine) -> Result<(), TicketError> {
        let book = self.read()?;
        let under_way = book.tickets.iter().filter(|ticket| ticket.state == State::InProgress);
        for id in under_way.filter_map(|ticket| ticket.run.as_deref()) {
            // A run that is not here may be somebody else's, who shares the tickets.
            let run = engine.read_run(id).filter(|run| !engine.is_foreign(&run.feature, id));
            if let Some(run) = run {
                self.ended(&run)?;
            }
        }
        Ok(())
    }
}

impl Engine {
    pub fn tickets(&self) -> Store {
        Store::new(&self.project, self.vfs.clone(), self.clock.clone())
    }

    /// One run, by its id, whether or not it is its feature's newest. `None` if it cannot be read.
    pub fn read_run(&self, id: &str) -> Option<Run> {
        let named =
            id.strip_prefix("run_").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric()));
        let mut fold = Fold::default();
        let dir = self.project.run_dir(id);
        let read = |record: journal::Record<'_>| fold.take::<OpenError>(record);
        if !named || journal::check(self.vfs.as_ref(), &dir, None, read).is_err() {
            return None;
        }
        fold.finish().ok()
    }
}

/// A run that succeeded and left tasks open has not done what its ticket asks for.
fn left_open(run: &Run) -> Option<Ended> {
    let left: Vec<Work> = run.work().into_iter().filter(|work| work.open > 0).collect();
    let tasks: usize = left.iter().map(|work| work.open).sum();
    let steps: Vec<&str> = left.iter().take(NAMED).map(|work| work.path.as_ref()).collect();
    let nothing =
        if left.iter().any(|work| work.changed == Some(true)) { "" } else { "; nothing was changed" };
    let count = if tasks == 1 { "1 task".to_string() } else { format!("{tasks} tasks") };
    let text = format!("the run of `{}` left {count} open{nothing}: {}", run.feature, steps.join(", "));
    (tasks > 0).then_some(Ended::Short(text))
}

fn end_of(run: &Run) -> Option<Ended> {
    let what = match run.status {
        Status::Finished(Verdict::Succeeded) => return Some(left_open(run).unwrap_or(Ended::Succeeded)),
        Status::Finished(Verdict::Degraded) if left_open(run).is_some() => return left_open(run),
        Status::Finished(verdict) => verdict.name(),
        Status::Cancelled { .. } => "cancelled",
        Status::Running | Status::Paused { .. } => return None,
    };
    let failed = |step: &&Step| step.children.is_none() && matches!(step.state, StepState::Failed);
    let named = |step: &Step| {
        let class = step.failure.as_ref().map_or("failed", |failure| failure.class.name());
        format!("{} ({class})", step.path)
    };
    let steps: Vec<String> = run.live_steps().filter(failed).take(NAMED).map(named).collect();
    // A check that failed is among the steps.
    let shortfalls = run.shortfalls().into_iter().filter(|why| !why.ends_with(" failed"));
    let why: Vec<String> = steps.into_iter().chain(shortfalls.take(NAMED)).collect();
    let steps = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
    Some(Ended::Short(format!("the run of `{}` ended {what}{steps}", run.feature)))
}
