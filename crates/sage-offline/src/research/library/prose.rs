//! Documents as passages: a paragraph or a few points of a list, with the headings above it and its line.
//!
//! Code blocks can be found by their words but are not shown; pictures, badges, tags and tables of contents are
//! neither.

/// Points of a list and rows of a table are put together up to this many bytes.
const JOINED: usize = 200;
/// Shorter paragraphs go with the next one.
const TINY: usize = 60;
/// Of a code block, for its words.
const MAX_CODE: usize = 2_000;

/// A part of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Outermost first.
    pub headings: Vec<String>,
    pub text: String,
    pub code: String,
    /// From 1.
    pub line: usize,
    /// Of a list or a table.
    pub point: bool,
}

/// What a paragraph consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Sort {
    #[default]
    Prose,
    Points,
}

#[derive(Debug, Default)]
struct Splitter {
    pieces: Vec<Piece>,
    headings: Vec<(usize, String)>,
    open: Piece,
    sort: Sort,
    /// Points stay apart.
    apart: bool,
    /// Underlines of headings, in the order of their first use: `=`, `-`, `~`.
    underlines: Vec<char>,
}

/// The passages of a document.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    split(text, false)
}

/// The same, where each point of a list is one of its own.
pub(crate) fn points(text: &str) -> Vec<Piece> {
    split(text, true)
}

fn split(text: &str, apart: bool) -> Vec<Piece> {
    let mut splitter = Splitter { apart, ..Splitter::default() };
    let mut fence: Option<&str> = None;
    let mut comment = false;
    let skipped = front_matter(text);
    for (at, line) in text.lines().enumerate().skip(skipped) {
        let trimmed = line.trim();
        if let Some(end) = fence {
            if trimmed.starts_with(end) { fence = None } else { splitter.code(line) }
        } else if comment || (trimmed.starts_with("<!--")) {
            comment = !trimmed.ends_with("-->");
        } else if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            fence = Some(mark);
        } else {
            splitter.line(line, at + 1);
        }
    }
    splitter.flush();
    splitter.pieces
}

/// Lines of `---` ... `---` at the top.
fn front_matter(text: &str) -> usize {
    let mut lines = text.lines();
    if lines.next() != Some("---") {
        return 0;
    }
    lines.position(|line| line == "---").map_or(0, |end| end + 2)
}

impl Splitter {
    fn line(&mut self, line: &str, number: usize) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            self.flush();
        } else if let Some((level, title)) = heading(trimmed) {
            self.flush();
            self.enter(level, title);
        } else if let Some(mark) = underline(trimmed) {
            self.underlined(mark);
        } else if let Some(text) = point(trimmed) {
            self.point(&plain(text), number);
        } else if trimmed.starts_with('|') {
            let row = trimmed.trim_matches('|');
            if !row.chars().all(|c| "-:| ".contains(c)) {
                self.point(&plain(&row.replace('|', " \u{2013} ")), number);
            }
        } else if line.starts_with("    ") && self.open.text.is_empty() && self.sort == Sort::Prose {
            self.code(line);
        } else if !trimmed.starts_with(".. ") && !is_reference(trimmed) {
            self.push(&plain(trimmed.trim_start_matches("> ")), number);
        }
    }

    fn push(&mut self, text: &str, number: usize) {
        if text.is_empty() {
            return;
        }
        if self.open.text.is_empty() {
            self.open.line = number;
        } else {
            self.open.text.push(' ');
        }
        self.open.text.push_str(text);
    }

    fn point(&mut self, text: &str, number: usize) {
        let full = self.open.text.len() > JOINED || self.apart;
        let new_list = self.sort == Sort::Prose && !self.open.text.ends_with(':');
        if full || new_list {
            self.flush();
        }
        self.sort = Sort::Points;
        let text = text.strip_prefix("[ ] ").or_else(|| text.strip_prefix("[x] ")).unwrap_or(text);
        self.push(text, number);
    }

    fn code(&mut self, line: &str) {
        let piece = if self.open.text.is_empty() { self.pieces.last_mut() } else { Some(&mut self.open) };
        if let Some(piece) = piece.filter(|piece| piece.code.len() < MAX_CODE) {
            piece.code.push_str(line.trim());
            piece.code.push('\n');
        }
    }

    /// A heading of which the text came a line ago.
    fn underlined(&mut self, mark: char) {
        let title = std::mem::take(&mut self.open).text;
        self.sort = Sort::Prose;
        if title.is_empty() {
            return;
        }
        let known = self.underlines.iter().position(|known| *known == mark);
        let level = known.unwrap_or(self.underlines.len());
        if known.is_none() {
            self.underlines.push(mark);
        }
        self.enter(level + 1, title);
    }

    fn enter(&mut self, level: usize, title: String) {
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, title));
    }

    fn flush(&mut self) {
        let mut piece = std::mem::take(&mut self.open);
        piece.point = std::mem::take(&mut self.sort) == Sort::Points;
        if !piece.text.chars().any(char::is_alphanumeric) {
            return;
        }
        piece.headings = self.headings.iter().map(|(_, title)| title.clone()).collect();
        match self.pieces.last_mut() {
            Some(last) if !self.apart && last.text.len() < TINY && last.headings == piece.headings => {
                last.text.push(' ');
                last.text.push_str(&piece.text);
                last.code.push_str(&piece.code);
            }
            _ => self.pieces.push(piece),
        }
    }
}

/// `## Title ##` of Markdown, `== Title` of AsciiDoc.
fn heading(line: &str) -> Option<(usize, String)> {
    let mark = line.chars().next().filter(|c| "#=".contains(*c))?;
    let title = line.trim_start_matches(mark);
    let level = line.len() - title.len();
    (level <= 6 && title.starts_with(' ') && !title.trim().is_empty())
        .then(|| (level, plain(title.trim().trim_end_matches(mark).trim())))
}

/// `[name]: https://...`
fn is_reference(line: &str) -> bool {
    line.starts_with('[')
        && line.split_once("]: ").is_some_and(|(name, _)| !name.contains(' ') || name.len() < 60)
}

fn underline(line: &str) -> Option<char> {
    let mark = line.chars().next().filter(|c| "=-~^\"*+#".contains(*c))?;
    (line.len() >= 3 && line.chars().all(|c| c == mark)).then_some(mark)
}

fn point(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ ", "\u{2022} "].into_iter().find_map(|mark| line.strip_prefix(mark));
    let number = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - rest.len();
        (1..=3)
            .contains(&digits)
            .then(|| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")))
            .flatten()
    };
    bullet.or_else(number)
}

/// A line without pictures, links' addresses, tags and emphasis; nothing for a line of a table of contents.
pub(crate) fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['[', '<', '*', '!', '`']) {
        out.push_str(&rest[..at]);
        let here = &rest[at..];
        rest = match here.as_bytes()[0] {
            b'!' if here.starts_with("![") => link(&here[1..]).map_or(&here[1..], |(_, _, after)| after),
            b'[' => match link(here) {
                Some((_, target, after)) if target.starts_with('#') && after.is_empty() && out.is_empty() => {
                    after
                }
                Some((text, _, after)) => {
                    out.push_str(&plain(text));
                    after
                }
                None => kept(&mut out, here),
            },
            b'<' => match here.find('>') {
                Some(end) if here[1..].starts_with(|c: char| c.is_alphabetic() || c == '/') => {
                    &here[end + 1..]
                }
                _ => kept(&mut out, here),
            },
            b'*' => star(&mut out, here),
            b'`' => code(&mut out, here),
            _ => kept(&mut out, here),
        };
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Emphasis is left out; `2*3` and `a * b` are none.
fn star<'a>(out: &mut String, here: &'a str) -> &'a str {
    let after = here.trim_start_matches('*');
    let sides = (out.chars().next_back(), after.chars().next());
    let times = match sides {
        (Some(before), Some(next)) => {
            (before.is_alphanumeric() && next.is_alphanumeric()) || (before == ' ' && next == ' ')
        }
        _ => false,
    };
    if times && here.len() - after.len() == 1 { kept(out, here) } else { after }
}

/// What stands in backticks stays as it is.
fn code<'a>(out: &mut String, here: &'a str) -> &'a str {
    let Some(end) = here[1..].find('`') else { return kept(out, here) };
    out.push_str(&here[..end + 2]);
    &here[end + 2..]
}

fn kept<'a>(out: &mut String, here: &'a str) -> &'a str {
    out.push_str(&here[..1]);
    &here[1..]
}

/// `[text](target)after` or `[text][target]after`; brackets within the text are part of it.
pub(crate) fn link(text: &str) -> Option<(&str, &str, &str)> {
    let mut depth = 0;
    let close = text.char_indices().find_map(|(at, c)| {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })?;
    let after = &text[close + 1..];
    let end = match after.chars().next()? {
        '(' => after.find(')')?,
        '[' => after.find(']')?,
        _ => return None,
    };
    Some((&text[1..close], &after[1..end], &after[end + 1..]))
}

#[cfg(test)]
#[path = "prose-test.rs"]
mod tests;
