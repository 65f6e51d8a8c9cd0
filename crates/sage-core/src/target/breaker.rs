//! The circuit breaker of a target: after too much trouble nothing is asked of it for a while, then one call
//! at a time finds out whether it is well again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::window::Window;
use super::{CallReport, Hold, HoldReason};
use crate::policy::FailureClass;

/// Transitions that are kept for people to look at.
const CHANGES: usize = 20;
const MESSAGE_CHARS: usize = 160;

#[derive(Clone, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// So many in a row open it; 0: they do not.
    pub failures: u32,
    pub ratio: Option<Ratio>,
    pub slow: Option<Slow>,
    /// What `ratio` and `slow` look at.
    pub window_ms: u64,
    pub open_ms: u64,
    /// Probes that must succeed to close it; 0 is taken for 1.
    pub successes: u32,
    /// The failures that count. All others say nothing about health, neither good nor bad.
    pub on: Vec<FailureClass>,
}

/// Opens when this share of at least `minimum` calls failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub share: f64,
    pub minimum: u32,
}

/// Opens when this share of at least `minimum` calls took `ms` or longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    pub ms: u64,
    pub share: f64,
    pub minimum: u32,
}

impl Default for BreakerPolicy {
    fn default() -> BreakerPolicy {
        BreakerPolicy {
            failures: 5,
            ratio: None,
            slow: None,
            window_ms: 60_000,
            open_ms: 60_000,
            successes: 2,
            on: vec![
                FailureClass::Failed,
                FailureClass::Transient,
                FailureClass::Auth,
                FailureClass::Timeout,
                FailureClass::Lost,
            ],
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Breaker {
    circuit: Circuit,
    /// How often it opened.
    pub opened: u32,
    /// The last of them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Transition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Circuit {
    Closed {
        /// In a row.
        #[serde(default)]
        failures: u32,
        #[serde(default, skip_serializing_if = "Window::is_empty")]
        window: Window,
    },
    Open {
        #[serde(default)]
        until_ms: u64,
        #[serde(default)]
        why: String,
    },
    HalfOpen {
        /// Of probes.
        #[serde(default)]
        successes: u32,
    },
    Isolated {
        #[serde(default)]
        why: String,
    },
}

impl Default for Circuit {
    fn default() -> Circuit {
        Circuit::Closed { failures: 0, window: Window::default() }
    }
}

impl Circuit {
    fn state(&self) -> BreakerState {
        match self {
            Circuit::Closed { .. } => BreakerState::Closed,
            Circuit::Open { .. } => BreakerState::Open,
            Circuit::HalfOpen { .. } => BreakerState::HalfOpen,
            Circuit::Isolated { .. } => BreakerState::Isolated,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    #[default]
    Closed,
    Open,
    HalfOpen,
    Isolated,
}

impl BreakerState {
    pub fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
            BreakerState::Isolated => "isolated",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Transition {
    pub at_ms: u64,
    pub from: BreakerState,
    pub to: BreakerState,
    pub why: String,
}

impl Breaker {
    /// As people see it: open for long enough is half-open, although nobody has asked yet.
    pub fn state(&self, now_ms: u64) -> BreakerState {
        match self.circuit {
            Circuit::Open { until_ms, .. } if until_ms <= now_ms => BreakerState::HalfOpen,
            _ => self.circuit.state(),
        }
    }

    /// A person switches it off. Only `reset` ends that.
    pub fn isolate(&mut self, now_ms: u64, why: &str) {
        let why = short(why);
        match &mut self.circuit {
            Circuit::Isolated { why: last } => *last = why,
            _ => drop(self.turn(now_ms, Circuit::Isolated { why: why.clone() }, why)),
        }
    }

    /// A person says that it is well.
    pub fn reset(&mut self, now_ms: u64, why: &str) {
        match self.circuit {
            Circuit::Closed { .. } => self.circuit = Circuit::default(),
            _ => drop(self.turn(now_ms, Circuit::default(), short(why))),
        }
    }

    pub(super) fn hold(&self, policy: &BreakerPolicy, now_ms: u64) -> Option<Hold> {
        match &self.circuit {
            Circuit::Closed { .. } | Circuit::HalfOpen { .. } => None,
            Circuit::Open { until_ms, why } => {
                let until_ms = (*until_ms).min(now_ms.saturating_add(policy.open_ms));
                (until_ms > now_ms).then(|| Hold {
                    reason: HoldReason::Breaker,
                    until: Some(until_ms),
                    message: why.clone(),
                })
            }
            Circuit::Isolated { why } => {
                Some(Hold { reason: HoldReason::Isolated, until: None, message: why.clone() })
            }
        }
    }

    /// Whether the call is a probe, or why it has to wait.
    pub(super) fn admit(
        &mut self,
        policy: &BreakerPolicy,
        now_ms: u64,
        probe_free: bool,
    ) -> Result<bool, Hold> {
        if let Some(hold) = self.hold(policy, now_ms) {
            return Err(hold);
        }
        match self.circuit {
            Circuit::Open { .. } => {
                let why = format!("open for {}", time(policy.open_ms));
                self.turn(now_ms, Circuit::HalfOpen { successes: 0 }, why);
            }
            Circuit::HalfOpen { .. } => {}
            Circuit::Closed { .. } | Circuit::Isolated { .. } => return Ok(false),
        }
        if probe_free {
            return Ok(true);
        }
        let message = "a probe finds out whether it is well again".to_owned();
        Err(Hold { reason: HoldReason::Breaker, until: None, message })
    }

    pub(super) fn record(
        &mut self,
        policy: &BreakerPolicy,
        now_ms: u64,
        report: &CallReport,
    ) -> Option<Transition> {
        let failed = match report.failure {
            Some(class) if policy.on.contains(&class) => true,
            None if !report.stopped => false,
            _ => return None,
        };
        match &mut self.circuit {
            Circuit::Closed { failures, window } => {
                let why = count(failures, window, policy, now_ms, report, failed)?;
                Some(self.open(policy, now_ms, why))
            }
            Circuit::HalfOpen { .. } if report.probe && failed => {
                Some(self.open(policy, now_ms, format!("the probe failed: {}", last(report))))
            }
            Circuit::HalfOpen { successes } if report.probe => {
                *successes = successes.saturating_add(1);
                let count = *successes;
                (count >= policy.successes).then(|| {
                    let why = if count == 1 {
                        "a probe succeeded".to_owned()
                    } else {
                        format!("{count} probes succeeded")
                    };
                    self.turn(now_ms, Circuit::default(), why)
                })
            }
            // Calls from before it opened: old news.
            Circuit::HalfOpen { .. } | Circuit::Open { .. } | Circuit::Isolated { .. } => None,
        }
    }

    /// Keeps the end that a clock's jump back has brought nearer.
    pub(super) fn settle(&mut self, policy: &BreakerPolicy, now_ms: u64) {
        if let Circuit::Open { until_ms, .. } = &mut self.circuit {
            *until_ms = (*until_ms).min(now_ms.saturating_add(policy.open_ms));
        }
    }

    fn open(&mut self, policy: &BreakerPolicy, now_ms: u64, why: String) -> Transition {
        self.opened = self.opened.saturating_add(1);
        let until_ms = now_ms.saturating_add(policy.open_ms);
        self.turn(now_ms, Circuit::Open { until_ms, why: why.clone() }, why)
    }

    fn turn(&mut self, now_ms: u64, to: Circuit, why: String) -> Transition {
        let change = Transition { at_ms: now_ms, from: self.circuit.state(), to: to.state(), why };
        self.circuit = to;
        let surplus = (self.changes.len() + 1).saturating_sub(CHANGES);
        self.changes.drain(..surplus);
        self.changes.push(change.clone());
        change
    }
}

/// Counts a call of a closed breaker; why it must open, if so.
fn count(
    failures: &mut u32,
    window: &mut Window,
    policy: &BreakerPolicy,
    now_ms: u64,
    report: &CallReport,
    failed: bool,
) -> Option<String> {
    if failed && policy.failures > 0 {
        *failures = failures.saturating_add(1);
        if *failures >= policy.failures {
            return Some(match *failures {
                1 => format!("failed: {}", last(report)),
                many => format!("{many} failures in a row, the last: {}", last(report)),
            });
        }
    } else {
        *failures = 0;
    }
    if policy.ratio.is_none() && policy.slow.is_none() {
        window.clear();
        return None;
    }
    let is_slow = policy.slow.is_some_and(|slow| report.ms >= slow.ms);
    let sum = window.count(policy.window_ms, now_ms, failed, is_slow);
    let within = || time(policy.window_ms);
    let ratio = policy.ratio.filter(|ratio| reaches(sum.failures, sum.calls, ratio.share, ratio.minimum));
    if ratio.is_some() {
        return Some(format!("{} of {} calls failed within {}", sum.failures, sum.calls, within()));
    }
    let slow = policy.slow.filter(|slow| reaches(sum.slow, sum.calls, slow.share, slow.minimum))?;
    Some(format!("{} of {} calls took {} or longer within {}", sum.slow, sum.calls, time(slow.ms), within()))
}

/// At least one of them is in trouble, whatever the share: a share of 0 is no reason to open for nothing.
fn reaches(troubled: u32, calls: u32, share: f64, minimum: u32) -> bool {
    // A tiny tolerance: 0.7 x 10 is 7.000000000000001.
    troubled > 0 && calls >= minimum && f64::from(troubled) >= share * f64::from(calls) - 1e-9
}

fn last(report: &CallReport) -> String {
    match (short(&report.message), report.failure) {
        (text, Some(class)) if text.is_empty() => class.name().to_owned(),
        (text, _) => text,
    }
}

/// The state is small whatever a program has written to its stderr.
fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS).collect()
}

fn time(ms: u64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(ms))
}
