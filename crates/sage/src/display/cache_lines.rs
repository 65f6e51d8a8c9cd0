//! Lines about results that earlier runs have made.

use sage_core::event::{StepCached, StepStarted};
use sage_core::run::{Run, Step};
use sage_engine::cache::EXPIRES_SOON_MS;

use super::text::{Line, Tone, ago_text, plural, time_text};
use crate::command_line::sage;

/// Steps with a result that is too old; more are counted.
const LISTED: usize = 5;

/// `cached, 3 days old`, or what stands in for a result.
pub(super) fn details(step: &Step) -> Option<(Tone, String)> {
    let taken = step.taken()?;
    let age = ago_text(taken.age_ms);
    Some(match (step.degraded, taken.expires_in_ms) {
        (false, _) => (Tone::Dim, format!("cached, {age} old")),
        (true, Some(_)) => (Tone::Warn, format!("used a result from {age} ago instead")),
        (true, None) => (Tone::Warn, format!("used a result from {age} ago instead (stale)")),
    })
}

pub(super) fn line(run: &Run, event: &StepCached) -> String {
    let told = run.find(&event.step).and_then(|id| details(run.step(id)));
    let text = told.map_or_else(|| "cached".into(), |(_, text)| text);
    let soon = event.expires_in_ms.filter(|left| *left <= EXPIRES_SOON_MS && !text.contains("instead"));
    let soon = soon.map(|left| format!(", expires in {}", ago_text(left))).unwrap_or_default();
    format!("{} {text}{soon}", event.step)
}

/// What was kept for a step that now runs could not be used.
pub(super) fn damaged(event: &StepStarted) -> Option<String> {
    let why = event.cache.as_ref()?.damaged.as_ref()?;
    Some(format!(" (its result in the cache was damaged and is made again: {why})"))
}

/// How often there was a result, and which ones deserve a look.
pub(super) fn totals(run: &Run) -> Vec<Line> {
    let tally = &run.tally;
    let mut page = Vec::new();
    if let Some(rate) = tally.cache_hit_rate() {
        let all = tally.cache_hits + tally.cache_misses;
        let mut line = Line::of(Tone::Plain, "  ");
        line.push(Tone::Plain, &format!("cache {:.0}% ({} of {all} hits)", rate * 100.0, tally.cache_hits));
        if tally.cache_saved_ms > 0 {
            line.push(Tone::Dim, &format!(", {} saved", time_text(tally.cache_saved_ms)));
        }
        page.push(line);
    }
    if tally.cache_damaged > 0 {
        let entries = plural(tally.cache_damaged.into(), "damaged result");
        page.push(Line::of(Tone::Warn, &format!("  {entries} of the cache removed and made again")));
    }
    let soon = |step: &&Step| {
        let left = step.taken().filter(|_| !step.degraded).and_then(|taken| taken.expires_in_ms);
        left.is_some_and(|left| left <= EXPIRES_SOON_MS)
    };
    let soon = run.live_steps().filter(soon).count() as u64;
    if soon > 0 {
        let text = format!("  {} from the cache will be too old within 7 days", plural(soon, "result"));
        page.push(Line::of(Tone::Warn, &text).with(Tone::Dim, &format!(" ({})", sage("cache list"))));
    }
    let stands_in = |step: &&Step| step.degraded && step.children.is_none() && step.taken().is_some();
    let stale: Vec<&Step> = run.live_steps().filter(stands_in).collect();
    for step in stale.iter().take(LISTED) {
        let Some((tone, text)) = details(step) else { continue };
        page.push(Line::of(tone, "  ! ").with(Tone::Bold, &step.path).with(tone, &format!("  {text}")));
    }
    if stale.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("  … {} more like that", stale.len() - LISTED)));
    }
    page
}
