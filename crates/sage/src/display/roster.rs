//! The roster as text: a line for each open run, and below it one for each step that is at work.

use sage_core::roster::{RosterRow, Working};

use super::terminal::{self, Screen};
use super::text::{Line, Style, Tone, clock_text, cost_text, count_text};
use crate::command_line::sage;

/// Steps shown below a run; the rest is counted.
const LISTED: usize = 8;

pub fn roster_text(rows: &[RosterRow], style: Style) -> String {
    lines(rows).iter().map(|line| line.render(style) + "\n").collect()
}

/// The roster painted over itself, where stderr is a terminal.
#[derive(Debug)]
pub struct RosterScreen {
    screen: Screen<std::io::Stderr>,
    color: bool,
}

impl RosterScreen {
    /// None if there is no terminal that could do it.
    pub fn new(color: bool) -> Option<RosterScreen> {
        terminal::can_paint().then(|| RosterScreen { screen: Screen::new(std::io::stderr()), color })
    }

    pub fn paint(&mut self, rows: &[RosterRow]) -> std::io::Result<()> {
        let size = terminal::size(None);
        let mut lines = lines(rows);
        // The last row is the cursor's.
        lines.truncate(size.height.saturating_sub(1).max(1));
        self.screen.paint(&[], &lines, self.color, size.width)
    }
}

fn lines(rows: &[RosterRow]) -> Vec<Line> {
    let width = rows.iter().map(|row| row.feature.len()).max().unwrap_or(0);
    let mut page = Vec::new();
    for row in rows {
        page.push(run_line(row, width));
        let widest = row.working.iter().take(LISTED).map(|step| step.path.len()).max().unwrap_or(0);
        page.extend(row.working.iter().take(LISTED).map(|step| step_line(step, widest, row.abandoned)));
        if row.working.len() > LISTED {
            page.push(Line::of(Tone::Dim, &format!("  … {} more at work", row.working.len() - LISTED)));
        }
    }
    page
}

fn run_line(row: &RosterRow, width: usize) -> Line {
    let mut line = Line::of(Tone::Bold, &row.feature);
    line.pad_to(width + 2);
    let tone = if row.word() == "running" { Tone::Busy } else { Tone::Warn };
    line.push(tone, row.word());
    let owner = match (row.owner_kind.as_deref(), row.owner) {
        (Some(kind), Some(pid)) => format!("{kind} (process {pid})"),
        (Some(kind), None) => format!("{kind}, no process"),
        _ => "no process owns it".into(),
    };
    line.fact(if row.owner.is_some() { Tone::Plain } else { Tone::Dim }, &owner);
    line.fact(Tone::Plain, &format!("{}/{}", row.progress.completed, row.progress.total));
    line.fact(Tone::Plain, &clock_text(row.elapsed_ms));
    if row.tokens > 0 {
        line.fact(Tone::Plain, &format!("{} tokens", count_text(row.tokens)));
    }
    if let Some(cost) = row.cost_usd {
        line.fact(Tone::Plain, &cost_text(cost, row.cost_estimated));
    }
    if let Some(until) = &row.until {
        line.fact(Tone::Warn, &format!("until {until}"));
    }
    match row.asking.as_slice() {
        [] => {}
        [step] => line.fact(Tone::Warn, &sage("approve").arg(&row.feature).arg(step).to_string()),
        many => line.fact(Tone::Warn, &format!("{} wait for a person", many.len())),
    }
    line
}

fn step_line(step: &Working, widest: usize, abandoned: bool) -> Line {
    let mut line = Line::of(Tone::Plain, "  ").with(Tone::Plain, &step.path);
    line.pad_to(2 + widest + 2);
    line.push(Tone::Dim, &step.agent);
    if abandoned {
        line.fact(Tone::Warn, "interrupted");
        return line;
    }
    line.fact(Tone::Plain, &clock_text(step.elapsed_ms));
    if step.attempt > 1 {
        line.fact(Tone::Warn, &format!("attempt {}", step.attempt));
    }
    line.fact(Tone::Dim, &format!("progress {} ago", clock_text(step.idle_ms)));
    if step.tokens > 0 {
        line.fact(Tone::Plain, &format!("{} tokens", count_text(step.tokens)));
    }
    if let Some(cost) = step.cost_usd {
        line.fact(Tone::Plain, &cost_text(cost, step.cost_estimated));
    }
    if let Some(activity) = &step.activity {
        line.fact(Tone::Dim, activity);
    }
    line
}

#[cfg(test)]
mod tests {
    use sage_core::wire::Progress;

    use super::*;

    fn row(feature: &str) -> RosterRow {
        RosterRow {
            feature: feature.into(),
            title: feature.into(),
            workflow_id: "run_1".into(),
            template: "t".into(),
            status: "running".into(),
            pause_reason: None,
            until: None,
            owner_kind: Some("background".into()),
            owner: Some(7),
            abandoned: false,
            progress: Progress { completed: 3, total: 12, percentage: 25 },
            started_at: String::new(),
            last_updated_at: String::new(),
            elapsed_ms: 125_000,
            tokens: 14_200,
            cost_usd: None,
            cost_estimated: false,
            working: Vec::new(),
            asking: Vec::new(),
            asks: Vec::new(),
        }
    }

    // covers: S7
    #[test]
    fn who_does_what() {
        let working = |n: usize| Working {
            path: format!("research/{n}"),
            agent: "claude".into(),
            attempt: 1 + (n as u32) % 2,
            elapsed_ms: 45_000,
            idle_ms: 3_000,
            activity: (n == 0).then(|| "Bash cargo test".into()),
            tokens: 0,
            cost_usd: None,
            cost_estimated: false,
        };
        let busy = RosterRow { working: (0..9).map(working).collect(), ..row("payments") };
        let asking = RosterRow {
            status: "paused".into(),
            owner: None,
            tokens: 0,
            asking: vec!["gate/ok[1]".into()],
            ..row("x")
        };
        let left = RosterRow {
            owner_kind: None,
            owner: None,
            abandoned: true,
            tokens: 0,
            working: vec![working(0)],
            ..row("left")
        };
        let text = roster_text(&[busy, asking, left], Style::PLAIN);
        let shown: Vec<&str> = text.lines().collect();
        assert_eq!(shown[0], "payments  running · background (process 7) · 3/12 · 2m 05s · 14.2k tokens");
        assert_eq!(shown[1], "  research/0  claude · 45s · progress 3s ago · Bash cargo test");
        assert_eq!(shown[2], "  research/1  claude · 45s · attempt 2 · progress 3s ago");
        assert_eq!(shown[9], "  … 1 more at work");
        assert_eq!(
            shown[10],
            "x         paused · background, no process · 3/12 · 2m 05s · sage approve x 'gate/ok[1]'"
        );
        assert_eq!(shown[11], "left      interrupted · no process owns it · 3/12 · 2m 05s");
        assert_eq!(shown[12], "  research/0  claude · interrupted");
    }
}
