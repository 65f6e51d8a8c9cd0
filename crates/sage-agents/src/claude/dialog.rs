//! Listens and answers: every line of the program is told to the feed, remembered, and answered if it asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sage_core::port::{Permission, PermissionAsk, Stage, Stop, StopSignal, Usage};
use serde_json::Value;

use super::access;
use super::agent_type;
use super::argv::retries_itself;
use super::asks::Asks;
use super::channel::Channel;
use super::counted;
use super::event::{Block, Event, Line, Server};
use super::gate::Gate;
use super::home::Subagents;
use super::planning::Planning;
use super::prompt;
use super::shape::Shape;
use super::transcript::Transcript;
use crate::agent::{Feed, Order, Reach, answered};
use crate::attempt::Attempt;
use crate::lines::Lines;
use crate::session::now_ms;

/// How often servers that are still starting are looked at; the program itself gives them up after a while.
const SERVER_POLL: Duration = Duration::from_millis(50);
/// Another turn begins at once.
const TURN_PATIENCE: Duration = Duration::from_secs(5);
const GO_ON: &str = "You seem to be stuck and were interrupted. What you have done so far is still there. Go on \
    from there, finish the task and give the final answer.";

#[derive(Debug)]
pub struct Dialog<'a> {
    order: &'a Order,
    /// What it is asked, with its files.
    prompt: Value,
    feed: &'a Feed,
    reach: Reach,
    capped: bool,
    stop: StopSignal,
    channel: Arc<Channel>,
    asks: Asks,
    gate: Gate,
    lines: Lines,
    cap_bytes: usize,
    transcript: Transcript,
    /// The prompt is said once its servers are there: before that nothing is spent.
    waiting: bool,
    retries_itself: bool,
    /// What was last told of its usage.
    told: Usage,
    has_subagents: bool,
    subagents: Subagents,
    planning: Planning,
    /// It had no plan that anybody has approved when it was last heard.
    plans: bool,
    /// Turns of the program that have begun.
    begun: Arc<AtomicUsize>,
}

impl<'a> Dialog<'a> {
    pub fn new(
        attempt: &Attempt<'_>,
        order: &'a Order,
        feed: &'a Feed,
        channel: &Arc<Channel>,
    ) -> Dialog<'a> {
        let cap_bytes = attempt.config.output_cap;
        Dialog {
            order,
            prompt: prompt::content(&order.prompt, &order.files, &attempt.cx.scratch),
            feed,
            reach: Reach::of(attempt, order),
            capped: attempt.cx.capped,
            stop: attempt.cx.stop.clone(),
            channel: Arc::clone(channel),
            asks: Asks::default(),
            gate: Gate::new(order.schema.as_ref().filter(|_| attempt.cx.capped).map(Shape::of)),
            lines: Lines::new(cap_bytes),
            cap_bytes,
            transcript: Transcript::new(counted(&order.conversation)),
            waiting: false,
            retries_itself: retries_itself(order),
            told: Usage::default(),
            has_subagents: false,
            planning: Planning::of(order),
            plans: order.plans,
            subagents: Subagents::of(&order.config, order.conversation.id(), now_ms()),
            begun: Arc::default(),
        }
    }

    pub fn begin(&mut self) {
        if self.capped {
            self.channel.hold_tools();
        }
        self.feed.sent(self.order.system.as_deref(), &self.order.prompt);
        if self.order.mcp_servers.is_empty() {
            return self.channel.prompt(self.prompt.clone());
        }
        self.waiting = true;
        self.channel.ask_for_servers();
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.read(|lines, take| lines.push(chunk, take));
    }

    /// The program is gone; a last line without its newline counts if it is whole.
    pub fn end(mut self) -> Transcript {
        self.read(|lines, take| lines.end(take));
        self.channel.close();
        self.transcript.garbage_lines += self.lines.overlong;
        std::mem::take(&mut self.transcript)
    }

    fn read(&mut self, feed: impl FnOnce(&mut Lines, &mut dyn FnMut(&[u8]))) {
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(self.cap_bytes));
        feed(&mut lines, &mut |line| match Line::parse(line) {
            Some(line) => self.take(line),
            None => self.transcript.garbage_lines += 1,
        });
        self.lines = lines;
    }

    fn take(&mut self, line: Line) {
        if self.plans && !self.planning.is_under_way() {
            self.plans = false;
            self.feed.planned();
        }
        if let Some(session) = line.session.filter(|_| !matches!(line.event, Event::Result(_))) {
            self.feed.conversation(&session);
        }
        self.transcript.take(&line.event);
        match line.event {
            Event::Init { servers, agents, .. } => self.init(servers, agents),
            Event::Said { blocks, below, .. } => {
                self.has_subagents |= below;
                if !below {
                    self.gate.said(&blocks);
                }
                self.said(blocks);
                self.tell_usage(Stage::Answering);
            }
            Event::Results(results) => {
                results.iter().for_each(|it| self.feed.result(&it.id, &it.text, it.failed));
            }
            Event::Fault(fault) => self.feed.note(&fault.text),
            Event::Retry { fault, delay_ms } => {
                self.feed.note(&format!("would try again in {delay_ms} ms: {}", fault.kind));
                // With a key that is too old, it gets another one and tries again.
                if !self.retries_itself && fault.status != Some(401) {
                    self.transcript.retry = Some((fault, delay_ms));
                    self.channel.interrupt();
                }
            }
            Event::Ask { id, tool, input, blocked_path } => {
                self.asked(&id, tool, input, blocked_path.as_deref())
            }
            Event::Holds { id } => {
                self.gate.hold(id);
                self.release();
            }
            Event::OtherRequest { id } => self.channel.refuse(&id),
            Event::Took(id) => {
                self.channel.took(&id).iter().for_each(|message| self.feed.heard(message));
            }
            Event::Withdrawn { id } => {
                self.asks.withdraw(&id);
                self.gate.withdraw(&id);
            }
            Event::Servers(servers) => self.servers(servers),
            Event::Result(_) => self.result(),
            Event::Request(_) => {
                self.gate.begins();
                self.tell_usage(Stage::Answering);
            }
            Event::Response { goes_on, .. } => {
                let last = self.gate.answered();
                self.tell_usage(if goes_on && !last { Stage::GoesOn } else { Stage::Answered });
                self.release();
            }
            Event::Allowances(told) => told.into_iter().for_each(|it| self.feed.allowance(it)),
            Event::Limit { .. } | Event::Other => {}
        }
    }

    fn asked(&mut self, id: &str, tool: String, mut input: Value, blocked_path: Option<&str>) {
        self.planning.complete(&tool, &mut input);
        let ask = access::question(id, &tool, &input, blocked_path);
        if self.planning.is_about_plan_file(&ask) {
            return self.channel.permit(id, Permission::Allow { input: None }, input);
        }
        if let Some(message) = self.reach.forbids(&ask) {
            return self.channel.permit(id, Permission::Deny { message }, input);
        }
        let ask = PermissionAsk { planning: self.planning.is_under_way(), ..ask };
        let (planning, asked) = (self.planning.clone(), input.clone());
        let then = move |permission: Permission| {
            planning.hears(&tool, &permission);
            answered(&tool, &asked, permission)
        };
        self.asks.open(id, input, self.feed.ask(ask), then, &self.channel);
    }

    /// What subagents use is not told while they work, but written down: they go on without asking anybody.
    pub fn look(&mut self) {
        let news = if self.has_subagents { self.subagents.news() } else { Vec::new() };
        if !news.is_empty() {
            news.iter().for_each(|counted| self.transcript.tab.take(counted));
            self.tell_usage(Stage::GoesOn);
        }
    }

    /// Lets tools be used whose response the engine has counted, unless that was one too many.
    fn release(&mut self) {
        let held = self.gate.release();
        if held.is_empty() {
            return;
        }
        self.look();
        let (counted, channel, stop) = (self.feed.caught_up(), Arc::clone(&self.channel), self.stop.clone());
        tokio::spawn(async move {
            counted.await;
            if stop.get() == Stop::No {
                held.iter().for_each(|id| channel.pass(id));
            }
        });
    }

    fn tell_usage(&mut self, stage: Stage) {
        let seen = self.transcript.seen(self.feed.prices());
        if stage != Stage::Answering || self.told != seen {
            self.feed.usage(seen.clone(), stage);
            self.told = seen;
        }
    }

    fn said(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            match block {
                Block::Text(text) => {
                    self.planning.says(&text);
                    self.feed.text(&text);
                }
                Block::Tool { id, name, input } => {
                    self.planning.uses(&name, &input);
                    self.feed.tool(&id, &name, &input);
                }
            }
        }
    }

    /// What is missing is known only now: some tokens may be lost by it.
    fn init(&mut self, servers: Vec<Server>, agents: Vec<String>) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.channel.set_working();
        let wanted = self.order.agent_type.as_deref();
        self.transcript.unknown_agent = wanted.and_then(|name| agent_type::unknown(name, &agents));
        self.transcript.lost_servers = self.lost(servers);
        if !self.transcript.lost_servers.is_empty() || self.transcript.unknown_agent.is_some() {
            self.channel.interrupt();
        }
    }

    fn servers(&mut self, servers: Option<Vec<Server>>) {
        if !self.waiting {
            return;
        }
        let servers = servers.unwrap_or_default();
        let pending = servers.iter().any(|server| server.status == "pending");
        self.transcript.lost_servers = self.lost(servers);
        if !self.transcript.lost_servers.is_empty() {
            return self.channel.close();
        }
        if pending {
            let channel = Arc::clone(&self.channel);
            tokio::spawn(async move {
                tokio::time::sleep(SERVER_POLL).await;
                channel.ask_for_servers();
            });
            return;
        }
        self.waiting = false;
        self.channel.prompt(self.prompt.clone());
    }

    fn result(&mut self) {
        // Whatever was asked before belongs to a turn that is over, also if another one follows.
        self.asks.clear();
        let aborted = self.transcript.ending().is_some_and(|ending| ending.is_aborted());
        let wanted = self.transcript.retry.is_none() && self.stop.get() == Stop::No;
        if self.channel.take_nudge() && aborted && wanted {
            return self.channel.user(GO_ON);
        }
        match self.transcript.answered() {
            Some(turns) if wanted && self.channel.has_queued() => self.wait_for_turn(turns),
            _ => self.channel.close(),
        }
    }

    /// A message that was said begins another turn by itself. A version that does not tell when it begins with one
    /// has perhaps had it already.
    fn wait_for_turn(&self, ended: usize) {
        let (channel, begun) = (Arc::clone(&self.channel), Arc::clone(&self.begun));
        tokio::spawn(async move {
            tokio::time::sleep(TURN_PATIENCE).await;
            if begun.load(Ordering::SeqCst) <= ended {
                channel.close();
            }
        });
    }

    /// A server that is disabled or not logged in does not come back by itself either.
    fn lost(&self, mut servers: Vec<Server>) -> Vec<Server> {
        let well = |server: &Server| ["connected", "pending"].contains(&server.status.as_str());
        servers.retain(|server| self.order.mcp_servers.contains_key(&server.name) && !well(server));
        servers
    }
}
