//! Calls of tools that no step makes: they ask the server's breaker first, and tell it how they went.
//!
//! ```text
//! code mode, sage tools call --> Guard --ask--> limits (server:<name>, shared with all runs of the project)
//!                                  |   --call-> Hub
//!                                  +---report-> limits
//! ```
//! Tool steps have asked already when they get here by the hub itself. That a tool says no is an answer: only a
//! server that gives none is unwell.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::command_line::sage;
use sage_agents::mcp::{Hub, ToolAnswer, ToolFailure};
use sage_core::policy::FailureClass;
use sage_core::target::{CallReport, Estimate, Hold, HoldReason};
use sage_core::wire::rfc3339;
use sage_engine::clock::Clock;
use sage_engine::limits::{Answer, Limits, Member, Permit, Refused, Want};
use serde_json::{Map, Value};

/// For a slot or a quota that is free soon. Who waits longer had better know.
const PATIENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// As calls without a run are listed by `sage limits`.
const NAME: &str = "tools";
/// As a step without a priority has.
const PRIORITY: u8 = 2;

#[derive(Debug)]
pub struct Guard {
    hub: Arc<Hub>,
    limits: Limits,
    /// Takes part from the first call on.
    member: OnceLock<Option<Member>>,
}

impl Guard {
    pub fn new(hub: Arc<Hub>, limits: Limits) -> Guard {
        Guard { hub, limits, member: OnceLock::new() }
    }

    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Why a server is not even asked for its tools.
    pub fn held(&self, server: &str) -> Option<String> {
        let (target, now_ms) = (target(server), now_ms());
        let hold = self.limits.hold(&target, now_ms).filter(is_broken)?;
        Some(told(server, &hold, now_ms))
    }

    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
    ) -> Result<ToolAnswer, ToolFailure> {
        // Nothing is kept about servers that do not exist.
        let known = self.hub.names().any(|name| name == server);
        let permit = if known { self.admitted(server).await? } else { None };
        let begun = Instant::now();
        let answer = self.hub.call(server, tool, arguments, timeout, None).await;
        if let Some(permit) = permit {
            permit.report(&report(&answer, begun.elapsed()), now_ms());
        }
        answer
    }

    /// Waits for a place, but not for a server that is broken.
    async fn admitted(&self, server: &str) -> Result<Option<Permit>, ToolFailure> {
        let join = || self.limits.join(NAME).ok();
        let Some(member) = self.member.get_or_init(join) else { return Ok(None) };
        let targets = [target(server)];
        let want = Want { pools: &[], targets: &targets, priority: PRIORITY, estimate: Estimate::default() };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = now_ms();
            let why = match member.ask(&want, now) {
                Answer::Granted(permit) => return Ok(Some(permit)),
                Answer::Refused(Refused::Target { hold, .. }) if !is_worth_waiting(&hold, now, deadline) => {
                    return Err(refused(&hold, told(server, &hold, now)));
                }
                Answer::Refused(Refused::Target { hold, .. }) => told(server, &hold, now),
                Answer::Refused(_) => format!("server `{server}` has no place for another call"),
            };
            if Instant::now() > deadline {
                member.withdraw();
                return Err(ToolFailure::new(FailureClass::Transient, why));
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}

fn target(server: &str) -> String {
    format!("server:{server}")
}

fn now_ms() -> u64 {
    Clock::System.now_ms()
}

/// Nobody asks it anything until a certain time, or until a person says so.
fn is_broken(hold: &Hold) -> bool {
    let open = hold.reason == HoldReason::Breaker && hold.until.is_some();
    open || hold.reason == HoldReason::Isolated
}

fn is_worth_waiting(hold: &Hold, now_ms: u64, deadline: Instant) -> bool {
    let left = hold.until.map_or(Duration::ZERO, |until| Duration::from_millis(until.saturating_sub(now_ms)));
    !is_broken(hold) && Instant::now() + left <= deadline
}

fn refused(hold: &Hold, message: String) -> ToolFailure {
    let class = match hold.reason {
        HoldReason::RateLimit => FailureClass::RateLimit,
        HoldReason::Quota => FailureClass::Quota,
        HoldReason::Isolated => FailureClass::Rejected,
        HoldReason::Breaker | HoldReason::Pool => FailureClass::Transient,
    };
    ToolFailure::new(class, message)
}

fn told(server: &str, hold: &Hold, now_ms: u64) -> String {
    let reset = format!("to call it before: sage breakers reset server:{server}");
    let why = &hold.message;
    match hold.until {
        Some(until) => {
            let seconds = until.saturating_sub(now_ms).div_ceil(1_000);
            let at = rfc3339(until);
            format!(
                "server `{server}` is not called now ({why}); it is tried again in {seconds} s, at {at}; {reset}"
            )
        }
        None if hold.reason == HoldReason::Isolated => {
            let reset = sage("breakers reset").arg(format!("server:{server}"));
            format!("server `{server}` is switched off ({why}) until somebody types: {reset}")
        }
        None => format!("server `{server}` is not called now ({why}); {reset}"),
    }
}

fn report(answer: &Result<ToolAnswer, ToolFailure>, took: Duration) -> CallReport {
    let failure = answer.as_ref().err();
    CallReport {
        failure: failure.map(|failure| failure.class),
        message: failure.map(|failure| failure.message.clone()).unwrap_or_default(),
        refusal: failure.and_then(|failure| failure.refusal),
        ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        probe: false,
        stopped: false,
        own: false,
        estimate: Estimate::default(),
        usage: Default::default(),
        signal: None,
        in_flight: 0,
    }
}
