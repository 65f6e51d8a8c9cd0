//! Waiting for a run that others own: until it ends, stands still or asks something, or the time is over.
//!
//! Only a question that somebody waits for ends it: an approval, or a permission that an agent needs. A check that could
//! not be made, or a lost attempt, is a person's matter once the rest has ended and the run stands still.
//!
//! It follows the journal as the live view does, piece by piece, and holds nothing. A client that goes away or
//! cancels its request ends the waiting; the run never notices.

use std::time::{Duration, Instant};

use sage_core::run::{Run, State, StepId, Unowned};
use sage_core::wire::Progress;
use sage_engine::open::{Engine, Snapshot};

use super::call::Call;
use super::error::ToolError;
use super::progress::Teller;
use crate::cli::background;
use crate::cli::context::Context;
use crate::display::tail::Tail;

/// A look at a journal that has not grown is one system call. Most runs that end soon end at once.
const LOOK: Duration = Duration::from_millis(50);
const LATER_LOOK: Duration = Duration::from_millis(150);
const SOON: Duration = Duration::from_secs(2);
/// Whether its owner lives is looked at less often: several files.
const LOOK_FOR_OWNER: Duration = Duration::from_millis(500);
/// Steps that a progress message names.
const NAMED: usize = 3;

/// What a waiting client is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Now {
    pub completed: u32,
    pub total: u32,
    pub message: String,
}

impl Now {
    fn of(run: &Run) -> Now {
        let progress = Progress::of(run);
        let Progress { completed, total, .. } = progress;
        let working: Vec<&str> = run
            .live_steps()
            .filter(|step| step.children.is_none() && matches!(step.state, State::Running(_)))
            .map(|step| step.path.as_ref())
            .collect();
        let named = working[..working.len().min(NAMED)].join(", ");
        let message = match working.len() {
            0 => format!("{}: {}", run.status.name(), progress.text()),
            n if n > NAMED => format!("{completed} of {total} done; {named} and {} more at work", n - NAMED),
            _ => format!("{completed} of {total} done; at work: {named}"),
        };
        Now { completed, total, message }
    }
}

struct Watch {
    context: Context,
    engine: Engine,
    feature: String,
    run: String,
    tail: Tail,
    /// Questions that were open when the waiting began; a new one ends it.
    asked: Option<usize>,
    looked_for_owner: Instant,
}

impl Watch {
    fn new(context: &Context, feature: &str) -> Option<Watch> {
        let engine = context.engine();
        let run = engine.latest(feature)?;
        let tail = Tail::new(engine.vfs.clone(), &engine.project.run_dir(&run), 0);
        let looked_for_owner = Instant::now();
        let (context, feature) = (context.clone(), feature.to_string());
        Some(Watch { context, engine, feature, run, tail, asked: None, looked_for_owner })
    }

    /// Reads what is new. `None` if there is nothing to wait for any more.
    fn look(&mut self) -> Option<Now> {
        // What cannot be read is told by whoever reads all of it afterwards.
        while self.tail.advance(&mut |_| {}).ok()? {}
        let run = self.tail.run()?;
        let asking = questions(run);
        let before = *self.asked.get_or_insert(asking);
        // A question that was answered is not waited for any more, although nobody has gone on yet.
        let stands = run.unowned(false) != Unowned::GoesOn;
        if stands || asking > before {
            return None;
        }
        self.asked = Some(asking);
        let now = Now::of(run);
        if self.looked_for_owner.elapsed() >= LOOK_FOR_OWNER {
            self.looked_for_owner = Instant::now();
            let replaced = self.engine.latest(&self.feature).is_some_and(|latest| latest != self.run);
            if replaced || !background::goes_on(&self.context, &self.engine, &self.feature) {
                return None;
            }
        }
        Some(now)
    }
}

fn questions(run: &Run) -> usize {
    let asks = |id: &StepId| matches!(&run.step(*id).state, State::Running(running) if running.ask.is_some());
    run.step_ids().filter(asks).count() + run.asks.len()
}

impl Call {
    /// The run as it is when it has ended, stands still, asks something new, or `wait_ms` since the call's start
    /// are over.
    pub async fn settled(&self, feature: &str, wait_ms: u64) -> Result<Snapshot, ToolError> {
        let until = self.started + Duration::from_millis(wait_ms);
        let mut teller = Teller::of(self);
        let name = feature.to_string();
        let mut watch = self.blocking(move |context| Ok(Watch::new(context, &name))).await?;
        while Instant::now() < until && !self.request.ct.is_cancelled() {
            let Some(mut watching) = watch.take() else { break };
            let looked = self.threaded(move || {
                let now = watching.look();
                Ok(now.map(|now| (watching, now)))
            });
            let Some((watching, now)) = looked.await? else { break };
            watch = Some(watching);
            teller.tell(&now).await;
            let look = if self.started.elapsed() < SOON { LOOK } else { LATER_LOOK };
            let pause = look.min(until.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.request.ct.cancelled() => {}
            }
        }
        let name = feature.to_string();
        self.blocking(move |context| Ok(context.engine().read(&name)?)).await
    }
}
