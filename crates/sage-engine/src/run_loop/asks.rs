//! Questions of running agents: a rule answers, or a person, or the deadline.
//!
//! The answer reaches the agent only after it is in the journal. A question dies with its attempt: the session
//! asks again when it goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sage_core::approval::{Mode, Verdict, advice};
use sage_core::event::{AskedFor, StepAsked, StepPermitted};
use sage_core::inquiry::Inquiry;
use sage_core::port::{AskKind, Asks, BoxFuture, Permission, PermissionAsk, Stop, Workplace};
use sage_core::role::{Access, Role};
use sage_core::run::{OpenAsk, StepId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Input, Live, LoopError, RunLoop, Surroundings};
use crate::approvals::{Approvals, Facts, Scene};
use crate::results::{INLINE_BYTES, pack};

/// Where one attempt asks.
pub(super) struct Desk {
    pub sender: mpsc::Sender<Input>,
    pub id: StepId,
    pub attempt: u32,
    project: PathBuf,
    approvals: Arc<Approvals>,
}

impl Asks for Desk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.ask_in(ask, &Workplace::default())
    }

    fn ask_in(&self, ask: PermissionAsk, at: &Workplace) -> BoxFuture<'static, Permission> {
        let (sender, id, attempt) = (self.sender.clone(), self.id, self.attempt);
        let (name, approvals, is_command) =
            (ask.id.clone(), self.approvals.clone(), ask.kind == AskKind::Run);
        let root = at.root.as_deref().unwrap_or(&self.project).to_path_buf();
        let cwd = at.cwd.as_deref().unwrap_or(&root).to_path_buf();
        Box::pin(async move {
            // Files are read here, not in the loop.
            let place = root.clone();
            let looked = tokio::task::spawn_blocking(move || approvals.facts(&place, is_command));
            let facts = looked.await.unwrap_or_default();
            let (reply, answer) = oneshot::channel();
            let mut withdrawal = Withdrawal(Some((sender.clone(), id, attempt, name)));
            let asked = Asked { ask, root, cwd, facts, reply };
            let _ = sender.send(Input::Asked(id, attempt, Box::new(asked))).await;
            let answer = answer.await;
            withdrawal.0 = None;
            answer.unwrap_or_else(|_| Permission::Deny { message: "the run is being stopped".into() })
        })
    }

    fn caught_up(&self) -> BoxFuture<'static, ()> {
        let (sender, id, attempt) = (self.sender.clone(), self.id, self.attempt);
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let _ = sender.send(Input::CaughtUp(id, attempt, reply)).await;
            // A loop that is gone has told everybody to stop.
            let _ = answer.await;
        })
    }
}

/// What one attempt asks, and where it waits for the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub ask: PermissionAsk,
    /// Where the attempt works, and where its commands run.
    pub root: PathBuf,
    pub cwd: PathBuf,
    pub facts: Facts,
    pub reply: Reply,
}

/// Nobody waits for the answer any more: the question is closed.
struct Withdrawal(Option<(mpsc::Sender<Input>, StepId, u32, String)>);

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some((sender, id, attempt, name)) = self.0.take() {
            // A loop that is too busy closes it with the attempt.
            let _ = sender.try_send(Input::Withdrawn(id, attempt, name));
        }
    }
}

pub(super) type Reply = oneshot::Sender<Permission>;

/// What somebody decided about a question.
#[derive(Default)]
pub(super) struct Decision {
    pub allow: bool,
    pub by: String,
    pub message: Option<String>,
    /// What the agent may do instead; it is told, and not written down.
    pub advice: Option<String>,
    pub input: Option<Value>,
    pub signal: Option<String>,
}

impl RunLoop {
    pub(super) fn asked(&mut self, id: StepId, attempt: u32, asked: Asked) -> Result<(), LoopError> {
        // Dropping the reply denies.
        let wanted = |live: &Live| !live.given_up && live.stop.get() == Stop::No;
        if !self.live.get(&(id, attempt)).is_some_and(wanted) || self.run.step(id).gone {
            return Ok(());
        }
        let ask = &asked.ask;
        let bytes = ask.command.as_ref().map_or(0, String::len)
            + ask.paths.iter().map(String::len).sum::<usize>()
            + ask.inquiry.as_ref().map_or(0, Inquiry::bytes);
        if bytes > INLINE_BYTES {
            let message = format!("the request has {bytes} bytes; at most {INLINE_BYTES} can be asked about");
            let _ = asked.reply.send(Permission::Deny { message });
            return Ok(());
        }
        let Ok(input) = pack(&ask.input, &self.around.blobs) else { return Ok(()) };
        let access = self.access(id);
        let scene = Scene {
            root: &asked.root,
            cwd: &asked.cwd,
            facts: &asked.facts,
            access,
            mode: self.mode(),
            spent_usd: self.spent_usd(),
        };
        let verdict = self.around.approvals.judge(ask, &scene);
        let advice = match ask.planning {
            true => Some("Your plan has to be approved before anything may change".to_string()),
            false => (ask.kind == AskKind::Run).then(|| advice(access, &asked.facts.checks)),
        };
        let (ask, reply) = (asked.ask, asked.reply);
        let PermissionAsk { id: name, tool, kind, paths, command, inquiry, .. } = ask;
        let advice = inquiry.as_ref().map(|inquiry| inquiry.otherwise().to_string()).or(advice);
        let ask =
            AskedFor { id: name.clone(), tool, kind, paths, command, input, inquiry, why: None, rule: None };
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.replies.insert(name.clone(), reply);
        }
        match verdict {
            Verdict::Allow { why } => {
                let decision = Decision { allow: true, by: format!("rule: {why}"), ..Decision::default() };
                self.permit(id, attempt, &name, Some(ask), decision)
            }
            Verdict::Deny { why } => {
                let (by, message) = (format!("rule: {why}"), Some(why));
                let decision = Decision { by, message, advice, ..Decision::default() };
                self.permit(id, attempt, &name, Some(ask), decision)
            }
            Verdict::Ask { why, rule } => {
                self.wait_for_person(id, attempt, AskedFor { why: Some(why), rule, ..ask }, advice)
            }
        }
    }

    /// A person is asked, for as long as one may be there.
    fn wait_for_person(
        &mut self,
        id: StepId,
        attempt: u32,
        ask: AskedFor,
        advice: Option<String>,
    ) -> Result<(), LoopError> {
        let limit_ms = self.around.approvals.deadline_ms.map(|ms| if self.unanswered { 0 } else { ms });
        if limit_ms == Some(0) {
            let decision = unanswered(&self.around.approvals, &ask, advice, "nobody is there to answer");
            let name = ask.id.clone();
            return self.permit(id, attempt, &name, Some(ask), decision);
        }
        let until = limit_ms.map(|ms| self.around.clock.now_ms().saturating_add(ms));
        let step = self.run.step(id).path.clone();
        let name = ask.id.clone();
        let seq = self.emit(StepAsked { step, attempt, ask, until })?;
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.asking_since.get_or_insert_with(Instant::now);
            live.advice.extend(advice.map(|advice| (name, advice)));
        }
        if let Some(ms) = limit_ms {
            let at = Instant::now() + Duration::from_millis(ms);
            self.after(seq, Effect::Arm { timer: Timer::Asks, at });
        }
        Ok(())
    }

    fn access(&self, id: StepId) -> Access {
        self.run.operation(id).role.unwrap_or(Role::Implementer).access()
    }

    /// How much agents may do: what a person said for this run, else what is configured.
    pub(super) fn mode(&self) -> Mode {
        self.run.settings.allow.unwrap_or(self.around.approvals.rules.mode)
    }

    /// What the run has spent, with what is under way; `None` if a part of it is not known.
    fn spent_usd(&self) -> Option<f64> {
        let tally = &self.run.tally;
        let past = if tally.usage.is_empty() { Some(0.0) } else { tally.usage.cost_usd };
        let known = past.filter(|_| tally.unattributed == 0)?;
        let under_way = self.live.values().filter(|live| !live.usage.is_empty());
        under_way.map(|live| live.usage.cost_usd).try_fold(known, |sum, cost| Some(sum + cost?))
    }

    /// The agent does not want to know any more.
    pub(super) fn withdrawn(&mut self, id: StepId, attempt: u32, ask: &str) -> Result<(), LoopError> {
        let open = |open: &OpenAsk| open.attempt == attempt && open.ask.id == ask;
        if !self.run.asks_of(id).any(open) {
            return Ok(());
        }
        let message = Some("it does not ask any more".to_string());
        let decision = Decision { by: "agent".into(), message, ..Decision::default() };
        self.permit(id, attempt, ask, None, decision)
    }

    /// The oldest question of a step, or the one that was named.
    pub(super) fn open_ask(&self, id: StepId, name: Option<&str>) -> Option<(u32, String)> {
        let wanted = |open: &&OpenAsk| name.is_none_or(|name| open.ask.id == name);
        self.run.asks_of(id).find(wanted).map(|open| (open.attempt, open.ask.id.clone()))
    }

    pub(super) fn permit(
        &mut self,
        id: StepId,
        attempt: u32,
        ask: &str,
        asked: Option<AskedFor>,
        decision: Decision,
    ) -> Result<(), LoopError> {
        let Decision { allow, by, message, advice, input, signal } = decision;
        // A person is there after all.
        self.unanswered &= signal.is_none();
        let packed = input.as_ref().and_then(|input| pack(input, &self.around.blobs).ok());
        // What cannot be kept is not allowed in its first form either.
        let allow = allow && packed.is_some() == input.is_some();
        let permission = if allow {
            Permission::Allow { input }
        } else {
            let why = message.clone().unwrap_or_else(|| self.refusal(id, ask));
            Permission::Deny {
                message: [Some(why), advice].into_iter().flatten().collect::<Vec<_>>().join(". "),
            }
        };
        let step = self.run.step(id).path.clone();
        let (name, input) = (ask.to_string(), packed);
        let seq =
            self.emit(StepPermitted { step, attempt, ask: name, asked, allow, by, message, input, signal })?;
        self.progressed(id, attempt);
        let answered = !self.run.asks_of(id).any(|open| open.attempt == attempt);
        if let Some(live) = self.live.get_mut(&(id, attempt))
            && answered
        {
            live.thought += live.asking_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        }
        let reply = self.live.get_mut(&(id, attempt)).and_then(|live| live.replies.remove(ask));
        if let Some(reply) = reply {
            self.after(seq, Effect::Reply(reply, permission));
        }
        Ok(())
    }

    /// What an agent hears of a no without a reason.
    fn refusal(&self, id: StepId, ask: &str) -> String {
        let open = self.run.asks_of(id).find(|open| open.ask.id == ask);
        let inquiry = open.and_then(|open| open.ask.inquiry.as_ref());
        inquiry.map_or_else(|| "not allowed".into(), Inquiry::refused)
    }

    /// Nobody answered in time.
    pub(super) fn asks_due(&mut self) -> Result<(), LoopError> {
        let now = self.around.clock.now_ms();
        let late = |open: &&OpenAsk| open.until.is_some_and(|until| until <= now);
        let due: Vec<OpenAsk> = self.run.asks.iter().filter(late).cloned().collect();
        for OpenAsk { step, attempt, ask, .. } in due {
            let live = self.live.get_mut(&(step, attempt));
            let advice = live.and_then(|live| live.advice.remove(&ask.id));
            let decision = unanswered(&self.around.approvals, &ask, advice, "no answer before the deadline");
            self.unanswered = self.around.approvals.once;
            self.permit(step, attempt, &ask.id, None, decision)?;
        }
        // A clock that was set back, or a question that came later.
        if let Some(until) = self.run.asks.iter().filter_map(|open| open.until).min() {
            let left = Duration::from_millis(until.saturating_sub(now).max(1));
            self.timers.arm(Instant::now() + left, Timer::Asks);
        }
        Ok(())
    }
}

/// The default answers.
fn unanswered(approvals: &Approvals, ask: &AskedFor, advice: Option<String>, what: &str) -> Decision {
    let why = ask.why.as_ref().map(|why| format!("; asked because {why}")).unwrap_or_default();
    // A question has no answer that could be taken by default.
    let has_default = !matches!(ask.inquiry, Some(Inquiry::Questions(_)));
    let (allow, by) = (approvals.allow_by_default && has_default, "deadline".into());
    Decision { allow, by, message: Some(format!("{what}{why}")), advice, ..Decision::default() }
}

pub(super) fn desk(
    sender: &mpsc::Sender<Input>,
    around: &Surroundings,
    id: StepId,
    attempt: u32,
) -> sage_core::port::Questions {
    let (sender, project, approvals) = (sender.clone(), around.project.clone(), around.approvals.clone());
    sage_core::port::Questions::new(Arc::new(Desk { sender, id, attempt, project, approvals }))
}
