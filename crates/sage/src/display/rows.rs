//! The tree's rows: what a run has to show, and how much each row matters when there is no room for all.

use sage_core::event::Ask;
use sage_core::port::Usage;
use sage_core::run::{Children, Judgement, PhaseId, Run, ScopeId, State, Status, StepId, Wait};
use sage_core::wire;

use super::cache_lines;
use super::estimate::Forecast;
use super::frame::Size;
use super::summary::failure_text;
use super::text::{Line, Tone, clock_text, cost_text, count_text, first_line, time_text};
use super::walk;
use super::why::{left_text, retry_text, unknown_question, wait_text};

/// Failures that are listed below a fan-out; its own row counts them all.
pub(super) const FAN_FAILURES: usize = 3;
/// Steps of a completed phase that are listed with what they used; the phase's own row has the sum.
const SPENDERS: usize = 20;
/// More than any terminal shows.
const ENOUGH_ROWS: usize = 300;
/// More blocked phases in a row than this are told together.
const BLOCKED_PHASES: usize = 2;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPIN_MS: u64 = 100;
/// Below, a running row has no room for figures beside its time.
const NARROW_COLUMNS: usize = 60;

/// Smaller goes first when there is no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Asking,
    Failed,
    Running,
    Retrying,
    PhaseAhead,
    PhaseDone,
    Waiting,
    Pending,
    Done,
}

/// What a row that is left out stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    Running,
    Failed,
    Asking,
    Retrying,
    ForSlot,
    Waiting,
    Pending,
    Done,
}

impl Left {
    pub fn text(self) -> &'static str {
        match self {
            Left::Running => "running",
            Left::Failed => "failed",
            Left::Asking => "waiting for a person",
            Left::Retrying => "waiting to retry",
            Left::ForSlot => "waiting for a slot",
            Left::Waiting => "waiting",
            Left::Pending => "pending",
            Left::Done => "done",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Row {
    pub indent: usize,
    pub sign: (Tone, &'static str),
    pub name: (Tone, String),
    pub details: Line,
    pub rank: Rank,
    /// How many steps are not shown if this is left out, and which.
    pub stands_for: Option<(Left, u32)>,
    /// Says more about the row before it.
    pub goes_on: bool,
    /// The step that is at work here.
    pub works: Option<StepId>,
}

/// The rows of a run, in the order of the tree, and what else there is: of thousands of steps that just wait or
/// are done, only as many become rows as could be shown.
/// Times of steps and phases count up to `clock_ms`. `whole`: also what steps of completed phases have used.
pub(crate) fn rows(
    run: &Run,
    (now_ms, clock_ms): (u64, u64),
    size: Size,
    owned: bool,
    whole: bool,
) -> (Vec<Row>, Vec<(Left, u32)>) {
    let enough = size.height.saturating_add(1).max(ENOUGH_ROWS);
    let moves = owned && run.status == Status::Running;
    let (forecast, width) = (Forecast::of(run, now_ms, moves), size.width);
    let (list, others) = (Vec::new(), Vec::new());
    let mut rows =
        Rows { run, now_ms, clock_ms, moves, owned, whole, forecast, width, enough, rows: list, others };
    rows.scope(ScopeId(0), 0);
    (rows.rows, rows.others)
}

/// Rows being gathered. Phases are in `phase_rows`, steps here.
pub(super) struct Rows<'a> {
    pub run: &'a Run,
    pub now_ms: u64,
    pub clock_ms: u64,
    /// It runs, and a process owns it.
    moves: bool,
    pub owned: bool,
    pub whole: bool,
    pub forecast: Forecast<'a>,
    pub width: usize,
    enough: usize,
    pub rows: Vec<Row>,
    others: Vec<(Left, u32)>,
}

impl Rows<'_> {
    pub(super) fn spinner(&self) -> (Tone, &'static str) {
        if !self.moves {
            return (Tone::Dim, "◌");
        }
        (Tone::Busy, SPINNER[(self.now_ms / SPIN_MS) as usize % SPINNER.len()])
    }

    fn scope(&mut self, scope: ScopeId, indent: usize) {
        let blocked = |id: PhaseId| self.run.phase(id).judged == Some(Judgement::Blocked);
        let phases = &self.run.scope(scope).phases;
        for group in phases.chunk_by(|&a, &b| blocked(a) && blocked(b)) {
            match group {
                [first, .., last] if group.len() > BLOCKED_PHASES => {
                    let row = self.blocked_row(*first, *last, group, indent);
                    self.rows.push(row);
                }
                _ => group.iter().for_each(|&phase| {
                    self.earlier_rounds(phase, indent);
                    self.phase(phase, indent);
                }),
            }
        }
    }

    pub(super) fn step(&mut self, id: StepId, indent: usize) {
        let step = self.run.step(id);
        match step.children.as_deref() {
            Some(Children::Items { steps, .. }) => {
                self.rows.push(self.fan_row(id, steps, indent));
                self.fan_troubles(steps, indent + 1);
            }
            Some(Children::Scope(scope)) => {
                let row = self.step_row(id, indent);
                self.rows.push(row);
                if matches!(step.state, State::Open { .. }) {
                    self.scope(*scope, indent + 1);
                } else {
                    self.inner_failures(id, indent + 1);
                }
            }
            Some(Children::Calls(calls)) => {
                let row = self.step_row(id, indent);
                self.rows.push(row);
                self.calls(id, &calls.steps, indent + 1);
            }
            None => {
                let (rank, left) = self.weight(id);
                if self.rows.len() >= self.enough && rank >= Rank::Waiting {
                    self.others.push((left, 1));
                } else {
                    self.leaf(id, self.leaf_name(id), indent);
                }
            }
        }
    }

    /// There is no room for more that only waits.
    pub(super) fn is_enough(&self) -> bool {
        self.rows.len() >= self.enough
    }

    pub(super) fn leave_out(&mut self, left: Left) {
        self.others.push((left, 1));
    }

    /// Below its phase a step is called by its operation.
    fn leaf_name(&self, id: StepId) -> String {
        self.run.operation(id).id.clone()
    }

    pub(super) fn leaf(&mut self, id: StepId, name: String, indent: usize) {
        let mut row = self.step_row(id, indent);
        row.name.1 = name;
        let command = self.command(id);
        // The command must be readable: on a line of its own if there is no room beside the message.
        let used = indent * 2 + 2 + row.name.1.len() + 2 + row.details.width();
        match command {
            Some(command) if used + 5 + command.len() <= self.width => {
                row.details.push(Tone::Dim, " → ");
                row.details.push(Tone::Bold, &command);
                self.rows.push(row);
            }
            Some(command) => {
                let rank = row.rank;
                self.rows.push(row);
                let name = (Tone::Bold, command);
                let sign = (Tone::Dim, "→");
                self.rows.push(Row {
                    indent: indent + 1,
                    sign,
                    name,
                    details: Line::default(),
                    rank,
                    stands_for: None,
                    goes_on: true,
                    works: None,
                });
            }
            None => self.rows.push(row),
        }
    }

    fn command(&self, id: StepId) -> Option<String> {
        self.run.waits_for_person(id).then(|| walk::approve_command(self.run, id))
    }

    pub(super) fn step_row(&self, id: StepId, indent: usize) -> Row {
        let (rank, left) = self.weight(id);
        let state = self.run.shown_state(id);
        let tone = if matches!(state, State::Pending | State::Skipped | State::Blocked) {
            Tone::Dim
        } else {
            Tone::Plain
        };
        Row {
            indent,
            sign: self.step_sign(id),
            name: (tone, self.leaf_name(id)),
            details: self.step_details(id),
            rank,
            stands_for: Some((left, 1)),
            goes_on: false,
            works: Some(id).filter(|_| self.works(id)),
        }
    }

    /// An attempt is under way and needs nobody.
    pub(super) fn works(&self, id: StepId) -> bool {
        let running = matches!(self.run.shown_state(id), State::Running(running) if running.until.is_none());
        running && self.owned && !self.run.waits_for_person(id)
    }

    pub(super) fn weight(&self, id: StepId) -> (Rank, Left) {
        match self.run.shown_state(id) {
            _ if self.run.waits_for_person(id) => (Rank::Asking, Left::Asking),
            State::Unknown => (Rank::Asking, Left::Asking),
            State::Running(_) | State::Open { .. } => (Rank::Running, Left::Running),
            State::Failed => (Rank::Failed, Left::Failed),
            State::Backoff { .. } => (Rank::Retrying, Left::Retrying),
            State::Ready if self.run.limiting_pool(id).is_some() => (Rank::Waiting, Left::ForSlot),
            State::Ready => (Rank::Waiting, Left::Waiting),
            State::Pending => (Rank::Pending, Left::Pending),
            State::Succeeded | State::Skipped | State::Blocked | State::Cancelled => (Rank::Done, Left::Done),
        }
    }

    fn step_sign(&self, id: StepId) -> (Tone, &'static str) {
        let step = self.run.step(id);
        match self.run.shown_state(id) {
            _ if self.run.waits_for_person(id) => (Tone::Warn, "?"),
            State::Unknown => (Tone::Warn, "?"),
            State::Running(_) => self.spinner(),
            State::Open { .. } if self.run.is_at_work(id) => self.spinner(),
            State::Open { .. } => (Tone::Dim, "◌"),
            State::Backoff { .. } => (Tone::Warn, "↻"),
            State::Ready => (Tone::Dim, "◌"),
            State::Pending => (Tone::Dim, "○"),
            State::Succeeded if step.degraded => (Tone::Warn, "!"),
            State::Succeeded => (Tone::Good, "✓"),
            State::Failed => (Tone::Bad, "✗"),
            State::Skipped | State::Blocked | State::Cancelled => (Tone::Dim, "-"),
        }
    }

    fn step_details(&self, id: StepId) -> Line {
        let step = self.run.step(id);
        let mut details = Line::default();
        let state = self.run.shown_state(id);
        match state {
            State::Running(running) => match &running.ask {
                Some(ask) => details.fact(Tone::Warn, &ask_text(ask, first_line(&ask.message))),
                None => {
                    if let Some(question) = self.run.permission_question(id) {
                        details.fact(Tone::Warn, first_line(&question));
                    }
                    self.running_details(id, running.until, running.stopping, &mut details);
                }
            },
            State::Unknown => details.fact(Tone::Warn, first_line(&unknown_question(self.run, id))),
            State::Open { .. } if !self.owned => details.fact(Tone::Warn, "interrupted"),
            State::Open { .. } => details.fact(Tone::Plain, &clock_text(self.elapsed_ms(id))),
            State::Succeeded if self.run.is_reused(id) => {
                details.fact(Tone::Dim, "reused");
                self.usage(id, &mut details);
            }
            State::Succeeded if step.taken().is_some() => {
                let told = cache_lines::details(step);
                told.into_iter().for_each(|(tone, text)| details.fact(tone, &text));
            }
            State::Succeeded => {
                details.fact(Tone::Dim, &time_text(self.elapsed_ms(id)));
                self.usage(id, &mut details);
            }
            State::Failed => {
                details.fact(Tone::Bad, &self.failure_text(id));
                self.usage(id, &mut details);
            }
            State::Backoff { at } => {
                details.fact(Tone::Warn, &retry_text(*at, self.now_ms));
                details.fact(Tone::Dim, &format!("attempt {}: {}", step.attempts, self.failure_text(id)));
            }
            State::Ready | State::Pending => {
                details.fact(Tone::Dim, &self.wait_details(id));
                self.usage(id, &mut details);
            }
            State::Skipped | State::Blocked | State::Cancelled => details.fact(Tone::Dim, state.name()),
        }
        details
    }

    fn running_details(&self, id: StepId, until: Option<u64>, stopping: bool, details: &mut Line) {
        let step = self.run.step(id);
        if !self.owned {
            details.fact(Tone::Warn, "interrupted");
            return self.usage(id, details);
        }
        details.fact(Tone::Plain, &clock_text(self.elapsed_ms(id)));
        if let Some(until) = until {
            details.fact(Tone::Dim, &format!("{} left", left_text(until, self.now_ms)));
        }
        if stopping {
            details.fact(Tone::Warn, "stopping");
        }
        if step.attempts > 1 {
            details.fact(Tone::Dim, &format!("attempt {}", step.attempts));
        }
        // What it does matters more than what it has used.
        if self.width >= NARROW_COLUMNS {
            self.usage(id, details);
        }
    }

    fn usage(&self, id: StepId, details: &mut Line) {
        self.used([id], details);
    }

    /// What steps have used together.
    pub(super) fn used(&self, ids: impl IntoIterator<Item = StepId>, details: &mut Line) {
        let mut usage = Usage::default();
        ids.into_iter().for_each(|id| usage.add(&self.run.usage_of(id)));
        if usage.total() > 0 {
            details.fact(Tone::Dim, &format!("{} tokens", count_text(usage.total())));
        }
        if let Some(cost) = usage.cost_usd {
            details.fact(Tone::Dim, &cost_text(cost, usage.cost_estimated));
        }
    }

    fn wait_details(&self, id: StepId) -> String {
        match self.run.wait_reason(id) {
            None if !self.owned && self.run.step(id).unknown => "interrupted".into(),
            None if !self.owned => "not started".into(),
            // Its attempt was ended with the run: nothing starts it again before a resume.
            None if self.run.step(id).attempts > 0 => "stopped".into(),
            None => "starting".into(),
            Some(Wait::Dependency) => self.needs_text(id),
            Some(wait) => wait_text(self.run, &wait, self.now_ms),
        }
    }

    /// What a pending step of an open phase waits for: the steps it names that are not done.
    fn needs_text(&self, id: StepId) -> String {
        let step = self.run.step(id);
        let scope = self.run.scope(step.scope);
        let needs = scope.plan.steps[step.plan_step as usize].needs.iter();
        let open = needs.filter(|&&n| !self.run.step(scope.steps[n as usize]).state.settled());
        let names: Vec<&str> = open.map(|&n| scope.plan.operation(n).id.as_str()).collect();
        if names.is_empty() { "dependency".into() } else { format!("after {}", names.join(", ")) }
    }

    pub(super) fn elapsed_ms(&self, id: StepId) -> u64 {
        self.run.step_ms(id, self.clock_ms)
    }

    fn failure_text(&self, id: StepId) -> String {
        match &self.run.step(id).failure {
            Some(failure) => failure_text(failure.class.name(), first_line(&failure.message)),
            None => "failed".into(),
        }
    }

    pub(super) fn failures(&mut self, member: StepId, indent: usize) {
        let (step, items) = (self.run.step(member), self.run.item_steps(member));
        if !items.is_empty() && !matches!(step.state, State::Succeeded) {
            self.rows.push(self.fan_row(member, items, indent));
        } else if wire::failed_by_itself(self.run, member) {
            self.leaf(member, self.leaf_name(member), indent);
        }
        if step.children.is_some() {
            self.inner_failures(member, indent + 1);
        }
    }

    fn inner_failures(&mut self, id: StepId, indent: usize) {
        let failed = |&inner: &StepId| inner != id && matches!(self.run.step(inner).state, State::Failed);
        let failures: Vec<StepId> =
            walk::leaves_and_failures(self.run, id).into_iter().filter(failed).take(FAN_FAILURES).collect();
        for leaf in failures {
            self.leaf(leaf, self.inner_name(leaf), indent);
        }
    }

    /// Below a completed phase: each step that has used something.
    pub(super) fn spenders(&mut self, inside: &[StepId], indent: usize) {
        let spent = |id: &StepId| self.run.usage_of(*id).total() > 0;
        let spenders: Vec<StepId> = inside.iter().copied().filter(spent).collect();
        for &id in spenders.iter().take(SPENDERS) {
            self.leaf(id, self.inner_name(id), indent);
        }
        if spenders.len() > SPENDERS {
            self.others.push((Left::Done, (spenders.len() - SPENDERS) as u32));
        }
    }

    /// A step deep inside is told by its path, without the phase above which it is listed.
    pub(super) fn inner_name(&self, id: StepId) -> String {
        let path = &self.run.step(id).path;
        path.split_once('/').map_or(path.to_string(), |(_, rest)| rest.to_string())
    }
}

/// The question, or as much of its message as is given.
pub(crate) fn ask_text(ask: &Ask, message: &str) -> String {
    let mut text = match message {
        "" => "approval".to_string(),
        message => format!("approval: {message}"),
    };
    if ask.choices != ["approve", "reject"] {
        text.push_str(&format!(" [{}]", ask.choices.join("|")));
    }
    text
}
