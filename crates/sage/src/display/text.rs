//! Text for people: cleaned of what a terminal would obey, measured in columns, cut, coloured.
//!
//! Everything that is shown goes through `Line::push`, so nothing that a step, an agent or a tool wrote can
//! move the cursor, change a colour or hide itself.

use std::borrow::Cow;

use sage_core::diagnostic::{is_invisible, printable};
use sage_core::slug::is_ignorable;
use sage_core::text::without_escapes;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks that pile up on one letter; more than this is no language.
const MAX_MARKS: usize = 2;

/// How lines are made: with colours or without, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Columns; lines are cut there.
    pub width: usize,
}

impl Style {
    /// No colours, nothing cut.
    pub const PLAIN: Style = Style { color: false, width: usize::MAX };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
    Busy,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Bold => "\x1b[1m",
            Tone::Dim => "\x1b[2m",
            Tone::Good => "\x1b[32m",
            Tone::Bad => "\x1b[31m",
            Tone::Warn => "\x1b[33m",
            Tone::Busy => "\x1b[36m",
        }
    }
}

/// One line of output: pieces of clean text, each with its tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<(Tone, String)>,
}

impl Line {
    pub fn of(tone: Tone, text: &str) -> Line {
        Line::default().with(tone, text)
    }

    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> Line {
        self.push(tone, text);
        self
    }

    pub fn push(&mut self, tone: Tone, text: &str) {
        let text = clean(text);
        if !text.is_empty() {
            self.spans.push((tone, text));
        }
    }

    /// Adds another fact, with a dot between it and the one before.
    pub fn fact(&mut self, tone: Tone, text: &str) {
        if !self.is_empty() {
            self.push(Tone::Dim, " · ");
        }
        self.push(tone, text);
    }

    pub fn append(&mut self, other: Line) {
        self.spans.extend(other.spans);
    }

    #[must_use]
    pub fn joined(mut self, other: Line) -> Line {
        self.append(other);
        self
    }

    pub fn pad_to(&mut self, columns: usize) {
        let gap = columns.saturating_sub(self.width());
        self.push(Tone::Plain, &" ".repeat(gap));
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.width()).sum()
    }

    /// The line as it is written: at most `style.width` columns.
    pub fn render(&self, style: Style) -> String {
        let mut left = style.width;
        let mut out = String::new();
        let whole = self.width() <= style.width;
        for (tone, text) in &self.spans {
            let last = !whole && text.width() >= left;
            let shown = if last { cut(text, left, true) } else { text.clone() };
            left = left.saturating_sub(shown.width());
            let code = if style.color { tone.code() } else { "" };
            out.push_str(code);
            out.push_str(&shown);
            out.push_str(if code.is_empty() { "" } else { "\x1b[0m" });
            if last {
                break;
            }
        }
        out
    }
}

/// As much of `text` as fits in `columns`, with `…` at the end if something is missing or `more` follows.
fn cut(text: &str, columns: usize, more: bool) -> String {
    if !more && text.width() <= columns {
        return text.to_string();
    }
    if columns == 0 {
        return String::new();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        // The text's width and not the letter's: some letters change the width of the one before.
        if kept.width() > columns - 1 {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

/// `text` cut to `columns`.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    cut(text, columns, false)
}

/// Text without anything that a terminal would obey.
pub(crate) fn clean(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_string();
    }
    let mut marks = 0;
    let seen = |c: &char| {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MAX_MARKS
    };
    printable(&without_escapes(text)).chars().filter(seen).collect()
}

/// A line of text in which everything is seen: what a terminal would obey or hide is escaped as in Rust.
pub(crate) fn visible(text: &str) -> String {
    let blank = |c: char| c != ' ' && c.is_whitespace();
    let hidden = |c: char| blank(c) || is_invisible(c) || is_ignorable(c);
    let escaped = |c: char| if hidden(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// A name that a project chose: quoted unless it is plain, so that it cannot look like more than a name.
pub(crate) fn named(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/@:+[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("\"{}\"", visible(text).replace('"', "\\\""))
}

/// As `clean`, for text of several lines: line breaks and tabs stay.
pub(crate) fn clean_lines(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || matches!(byte, b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        for (number, part) in line.strip_suffix('\r').unwrap_or(line).split('\t').enumerate() {
            if number > 0 {
                out.push('\t');
            }
            out.push_str(&clean(part));
        }
    }
    Cow::Owned(out)
}

/// `text` in lines of at most `columns`, broken at spaces; a longer word stays whole and is cut when shown.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// The first line that says something.
pub(crate) fn first_line(text: &str) -> &str {
    lines(text).next().unwrap_or_default()
}

/// The lines that say something.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty())
}

/// A time that is over: `0.4s`, `12.3s`, `2m 05s`, `1h 12m`.
pub(crate) fn time_text(ms: u64) -> String {
    // Rounding must not give `60.0s`.
    if ms < 59_950 { format!("{:.1}s", ms as f64 / 1_000.0) } else { clock_text(ms) }
}

/// A time that goes on, without tenths: `0s`, `12s`, `2m 05s`, `1h 12m`, `3d 4h`.
pub(crate) fn clock_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match () {
        () if minutes == 0 => format!("{seconds}s"),
        () if hours == 0 => format!("{minutes}m {:02}s", seconds % 60),
        () if days == 0 => format!("{hours}h {:02}m", minutes % 60),
        () => format!("{days}d {}h", hours % 24),
    }
}

/// How long ago, as people say it: `3 days`, `1 hour`, `12 minutes`, `a moment`.
pub(crate) fn ago_text(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => "a moment".into(),
        1..60 => plural(minutes, "minute"),
        60..1_440 => plural(minutes / 60, "hour"),
        _ => plural(minutes / 1_440, "day"),
    }
}

/// `512 B`, `3.4 KB`, `1.2 MB`.
pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// `950`, `14.2k`, `1.3M`.
pub(crate) fn count_text(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..999_950 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// `$0.42`, `~$0.42` if it is an estimate; below a cent with four decimals.
pub(crate) fn cost_text(usd: f64, estimated: bool) -> String {
    let about = if estimated { "~" } else { "" };
    // In whole millionths, as budgets are rounded: two views of one figure must not differ by a cent.
    let micros = (usd.max(0.0) * 1e6).round() as u64;
    let cents = micros / 10_000 + u64::from(micros % 10_000 >= 5_000);
    match micros {
        0 => "$0.00".into(),
        1..50 => format!("{about}<$0.0001"),
        50..9_950 => format!("{about}$0.{:04}", (micros + 50) / 100),
        _ => format!("{about}${}.{:02}", cents / 100, cents % 100),
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// An argument of a command that is shown to be typed: quoted where a shell would read it otherwise.
pub(crate) fn argument(text: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':' | '@' | '+' | ',' | '=')
    };
    if !text.is_empty() && !text.starts_with('=') && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(width: usize) -> Style {
        Style { color: false, width }
    }

    // covers: R17
    #[test]
    fn nothing_a_terminal_would_obey_is_left() {
        let table = [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07shown", "shown"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPdevice\x1b\\x", "x"),
            ("a\x1b", "a\u{FFFD}"),
            ("a\x07b\x08c", "a\u{FFFD}b\u{FFFD}c"),
            ("tab\tnew\nline", "tab new\u{FFFD}line"),
            ("\u{9b}31m", "\u{FFFD}31m"),
            ("abc\u{202E}def", "abc\u{FFFD}def"),
            ("e\u{301}\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}"),
            ("\x1b[", ""),
        ];
        for (text, expected) in table {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    // covers: R8
    #[test]
    fn lines_are_cut_in_columns() {
        let line = |text: &str| Line::of(Tone::Plain, text);
        assert_eq!(line("12345").render(plain(5)), "12345");
        assert_eq!(line("123456").render(plain(5)), "1234…");
        assert_eq!(line("日本語テキスト").render(plain(7)), "日本語…");
        assert_eq!(line("日本語テキスト").render(plain(6)), "日本…");
        assert_eq!(line("🚀🚀🚀").render(plain(4)), "🚀…");
        assert_eq!(line("x").render(plain(0)), "");
        assert_eq!(line("abc").with(Tone::Bad, "def").render(plain(3)), "ab…");
        assert_eq!(line("abc").with(Tone::Bad, "def").render(plain(4)), "abc…");
        for width in 0..30 {
            let mixed = line("שלום e\u{301}🏳️‍🌈").with(Tone::Bad, "日本 text").with(Tone::Dim, "👩‍👩‍👧 end");
            let shown = mixed.render(plain(width));
            assert!(shown.width() <= width, "{width}: {shown}");
        }
    }

    #[test]
    fn colours_are_closed() {
        let line = Line::of(Tone::Good, "ok").with(Tone::Plain, " then");
        assert_eq!(line.render(Style { color: true, width: 80 }), "\x1b[32mok\x1b[0m then");
        assert_eq!(line.render(Style { color: true, width: 4 }), "\x1b[32mok\x1b[0m …");
    }

    #[test]
    fn times_and_counts_are_short() {
        let times = [0, 49, 999, 12_340, 59_949, 59_950, 60_000, 125_000, 4_320_000, 273_600_000];
        let shown: Vec<String> = times.into_iter().map(time_text).collect();
        assert_eq!(
            shown.join(" | "),
            "0.0s | 0.0s | 1.0s | 12.3s | 59.9s | 59s | 1m 00s | 2m 05s | 1h 12m | 3d 4h"
        );
        let counts: Vec<String> = [0, 999, 1_000, 14_249, 999_949, 999_950, 5_000_000].map(count_text).into();
        assert_eq!(counts.join(" "), "0 999 1.0k 14.2k 999.9k 1.0M 5.0M");
        let costs = [0.0, 0.000_016, 0.004, 0.009_97, 0.42, 12.0];
        assert_eq!(
            costs.map(|cost| cost_text(cost, false)).join(" "),
            "$0.00 <$0.0001 $0.0040 $0.01 $0.42 $12.00"
        );
        assert_eq!(
            [0.0, 0.000_016, 0.42].map(|cost| cost_text(cost, true)).join(" "),
            "$0.00 ~<$0.0001 ~$0.42"
        );
    }

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(argument("research/market"), "research/market");
        assert_eq!(argument("fan/each[3]"), "'fan/each[3]'");
        assert_eq!(argument("it's"), r"'it'\''s'");
    }
}
