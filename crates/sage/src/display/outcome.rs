//! What a run leaves behind: files that its steps wrote, and tasks that they left open.

use std::collections::BTreeSet;

use sage_core::run::{Output, Run, Status};
use sage_core::verdict::Verdict;
use sage_core::wire::left_open;

use super::text::{Line, Tone, plural};

/// Files and steps that are listed; the rest is counted.
const LISTED: usize = 5;

pub(super) fn lines(run: &Run) -> Vec<Line> {
    let mut page = file_lines(&written(run));
    page.extend(open_lines(run));
    page
}

/// Files that `output` named, in the order of the steps.
pub(super) fn written(run: &Run) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let leaves = run.live_steps().filter(|step| step.children.is_none());
    let files = leaves.flat_map(|step| match step.output.as_deref() {
        Some(Output::Leaf { artifacts, .. }) => artifacts.as_slice(),
        _ => &[],
    });
    files.map(String::as_str).filter(|file| seen.insert(*file)).collect()
}

fn file_lines(files: &[&str]) -> Vec<Line> {
    let line = |(at, file): (usize, &&str)| {
        Line::of(Tone::Dim, if at == 0 { "  wrote " } else { "        " }).with(Tone::Plain, file)
    };
    let mut page: Vec<Line> = files.iter().take(LISTED).enumerate().map(line).collect();
    if files.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("        … and {} more", files.len() - LISTED)));
    }
    page
}

/// A run that succeeded may have left everything to be done.
fn open_lines(run: &Run) -> Vec<Line> {
    if !matches!(run.status, Status::Finished(Verdict::Succeeded | Verdict::Degraded)) {
        return Vec::new();
    }
    let left = left_open(run);
    let line = |it: &sage_core::wire::LeftOpen| {
        let tasks = plural(it.tasks as u64, "task");
        let changed = if it.changed { "" } else { "; it changed no file" };
        Line::of(Tone::Warn, "  ! ").with(Tone::Plain, &format!("{} left {tasks} open{changed}", it.path))
    };
    let mut page: Vec<Line> = left.iter().take(LISTED).map(line).collect();
    if left.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("    … and {} more steps", left.len() - LISTED)));
    }
    page
}
