//! The plan for a terminal: phases with their steps, the batches, the longest path. Fits 80 columns.

use sage_core::plan::Plan;
use sage_core::run::{State, StepId};
use sage_core::wire::{self, Progress};

use super::Drawn;
use super::label::{self, Class};
use crate::display::text::{Line, Style, Tone, clean, first_line, plural, time_text};

const WIDTH: usize = 80;
/// Lines that one batch takes before the rest is only counted.
const BATCH_LINES: usize = 3;
/// Lines that the calls of one script take.
const CALL_LINES: usize = 40;

pub fn text(plan: &Plan) -> String {
    page(plan, None)
}

/// As `text`, with what has become of each step.
pub fn text_run(run: Drawn<'_>) -> String {
    page(run.run.plan(), Some(run))
}

fn page(plan: &Plan, run: Option<Drawn<'_>>) -> String {
    let (steps, phases) =
        (plural(plan.steps.len() as u64, "step"), plural(plan.phases.len() as u64, "phase"));
    let mut head = Line::of(Tone::Bold, &plan.template.name);
    head.fact(Tone::Plain, &format!("{steps} in {phases}"));
    if let Some(Drawn { run, driven, .. }) = run {
        let progress = Progress::of(run);
        head.fact(Tone::Plain, wire::word(run, driven));
        head.fact(Tone::Plain, &format!("{}/{}", progress.completed, progress.total));
    }
    let mut lines = vec![head, Line::default()];
    let order = label::phases_in_order(plan);
    for (at, &phase) in order.iter().enumerate() {
        if at > 0 {
            lines.extend(between(plan, order[at - 1], phase));
        }
        lines.extend(phase_lines(plan, phase, run));
    }
    lines.push(Line::default());
    lines.extend(batches(plan));
    lines.extend(critical_path(plan));
    let style = Style { color: false, width: WIDTH };
    lines.iter().map(|line| line.render(style) + "\n").collect()
}

/// An arrow, if the second phase waits for the first.
fn between(plan: &Plan, before: u32, after: u32) -> Vec<Line> {
    if plan.phases[after as usize].dependencies.contains(&before) {
        ["  │", "  ▼"].map(|text| Line::of(Tone::Dim, text)).into()
    } else {
        vec![Line::default()]
    }
}

fn phase_lines(plan: &Plan, number: u32, run: Option<Drawn<'_>>) -> Vec<Line> {
    let spec = &plan.phases[number as usize];
    let mut head = Line::of(Tone::Bold, &plan.phase(number).id);
    let before: Vec<&str> = spec.dependencies.iter().map(|&p| plan.phase(p).id.as_str()).collect();
    if !before.is_empty() {
        head.push(Tone::Dim, &format!("  after {}", before.join(", ")));
    }
    let policy = label::policy_text(plan, number);
    if !policy.is_empty() {
        head.push(Tone::Dim, &format!("  ({policy})"));
    }
    let widest = spec.steps.clone().map(|step| plan.operation(step).id.len()).max().unwrap_or(0).min(30);
    let mut lines = vec![head];
    for step in spec.steps.clone() {
        let last = step + 1 == spec.steps.end;
        let mut line = Line::of(Tone::Dim, if last { "  └─ " } else { "  ├─ " });
        if let Some(run) = run {
            let (tone, sign) = sign(Class::of(run, label::step_of(run.run, step)));
            line.push(tone, &format!("{sign} "));
        }
        line.push(Tone::Plain, &format!("{:widest$}", plan.operation(step).id));
        line.push(Tone::Dim, &format!("  {}", label::kind_text(plan, step)));
        line.push(Tone::Dim, &needs_text(plan, step));
        if let Some(run) = run {
            line.append(outcome(run, label::step_of(run.run, step)));
        }
        lines.push(line);
        lines.extend(run.into_iter().flat_map(|run| call_lines(run, label::step_of(run.run, step))));
    }
    lines
}

/// What a script has called, in the order in which it did; equal names are one line.
fn call_lines(run: Drawn<'_>, script: StepId) -> Vec<Line> {
    let (groups, left_out) = label::call_groups(run, script, CALL_LINES);
    let mut lines = Vec::new();
    for group in groups {
        let (tone, sign) = sign(Class::of(run, group.shown));
        let mut line = Line::of(Tone::Dim, "       ").with(tone, &format!("{sign} "));
        line.push(Tone::Plain, &group.name);
        line.push(Tone::Dim, &format!("  {}", group.kind_text(run.run)));
        line.append(outcome(run, group.shown));
        lines.push(line);
    }
    if left_out > 0 {
        lines.push(Line::of(Tone::Dim, &format!("       ... and {left_out} more (sage status)")));
    }
    lines
}

/// The steps that it names itself; those of its own phase without the phase.
fn needs_text(plan: &Plan, number: u32) -> String {
    let step = &plan.steps[number as usize];
    let name = |&need: &u32| {
        let other = &plan.steps[need as usize];
        if other.phase == step.phase { plan.operation(need).id.clone() } else { other.path.to_string() }
    };
    let names: Vec<String> = step.needs.iter().map(name).collect();
    if names.is_empty() { String::new() } else { format!("  needs {}", names.join(", ")) }
}

fn sign(class: Class) -> (Tone, &'static str) {
    match class {
        Class::Pending => (Tone::Dim, "○"),
        Class::Waiting => (Tone::Dim, "◌"),
        Class::Running => (Tone::Busy, "▶"),
        Class::Interrupted => (Tone::Warn, "◌"),
        Class::Asking => (Tone::Warn, "?"),
        Class::Succeeded => (Tone::Good, "✓"),
        Class::Degraded => (Tone::Warn, "!"),
        Class::Failed => (Tone::Bad, "✗"),
        Class::Left => (Tone::Dim, "-"),
    }
}

fn outcome(drawn: Drawn<'_>, id: StepId) -> Line {
    let run = drawn.run;
    let (step, items) = (run.step(id), run.item_steps(id));
    let mut facts = Line::default();
    if !items.is_empty() {
        let count = |wanted: &dyn Fn(&State) -> bool| {
            items.iter().filter(|&&item| wanted(run.shown_state(item))).count()
        };
        facts.fact(Tone::Plain, &format!("{}/{}", count(&State::ok), items.len()));
        let failed = count(&|state| matches!(state, State::Failed));
        if failed > 0 {
            facts.fact(Tone::Bad, &format!("{failed} failed"));
        }
    }
    match (&step.failure, Class::of(drawn, id)) {
        (Some(failure), Class::Failed) => facts.fact(Tone::Bad, &clean(first_line(&failure.message))),
        (_, Class::Succeeded | Class::Degraded) if run.is_reused(id) => facts.fact(Tone::Dim, "reused"),
        (_, Class::Succeeded | Class::Degraded) if step.taken().is_some() => facts.fact(Tone::Dim, "cached"),
        (_, Class::Succeeded | Class::Degraded) => {
            facts.fact(Tone::Good, &time_text(run.step_ms(id, drawn.clock_ms)));
        }
        _ => facts.fact(Tone::Plain, wire::step_word(run, id, drawn.driven)),
    }
    let mut line = Line::of(Tone::Plain, "  ");
    line.append(facts);
    line
}

/// Which steps can run at the same time if all take equally long.
fn batches(plan: &Plan) -> Vec<Line> {
    let batches = plan.batches();
    let digits = batches.len().to_string().len();
    let mut lines = vec![Line::of(Tone::Bold, "batches")];
    for (at, batch) in batches.iter().enumerate() {
        let paths: Vec<&str> = batch.iter().map(|&step| &*plan.steps[step as usize].path).collect();
        let mut wrapped = wrap(&paths, "  ", WIDTH - digits - 4).into_iter();
        let mut shown = 0;
        for row in 0..BATCH_LINES {
            let Some((text, count)) = wrapped.next() else { break };
            shown += count;
            let number = if row == 0 { format!("{:>digits$}", at + 1) } else { " ".repeat(digits) };
            lines.push(Line::of(Tone::Dim, &format!("  {number}  ")).with(Tone::Plain, &text));
        }
        if shown < paths.len() {
            let more = format!("{}… {} more", " ".repeat(digits + 4), paths.len() - shown);
            lines.push(Line::of(Tone::Dim, &more));
        }
    }
    lines
}

fn critical_path(plan: &Plan) -> Vec<Line> {
    let width = plan.batches().iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = vec![Line::default()];
    lines.push(Line::of(Tone::Plain, &format!("depth {} · width {width} · longest path:", plan.depth)));
    let path = plan.critical_path();
    let names: Vec<String> = path
        .iter()
        .enumerate()
        .map(|(at, &step)| format!("{}{}", if at == 0 { "" } else { "→ " }, plan.steps[step as usize].path))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lines.extend(
        wrap(&names, " ", WIDTH - 2).into_iter().map(|(text, _)| Line::of(Tone::Plain, &format!("  {text}"))),
    );
    lines
}

/// Words in lines of at most `width` columns, each with its number of words.
fn wrap(words: &[&str], gap: &str, width: usize) -> Vec<(String, usize)> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some((line, count)) if line.len() + gap.len() + word.len() <= width => {
                line.push_str(gap);
                line.push_str(word);
                *count += 1;
            }
            _ => lines.push((word.to_string(), 1)),
        }
    }
    lines
}
