//! A running attempt, as the loop sees it.

use std::collections::HashMap;
use std::time::Duration;

use sage_core::port::{Crowd, Messages, Nudge, QuotaSignal, StepCall, Stop, StopSignal, Usage};
use tokio::time::Instant;

use super::asks;
use super::reports::Reports;
use crate::limits::Permit;
use crate::perform::Checks;

pub(super) struct Live {
    pub stop: StopSignal,
    pub nudge: Nudge,
    pub crowd: Crowd,
    pub since: Instant,
    pub last_progress: Instant,
    pub nudges: u32,
    /// What it has used so far, billed.
    pub usage: Usage,
    /// That will be journaled in a moment.
    pub journals_usage: bool,
    pub signal: Option<QuotaSignal>,
    pub reports: Reports,
    /// What people say to it.
    pub messages: Messages,
    /// Who waits for an answer, by the question's id.
    pub replies: HashMap<String, asks::Reply>,
    /// What the asker is told beside a denial.
    pub advice: HashMap<String, String>,
    /// Since when a person is asked, and how long people have thought so far: not the attempt's time.
    pub asking_since: Option<Instant>,
    pub thought: Duration,
    /// Given back when the attempt has really ended: its processes are gone.
    pub permit: Option<Permit>,
    /// Why we end it, where that is not a stop of the step itself.
    pub ends: Option<Ends>,
    /// Its step has been settled without it.
    pub given_up: bool,
    /// Its work is done; only its result is still to be stored.
    pub done: bool,
    /// What another attempt beside it would do; only where the step is hedged.
    pub again: Option<(Box<StepCall>, Box<Checks>)>,
}

/// Why an attempt is made to end although its step goes on.
#[derive(Clone, Debug)]
pub(super) enum Ends {
    /// No progress: once more.
    Restart(String),
    Ask,
    Fail(String),
    /// It used more than it may.
    Budget(String),
    /// It makes way for urgent work.
    Yield,
}

impl Live {
    pub fn end_by(&mut self, why: Ends) {
        self.ends = Some(why);
        self.stop.set(Stop::Graceful);
    }
}
