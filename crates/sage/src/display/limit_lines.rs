//! Lines about limits: targets, budgets, hedges, fallbacks, stalls.

use sage_core::event::{Event, StepAsked, TargetParked};
use sage_core::policy::{FailureClass, Rung};
use sage_core::port::Continuity;
use sage_core::run::{INBOX, Run, Status};
use sage_core::target::HoldReason;
use sage_core::wire::{BudgetView, rfc3339};

use super::summary;
use super::text::{Line, Tone, first_line, plural, time_text};
use super::why::{because, left_text};
use crate::command_line::sage;

pub(super) fn line(event: &Event, now_ms: u64) -> Option<String> {
    match event {
        Event::RunContinued(_) => Some("run goes on".into()),
        Event::LimitsChanged(event) => Some(format!("limits changed: {}", event.why)),
        Event::RunCleared(_) => Some("what had not begun was given up".into()),
        Event::StepParked(event) if event.class == FailureClass::Budget => {
            Some(format!("{} stopped: {}", event.step, first_line(&event.message)))
        }
        Event::StepParked(event) if event.class == FailureClass::System => {
            Some(format!("{} waits: {}", event.step, first_line(&event.message)))
        }
        Event::StepLost(event) => Some(format!("{} runs again: {}", event.step, first_line(&event.why))),
        Event::StepParked(event) => {
            let why = summary::failure_text(event.class.name(), first_line(&event.message));
            Some(format!("{} refused, waits for its target ({why})", event.step))
        }
        Event::StepHedged(event) => {
            Some(format!("{} is slow: attempt {} started beside it", event.step, event.attempt))
        }
        Event::StepFellBack(event) => {
            Some(format!("{} falls back to {}: {}", event.step, event.name, first_line(&event.why)))
        }
        Event::StepStalled(event) => {
            let what = match event.rung {
                Rung::Nudge => "reminded",
                Rung::Restart => "restarted",
                Rung::Ask => "a person is asked",
                Rung::Fail => "given up",
            };
            Some(format!("{} made no progress for {}: {what}", event.step, time_text(event.idle_ms)))
        }
        Event::StepAsked(event) => Some(question(event, now_ms)),
        Event::StepPermitted(event) => {
            let said = if event.allow { "allowed" } else { "denied" };
            let message = event.message.as_deref().filter(|_| !event.by.starts_with("rule"));
            let message = message.map(|text| format!(": {}", first_line(text))).unwrap_or_default();
            let what = event.asked.as_ref().map(|asked| asked.title()).unwrap_or_default();
            let what = if what.is_empty() { what } else { format!("{} ", first_line(&what)) };
            Some(format!("{} {what}{said} by {}{message}", event.step, event.by))
        }
        Event::StepMessaged(event) => {
            Some(format!("{} received a message from {}: {}", event.step, event.by, first_line(&event.text)))
        }
        Event::StepPreempted(event) => Some(format!("{} makes way for {}", event.step, event.by)),
        Event::StepSession(event) if event.continuity == Continuity::Reloaded && event.attempt > 1 => {
            Some(format!("{} is told everything again", event.step))
        }
        Event::TargetParked(event) if event.target == INBOX => {
            Some(format!("agents wait: {} ({})", first_line(&event.message), sage("inbox")))
        }
        Event::TargetReleased(event) if event.target == INBOX => Some("agents start again".into()),
        Event::TargetParked(event) => Some(parked_line(event, now_ms)),
        Event::TargetReleased(event) => Some(format!("{} takes calls again", event.target)),
        Event::BudgetRaised(event) => Some(format!("budget of {} is now {}", event.node, event.cap)),
        _ => None,
    }
}

fn parked_line(event: &TargetParked, now_ms: u64) -> String {
    let what = match event.reason {
        HoldReason::Breaker => "breaker open",
        HoldReason::Isolated => "isolated",
        HoldReason::RateLimit => "rate limit",
        HoldReason::Quota => "quota used up",
        HoldReason::Pool => "all slots are taken",
    };
    let until = event.until.map_or(String::new(), |until| {
        format!(", until {} (in {})", rfc3339(until), left_text(until, now_ms))
    });
    let why = because(first_line(&event.message), what);
    format!("{} waits: {what}{until}{why}", event.target)
}

fn question(event: &StepAsked, now_ms: u64) -> String {
    let (step, what) = (&event.step, event.ask.question());
    let within = event.until.map(|until| format!(", within {}", left_text(until, now_ms)));
    let within = within.unwrap_or_default();
    format!("{step} asks: {} ({}{within})", first_line(&what), sage("inbox"))
}

/// What went other than straight, and how the budget stands; nothing where there is nothing to tell.
pub(super) fn totals(run: &Run) -> Vec<Line> {
    let tally = &run.tally;
    let counts = [
        (tally.retries, "retry", "retries"),
        (tally.refused, "refusal", "refusals"),
        (tally.timeouts, "timeout", "timeouts"),
        (tally.hedges, "hedge", "hedges"),
        (tally.fallbacks, "fallback", "fallbacks"),
        (tally.stalls, "stall", "stalls"),
        (tally.breaker_openings, "open breaker", "open breakers"),
    ];
    let told: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    let mut page = Vec::new();
    if !told.is_empty() {
        let attempts = plural(tally.calls.into(), "attempt");
        page.push(Line::of(Tone::Plain, "  ").with(Tone::Dim, &format!("{attempts} · {}", told.join(" · "))));
    }
    if let Some(budget) = BudgetView::of(run) {
        let mut line = Line::of(Tone::Plain, "  ");
        let estimated = run.usage().cost_estimated;
        let spent = if estimated { budget.spent.about() } else { budget.spent.to_string() };
        line.push(Tone::Plain, &format!("budget {}: {spent} spent", budget.cap));
        if !budget.overshoot.is_zero() {
            line.push(Tone::Warn, &format!(", over by {}", budget.overshoot));
        }
        page.push(line);
    }
    if let (Status::Paused { .. }, Some(needs)) = (run.status, &run.needs) {
        page.push(Line::of(Tone::Plain, "  ").with(Tone::Warn, needs));
    }
    page
}
