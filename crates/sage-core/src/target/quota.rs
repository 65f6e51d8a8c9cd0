//! The quota of a target: how fast and how wide it may be used, and until when it wants to be left alone.
//!
//! What the policy states is kept to; what it leaves open is learned from the target's answers and refusals.
//! All callers share one time to come back, so that they do not knock one after the other.

use serde::{Deserialize, Serialize};

use super::park::Park;
use super::rate::{MAX_PARK_MS, Rate};
use super::width::Width;
use super::{CallReport, Estimate, Hold, HoldReason};
use crate::policy::FailureClass;
use crate::port::{QuotaSignal, Refusal, Usage};

const FIRST_PAUSE_MS: u64 = 1_000;
const MAX_PAUSE_MS: u64 = 60_000;
const FIRST_QUOTA_PAUSE_MS: u64 = 5 * 60_000;
const MAX_QUOTA_PAUSE_MS: u64 = 60 * 60_000;
/// A week's quota, and a day for wrong clocks and time zones.
const MAX_QUOTA_PARK_MS: u64 = 8 * 24 * 60 * 60_000;

/// 0 is taken for 1 everywhere: the strictest that still lets something through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaPolicy {
    pub concurrent: Option<u32>,
    pub requests_per_minute: Option<u64>,
    pub input_tokens_per_minute: Option<u64>,
    pub output_tokens_per_minute: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quota {
    #[serde(skip_serializing_if = "Park::is_free")]
    rate_limit: Park,
    #[serde(skip_serializing_if = "Park::is_free")]
    used_up: Park,
    /// In a row. A burst that was refused together counts once.
    rate_limit_refusals: u32,
    quota_refusals: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<Width>,
    #[serde(skip_serializing_if = "Rate::is_default")]
    requests: Rate,
    #[serde(skip_serializing_if = "Rate::is_default")]
    input_tokens: Rate,
    #[serde(skip_serializing_if = "Rate::is_default")]
    output_tokens: Rate,
}

impl Quota {
    /// How many calls may be under way at once; `None`: any number.
    pub fn width(&self, policy: &QuotaPolicy) -> Option<u32> {
        let stated = policy.concurrent.map(|concurrent| concurrent.max(1));
        let learned = self.width.map(|width| width.get());
        match (stated, learned) {
            (Some(stated), Some(learned)) => Some(stated.min(learned)),
            (stated, learned) => stated.or(learned),
        }
    }

    /// The limits that count now: the policy's, else what was learned.
    pub fn limits(&self, policy: &QuotaPolicy) -> QuotaPolicy {
        QuotaPolicy {
            concurrent: self.width(policy),
            requests_per_minute: self.requests.limit(policy.requests_per_minute),
            input_tokens_per_minute: self.input_tokens.limit(policy.input_tokens_per_minute),
            output_tokens_per_minute: self.output_tokens.limit(policy.output_tokens_per_minute),
        }
    }

    pub(super) fn hold(&self, now_ms: u64) -> Option<Hold> {
        let (rate_limit, used_up) = (self.rate_limit.until(now_ms), self.used_up.until(now_ms));
        if used_up.is_some() {
            let message = "quota used up".to_owned();
            return Some(Hold { reason: HoldReason::Quota, until: used_up.max(rate_limit), message });
        }
        if rate_limit.is_some() {
            let message = match self.rate_limit_refusals {
                0 | 1 => "it was asked too often".to_owned(),
                many => format!("it was asked too often, {many} times in a row"),
            };
            return Some(Hold { reason: HoldReason::RateLimit, until: rate_limit, message });
        }
        self.latest(|rate, _, _| rate.parked_until(now_ms), &QuotaPolicy::default(), &Estimate::default())
    }

    /// Takes from the buckets, or says when there will be room.
    pub(super) fn admit(
        &mut self,
        policy: &QuotaPolicy,
        now_ms: u64,
        estimate: &Estimate,
    ) -> Result<(), Hold> {
        let room = |rate: &Rate, stated, amount| rate.room_at(stated, now_ms, amount);
        if let Some(hold) = self.hold(now_ms).or_else(|| self.latest(room, policy, estimate)) {
            return Err(hold);
        }
        self.requests.take(policy.requests_per_minute, now_ms, 1);
        self.input_tokens.take(policy.input_tokens_per_minute, now_ms, estimate.input_tokens);
        self.output_tokens.take(policy.output_tokens_per_minute, now_ms, estimate.output_tokens);
        Ok(())
    }

    /// The rate that is in the way for longest.
    fn latest(
        &self,
        until: impl Fn(&Rate, Option<u64>, u64) -> Option<u64>,
        policy: &QuotaPolicy,
        estimate: &Estimate,
    ) -> Option<Hold> {
        let rates = [
            (&self.requests, policy.requests_per_minute, 1, "requests"),
            (&self.input_tokens, policy.input_tokens_per_minute, estimate.input_tokens, "input tokens"),
            (&self.output_tokens, policy.output_tokens_per_minute, estimate.output_tokens, "output tokens"),
        ];
        let waits = rates.into_iter().filter_map(|(rate, stated, amount, name)| {
            until(rate, stated, amount).map(|until_ms| (until_ms, rate.limit(stated), name))
        });
        let (until_ms, limit, name) = waits.max_by_key(|(until_ms, ..)| *until_ms)?;
        let message = match limit {
            Some(limit) => format!("{limit} {name} per minute are used up"),
            None => format!("no {name} are left in this minute"),
        };
        Some(Hold { reason: HoldReason::RateLimit, until: Some(until_ms), message })
    }

    pub(super) fn record(&mut self, policy: &QuotaPolicy, now_ms: u64, report: &CallReport) {
        self.correct(policy, now_ms, report);
        match report.failure {
            Some(FailureClass::RateLimit) => self.slow_down(policy, now_ms, report),
            Some(FailureClass::Quota) => self.use_up(now_ms, report.refusal.unwrap_or_default()),
            None if !report.stopped => self.succeed(policy, now_ms),
            _ => {}
        }
        if let Some(signal) = &report.signal {
            self.learn(policy, now_ms, signal);
        }
    }

    fn correct(&mut self, policy: &QuotaPolicy, now_ms: u64, report: &CallReport) {
        let (input, output) = charged(&report.usage);
        // Refused work was not done. Otherwise, what nobody has reported stays what was estimated.
        let refused = report.failure.is_some_and(FailureClass::refused);
        let unknown = |estimated: u64| if refused { 0 } else { estimated };
        let Estimate { input_tokens, output_tokens } = report.estimate;
        let input = input.unwrap_or(unknown(input_tokens));
        let output = output.unwrap_or(unknown(output_tokens));
        self.input_tokens.correct(policy.input_tokens_per_minute, now_ms, input_tokens, input);
        self.output_tokens.correct(policy.output_tokens_per_minute, now_ms, output_tokens, output);
    }

    fn slow_down(&mut self, policy: &QuotaPolicy, now_ms: u64, report: &CallReport) {
        // While it is parked nothing was started: who is refused now was part of the same burst.
        if self.rate_limit.until(now_ms).is_none() {
            self.rate_limit_refusals = self.rate_limit_refusals.saturating_add(1);
            self.width = Width::cut(self.width, policy.concurrent, report.in_flight);
        }
        let refusal = report.refusal.unwrap_or_default();
        let stated_ms = retry_after_ms(refusal).or(reset_in_ms(refusal, now_ms));
        let span_ms = stated_ms.map_or_else(
            || doubled(FIRST_PAUSE_MS, self.rate_limit_refusals, MAX_PAUSE_MS),
            |stated_ms| stated_ms.min(MAX_PARK_MS),
        );
        self.rate_limit.extend(now_ms, span_ms);
    }

    fn use_up(&mut self, now_ms: u64, refusal: Refusal) {
        if self.used_up.until(now_ms).is_none() {
            self.quota_refusals = self.quota_refusals.saturating_add(1);
        }
        let stated_ms = reset_in_ms(refusal, now_ms).or(retry_after_ms(refusal));
        let span_ms = stated_ms.map_or_else(
            || doubled(FIRST_QUOTA_PAUSE_MS, self.quota_refusals, MAX_QUOTA_PAUSE_MS),
            |stated_ms| stated_ms.min(MAX_QUOTA_PARK_MS),
        );
        self.used_up.extend(now_ms, span_ms);
    }

    fn succeed(&mut self, policy: &QuotaPolicy, now_ms: u64) {
        // What was started before the refusal says nothing about what is borne after it.
        if self.rate_limit.until(now_ms).is_some() || self.used_up.until(now_ms).is_some() {
            return;
        }
        self.rate_limit_refusals = 0;
        self.quota_refusals = 0;
        self.width = self.width.and_then(|width| width.grow(policy.concurrent));
    }

    pub(super) fn learn(&mut self, policy: &QuotaPolicy, now_ms: u64, signal: &QuotaSignal) {
        if let Some(level) = &signal.requests {
            self.requests.learn(policy.requests_per_minute, now_ms, level);
        }
        if let Some(level) = &signal.input_tokens {
            self.input_tokens.learn(policy.input_tokens_per_minute, now_ms, level);
        }
        if let Some(level) = &signal.output_tokens {
            self.output_tokens.learn(policy.output_tokens_per_minute, now_ms, level);
        }
    }

    pub(super) fn settle(&mut self, now_ms: u64) {
        self.rate_limit.settle(now_ms);
        self.used_up.settle(now_ms);
        for rate in [&mut self.requests, &mut self.input_tokens, &mut self.output_tokens] {
            rate.settle(now_ms);
        }
    }
}

/// Input and output as limits count them: what came out of a cache is free.
fn charged(usage: &Usage) -> (Option<u64>, Option<u64>) {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    (sum(usage.input, usage.cache_write), sum(usage.output, usage.reasoning))
}

/// "At once" is no answer after a refusal: taken literally, everybody would be back in the same moment.
fn retry_after_ms(refusal: Refusal) -> Option<u64> {
    refusal.retry_after_ms.filter(|ms| *ms > 0)
}

fn reset_in_ms(refusal: Refusal, now_ms: u64) -> Option<u64> {
    refusal.reset_at_ms.and_then(|at_ms| at_ms.checked_sub(now_ms)).filter(|ms| *ms > 0)
}

fn doubled(first_ms: u64, times: u32, most_ms: u64) -> u64 {
    first_ms.saturating_mul(1u64 << times.saturating_sub(1).min(32)).min(most_ms)
}
