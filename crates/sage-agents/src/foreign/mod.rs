//! An agent that knows nothing of sage: a person, a session in an editor, a program of somebody else's.
//!
//! ```text
//! turn --> .sage/inbox/orders/<session>.md   who reads it does the work ...
//!      <-- a wake with that session's id     ... and tells: COMPLETE, FINDING, BLOCKED or ERROR
//! ```
//! A report is found by its session and counts once (memory.rs), also when sage was killed in between. One that was
//! there before the order, as a clone may bring it, answers nothing. Whoever is
//! blocked asks a person through sage; the answer is added to the order.

mod letter;
mod memory;
mod wait;

use sage_core::port::BoxFuture;

use crate::agent::{Agent, AgentConfig, Auth, Capabilities, Feed, Order, Probe, Turn};
use crate::attempt::Attempt;

#[derive(Clone, Copy, Debug)]
pub struct Foreign;

impl Agent for Foreign {
    fn name(&self) -> &'static str {
        "foreign"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, asks: true, questions: true, ..Capabilities::default() }
    }

    fn probe<'a>(&'a self, _config: &'a AgentConfig) -> BoxFuture<'a, Probe> {
        let probe = Probe {
            found: Some("orders and reports are files".into()),
            auth: Auth::Ready,
            ..Probe::default()
        };
        Box::pin(std::future::ready(probe))
    }

    fn turn<'a>(&'a self, attempt: &'a Attempt<'a>, order: &'a Order, feed: &'a Feed) -> BoxFuture<'a, Turn> {
        Box::pin(wait::turn(attempt, order, feed))
    }
}
