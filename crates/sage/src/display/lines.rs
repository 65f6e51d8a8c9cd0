//! Plain lines, one per notable event: for pipes, files and CI.

use std::collections::{BTreeSet, HashMap};

use sage_core::event::{
    Aside, End, Event, Expansion, OpenMode, RunImported, StepAnswered, StepFinished, StepRetried,
    StepReturned, StepStarted,
};
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::run::{Judgement, PhaseId, Run, ScopeId, State, StepId};
use sage_core::wire::{Progress, rfc3339, size_text, unpriced_text};

use super::allowance_lines::Warned;
use super::cache_lines;
use super::limit_lines;
use super::phase_text::outcome_text;
use super::rows::ask_text;
use super::summary;
use super::tail::News;
use super::text::{clean, cost_text, count_text, first_line, plural, time_text};
use super::walk;
use super::why::{pause_text, retry_text};

/// Larger fan-outs get a line per tenth instead of lines per item.
const FAN_ITEMS: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Large fan-outs: how many tenths were told.
    tenths: HashMap<StepId, usize>,
    /// Models without a price that were told of.
    unpriced: BTreeSet<String>,
    warned: Warned,
}

/// Lines of some events of a run, for who shows them beside something else.
#[derive(Debug, Default)]
pub(crate) struct EventLines(Lines);

impl EventLines {
    /// Nothing for what is old.
    pub fn lines(&mut self, news: &News<'_>) -> Vec<String> {
        let line = self.0.event(news).filter(|_| !news.silent);
        line.iter().flat_map(|line| line.lines()).map(clean).collect()
    }
}

impl Lines {
    /// Appends the lines that an event is worth.
    pub fn tell(&mut self, news: &News<'_>, out: &mut String) {
        let mut lines = Vec::new();
        lines.extend(self.event(news));
        lines.extend(aside_of(news.event).map(|aside| format!("note: {aside}")));
        lines.extend(self.unpriced(news.event));
        if matches!(news.event, Event::AccountUsed(_)) {
            lines.extend(self.warned.news(news.run));
        }
        lines.extend(self.tenth(news));
        let judged = news.run.judged_now().iter().copied();
        let own = judged.filter(|&phase| news.run.phase(phase).scope == ScopeId(0));
        lines.extend(own.map(|phase| phase_line(news.run, phase)));
        if let Event::RunFinished(finished) = news.event {
            let time = time_text(news.run.elapsed_ms());
            lines.push(format!("run {} ({time})", finished.verdict.name()));
        }
        if !news.silent {
            for line in lines.iter().flat_map(|line| line.lines()) {
                out.push_str(&clean(line));
                out.push('\n');
            }
        }
    }

    fn event(&mut self, news: &News<'_>) -> Option<String> {
        let run = news.run;
        match news.event {
            Event::RunStarted(_) => {
                let (template, steps) =
                    (&run.plan().template.name, plural(u64::from(run.tally.total), "step"));
                Some(format!("run started: {} · {template} · {} · {steps}", run.title, run.id))
            }
            Event::RunOpened(opened) if opened.mode == OpenMode::Resume => {
                Some(format!("run resumed: {}", Progress::of(run).text()))
            }
            Event::RunOpened(_) | Event::RunFinished(_) | Event::StepSpawned(_) => None,
            Event::RunEdited(_) => {
                self.tenths.clear();
                Some(format!("template replaced: {}", run.plan().template.name))
            }
            Event::RunRewound(rewound) => Some(format!("going back to {}", rewound.from)),
            Event::RunForked(forked) => {
                let steps = plural(run.tally.total.into(), "step");
                let from = &forked.from;
                Some(format!(
                    "forked from {} at {}: {} of {steps} taken over",
                    from.feature, from.step, run.tally.reused
                ))
            }
            Event::RunImported(imported) => Some(imported_line(imported)),
            Event::RunPaused(paused) => {
                let until = paused.until.map(|until| format!(", until {}", rfc3339(until)));
                let needs = paused.needs.as_ref().map(|needs| format!(": {needs}"));
                let (until, needs) = (until.unwrap_or_default(), needs.unwrap_or_default());
                Some(format!("run paused: {}{until}{needs}", pause_text(run)))
            }
            Event::RunCancelled(_) => Some("run cancelled".into()),
            Event::StepStarted(started) => started_line(run, started),
            Event::StepFinished(finished) => finished_line(run, finished),
            Event::StepSkipped(skipped) => small(run, &skipped.step, || format!("{} skipped", skipped.step)),
            Event::StepReused(reused) => small(run, &reused.step, || format!("{} reused", reused.step)),
            Event::StepCached(cached) => small(run, &cached.step, || cache_lines::line(run, cached)),
            Event::StepExpanded(expanded) => small(run, &expanded.step, || match &expanded.into {
                Expansion::Items { count, .. } => {
                    format!("{} has {}", expanded.step, plural(u64::from(*count), "item"))
                }
                Expansion::Scope { template, .. } => {
                    format!("{} started (workflow {template})", expanded.step)
                }
                Expansion::Code { .. } => format!("{} started", expanded.step),
            }),
            Event::StepNoted(noted) => Some(noted.text.clone()),
            Event::StepReturned(returned) => returned_line(returned),
            Event::StepCalled(_) => None,
            Event::StepRetried(retried) => {
                small(run, &retried.step, || retried_line(retried, news.record.ts_ms))
            }
            Event::StepAnswered(answered) => Some(answered_line(answered)),
            Event::PhaseRestarted(restarted) => Some(format!("phase {} starts again", restarted.phase)),
            Event::PhaseRepeated(repeated) if repeated.again => {
                Some(format!("phase {} goes round again", repeated.phase))
            }
            Event::PhaseRepeated(_) => None,
            other => limit_lines::line(other, news.record.ts_ms),
        }
    }

    /// A line for each tenth of a large fan-out.
    /// Models without a price, each once.
    fn unpriced(&mut self, event: &Event) -> Vec<String> {
        let models = usage_of(event).map(|usage| &usage.unpriced).into_iter().flatten();
        let new = models.filter(|(model, _)| self.unpriced.insert((*model).clone()));
        new.map(|(model, instead)| format!("note: {}", unpriced_text(model, instead))).collect()
    }

    fn tenth(&mut self, news: &News<'_>) -> Option<String> {
        let path = match news.event {
            Event::StepFinished(event) => &event.step,
            Event::StepReused(event) => &event.step,
            Event::StepCached(event) => &event.step,
            Event::StepSkipped(event) => &event.step,
            Event::StepAnswered(event) => &event.step,
            _ => return None,
        };
        let run = news.run;
        let fan = large_fan(run, run.find(path)?)?;
        let (all, step) = (run.item_steps(fan).len(), run.step(fan));
        let settled = match step.state {
            State::Open { left, .. } => all - left as usize,
            _ => all,
        };
        let tenth = settled * 10 / all;
        let told = self.tenths.entry(fan).or_default();
        // Fewer than before: the run went back.
        let tell = tenth > *told;
        *told = tenth;
        tell.then(|| {
            let count = |wanted: &dyn Fn(&State) -> bool| {
                run.item_steps(fan).iter().filter(|&&item| wanted(&run.step(item).state)).count()
            };
            let failed = count(&|state| matches!(state, State::Failed));
            let failures = if failed == 0 { String::new() } else { format!(", {failed} failed") };
            format!("{} {}/{all}{failures}", step.path, count(&State::ok))
        })
    }
}

/// Only what went wrong: what it gave is the run's result.
fn returned_line(returned: &StepReturned) -> Option<String> {
    match &returned.end {
        End::Failed { class, message, .. } => {
            let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            Some(format!("{} failed ({}): {}", returned.step, class.name(), clean(&message)))
        }
        End::Succeeded { .. } | End::Skipped { .. } | End::Stopped => None,
    }
}

/// The outermost large fan-out around a step.
fn large_fan(run: &Run, id: StepId) -> Option<StepId> {
    let (mut at, mut found) = (id, None);
    while let Some(holder) = walk::holder(run, at) {
        if run.item_steps(holder).len() > FAN_ITEMS {
            found = Some(holder);
        }
        at = holder;
    }
    found
}

/// The line, unless the step is one of many in a large fan-out.
fn small(run: &Run, path: &str, line: impl FnOnce() -> String) -> Option<String> {
    let many = run.find(path).is_some_and(|id| large_fan(run, id).is_some());
    (!many).then(line)
}

fn started_line(run: &Run, event: &StepStarted) -> Option<String> {
    let path = &event.step;
    if let Some(ask) = &event.ask {
        let command = run.find(path).map(|id| walk::approve_command(run, id)).unwrap_or_default();
        return Some(format!("{path} waiting for {} ({command})", ask_text(ask, first_line(&ask.message))));
    }
    small(run, path, || match event.attempt {
        0 | 1 => format!("{path} started{}", cache_lines::damaged(event).unwrap_or_default()),
        attempt => format!("{path} started (attempt {attempt})"),
    })
}

fn finished_line(run: &Run, event: &StepFinished) -> Option<String> {
    let path = &event.step;
    match &event.end {
        End::Succeeded { .. } => small(run, path, || {
            let ms = run.find(path).map_or(event.ms, |id| run.step_ms(id, run.updated_ms));
            let facts = [time_text(ms)].into_iter().chain(usage_facts(&event.usage));
            let facts = facts.collect::<Vec<_>>().join(", ");
            let filtered = event.filtered.map(|filtered| {
                format!(" · {} -> {}", size_text(filtered.bytes_before), size_text(filtered.bytes_after))
            });
            format!("{path} finished ({facts}){}", filtered.unwrap_or_default())
        }),
        End::Skipped { .. } => small(run, path, || format!("{path} skipped")),
        End::Failed { class: FailureClass::Unchecked, message, .. } => {
            Some(format!("{path} unknown: {}", first_line(message)))
        }
        End::Failed { class, message, .. } => {
            let why = summary::failure_text(class.name(), first_line(message));
            Some(format!("{path} failed: {why}{}", spent_text(&event.usage)))
        }
        End::Stopped => small(run, path, || format!("{path} stopped")),
    }
}

fn retried_line(event: &StepRetried, now_ms: u64) -> String {
    let retry = retry_text(event.at, now_ms);
    let why = summary::failure_text(event.class.name(), first_line(&event.message));
    format!("{} {retry} (attempt {} failed: {why}){}", event.step, event.attempt, spent_text(&event.usage))
}

/// `1.5k tokens`, `~$0.02`
fn usage_facts(usage: &Usage) -> impl Iterator<Item = String> {
    let tokens = (usage.total() > 0).then(|| format!("{} tokens", count_text(usage.total())));
    let cost = usage.cost_usd.map(|cost| cost_text(cost, usage.cost_estimated));
    tokens.into_iter().chain(cost)
}

/// ` (1.5k tokens, ~$0.02)`; nothing where nothing was used.
fn spent_text(usage: &Usage) -> String {
    let facts = usage_facts(usage).collect::<Vec<_>>().join(", ");
    if usage.total() == 0 { String::new() } else { format!(" ({facts})") }
}

/// What an event says that an attempt used.
fn usage_of(event: &Event) -> Option<&Usage> {
    match event {
        Event::StepUsed(it) => Some(&it.usage),
        Event::StepRecovered(it) => Some(&it.usage),
        Event::StepFinished(it) => Some(&it.usage),
        Event::StepRetried(it) => Some(&it.usage),
        Event::StepParked(it) => Some(&it.usage),
        Event::StepCharged(it) => Some(&it.usage),
        _ => None,
    }
}

fn imported_line(imported: &RunImported) -> String {
    let count = match (imported.results.len() as u64, imported.phases.len() as u64) {
        (0, 0) => return format!("recovered from the {}", imported.from),
        (0, phases) => plural(phases, "phase"),
        (results, _) => plural(results, "result"),
    };
    format!("{count} recovered from the {}", imported.from)
}

fn answered_line(event: &StepAnswered) -> String {
    let said = match event.choice.as_str() {
        "approve" => "approved",
        "reject" => "rejected",
        other => other,
    };
    let message = event.message.as_deref().map(|text| format!(": {}", first_line(text))).unwrap_or_default();
    format!("{} {said} by {}{message}", event.step, event.by)
}

/// An output that is not where the template says.
fn aside_of(event: &Event) -> Option<&Aside> {
    match event {
        Event::StepFinished(finished) => finished.aside.as_ref(),
        Event::StepCached(cached) => cached.aside.as_ref(),
        Event::StepReused(reused) => reused.aside.as_ref(),
        _ => None,
    }
}

fn phase_line(run: &Run, id: PhaseId) -> String {
    let (phase, path) = (run.phase(id), run.phase_path(id));
    let time = time_text(run.phase_ms(id, run.updated_ms));
    let outcome = outcome_text(run, phase);
    match phase.judged {
        Some(Judgement::Reached) => format!("phase {path} completed ({time})"),
        Some(Judgement::Degraded) => {
            format!("phase {path} completed with failures ({time}, {outcome})")
        }
        Some(Judgement::Missed) => format!("phase {path} failed ({time}, {outcome})"),
        Some(Judgement::Blocked) => format!("phase {path} blocked"),
        None => String::new(),
    }
}
