//! The last lines of a run: how it ended, what it took, what went wrong, what to type next (DESIGN §8).

use sage_core::event::Ask;
use sage_core::run::{Run, State, Status, StepId};
use sage_core::verdict::Verdict;
use sage_core::wire::{WorkflowMetrics, rfc3339};

use unicode_width::UnicodeWidthStr;

use super::cache_lines;
use super::figures;
use super::limit_lines;
use super::next;
use super::outcome;
use super::rows::ask_text;
use super::text::{Line, Style, Tone, argument, clean, lines, plural, time_text, wrap};
use super::walk;
use super::why::{because, pause_text, unknown_question};

/// Failing steps and questions that are listed; the rest is counted.
const LISTED: usize = 5;
/// Paths are aligned up to here.
const PATH_COLUMNS: usize = 32;
/// Lines of a failure's message.
const MESSAGE_LINES: usize = 3;

/// What a run came to, as text that ends with a line break.
pub fn summary(run: &Run, style: Style) -> String {
    let mut page = vec![verdict_line(run), steps_line(run)];
    page.extend(figures::usage(run, style.width));
    page.extend(cache_lines::totals(run));
    page.extend(limit_lines::totals(run));
    page.extend(figures::blocked(run));
    page.extend(figures::alerts(run));
    page.extend(failure_lines(run));
    page.extend(question_lines(run, style.width));
    page.extend(outcome::lines(run));
    page.extend(next::lines(run));
    page.iter().map(|line| line.render(style) + "\n").collect()
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
        let sequential = time_text(metrics.sequential_time);
        line.fact(Tone::Dim, &format!("{sequential} if sequential"));
        line.fact(Tone::Plain, &format!("{:.1}x faster", metrics.speedup));
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
        [] => format!("degraded, after {time}"),
        reasons => format!("degraded, after {time}: {}", reasons.join("; ")),
    }
}

/// Steps that did something in this run, in whichever turn.
fn ran(run: &Run) -> usize {
    run.live_steps().filter(|step| step.children.is_none() && step.attempts > 0).count()
}

fn steps_line(run: &Run) -> Line {
    let leaves: Vec<StepId> = run.step_ids().filter(|&id| run.step(id).children.is_none()).collect();
    let count = |wanted: &dyn Fn(&State) -> bool| {
        leaves.iter().filter(|&&id| wanted(&run.step(id).state)).count() as u64
    };
    let kept = leaves.iter().filter(|&&id| walk::kept(run, id)).count() as u64;
    let total = u64::from(run.tally.total);
    let mut line = Line::of(Tone::Plain, "  ");
    let done = count(&|state| matches!(state, State::Succeeded));
    let mut parts: Vec<(Tone, String)> = Vec::new();
    if kept > 0 {
        let now = leaves.iter().filter(|&&id| !walk::kept(run, id) && run.step(id).attempts > 0).count();
        parts.push((Tone::Plain, format!("{kept} of {} reused, {now} run", plural(total, "step"))));
    } else if done == total {
        parts.push((Tone::Plain, format!("{} done", plural(total, "step"))));
    } else {
        parts.push((Tone::Plain, format!("{done} of {} done", plural(total, "step"))));
    }
    let handled = leaves.iter().filter(|&&id| run.is_handled(id)).count() as u64;
    let rest: [(Tone, u64, &str); 7] = [
        (Tone::Bad, count(&|state| matches!(state, State::Failed)) - handled, "failed"),
        (Tone::Dim, handled, "failed and handled by code"),
        (Tone::Dim, count(&|state| matches!(state, State::Skipped)), "skipped"),
        (Tone::Warn, count(&|state| matches!(state, State::Blocked)), "blocked"),
        (Tone::Dim, count(&|state| matches!(state, State::Cancelled)), "cancelled"),
        (Tone::Warn, count(&asks), "waiting for a person"),
        (Tone::Dim, count(&open), "not finished"),
    ];
    let told = rest.iter().filter(|(_, count, _)| *count > 0);
    parts.extend(told.map(|(tone, count, what)| (*tone, format!("{count} {what}"))));
    for (at, (tone, text)) in parts.into_iter().enumerate() {
        line.push(Tone::Dim, if at == 0 { "" } else { " · " });
        line.push(tone, &text);
    }
    line
}

fn asks(state: &State) -> bool {
    matches!(state, State::Unknown) || matches!(state, State::Running(running) if running.ask.is_some())
}

fn open(state: &State) -> bool {
    !state.settled() && !asks(state)
}

/// Innermost failures: what is around them failed because of them. A script fails by itself, and says where, a
/// workflow by taking too long; what a script has dealt with is none.
pub(super) fn failed_steps(run: &Run) -> Vec<StepId> {
    let is_failed = |id: StepId| matches!(run.step(id).state, State::Failed);
    let own = |id: StepId| run.calls(id).is_some() || !run.children(id).into_iter().any(is_failed);
    let failed = |&id: &StepId| is_failed(id) && own(id) && !run.is_handled(id);
    run.step_ids().filter(failed).collect()
}

fn failure_lines(run: &Run) -> Vec<Line> {
    let failed = failed_steps(run);
    let widest =
        failed.iter().take(LISTED).map(|&id| run.step(id).path.len()).max().unwrap_or(0).min(PATH_COLUMNS);
    let mut page = Vec::new();
    for &id in failed.iter().take(LISTED) {
        let step = run.step(id);
        let Some(failure) = &step.failure else { continue };
        let mut texts = lines(&failure.message).take(MESSAGE_LINES);
        let first = failure_text(failure.class.name(), texts.next().unwrap_or_default());
        let mut line = Line::of(Tone::Bad, "  ✗ ").with(Tone::Bold, &step.path);
        line.pad_to(4 + widest);
        line.push(Tone::Bad, &format!("  {first}"));
        page.push(line);
        page.extend(texts.map(|text| Line::of(Tone::Dim, "    ").with(Tone::Dim, text)));
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
