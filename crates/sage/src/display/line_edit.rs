//! A line that is being typed while other lines are printed above it: from bytes of a terminal to keys. Pure.

/// Longest line; what is typed beyond is left out.
const LINE_BYTES: usize = 32 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Enter.
    Line(String),
    /// Ctrl-C, or Ctrl-D on an empty line.
    Leave,
}

#[derive(Debug, Default)]
pub(crate) struct LineEdit {
    text: String,
    /// The beginning of a letter of several bytes.
    partial: Vec<u8>,
    escape: Escape,
}

/// Keys such as arrows send several bytes; they mean nothing here.
#[derive(Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    Sequence,
}

impl LineEdit {
    /// What is on the line now.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes in what was typed; gives what it amounts to.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Typed> {
        bytes.iter().filter_map(|byte| self.byte(*byte)).collect()
    }

    fn byte(&mut self, byte: u8) -> Option<Typed> {
        match (&self.escape, byte) {
            (Escape::Begun, b'[' | b'O') => self.escape = Escape::Sequence,
            (Escape::Begun, _) => self.escape = Escape::None,
            (Escape::Sequence, b'@'..=b'~') => self.escape = Escape::None,
            (Escape::Sequence, _) => {}
            (Escape::None, _) => return self.plain(byte),
        }
        None
    }

    fn plain(&mut self, byte: u8) -> Option<Typed> {
        match byte {
            b'\r' | b'\n' => return Some(Typed::Line(std::mem::take(&mut self.text))),
            0x03 => return Some(Typed::Leave),
            0x04 if self.text.is_empty() => return Some(Typed::Leave),
            0x1b => self.escape = Escape::Begun,
            0x08 | 0x7f => drop(self.text.pop()),
            // Ctrl-U, Ctrl-W
            0x15 => self.text.clear(),
            0x17 => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
            }
            b'\t' => self.letter(b' '),
            0x00..=0x1f => {}
            _ => self.letter(byte),
        }
        None
    }

    fn letter(&mut self, byte: u8) {
        if self.text.len() >= LINE_BYTES {
            return;
        }
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(letter) => self.text.push_str(letter),
            // It may still become one.
            Err(error) if error.error_len().is_none() => return,
            Err(_) => {}
        }
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> (Vec<Typed>, String) {
        let mut line = LineEdit::default();
        // One at a time: a terminal cuts where it likes.
        let typed = bytes.iter().flat_map(|byte| line.push(&[*byte])).collect();
        (typed, line.text().to_string())
    }

    // covers: S4
    #[test]
    fn lines_are_typed_and_corrected() {
        let line = |text: &str| Typed::Line(text.into());
        assert_eq!(typed("hé日\u{7f}!\r".as_bytes()), (vec![line("hé!")], String::new()));
        assert_eq!(typed(b"one two\x17three\n"), (vec![line("one three")], String::new()));
        assert_eq!(typed(b"wrong\x15right"), (vec![], "right".into()));
        assert_eq!(typed(b"a\x1b[A\x1b[3~\x1bOPb\tc\x01"), (vec![], "ab c".into()));
        assert_eq!(typed(b"\xffx\r"), (vec![line("x")], String::new()));
        assert_eq!(typed(b"text\x04"), (vec![], "text".into()), "Ctrl-D only leaves an empty line");
        assert_eq!(typed(b"\x04").0, [Typed::Leave]);
        assert_eq!(typed(b"text\x03").0, [Typed::Leave]);
    }
}
