//! The one loop of a run: inputs in, events out, effects after they are durable.
//!
//! ```text
//!  attempts, expressions, timers, signals, commits
//!                    |  Input
//!                    v
//!   handle -> emit (fold + journal) -> start / decide -> flush --batch--> committer (write, fdatasync)
//!                                                          ^                 |
//!                      effects (spawn, arm, acknowledge) <-+--- Committed <--+
//! ```
//! What must stay true: only this loop appends to the journal; an effect is carried out only after the event
//! that demands it is durable; whatever is pending while an fdatasync runs goes into the next one.

mod again;
mod allowances;
mod asks;
mod attention;
mod beside;
mod commit;
mod effect;
mod emit;
mod ended;
mod ending;
mod error;
mod fit;
mod gate;
mod handle;
mod interrupt;
mod last_look;
mod live;
mod lookup;
mod machine;
mod messages;
mod parking;
mod preempt;
mod queue;
mod reports;
mod reuse;
mod script_calls;
mod scripts;
mod signals;
mod spending;
mod stand_in;
mod start;
mod stopwatch;
mod timers;
mod trouble;

use sage_core::budget::History;
use sage_core::digest::Digest;
use sage_core::event::PauseReason;
use sage_core::port::script::{ScriptHost, ScriptLimits};
use sage_core::port::{Evaluator, Progress, StepExecutor, Stop};
use sage_core::price::PriceTable;
use sage_core::run::{Held, PhaseId, Run, Status, StepId};
use sage_core::seal::Key;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::blobs::Blobs;
use crate::cache::Cache;
use crate::called::Said;
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::journal::{Head, Journal, JournalError, JournalFile};
use crate::limits::{Limits, Member};
use crate::orchestration::OrchestrationLog;
use crate::output::Outputs;
use crate::perform::Ended;
use crate::prepare::Prepared;
use crate::teller::Teller;
use crate::trouble::{Refused, Trouble};
use crate::vfs::Vfs;
use attention::Attention;
pub use commit::CommitMode;
use commit::{Committer, Durable, Whereabouts};
use effect::Effect;
pub use error::{LoopError, Stopped};
pub use gate::Affinity;
use gate::Gate;
pub use interrupt::Interrupter;
pub(crate) use interrupt::Interrupts;
use last_look::LastLook;
use live::{Ends, Live};
use lookup::Lookups;
use machine::Machine;
use scripts::Scripts;
pub(crate) use scripts::given;
use stopwatch::Stopwatches;
use timers::{Timers, at};
use trouble::Obstacles;
pub(crate) use trouble::pause_before;

/// Inputs that may wait. Senders are attempts and evaluations, which are bounded themselves; a full channel
/// only makes them wait.
const INPUTS: usize = 1024;
/// Inputs handled before the next flush: more of them share one fdatasync.
const BURST: usize = 256;

/// What the loop needs from outside. Cheap to clone.
#[derive(Clone)]
pub struct Surroundings {
    pub vfs: Arc<dyn Vfs>,
    /// The user's key: what this process writes is sealed with it.
    pub key: Option<Key>,
    pub executor: Arc<dyn StepExecutor>,
    pub clock: Clock,
    pub blobs: Arc<Blobs>,
    pub project: PathBuf,
    /// Where steps write for people.
    pub outputs: Arc<Outputs>,
    pub run_dir: PathBuf,
    pub checkpoint: PathBuf,
    pub children_lock: Option<Arc<std::fs::File>>,
    pub limits: Limits,
    pub affinity: Arc<[Affinity]>,
    pub prices: Arc<PriceTable>,
    pub min_free_bytes: u64,
    pub approvals: Arc<crate::approvals::Approvals>,
    pub wakes: Option<Inbox>,
    /// Where monitors look; simulations have none.
    pub log: Option<OrchestrationLog>,
    /// A step's result in an earlier run: feature, this run, path.
    pub earlier: Arc<EarlierResults>,
    /// Results that later runs may take; `None` if there is no cache.
    pub cache: Option<Cache>,
    /// Where expressions are evaluated that must be stopped at a limit.
    pub evaluator: Arc<dyn Evaluator>,
    /// Who runs workflows in code; `None` runs none.
    pub scripts: Option<Arc<dyn ScriptHost>>,
    pub script_limits: ScriptLimits,
}

/// What a step gave in an earlier run.
#[derive(Clone, Debug)]
pub struct Earlier {
    pub run: String,
    pub at_ms: u64,
    pub result: serde_json::Value,
}

/// Says something to a person while the run goes on.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

pub type EarlierResults = dyn Fn(&str, &str, &str) -> Option<Earlier> + Send + Sync;

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("run_dir", &self.run_dir).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub commit: CommitMode,
    /// Pause instead of waiting for a known time.
    pub no_wait: bool,
    /// Look for signals of other processes.
    pub signals: bool,
    /// Take signals, start nothing.
    pub deliver_only: bool,
}

/// Everything that can happen to a loop.
#[derive(Debug)]
pub(crate) enum Input {
    Prepared(StepId, Prepared),
    LookedUp(StepId, Prepared, Option<Box<lookup::Known>>),
    StoodIn(StepId, Box<stand_in::StoodIn>),
    /// The file of a result that is reused is there.
    Restored(StepId, Box<reuse::Restored>),
    Progress(StepId, u32, Progress),
    Ended(StepId, u32, Ended),
    /// An attempt has done its work, and its result cannot be stored for now.
    Unkept(StepId, u32, Trouble),
    Asked(StepId, u32, Box<asks::Asked>),
    /// An attempt waits until everything that it reported has been taken in.
    CaughtUp(StepId, u32, oneshot::Sender<()>),
    /// A question that nobody waits for any more.
    Withdrawn(StepId, u32, String),
    Repeated(PhaseId, Result<bool, Refused>),
    /// How the project's files are at the end.
    Looked(Option<Digest>),
    /// What a script said, and in which of its starts.
    Script(StepId, u64, Box<Said>),
    Committed(Result<Durable, JournalError>),
    Interrupt,
    Poll,
    Timer,
}

pub struct RunLoop {
    around: Surroundings,
    options: Options,
    run: Run,
    journal: Journal,
    committer: Committer,
    inputs: mpsc::Receiver<Input>,
    sender: mpsc::Sender<Input>,
    interrupts: Interrupts,
    held: Held,
    holding: u32,
    repeating: HashSet<PhaseId>,
    last_look: LastLook,
    scripts: Scripts,
    live: HashMap<(StepId, u32), Live>,
    gate: Gate,
    lookups: Lookups,
    machine: Machine,
    /// What steps used in earlier runs and in this one: the next one's estimate.
    history: History,
    /// The run stands still until then, and its owner stays.
    waiting: Option<u64>,
    /// How often the run stood still and went on.
    stops: u32,
    /// Nobody answered the last question.
    unanswered: bool,
    obstacles: Obstacles,
    effects: VecDeque<(u64, Effect)>,
    durable: Head,
    /// What is pending must survive a power cut.
    must_sync: bool,
    timers: Timers,
    watches: Stopwatches,
    stopping: Stop,
    /// Why everything is being stopped, to be journaled once nothing runs any more.
    pausing: Option<PauseReason>,
    image: crate::image::Painter,
    attention: Attention,
    /// Tell others, where that is wanted.
    poster: Option<Teller<Inbox>>,
    monitor: Option<Teller<OrchestrationLog>>,
    done: bool,
    tell: Option<Tell>,
    whereabouts: Whereabouts,
}

impl std::fmt::Debug for RunLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunLoop").field("run", &self.run.id).finish_non_exhaustive()
    }
}

impl RunLoop {
    pub fn new(
        around: Surroundings,
        options: Options,
        run: Run,
        journal: Journal,
        file: JournalFile,
        member: Member,
        history: History,
    ) -> RunLoop {
        let (sender, inputs) = mpsc::channel(INPUTS);
        let durable = file.head();
        let whereabouts = Whereabouts::new(&file, options.commit);
        let committer = Committer::new(file, options.commit, sender.clone());
        let image = crate::image::Painter::new(&around, options.commit, &run);
        let machine = Machine::new(around.min_free_bytes);
        let lookups = Lookups::new(&run);
        let (vfs, dir) = (&around.vfs, &around.run_dir);
        let poster =
            around.wakes.clone().map(|inbox| Teller::new(inbox, vfs.clone(), dir.clone(), durable.seq));
        let monitor = around.log.clone().map(|log| Teller::new(log, vfs.clone(), dir.clone(), durable.seq));
        RunLoop {
            around,
            options,
            run,
            journal,
            committer,
            inputs,
            sender,
            interrupts: Interrupter::default().listen(),
            held: Held::default(),
            holding: 0,
            repeating: HashSet::new(),
            last_look: LastLook::NotYet,
            scripts: Scripts::default(),
            live: HashMap::new(),
            gate: Gate::new(member),
            lookups,
            machine,
            history,
            waiting: None,
            stops: 0,
            unanswered: false,
            obstacles: Obstacles::default(),
            effects: VecDeque::new(),
            durable,
            must_sync: false,
            timers: Timers::default(),
            watches: Stopwatches::default(),
            stopping: Stop::No,
            pausing: None,
            image,
            attention: Attention::default(),
            poster,
            monitor,
            done: false,
            tell: None,
            whereabouts,
        }
    }

    pub fn interrupter(&self) -> Interrupter {
        self.interrupts.interrupter()
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// As another loop of the same run was: whoever could interrupt that one can interrupt this one.
    pub(crate) fn in_place_of(mut self, interrupts: Interrupts, tell: Option<Tell>) -> RunLoop {
        (self.interrupts, self.tell) = (interrupts, tell);
        self
    }

    /// What a person should know while the run goes on is said to `tell`.
    pub fn tell_with(&mut self, tell: Tell) {
        self.tell = Some(tell);
    }

    fn say(&self, line: String) {
        if let Some(tell) = &self.tell {
            tell(line);
        }
    }

    /// Leaves the run as it is to another owner; its image is on disk.
    pub fn leave(mut self) -> Run {
        self.image.finish(&self.run, self.durable);
        self.run
    }

    /// Runs to the end, a pause or a failure of the disk. Whatever the reason, no process of the run is left.
    pub async fn drive(mut self) -> Result<(Run, History), Box<Stopped>> {
        let result = self.turn().await;
        for live in self.live.values() {
            live.stop.set(Stop::Now);
        }
        while !self.live.is_empty() {
            match self.inputs.recv().await {
                Some(Input::Ended(id, attempt, _)) => drop(self.live.remove(&(id, attempt))),
                Some(_) => {}
                None => break,
            }
        }
        self.close_journal();
        match result.is_ok() && self.journal.head() == self.durable {
            true => self.image.finish(&self.run, self.durable),
            // After a failed write nobody knows what of the fold is on the disk.
            false => self.image.close(),
        }
        self.finish_keeping().await;
        self.finish_posts(result.is_ok()).await;
        match result {
            Ok(()) => Ok((self.run, self.history)),
            Err(error) => Err(Box::new(Stopped { error, interrupts: self.interrupts, tell: self.tell })),
        }
    }

    async fn turn(&mut self) -> Result<(), LoopError> {
        self.attention.begin();
        self.paint();
        if self.options.deliver_only {
            // A deadline that passed while the run had no owner has decided before any answer that comes now.
            self.take_deadlines()?;
            self.take_signals()?;
        } else {
            self.rearm();
            self.recover_usage()?;
            if self.options.signals {
                self.follow_limits()?;
            }
        }
        self.pump().await?;
        while !self.done {
            let input = self.next_input().await;
            self.handle(input).await?;
            for _ in 0..BURST {
                let Ok(input) = self.inputs.try_recv() else { break };
                self.handle(input).await?;
            }
            if self.image.is_late() {
                self.catch_up_disk().await?;
            }
            self.pump().await?;
        }
        Ok(())
    }

    pub(super) fn paint(&mut self) {
        self.image.paint(&self.run, self.durable, self.journal.head());
    }

    async fn next_input(&mut self) -> Input {
        let (timer, now) = (self.timers.next(), Instant::now());
        let poll = self.options.signals.then(|| self.timers.next_poll());
        // Before what may never end: a flood of inputs must not make the run deaf.
        if self.interrupts.take() {
            return Input::Interrupt;
        }
        // The runtime's timer counts in milliseconds: what is due already must not wait for the next one.
        if timer.is_some_and(|at| at <= now) {
            return Input::Timer;
        }
        if poll.is_some_and(|at| at <= now) {
            return Input::Poll;
        }
        if let Ok(input) = self.inputs.try_recv() {
            return input;
        }
        self.attention.free();
        let input = tokio::select! {
            biased;
            () = self.interrupts.next() => Input::Interrupt,
            input = self.inputs.recv() => input.unwrap_or(Input::Interrupt),
            () = at(timer) => Input::Timer,
            () = at(poll) => Input::Poll,
        };
        self.attention.taken();
        input
    }

    /// Everything that follows from the state as it is now.
    async fn pump(&mut self) -> Result<(), LoopError> {
        loop {
            self.follow_scripts()?;
            self.start_ready()?;
            // What was reused at once is told at once: only what has effects waits for the disk.
            self.tell_scripts();
            self.make_way()?;
            self.follow_decisions()?;
            self.gate.leave_queue();
            self.watch_queue();
            self.watch();
            let flushed = self.flush().await?;
            if !flushed || self.done {
                return Ok(());
            }
        }
    }

    fn running(&self) -> bool {
        self.run.status == Status::Running && self.stopping == Stop::No && !self.options.deliver_only
    }
}
