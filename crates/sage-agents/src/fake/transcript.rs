//! What the fake agent has said so far: its lines, read as they come, in bounded memory.

use sage_core::port::Usage;
use serde_json::Value;

use super::line::{ErrorLine, Line};

#[derive(Debug)]
pub struct Transcript {
    /// The line that has not ended yet; empty while an overlong one is skipped.
    open: Vec<u8>,
    skipping: bool,
    /// Longest line, and most text that is kept.
    cap_bytes: usize,
    pub text: String,
    pub usage: Usage,
    /// At most two: the second one is already a mistake.
    pub results: Vec<Value>,
    pub error: Option<ErrorLine>,
    pub garbage_lines: u64,
}

impl Transcript {
    pub fn new(cap_bytes: usize) -> Transcript {
        Transcript {
            open: Vec::new(),
            skipping: false,
            cap_bytes,
            text: String::new(),
            usage: Usage::default(),
            results: Vec::new(),
            error: None,
            garbage_lines: 0,
        }
    }

    /// Returns whether the usage has changed.
    pub fn push(&mut self, chunk: &[u8]) -> bool {
        let mut used = false;
        let mut parts = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.extend(part);
            if parts.peek().is_some() {
                used |= self.close();
            }
        }
        used
    }

    /// The stream is over; a last line without its newline counts if it is whole.
    pub fn end(&mut self) {
        self.close();
    }

    fn extend(&mut self, part: &[u8]) {
        if self.open.len() + part.len() > self.cap_bytes {
            self.skipping = true;
            self.open = Vec::new();
        }
        if !self.skipping {
            self.open.extend_from_slice(part);
        }
    }

    fn close(&mut self) -> bool {
        let line = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.skipping) {
            self.garbage_lines += 1;
            return false;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return false;
        }
        match serde_json::from_slice(&line) {
            Ok(line) => self.take(line),
            Err(_) => {
                self.garbage_lines += 1;
                false
            }
        }
    }

    fn take(&mut self, line: Line) -> bool {
        match line {
            Line::Text { text } if self.text.len() + text.len() <= self.cap_bytes => self.text += &text,
            Line::Text { .. } | Line::Ask { .. } => {}
            Line::Usage(usage) => {
                self.usage.add(&usage);
                return true;
            }
            Line::Result { result } if self.results.len() < 2 => self.results.push(result),
            Line::Result { .. } => {}
            // The first one is the cause.
            Line::Error(error) => _ = self.error.get_or_insert(error),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_across_any_cut() {
        let text =
            b"{\"type\":\"text\",\"text\":\"h\xc3\xa9\"}\nnot json\n\n{\"type\":\"usage\",\"input\":3}\n\
            {\"type\":\"usage\",\"input\":4,\"output\":1}\n{\"type\":\"result\",\"result\":{\"a\":1}}";
        for size in 1..text.len() {
            let mut transcript = Transcript::new(1_000);
            let changes = text.chunks(size).filter(|chunk| transcript.push(chunk)).count();
            transcript.end();
            assert_eq!(transcript.text, "hé");
            assert_eq!(transcript.garbage_lines, 1);
            assert_eq!((transcript.usage.input, transcript.usage.output), (Some(7), Some(1)));
            assert_eq!(transcript.results, [serde_json::json!({"a": 1})]);
            assert!(changes >= 1);
        }
    }

    #[test]
    fn endless_lines_and_texts_stay_bounded() {
        let mut transcript = Transcript::new(100);
        for _ in 0..1_000 {
            transcript.push(b"xxxxxxxxxx");
            assert!(transcript.open.capacity() <= 200);
        }
        transcript.push(b"\n");
        for _ in 0..100 {
            transcript.push(b"{\"type\":\"text\",\"text\":\"0123456789\"}\n");
        }
        transcript.push(b"{\"type\":\"result\",\"result\":1}\n");
        assert_eq!((transcript.garbage_lines, transcript.text.len(), transcript.results.len()), (1, 100, 1));
    }
}
