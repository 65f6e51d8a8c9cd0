//! Output that comes in chunks, as lines; in bounded memory.

#[derive(Debug)]
pub struct Lines {
    /// The line that has not ended yet; empty while an overlong one is skipped.
    open: Vec<u8>,
    skipping: bool,
    cap_bytes: usize,
    /// Lines that were longer than the cap: dropped.
    pub overlong: u64,
}

impl Lines {
    pub fn new(cap_bytes: usize) -> Lines {
        Lines { open: Vec::new(), skipping: false, cap_bytes, overlong: 0 }
    }

    /// `take` gets every line that ends in this chunk, without its newline; blank ones are left out.
    pub fn push(&mut self, chunk: &[u8], take: &mut dyn FnMut(&[u8])) {
        let mut parts = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.extend(part);
            if parts.peek().is_some() {
                self.end(take);
            }
        }
    }

    /// The stream is over, or the line: what is there is a line.
    pub fn end(&mut self, take: &mut dyn FnMut(&[u8])) {
        let line = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.skipping) {
            self.overlong += 1;
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            take(&line);
        }
    }

    /// Bytes of memory that the open line takes.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.open.capacity()
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_wherever_the_chunks_are_cut() {
        let text = b"one\n\n two \nthree";
        for cut in 0..text.len() {
            let (mut lines, mut seen) = (Lines::new(100), Vec::new());
            let mut take = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
            lines.push(&text[..cut], &mut take);
            lines.push(&text[cut..], &mut take);
            lines.end(&mut take);
            assert_eq!(seen, ["one", " two ", "three"], "cut at {cut}");
        }
    }

    #[test]
    fn an_overlong_line_is_dropped_and_counted() {
        let (mut lines, mut seen) = (Lines::new(4), Vec::new());
        let mut take = |line: &[u8]| seen.push(line.to_vec());
        lines.push(b"12345678\nok\n", &mut take);
        lines.end(&mut take);
        assert_eq!((seen, lines.overlong), (vec![b"ok".to_vec()], 1));
    }
}
