//! A step of a run: where it stands, what it gave, what it was expanded to.

use std::sync::Arc;

use crate::budget::{Amount, Node};
use crate::digest::Digest;
use crate::event::{Aside, Ask, Payload};
use crate::policy::{Cause, FailureClass};
use crate::port::Usage;
use crate::run::{ActiveTime, Called, Calls, DemandId, PhaseId, ScopeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

#[derive(Debug)]
pub struct Step {
    pub path: Arc<str>,
    pub scope: ScopeId,
    /// Its operation: the step's number in the scope's plan.
    pub plan_step: u32,
    pub phase: PhaseId,
    /// The fan-out that it is an item of, and which one.
    pub item: Option<(StepId, u32)>,
    /// Longest way to the end, through all enclosing scopes: who has more ahead goes first.
    pub height: u32,
    /// Needs that are not settled yet, plus one while its phase is closed.
    pub waiting_on: u32,
    pub state: State,
    pub attempts: u32,
    pub ready_ms: u64,
    pub started_ms: u64,
    pub ended_ms: u64,
    /// While it was under way.
    pub time: ActiveTime,
    /// What its attempts took by their own measure, without those beside another one.
    pub active_ms: u64,
    /// The same since the step last began anew or fell back: what its own limit counts.
    pub life_ms: u64,
    /// What it asks for before it may start.
    pub demand: DemandId,
    pub usage: Option<Box<Usage>>,
    pub key: Option<Digest>,
    pub output: Option<Arc<Output>>,
    pub failure: Option<Box<Failure>>,
    pub children: Option<Box<Children>>,
    pub reused: bool,
    /// Its memo must not be used: it was asked to run again.
    pub fresh: bool,
    /// A crash left its last attempt without a result.
    pub unknown: bool,
    /// Its last attempt could be made again without harm.
    pub repeatable: bool,
    /// Attempts that failed since the step last began anew: what `retry.attempts` limits.
    pub tries: u32,
    /// Its answer did not fit and it was asked for another one, which is no try.
    pub asked_again: bool,
    /// Laid out for an expansion that was taken back; nobody shows or counts it any more.
    pub gone: bool,
    /// Succeeded, although some of its children did not, or only by a stand-in.
    pub degraded: bool,
    /// Which of its alternatives it has fallen back to.
    pub alternative: Option<u32>,
    /// Attempts that may be alive, the one that counts and those beside it, with what they have reserved.
    pub beside: Vec<Beside>,
    /// The last pause between tries.
    pub delay_ms: Option<u64>,
    /// Times that it was restarted because it made no progress.
    pub stall_restarts: u32,
    /// The session that its newest attempt belongs to.
    pub session: Option<Arc<str>>,
    /// Why its last answer was not good enough; kept until there is a better one.
    pub verdict: Option<Box<str>>,
    /// Its last attempt made way for urgent work.
    pub preempted: bool,
    /// A person takes what stands in for its result, old as it is.
    pub accepted: bool,
    /// What it has to do with the cache.
    pub cache: Option<Box<CacheUse>>,
    /// Of a step that a script called: what it does, which no plan says.
    pub call: Option<Box<Called>>,
    /// Of a check.
    pub checked: Option<Box<Checked>>,
}

/// What a check has to do with the project's files.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// How they looked when it had been made.
    pub looked: Option<Digest>,
    /// How long the run had waited by then.
    pub waited_ms: u64,
    /// It is made again for a result that is there already: only what is expected of it is.
    pub kept: Option<Arc<Output>>,
}

/// A step and the results of earlier runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheUse {
    /// Where its result is kept, as far as it is known.
    pub key: Option<Digest>,
    pub taken: Option<Taken>,
}

/// A result that an earlier run made.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    pub from: String,
    pub age_ms: u64,
    /// `None`: it is too old and only stands in.
    pub expires_in_ms: Option<u64>,
}

/// An attempt that may be alive.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    pub attempt: u32,
    pub reserved: Amount,
    /// What it has used so far, as far as it told.
    pub used: Usage,
}

impl Beside {
    /// The node with what the attempt has used as spent instead of reserved.
    pub fn so_far(node: Node, beside: &Beside) -> Node {
        let used = Amount::of(&beside.used, beside.used.cost_micro_usd());
        let settled = node.settled.saturating_add(used);
        Node { settled, reserved: node.reserved.saturating_sub(used), ..node }
    }
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub class: FailureClass,
    pub cause: Option<Cause>,
    pub message: String,
    pub partial: Option<Payload>,
}

impl Failure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Failure {
        Failure { class, cause: None, message: message.into(), partial: None }
    }
}

#[derive(Debug)]
pub enum State {
    Pending,
    Ready,
    Running(Running),
    /// Failed, will be tried again at this time.
    Backoff {
        at: u64,
    },
    /// Expanded; its children are under way.
    Open {
        left: u32,
        failed: u32,
        cancelling: bool,
    },
    /// An attempt was lost, or a check could not be made: a person has to say what to do.
    Unknown,
    Succeeded,
    Skipped,
    Failed,
    Blocked,
    Cancelled,
}

#[derive(Debug, Default)]
pub struct Running {
    pub since_ms: u64,
    pub until: Option<u64>,
    pub ask: Option<Arc<Ask>>,
    pub stopping: bool,
    /// It made no progress to the end of its ladder: a person decides once it has ended.
    pub stalled: bool,
    /// Slots that attempts beside the first one occupy.
    pub hedges: u32,
    pub pid: Option<(u32, u64)>,
}

#[derive(Debug)]
pub enum Children {
    Items {
        steps: Vec<StepId>,
        items: Payload,
        digests: Vec<Digest>,
        ordinals: Vec<u32>,
    },
    Scope(ScopeId),
    /// What a script has called so far.
    Calls(Calls),
}

impl State {
    pub fn settled(&self) -> bool {
        matches!(self, State::Succeeded | State::Skipped | State::Failed | State::Blocked | State::Cancelled)
    }

    /// Satisfies those who depend on it.
    pub fn ok(&self) -> bool {
        matches!(self, State::Succeeded | State::Skipped)
    }

    /// The state's name in the wire types (DESIGN §6).
    pub fn name(&self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Ready | State::Backoff { .. } => "waiting",
            State::Running(running) if running.ask.is_some() => "waiting",
            State::Running(_) | State::Open { .. } => "running",
            State::Unknown => "unknown",
            State::Succeeded => "succeeded",
            State::Skipped => "skipped",
            State::Failed => "failed",
            State::Blocked => "blocked",
            State::Cancelled => "cancelled",
        }
    }
}

/// What a step gave. Lists and phases share their members' outputs instead of copying them.
#[derive(Debug)]
pub enum Output {
    Null,
    Leaf {
        result: Payload,
        full: Option<Payload>,
        artifacts: Vec<String>,
        /// Whether the project's files were others afterwards, where somebody looked.
        changed: Option<bool>,
        /// Its file is not where the template says.
        aside: Option<Box<Aside>>,
    },
    /// A fan-out's results in item order; `None` for an item that failed but was tolerated.
    List {
        items: Vec<Option<Arc<Output>>>,
        sha: Digest,
    },
    /// A sub-workflow's results: phase id, then operation id.
    Phases {
        phases: Vec<PhaseOutput>,
        sha: Digest,
    },
    /// A list or phases that were put together before the journal was lost, as one value; `sha` is what it was.
    Whole {
        result: Payload,
        sha: Digest,
    },
}

/// A phase's results: its id, then each operation's id and output.
pub type PhaseOutput = (Arc<str>, Vec<(Arc<str>, Arc<Output>)>);

impl Output {
    /// A result that is nothing but itself.
    pub fn leaf(result: Payload) -> Output {
        Output::Leaf { result, full: None, artifacts: Vec::new(), changed: None, aside: None }
    }

    /// The same result with its files elsewhere.
    pub fn moved(&self, files: Vec<String>, aside: Option<Aside>) -> Option<Output> {
        let Output::Leaf { result, full, changed, .. } = self else { return None };
        let (result, full, aside) = (result.clone(), full.clone(), aside.map(Box::new));
        Some(Output::Leaf { result, full, artifacts: files, changed: *changed, aside })
    }

    pub fn list(items: Vec<Option<Arc<Output>>>) -> Output {
        let shas: Vec<Digest> =
            items.iter().map(|item| item.as_ref().map_or_else(Output::none, |o| o.sha())).collect();
        Output::List { sha: Digest::of_all(&shas), items }
    }

    pub fn phases(phases: Vec<PhaseOutput>) -> Output {
        let mut shas = Vec::new();
        for (phase, members) in &phases {
            shas.push(Digest::of(phase.as_bytes()));
            for (id, output) in members {
                shas.extend([Digest::of(id.as_bytes()), output.sha()]);
            }
        }
        Output::Phases { sha: Digest::of_all(&shas), phases }
    }

    /// Whether the project's files were changed: by any of several, if somebody looked at all of them.
    pub fn changed(&self) -> Option<bool> {
        match self {
            Output::Leaf { changed, .. } => *changed,
            Output::List { items, .. } => {
                let all: Vec<Option<bool>> = items.iter().flatten().map(|item| item.changed()).collect();
                let any = all.contains(&Some(true));
                (any || (!all.is_empty() && !all.contains(&None))).then_some(any)
            }
            Output::Null | Output::Phases { .. } | Output::Whole { .. } => None,
        }
    }

    /// The digest of "no result".
    pub fn none() -> Digest {
        Digest::of(b"null")
    }

    pub fn sha(&self) -> Digest {
        match self {
            Output::Null => Output::none(),
            Output::Leaf { result, .. } => result.sha,
            Output::List { sha, .. } | Output::Phases { sha, .. } | Output::Whole { sha, .. } => *sha,
        }
    }
}
