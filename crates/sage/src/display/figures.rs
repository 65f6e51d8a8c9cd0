//! The figures of the last lines: tokens by class and what was saved of them, context reloads, alerts.

use sage_core::alert::{Alert, Level, Metric};
use sage_core::run::{Run, Status};
use sage_core::template::Kind;
use sage_core::wire::{TokensByClass, WorkflowMetrics};

use super::text::{Line, Tone, clock_text, cost_text, count_text, plural, time_text, wrap};

/// Only where there was an agent or a model, be it one that costs nothing.
pub(super) fn usage(run: &Run, width: usize) -> Vec<Line> {
    let metrics = WorkflowMetrics::of(run);
    let tokens = &metrics.tokens_by_class;
    let known = metrics.total_tokens > 0 || tokens.unattributed > 0 || metrics.cost_usd.is_some();
    if !known && !had_agents(run) {
        return Vec::new();
    }
    let mut page = if metrics.total_tokens > 0 { classes(&metrics, width) } else { Vec::new() };
    let mut facts = Line::default();
    if metrics.total_tokens == 0 && tokens.unattributed == 0 {
        facts.fact(Tone::Plain, "0 tokens");
    }
    if let Some(cost) = metrics.cost_usd.filter(|&cost| cost > 0.0 || metrics.total_tokens > 0) {
        facts.fact(Tone::Plain, &cost_text(cost, metrics.cost_estimated));
    }
    if tokens.unattributed > tokens.estimated_tokens.unwrap_or_default().attempts {
        let attempts = plural(u64::from(tokens.unattributed), "attempt");
        facts.fact(Tone::Warn, &format!("unattributed: {attempts} told no usage"));
    }
    saved(&metrics, &mut facts);
    facts.fact(Tone::Dim, &plural(u64::from(metrics.context_reloads), "context reload"));
    let mut line = Line::of(Tone::Plain, "  ");
    line.append(facts);
    page.push(line);
    page.extend(estimated(tokens));
    page
}

fn had_agents(run: &Run) -> bool {
    run.step_ids().any(|id| {
        run.kind(id) == Kind::Agent && (run.step(id).attempts > 0 || run.step(id).taken().is_some())
    })
}

fn classes(metrics: &WorkflowMetrics, width: usize) -> Vec<Line> {
    let tokens = &metrics.tokens_by_class;
    let classes = [
        (tokens.input, "input"),
        (tokens.cache_read, "cache read"),
        (tokens.cache_write, "cache write"),
        (tokens.output, "output"),
        (tokens.reasoning, "reasoning"),
    ];
    let told = classes.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, name)| format!("{} {name}", count_text(*count))).collect();
    let text = format!("{} tokens: {}", count_text(metrics.total_tokens), told.join(", "));
    let wrapped = wrap(&text, width.saturating_sub(4).max(1)).into_iter().enumerate();
    let line = |(at, text): (usize, String)| {
        Line::of(Tone::Plain, if at == 0 { "  " } else { "    " }).with(Tone::Plain, &text)
    };
    wrapped.map(line).collect()
}

/// What nobody told, and what we take it for.
fn estimated(tokens: &TokensByClass) -> Option<Line> {
    let estimated = tokens.estimated_tokens?;
    let sum = count_text(estimated.input + estimated.output);
    let attempts = plural(u64::from(estimated.attempts), "attempt");
    let text = format!("  ≈ {sum} tokens estimated for {attempts} that told no usage");
    Some(Line::of(Tone::Warn, &text))
}

fn saved(metrics: &WorkflowMetrics, facts: &mut Line) {
    let by = &metrics.tokens_saved_by;
    let all = [(by.filter, "filter"), (by.cache, "cache"), (by.code_mode, "code mode")];
    let told: Vec<&(u64, &str)> = all.iter().filter(|(count, _)| *count > 0).collect();
    let text = match told[..] {
        [] => return,
        [(count, by)] => format!("{} tokens saved by {by}", count_text(*count)),
        _ => {
            let parts: Vec<String> =
                told.iter().map(|(count, by)| format!("{} by {by}", count_text(*count))).collect();
            format!("{} tokens saved: {}", count_text(metrics.tokens_saved), parts.join(", "))
        }
    };
    facts.fact(Tone::Good, &text);
}

/// How much of its time the orchestrator could take no news. Shorter than a second, it is all beginning and end.
pub(super) fn blocked(run: &Run) -> Option<Line> {
    const TELLING_US: u64 = 1_000_000;
    let share = WorkflowMetrics::of(run).orchestrator_blocked_share?;
    let telling = run.tally.loop_time().total_us >= TELLING_US;
    let text = format!("  orchestrator blocked {:.1} % of the time", share * 100.0);
    telling.then(|| Line::of(Tone::Dim, &text))
}

/// What is beyond its limit; `[alerts]` in sage.toml sets them.
pub(super) fn alerts(run: &Run) -> Option<Line> {
    let alerts = WorkflowMetrics::of(run).alerts;
    if alerts.is_empty() || run.status == Status::Running {
        return None;
    }
    let critical = alerts.iter().any(|alert| alert.level == Level::Critical);
    let tone = |level| if level == Level::Critical { Tone::Bad } else { Tone::Warn };
    let worst = if critical { Level::Critical } else { Level::Warn };
    let mut facts = Line::default();
    alerts.iter().for_each(|alert| facts.fact(tone(alert.level), &alert_text(alert)));
    let mut line = Line::of(Tone::Plain, "  ").with(tone(worst), "! ");
    line.append(facts);
    Some(line)
}

fn alert_text(alert: &Alert) -> String {
    let (value, limit) = (alert.value, alert.limit);
    let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    match alert.metric {
        Metric::TotalTime => {
            format!("took {}, more than {}", time_text(value as u64), clock_text(limit as u64))
        }
        Metric::TotalTokens => {
            format!("{} tokens, more than {}", count_text(value as u64), count_text(limit as u64))
        }
        Metric::ContextReloads => {
            format!("{}, more than {limit}", plural(value as u64, "context reload"))
        }
        Metric::ResumeSuccess => {
            format!("resumes kept {} of what was finished, less than {}", percent(value), percent(limit))
        }
        Metric::ErrorRate => format!("{} of attempts failed, more than {}", percent(value), percent(limit)),
    }
}
