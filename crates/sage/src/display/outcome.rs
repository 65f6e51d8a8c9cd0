//! What a run leaves behind: files that its steps wrote, and tasks that they left open.

use sage_core::run::{Run, Status, Work};
use sage_core::verdict::Verdict;
use sage_core::wire::{notices, outputs};

use super::text::{Line, Tone, plural};

/// Files and steps that are listed; the rest is counted.
const LISTED: usize = 5;

pub(super) fn lines(run: &Run) -> Vec<Line> {
    let mut page = file_lines(&outputs(run));
    page.extend(aside_lines(run));
    page.extend(open_lines(run));
    page
}

fn file_lines(files: &[String]) -> Vec<Line> {
    let line = |(at, file): (usize, &String)| {
        Line::of(Tone::Dim, if at == 0 { "  wrote " } else { "        " }).with(Tone::Plain, file)
    };
    let mut page: Vec<Line> = files.iter().take(LISTED).enumerate().map(line).collect();
    if files.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("        … and {} more", files.len() - LISTED)));
    }
    page
}

/// Files that people must look at: their own text is still at the place of the template.
fn aside_lines(run: &Run) -> Vec<Line> {
    let line = |text: &String| Line::of(Tone::Warn, "  ! ").with(Tone::Plain, text);
    let notices = notices(run);
    let mut page: Vec<Line> = notices.iter().take(LISTED).map(line).collect();
    if notices.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("    … and {} more", notices.len() - LISTED)));
    }
    page
}

/// A run that succeeded may have left everything to be done.
fn open_lines(run: &Run) -> Vec<Line> {
    if !matches!(run.status, Status::Finished(Verdict::Succeeded | Verdict::Degraded)) {
        return Vec::new();
    }
    let short =
        |work: &Work| work.open > 0 || work.tests_failed || (work.implements && work.changed == Some(false));
    let left: Vec<Work> = run.work().into_iter().filter(short).collect();
    let line = |work: &Work| {
        let mut facts = Vec::new();
        if work.open > 0 {
            facts.push(format!("left {} open", plural(work.open as u64, "task")));
        }
        facts.extend((work.changed == Some(false)).then(|| "changed no file".to_string()));
        facts.extend(work.tests_failed.then(|| "reports failing tests".to_string()));
        Line::of(Tone::Warn, "  ! ").with(Tone::Plain, &format!("{} {}", work.path, facts.join(", ")))
    };
    let mut page: Vec<Line> = left.iter().take(LISTED).map(line).collect();
    if left.len() > LISTED {
        page.push(Line::of(Tone::Dim, &format!("    … and {} more steps", left.len() - LISTED)));
    }
    page
}
