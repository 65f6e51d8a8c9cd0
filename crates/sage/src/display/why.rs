//! Why a run or a step stands still, in words for people. Programs get `sage_core::wire::wait_text`.

use sage_core::event::PauseReason;
use sage_core::run::{Run, State, Status, StepId, Wait};
use sage_core::target::HoldReason;

use super::text::clock_text;

/// Why a paused run stands still, without the time until which it does.
pub(crate) fn pause_text(run: &Run) -> String {
    let Status::Paused { .. } = run.status else { return String::new() };
    let Some(reason) = run.pause_reason() else { return "its questions are answered".into() };
    let text = match reason {
        PauseReason::User => "it was asked to pause",
        PauseReason::Interrupted => "it was interrupted",
        PauseReason::Approval => "it waits for an answer",
        PauseReason::Unknown if only_unchecked(run) => "a check could not be made",
        PauseReason::Unknown if only_stalled(run) => "a person must say whether a stalled step runs again",
        PauseReason::Unknown => "a person must say what became of a lost attempt",
        PauseReason::Join => "not enough steps of a phase succeeded",
        PauseReason::Timeout => "its time limit is reached",
        PauseReason::Storage => "a disk is full or cannot be written",
        PauseReason::System => "the machine has no resources left",
        PauseReason::Sleep => "it only waits for a time",
        PauseReason::Quota => "a provider's limit is reached",
        PauseReason::Breaker => return isolated_text(run).unwrap_or_else(|| "a target is not well".into()),
        PauseReason::Budget => "a budget has no room",
    };
    text.to_string()
}

fn only_stalled(run: &Run) -> bool {
    let mut asking = run.live_steps().filter(|step| matches!(step.state, State::Unknown)).peekable();
    asking.peek().is_some() && asking.all(|step| !step.unknown)
}

fn only_unchecked(run: &Run) -> bool {
    let mut unknown = run.step_ids().filter(|&id| matches!(run.step(id).state, State::Unknown)).peekable();
    unknown.peek().is_some() && unknown.all(|id| run.is_unchecked(id))
}

/// What a person is asked about a step in `Unknown`: a check could not be made, a crash left it so, or it stalled and was
/// stopped.
pub(crate) fn unknown_question(run: &Run, id: StepId) -> String {
    let step = run.step(id);
    match &step.failure {
        Some(failure) if run.is_unchecked(id) => {
            format!("not checked: {} Go on without this check?", sentence(&failure.message))
        }
        _ if step.unknown => "its last attempt was lost: run it again?".to_string(),
        _ => "it made no progress: run it again?".to_string(),
    }
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_string() } else { format!("{text}.") }
}

/// The target that a person switched off, if that is why nothing goes on: of others the time is known.
fn isolated_text(run: &Run) -> Option<String> {
    let Status::Paused { until: None, .. } = run.status else { return None };
    let (target, parked) = run.parked.iter().find(|(_, parked)| parked.reason == HoldReason::Isolated)?;
    Some(format!("`{target}` is isolated{}", because(&parked.message, "isolated")))
}

/// `: <message>`, or nothing where that would only say again what was `said`.
pub(crate) fn because(message: &str, said: &str) -> String {
    match message.trim() {
        "" => String::new(),
        message if message.eq_ignore_ascii_case(said) => String::new(),
        message => match message.strip_prefix(said).and_then(|rest| rest.strip_prefix(':')) {
            Some(rest) if rest.trim().is_empty() => String::new(),
            Some(rest) => format!(": {}", rest.trim()),
            None => format!(": {message}"),
        },
    }
}

/// `waits for the quota of provider:fake, 12s left`
pub(crate) fn wait_text(run: &Run, wait: &Wait, now_ms: u64) -> String {
    match (wait, wait_phrase(run, wait, now_ms)) {
        (_, Some(phrase)) => format!("waits {phrase}"),
        (Wait::Retry(at), _) => retry_text(*at, now_ms),
        (Wait::Unknown, _) => "a person must say whether it runs again".into(),
        _ => "paused".into(),
    }
}

/// What follows `waits` and `wait`.
pub(crate) fn wait_phrase(run: &Run, wait: &Wait, now_ms: u64) -> Option<String> {
    let left = |until: &Option<u64>| until.map(|until| format!("{} left", left_text(until, now_ms)));
    let after = |until: &Option<u64>| left(until).map_or(String::new(), |left| format!(", {left}"));
    let parked = |target: &str| run.parked.get(target);
    Some(match wait {
        Wait::Dependency => "for other steps".into(),
        Wait::Slot(pool) if pool == "global" => "for a slot".into(),
        Wait::Slot(pool) if pool == "maxParallel" => "for another item".into(),
        Wait::Slot(pool) => format!("for a slot of pool {pool}"),
        Wait::Quota(target, until) => {
            let rate = parked(target).is_some_and(|parked| parked.reason == HoldReason::RateLimit);
            let what = if rate { "rate limit" } else { "quota" };
            format!("for the {what} of {target}{}", after(until))
        }
        Wait::Breaker(target, until) => match parked(target) {
            Some(parked) if parked.reason == HoldReason::Isolated => {
                format!("for {target} (isolated{})", because(&parked.message, "isolated"))
            }
            _ => format!("for {target} (breaker open{})", after(until)),
        },
        Wait::Budget => "for budget".into(),
        Wait::Approval => "for an answer".into(),
        Wait::Preempted => "for urgent work".into(),
        Wait::Retry(_) | Wait::Unknown | Wait::Paused => return None,
    })
}

/// `retry in 4s`, `retry in 50ms`, `retry at once`.
pub(crate) fn retry_text(at_ms: u64, now_ms: u64) -> String {
    match at_ms.saturating_sub(now_ms) {
        0 => "retry at once".into(),
        ms @ 1..1_000 => format!("retry in {ms}ms"),
        _ => format!("retry in {}", left_text(at_ms, now_ms)),
    }
}

/// In whole seconds, rounded up: it is not over before 0.
pub(crate) fn left_text(until_ms: u64, now_ms: u64) -> String {
    clock_text(until_ms.saturating_sub(now_ms).div_ceil(1_000) * 1_000)
}
