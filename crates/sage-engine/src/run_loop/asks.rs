//! Questions of running agents: a rule answers, or a person, or the deadline.
//!
//! The answer reaches the agent only after it is in the journal. A question dies with its attempt: the session
//! asks again when it goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{AskedFor, StepAsked, StepPermitted};
use sage_core::port::{Asks, BoxFuture, Permission, PermissionAsk, Stop};
use sage_core::role::Role;
use sage_core::run::{OpenAsk, StepId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::effect::Effect;
use super::timers::Timer;
use super::{Input, Live, LoopError, RunLoop};
use crate::results::{INLINE_BYTES, pack};

/// Where one attempt asks.
pub(super) struct Desk {
    pub sender: mpsc::Sender<Input>,
    pub id: StepId,
    pub attempt: u32,
}

impl Asks for Desk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.ask_in(ask, None)
    }

    fn ask_in(&self, ask: PermissionAsk, root: Option<&Path>) -> BoxFuture<'static, Permission> {
        let (sender, id, attempt) = (self.sender.clone(), self.id, self.attempt);
        let (name, root) = (ask.id.clone(), root.map(Path::to_path_buf));
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let mut withdrawal = Withdrawal(Some((sender.clone(), id, attempt, name)));
            let _ = sender.send(Input::Asked(id, attempt, Box::new(Asked { ask, root, reply }))).await;
            let answer = answer.await;
            withdrawal.0 = None;
            answer.unwrap_or_else(|_| Permission::Deny { message: "the run is being stopped".into() })
        })
    }
}

/// What one attempt asks, and where it waits for the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub ask: PermissionAsk,
    /// Where the attempt works, if that is not the project.
    pub root: Option<PathBuf>,
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
pub(super) struct Decision {
    pub allow: bool,
    pub by: String,
    pub message: Option<String>,
    pub input: Option<Value>,
    pub signal: Option<String>,
}

impl RunLoop {
    pub(super) fn asked(&mut self, id: StepId, attempt: u32, asked: Asked) -> Result<(), LoopError> {
        let Asked { ask, root, reply } = asked;
        // Dropping the reply denies.
        let wanted = |live: &Live| !live.given_up && live.stop.get() == Stop::No;
        if !self.live.get(&(id, attempt)).is_some_and(wanted) || self.run.step(id).gone {
            return Ok(());
        }
        let bytes =
            ask.command.as_ref().map_or(0, String::len) + ask.paths.iter().map(String::len).sum::<usize>();
        if bytes > INLINE_BYTES {
            let message = format!("the request has {bytes} bytes; at most {INLINE_BYTES} can be asked about");
            let _ = reply.send(Permission::Deny { message });
            return Ok(());
        }
        let Ok(input) = pack(&ask.input, &self.around.blobs) else { return Ok(()) };
        let ruling = self.rule(id, &ask, root.as_deref());
        let PermissionAsk { id: name, tool, kind, paths, command, .. } = ask;
        let limit_ms = self.around.approvals.deadline_ms.filter(|_| ruling.is_none());
        let until = limit_ms.map(|ms| self.around.clock.now_ms().saturating_add(ms));
        let ask = AskedFor { id: name.clone(), tool, kind, paths, command, input };
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.replies.insert(name.clone(), reply);
        }
        if let Some(ruling) = ruling {
            let (by, message) = (format!("rule: {}", ruling.why), (!ruling.allow).then_some(ruling.why));
            let decision = Decision { allow: ruling.allow, by, message, input: None, signal: None };
            return self.permit(id, attempt, &name, Some(ask), decision);
        }
        let step = self.run.step(id).path.clone();
        let seq = self.emit(StepAsked { step, attempt, ask, until })?;
        if let Some(live) = self.live.get_mut(&(id, attempt)) {
            live.asking_since.get_or_insert_with(Instant::now);
        }
        if let Some(ms) = limit_ms {
            let at = Instant::now() + Duration::from_millis(ms);
            self.after(seq, Effect::Arm { timer: Timer::Asks, at });
        }
        Ok(())
    }

    fn rule(
        &self,
        id: StepId,
        ask: &PermissionAsk,
        root: Option<&Path>,
    ) -> Option<sage_core::approval::Ruling> {
        let access = self.run.operation(id).role.unwrap_or(Role::Implementer).access();
        let root = root.unwrap_or(&self.around.project);
        let project = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let paths = ask.paths.iter().map(|path| real(&project, path)).collect();
        let ask = PermissionAsk { paths, ..ask.clone() };
        let spent = self.spent_usd();
        self.around.approvals.rules.decide(&ask, access, &project.to_string_lossy(), spent)
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
        let decision = Decision { allow: false, by: "agent".into(), message, input: None, signal: None };
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
        let Decision { allow, by, message, input, signal } = decision;
        let packed = input.as_ref().and_then(|input| pack(input, &self.around.blobs).ok());
        // What cannot be kept is not allowed in its first form either.
        let allow = allow && packed.is_some() == input.is_some();
        let permission = if allow {
            Permission::Allow { input }
        } else {
            let why = message.clone().unwrap_or_else(|| "not allowed".into());
            Permission::Deny { message: why }
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

    /// Nobody answered in time.
    pub(super) fn asks_due(&mut self) -> Result<(), LoopError> {
        let now = self.around.clock.now_ms();
        let late = |open: &&OpenAsk| open.until.is_some_and(|until| until <= now);
        let due: Vec<(StepId, u32, String)> = self
            .run
            .asks
            .iter()
            .filter(late)
            .map(|open| (open.step, open.attempt, open.ask.id.clone()))
            .collect();
        for (id, attempt, ask) in due {
            let allow = self.around.approvals.allow_by_default;
            let message = Some("no answer before the deadline".to_string());
            let decision = Decision { allow, by: "deadline".into(), message, input: None, signal: None };
            self.permit(id, attempt, &ask, None, decision)?;
        }
        // A clock that was set back, or a question that came later.
        if let Some(until) = self.run.asks.iter().filter_map(|open| open.until).min() {
            let left = Duration::from_millis(until.saturating_sub(now).max(1));
            self.timers.arm(Instant::now() + left, Timer::Asks);
        }
        Ok(())
    }
}

/// Where a file really is: a link in the project does not make what it leads to a part of it. What cannot be
/// told is no path of the project.
fn real(project: &Path, path: &str) -> String {
    let real = sage_fence::real(project, path.as_ref());
    real.map_or_else(|_| "..".to_string(), |path| path.to_string_lossy().into_owned())
}

/// How questions are answered where no person does.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    pub rules: sage_core::approval::Rules,
    /// `None`: a question waits for ever.
    pub deadline_ms: Option<u64>,
    pub allow_by_default: bool,
}

pub(super) fn desk(sender: &mpsc::Sender<Input>, id: StepId, attempt: u32) -> sage_core::port::Questions {
    sage_core::port::Questions::new(Arc::new(Desk { sender: sender.clone(), id, attempt }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn a_link_out_of_the_project_leads_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("p");
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::create_dir_all(root.join("else")).unwrap();
        std::os::unix::fs::symlink("../else", project.join("out")).unwrap();
        std::os::unix::fs::symlink("nowhere", project.join("gone")).unwrap();
        let real = |path: &str| real(&project, path);
        let inside = |path: &str| format!("{}/{path}", project.display());
        assert_eq!(real("src/new/a.rs"), inside("src/new/a.rs"));
        assert_eq!(real(&inside("src/a.rs")), inside("src/a.rs"));
        assert_eq!(real("out/x"), root.join("else/x").display().to_string());
        assert_eq!(real("gone"), "..");
        assert!(real("/etc/passwd").starts_with("/etc/"));
    }
}
