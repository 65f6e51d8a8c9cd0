//! The last lines of a run: how it ended, what it took, what went wrong, what to type next (DESIGN §8).

use sage_core::event::Ask;
use sage_core::run::{Run, State, Status, StepId};
use sage_core::verdict::Verdict;
use sage_core::wire::{self, Progress, WorkflowMetrics, failed_steps, rfc3339};

use unicode_width::UnicodeWidthStr;

use super::allowance_lines;
use super::cache_lines;
use super::figures;
use super::limit_lines;
use super::next;
use super::outcome;
use super::rows::ask_text;
use super::text::{Line, Style, Tone, argument, clean, first_line, lines, plural, time_text, wrap};
use super::why::{because, pause_text, unknown_question};

/// Failing steps and questions that are listed; the rest is counted.
const LISTED: usize = 5;
/// Paths are aligned up to here.
const PATH_COLUMNS: usize = 32;
/// Lines that are quoted of a failed step's output: of one or two failures, and of each where there are more.
const QUOTED: usize = 10;
const QUOTED_OF_MANY: usize = 4;

/// What a run came to, as text that ends with a line break.
pub fn summary(run: &Run, style: Style) -> String {
    let mut page = vec![verdict_line(run), steps_line(run)];
    page.extend(figures::usage(run, style.width));
    page.extend(cache_lines::totals(run));
    page.extend(limit_lines::totals(run));
    page.extend(allowance_lines::calm(run));
    page.extend(figures::blocked(run));
    page.extend(figures::alerts(run));
    page.extend(failure_lines(run));
    page.extend(question_lines(run, style.width));
    page.extend(outcome::lines(run));
    page.extend(next::lines(run));
    page.iter().map(|line| line.render(style) + "\n").collect()
}

/// Why a run stands still or is no plain success, as the last lines of it say.
pub fn reason_text(run: &Run, style: Style) -> Option<String> {
    let told = matches!(run.status, Status::Paused { until: None, .. } | Status::Finished(Verdict::Degraded));
    told.then(|| verdict_line(run).render(style))
}

fn verdict_line(run: &Run) -> Line {
    let metrics = WorkflowMetrics::of(run);
    let time = time_text(metrics.total_time);
    let mut line = match run.status {
        Status::Finished(Verdict::Succeeded) => Line::of(Tone::Good, &format!("✓ succeeded in {time}")),
        Status::Finished(Verdict::Degraded) => Line::of(Tone::Warn, &format!("! {}", degraded(run, &time))),
        Status::Finished(Verdict::Failed) => Line::of(Tone::Bad, &format!("✗ failed after {time}")),
        Status::Finished(Verdict::Cancelled) | Status::Cancelled { .. } => {
            Line::of(Tone::Warn, &format!("- cancelled after {time}"))
        }
        Status::Paused { until, .. } => {
            let until = until.map(|until| format!(", until {}", rfc3339(until))).unwrap_or_default();
            Line::of(Tone::Warn, &format!("◌ paused after {time}: {}{until}", pause_text(run)))
        }
        Status::Running => Line::of(Tone::Busy, &format!("running for {time}")),
    };
    // One step after the other takes as long as it takes; below a tenth it is noise.
    let reached = matches!(run.status, Status::Finished(Verdict::Succeeded | Verdict::Degraded));
    if reached && ran(run) > 1 && metrics.speedup >= 1.1 {
        // Without it the figures would not fit together.
        let waited = metrics.total_time - metrics.parallel_time;
        if waited * 100 > metrics.total_time {
            line.fact(Tone::Dim, &format!("{} waiting", time_text(waited)));
        }
        let at_most = if metrics.sequential_at_most { "at most " } else { "" };
        let sequential = time_text(metrics.sequential_time);
        line.fact(Tone::Dim, &format!("{at_most}{sequential} if sequential"));
        line.fact(Tone::Plain, &format!("{at_most}{:.1}x faster", metrics.speedup));
    }
    line
}

/// `degraded, after 3s: qa/tests was not checked`; a run that only planned says so.
fn degraded(run: &Run, time: &str) -> String {
    let plans = |id: StepId| ["plan", "swarm.plan"].contains(&run.operation(id).type_name.as_str());
    let reasons = run.shortfalls();
    match reasons.as_slice() {
        [_] if run.changed_nothing() && failed_steps(run).is_empty() => {
            let word = if run.step_ids().any(plans) { "planned" } else { "finished" };
            let open: usize = run.work().iter().map(|work| work.open).sum();
            let tasks =
                if open > 0 { format!(", {} left open", plural(open as u64, "task")) } else { String::new() };
            format!("{word} in {time}: nothing was implemented{tasks}")
        }
        [] => match failed_steps(run).len() as u64 {
            0 => format!("degraded, after {time}"),
            failed => format!("degraded, after {time}: {} failed", plural(failed, "step")),
        },
        reasons => format!("degraded, after {time}: {}", reasons.join("; ")),
    }
}

/// Steps that did something in this run, in whichever turn.
fn ran(run: &Run) -> usize {
    run.live_steps().filter(|step| step.children.is_none() && step.attempts > 0).count()
}

fn steps_line(run: &Run) -> Line {
    let leaf = |&id: &StepId| run.step(id).children.is_none() || wire::counts(run, id);
    let leaves: Vec<StepId> = run.step_ids().filter(leaf).collect();
    // What is part of the total adds up to it; the rest is told apart.
    let (counted, others): (Vec<StepId>, Vec<StepId>) = leaves.iter().partition(|&&id| wire::counts(run, id));
    let count =
        |of: &[StepId], wanted: &dyn Fn(StepId) -> bool| of.iter().filter(|&&id| wanted(id)).count() as u64;
    let of = |name: &'static str| count(&counted, &|id| run.shown_state(id).name() == name);
    let asking = |id: StepId| run.waits_for_person(id);
    let failed = |id: StepId| matches!(run.step(id).state, State::Failed);
    let handled = |id: StepId| run.is_handled(id);
    let replaced = |id: StepId| failed(id) && run.is_replaced(id) && !handled(id);
    let lost = |id: StepId| failed(id) && !handled(id) && !replaced(id);
    let rest: [(Tone, u64, &str); 10] = [
        (Tone::Bad, of("failed"), "failed"),
        (Tone::Dim, of("skipped"), "of them skipped"),
        (Tone::Warn, of("blocked"), "blocked"),
        (Tone::Dim, of("cancelled"), "cancelled"),
        (Tone::Warn, count(&counted, &asking), "waiting for a person"),
        (Tone::Dim, count(&counted, &|id| !run.shown_state(id).settled() && !asking(id)), "not finished"),
        (Tone::Dim, count(&others, &handled), "failed and handled by code"),
        (Tone::Dim, count(&others, &replaced), "failed in an earlier round"),
        (Tone::Dim, count(&others, &lost), "failed and not needed"),
        (Tone::Dim, count(&others, &|id| !failed(id)), "not needed"),
    ];
    let told = rest.iter().filter(|(_, count, _)| *count > 0);
    let rest = told.map(|(tone, count, what)| (*tone, format!("{count} {what}")));
    let mut line = Line::of(Tone::Plain, "  ");
    for (at, (tone, text)) in std::iter::once((Tone::Plain, done_text(run, &leaves))).chain(rest).enumerate()
    {
        line.push(Tone::Dim, if at == 0 { "" } else { " · " });
        line.push(tone, &text);
    }
    line
}

/// How many steps are done, as everybody counts them, and how many of those were done before.
fn done_text(run: &Run, leaves: &[StepId]) -> String {
    let progress = Progress::of(run);
    let steps = plural(u64::from(progress.total), "step");
    let kept = leaves.iter().filter(|&&id| run.is_reused(id)).count();
    let now = leaves.iter().filter(|&&id| !run.is_reused(id) && run.step(id).attempts > 0).count();
    match (kept, progress.completed == progress.total) {
        (0, true) => format!("{steps} done"),
        (0, false) => progress.text(),
        (kept, true) => format!("{kept} of {steps} reused, {now} run"),
        (kept, false) => format!("{}, {kept} reused", progress.text()),
    }
}

fn failure_lines(run: &Run) -> Vec<Line> {
    let failed = failed_steps(run);
    let widest =
        failed.iter().take(LISTED).map(|&id| run.step(id).path.len()).max().unwrap_or(0).min(PATH_COLUMNS);
    let mut page = Vec::new();
    for &id in failed.iter().take(LISTED) {
        let step = run.step(id);
        let Some(failure) = &step.failure else { continue };
        let first = failure_text(failure.class.name(), first_line(&failure.message));
        let quote = quoted(&failure.message, if failed.len() > 2 { QUOTED_OF_MANY } else { QUOTED });
        // A script that failed with its calls is not counted beside them; it says where.
        let sign = if wire::counts(run, id) { "  ✗ " } else { "  - " };
        let mut line = Line::of(Tone::Bad, sign).with(Tone::Bold, &step.path);
        line.pad_to(4 + widest);
        line.push(Tone::Bad, &format!("  {first}"));
        page.push(line);
        page.extend(quote.into_iter().map(|text| Line::of(Tone::Dim, "    ").with(Tone::Dim, text)));
        page.extend(
            sage_core::wire::hint(run, id).map(|hint| Line::of(Tone::Dim, "    ").with(Tone::Dim, hint)),
        );
    }
    if failed.len() > LISTED {
        page.push(Line::of(
            Tone::Dim,
            &format!("  … {} more failed, see sage status {}", failed.len() - LISTED, argument(&run.feature)),
        ));
    }
    page
}

/// What follows the first line of a message, as it was printed: its last lines.
fn quoted(message: &str, most: usize) -> Vec<&str> {
    let all = message.split('\n').map(str::trim_end).filter(|line| !line.trim().is_empty());
    let rest: Vec<&str> = all.skip(1).collect();
    rest[rest.len().saturating_sub(most)..].to_vec()
}

/// `timeout: no answer within 10m`; the plainest class says nothing that the message does not.
pub(crate) fn failure_text(class: &str, message: &str) -> String {
    match (class, message) {
        (class, "") => class.to_string(),
        ("failed", message) => message.to_string(),
        (class, message) => format!("{class}{}", because(message, class)),
    }
}

pub(super) fn asking_steps(run: &Run) -> Vec<StepId> {
    run.step_ids().filter(|&id| run.waits_for_person(id)).collect()
}

fn whole_question(ask: &Ask) -> String {
    ask_text(ask, &lines(&ask.message).collect::<Vec<_>>().join(" "))
}

/// Questions in full: who shall answer must be able to read them.
fn question_lines(run: &Run, width: usize) -> Vec<Line> {
    let asking = asking_steps(run);
    let question = |&id: &StepId| {
        let text = match &run.step(id).state {
            State::Running(running) => {
                let own = running.ask.as_deref().map(whole_question);
                own.or_else(|| run.permission_question(id)).unwrap_or_default()
            }
            _ => unknown_question(run, id),
        };
        let head = Line::of(Tone::Warn, "  ? ").with(Tone::Bold, &run.step(id).path);
        if head.width() + 2 + clean(&text).width() <= width {
            return vec![head.with(Tone::Plain, &format!("  {text}"))];
        }
        let wrapped = wrap(&clean(&text), width.saturating_sub(4).max(1));
        let below = wrapped.into_iter().map(|line| Line::of(Tone::Plain, "    ").with(Tone::Plain, &line));
        std::iter::once(head).chain(below).collect()
    };
    let mut page: Vec<Line> = asking.iter().take(LISTED).flat_map(question).collect();
    if asking.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("  … {} more wait for a person", asking.len() - LISTED)));
    }
    page
}
