//! One picture of the run: a header and the rows that fit below it.

use sage_core::run::{Run, Status};
use sage_core::wire::{self, Progress};

use super::allowance_lines;
use super::doing::Doing;
use super::estimate;
use super::rows::{self, Left, Rank, Row};
use super::text::{Line, Style, Tone, clock_text, cost_text, shorten, time_text};
use super::why::{left_text, pause_text};

/// Names are aligned up to here; longer ones push their details to the right.
const NAME_COLUMNS: usize = 32;
/// Less of a title than this says nothing.
const TITLE_COLUMNS: usize = 8;
/// Less room than this says nothing about what a step does.
const DOING_COLUMNS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

/// What a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The live tree while its run is owned.
    Live,
    /// The live tree's last picture. If the run stands still it shrinks to its phases: the summary follows.
    Last,
    /// All that is known now. A run without an owner stands still until it is resumed.
    Status { owned: bool },
}

impl Purpose {
    pub fn is_owned(self) -> bool {
        self != Purpose::Status { owned: false }
    }
}

/// The run as lines, none wider and all together not higher than `size`.
pub(crate) fn frame(run: &Run, now_ms: u64, size: Size, purpose: Purpose, doing: &mut Doing) -> Vec<Line> {
    let dead = run.status == Status::Running && !purpose.is_owned();
    // What stands still gets no older.
    let clock_ms = run.clock_ms(now_ms, purpose.is_owned());
    let now_ms = if dead { clock_ms } else { now_ms };
    let waits = matches!(run.status, Status::Paused { until: Some(_), .. });
    let last = match purpose {
        // With a known time its owner stays and goes on by itself.
        Purpose::Live => run.status != Status::Running && !waits,
        Purpose::Last => run.status != Status::Running,
        Purpose::Status { .. } => false,
    };
    let mut lines = vec![header(run, now_ms, size.width, purpose, last)];
    let whole = matches!(purpose, Purpose::Status { .. });
    let (mut rows, others) = rows::rows(run, (now_ms, clock_ms), size, !dead, whole);
    if last {
        rows.retain(|row| row.indent == 0);
    }
    let (shown, more) = fit(rows, others, size.height.saturating_sub(1));
    let column = shown.iter().filter(|row| !row.details.is_empty()).map(Row::name_end).max();
    let column = column.unwrap_or(0).min(NAME_COLUMNS);
    for row in shown {
        let does = row.works.and_then(|id| doing.now(run, id));
        lines.push(row.line(column, does.as_deref(), size.width));
    }
    doing.painted();
    lines.extend(more);
    // Limits that come near are notices: the live tree has them above itself, `status` below.
    if whole {
        lines.extend(allowance_lines::calm(run));
    }
    lines.truncate(size.height.max(1));
    lines
}

/// The same as text.
pub(crate) fn frame_text(
    run: &Run,
    now_ms: u64,
    size: Size,
    color: bool,
    owned: bool,
    doing: &mut Doing,
) -> Vec<String> {
    let style = Style { color, width: size.width };
    let lines = frame(run, now_ms, size, Purpose::Status { owned }, doing);
    lines.iter().map(|line| line.render(style)).collect()
}

impl Row {
    fn head(&self) -> Line {
        let mut line = Line::of(Tone::Plain, &"  ".repeat(self.indent));
        line.push(self.sign.0, self.sign.1);
        line.push(Tone::Plain, " ");
        line.push(self.name.0, &self.name.1);
        line
    }

    fn name_end(&self) -> usize {
        self.head().width()
    }

    /// `does` comes last and is cut first.
    fn line(self, column: usize, does: Option<&str>, width: usize) -> Line {
        let mut line = self.head();
        if !self.details.is_empty() {
            line.pad_to(column);
            line.push(Tone::Plain, "  ");
            line.append(self.details);
        }
        if let Some(does) = does.filter(|_| line.width() + DOING_COLUMNS <= width) {
            line.fact(Tone::Dim, does);
        }
        line
    }
}

/// The rows that matter most, in their order, and a line about the others.
fn fit(mut rows: Vec<Row>, others: Vec<(Left, u32)>, height: usize) -> (Vec<Row>, Option<Line>) {
    if rows.len() <= height {
        return (rows, None);
    }
    let room = height.saturating_sub(1);
    let limits = Limits::of(room);
    let mut taken = Taken::default();
    // Of what is done the latest matters most.
    let place = |at: usize, rank| if rank == Rank::PhaseDone { rows.len() - at } else { at };
    let keys: Vec<(bool, Rank, usize)> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| (taken.beyond(row, &limits), row.rank, place(at, row.rank)))
        .collect();
    let mut order: Vec<usize> = (0..rows.len()).filter(|&at| keys[at].1 < Rank::Done).collect();
    order.sort_by_key(|&at| keys[at]);
    order.retain(|&at| !(keys[at].0 && keys[at].1 >= Rank::Waiting));
    let mut keep = vec![false; rows.len()];
    order.iter().take(room).for_each(|&at| keep[at] = true);
    let left_out = rows.iter().zip(&keep).filter(|(_, kept)| !**kept).filter_map(|(row, _)| row.stands_for);
    let more = more_line(left_out.chain(others));
    let mut keep = keep.into_iter();
    rows.retain(|_| keep.next().unwrap_or(false));
    (rows, Some(more))
}

/// How many rows of a rank come before the others: neither questions nor failures may fill the screen, and of
/// what waits only the first is worth a look.
struct Limits {
    trouble: usize,
    waiting: usize,
}

impl Limits {
    fn of(room: usize) -> Limits {
        Limits { trouble: (room / 3).max(1), waiting: (room / 5).min(5) }
    }
}

#[derive(Default)]
struct Taken {
    asking: usize,
    failed: usize,
    waiting: usize,
    last_beyond: bool,
}

impl Taken {
    fn beyond(&mut self, row: &Row, limits: &Limits) -> bool {
        let (taken, limit) = match row.rank {
            _ if row.goes_on => return self.last_beyond,
            // A phase stands over its steps, however many they are.
            _ if row.stands_for.is_none() => return false,
            Rank::Asking => (&mut self.asking, limits.trouble),
            Rank::Failed => (&mut self.failed, limits.trouble),
            Rank::Waiting | Rank::Pending => (&mut self.waiting, limits.waiting),
            _ => return false,
        };
        *taken += 1;
        self.last_beyond = *taken > limit;
        self.last_beyond
    }
}

/// `… 371 more (12 waiting for a slot, 359 pending)`
fn more_line(all: impl Iterator<Item = (Left, u32)>) -> Line {
    let mut left_out: Vec<(Left, u32)> = Vec::new();
    for (left, count) in all {
        match left_out.iter_mut().find(|(known, _)| *known == left) {
            Some((_, sum)) => *sum += count,
            None => left_out.push((left, count)),
        }
    }
    left_out.sort_unstable();
    let total: u32 = left_out.iter().map(|(_, count)| count).sum();
    let parts: Vec<String> =
        left_out.iter().map(|(left, count)| format!("{count} {}", left.text())).collect();
    Line::of(Tone::Dim, &format!("… {total} more ({})", parts.join(", ")))
}

fn header(run: &Run, now_ms: u64, width: usize, purpose: Purpose, last: bool) -> Line {
    let title_width = Line::of(Tone::Bold, &run.title).width();
    let mut facts = header_facts(run, now_ms, purpose, last);
    // Whatever is least needed goes first when it is narrow.
    let cost = cost_fact(run).filter(|_| !last);
    let needed = |cost: &Line| title_width.min(TITLE_COLUMNS * 3) + 3 + facts.width() + 3 + cost.width();
    if let Some(cost) = cost.filter(|cost| needed(cost) <= width) {
        facts.push(Tone::Dim, " · ");
        facts.append(cost);
    }
    let template = &run.plan().template.name;
    let id = short_id(&run.id);
    let names = [vec![template.as_str(), &id], vec![template.as_str()], vec![]];
    let room = |names: &[&str]| {
        let used: usize = names.iter().map(|name| name.chars().count() + 3).sum();
        width.saturating_sub(used + facts.width() + 3)
    };
    let fits = |names: &&Vec<&str>| room(names) >= title_width.min(TITLE_COLUMNS * 3);
    let names = names.iter().find(fits).unwrap_or(&names[2]);
    let mut line = Line::default();
    let title = super::text::clean(&run.title);
    line.fact(Tone::Bold, &shorten(&title, room(names).max(TITLE_COLUMNS)));
    names.iter().for_each(|name| line.fact(Tone::Dim, name));
    line.push(Tone::Dim, " · ");
    line.append(facts);
    line
}

/// What it has cost so far.
fn cost_fact(run: &Run) -> Option<Line> {
    let usage = run.usage();
    let cost = usage.cost_usd?;
    Some(Line::of(Tone::Plain, &cost_text(cost, usage.cost_estimated)))
}

/// How far it is; at the `last` the summary says how it went.
fn header_facts(run: &Run, now_ms: u64, purpose: Purpose, last: bool) -> Line {
    let owned = purpose.is_owned();
    let mut facts = Line::default();
    let progress = Progress::of(run);
    let elapsed = run.elapsed_at(run.clock_ms(now_ms, owned));
    match run.status {
        _ if last => {}
        Status::Running if owned => facts.fact(Tone::Plain, &clock_text(elapsed)),
        // When it was interrupted is not known: the journal ends with the last thing that happened.
        Status::Running => facts.fact(Tone::Warn, "interrupted: no process owns it"),
        Status::Paused { until: Some(until), .. } if owned => {
            let left = left_text(until, now_ms);
            facts.fact(Tone::Warn, &format!("paused, {left} left: {}", pause_text(run)));
        }
        Status::Paused { until: Some(until), .. } => {
            facts.fact(Tone::Warn, &format!("paused: {}, until {}", pause_text(run), wire::rfc3339(until)));
        }
        Status::Paused { .. } => facts.fact(Tone::Warn, &format!("paused after {}", time_text(elapsed))),
        _ => {
            let verdict = wire::verdict_of(run).map_or("ended", |verdict| verdict.name());
            facts.fact(verdict_tone(verdict), &format!("{verdict} in {}", time_text(elapsed)));
        }
    }
    // Code that has called nothing says nothing of how far it is.
    if progress.total > 0 {
        facts.fact(Tone::Plain, &format!("{}/{}", progress.completed, progress.total));
        facts.fact(Tone::Plain, &format!("{}%", progress.percentage));
    }
    if let Some(left) = estimate::left_text(run, now_ms).filter(|_| owned) {
        facts.fact(Tone::Dim, &left);
    }
    facts
}

pub(crate) fn verdict_tone(verdict: &str) -> Tone {
    match verdict {
        "succeeded" => Tone::Good,
        "failed" => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// The end of a run's id: its beginning is only the time.
fn short_id(id: &str) -> String {
    const LAST: usize = 6;
    let letters = id.chars().count();
    if letters <= LAST {
        return id.to_string();
    }
    format!("…{}", id.chars().skip(letters - LAST).collect::<String>())
}
