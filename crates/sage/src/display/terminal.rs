//! The live area at the bottom of a terminal: painted over itself, one write at a time.
//!
//! The cursor always rests on the fresh line below, and is never hidden: whatever kills us, the terminal is as
//! it should be and the last picture stays.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::frame::Size;
use super::text::{Line, Style};

/// For terminals that do not say.
const DEFAULT: Size = Size { width: 80, height: 24 };
/// No wrapping while we paint: a letter that is wider than we think shall not cost a row.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";
const CLEAR_LINE: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The terminal on stderr, now: it may have been resized since.
pub(crate) fn size(width: Option<u16>) -> Size {
    let told = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok();
    let or = |told: u16, default: usize| if told == 0 { default } else { usize::from(told) };
    let (columns, rows) = told.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    Size { width: or(width.unwrap_or(columns), DEFAULT.width), height: or(rows, DEFAULT.height) }
}

/// Whether stderr is a terminal that can move its cursor.
pub(crate) fn can_paint() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && rustix::termios::isatty(rustix::stdio::stderr())
}

#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    /// What is there now.
    painted: Vec<String>,
    width: usize,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W) -> Screen<W> {
        Screen { out, painted: Vec::new(), width: DEFAULT.width }
    }

    /// Replaces the picture. `above` is left standing over it, for good.
    pub fn paint(&mut self, above: &[String], lines: &[Line], color: bool, width: usize) -> io::Result<()> {
        let shown: Vec<String> = lines.iter().map(|line| line.render(Style { color, width })).collect();
        if above.is_empty() && self.width == width && self.painted == shown {
            return Ok(());
        }
        let mut text = String::from(WRAP_OFF);
        text.push_str(&up(self.rows_taken(width)));
        if self.width != width {
            text.push_str(CLEAR_BELOW);
        }
        for line in above.iter().chain(&shown) {
            text.push_str(CLEAR_LINE);
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str(CLEAR_BELOW);
        text.push_str(WRAP_ON);
        (self.painted, self.width) = (shown, width);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Rows that the present picture takes: a narrower terminal has wrapped its lines.
    fn rows_taken(&self, width: usize) -> usize {
        if width >= self.width {
            return self.painted.len();
        }
        let columns = |line: &String| super::text::clean(line).width();
        self.painted.iter().map(|line| columns(line).max(1).div_ceil(width.max(1))).sum()
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { "\r".into() } else { format!("\r\x1b[{rows}A") }
}

#[cfg(test)]
mod tests {
    use super::super::text::Tone;
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| Line::of(Tone::Bad, text)).collect()
    }

    fn painted(screen: &mut Screen<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut screen.out)).unwrap()
    }

    // covers: R8
    #[test]
    fn a_picture_is_painted_over_the_one_before() {
        let mut screen = Screen::new(Vec::new());
        screen.paint(&[], &lines(&["one", "two"]), false, 80).unwrap();
        assert_eq!(painted(&mut screen), "\x1b[?7l\r\x1b[2Kone\r\n\x1b[2Ktwo\r\n\x1b[J\x1b[?7h");
        screen.paint(&[], &lines(&["one"]), true, 80).unwrap();
        assert_eq!(painted(&mut screen), "\x1b[?7l\r\x1b[2A\x1b[2K\x1b[31mone\x1b[0m\r\n\x1b[J\x1b[?7h");
        screen.paint(&[], &lines(&["one"]), true, 80).unwrap();
        assert_eq!(painted(&mut screen), "", "nothing changed");
        screen.paint(&["told".into()], &lines(&["one"]), false, 80).unwrap();
        assert_eq!(painted(&mut screen), "\x1b[?7l\r\x1b[1A\x1b[2Ktold\r\n\x1b[2Kone\r\n\x1b[J\x1b[?7h");
    }

    // covers: R8
    #[test]
    fn a_narrower_terminal_has_wrapped_what_is_there() {
        let mut screen = Screen::new(Vec::new());
        screen.paint(&[], &lines(&["0123456789", "0"]), true, 80).unwrap();
        painted(&mut screen);
        screen.paint(&[], &lines(&["0123456789", "0"]), false, 4).unwrap();
        assert_eq!(painted(&mut screen), "\x1b[?7l\r\x1b[4A\x1b[J\x1b[2K012…\r\n\x1b[2K0\r\n\x1b[J\x1b[?7h");
        screen.paint(&[], &lines(&["0"]), false, 80).unwrap();
        assert!(painted(&mut screen).contains("\x1b[2A"));
    }
}
