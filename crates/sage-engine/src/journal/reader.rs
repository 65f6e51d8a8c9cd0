//! Verifies a journal piece by piece, as it is read or while it grows.
//!
//! Bytes go in, verified records come out, borrowed from those bytes; only a line that is cut by the end of a
//! piece is copied. A partial last line is no error: it's the writer at work, or a tail that [`super::recover`]
//! judges. After an error the reader stays broken: nothing after a bad line can be trusted.

use std::io::BufRead;

use sage_core::seal::Sealed;

use super::record::{self, BadLine, JOIN, MAX_LINE_BYTES, Record};
use super::{Head, JournalError};

/// An incremental verifier of the chain.
#[derive(Debug)]
pub struct Reader {
    head: Head,
    sealed: Option<Sealed>,
    epoch: u64,
    lines: u64,
    /// The end of the last verified line.
    offset: u64,
    partial: Vec<u8>,
    broken: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            head: Head::EMPTY,
            sealed: None,
            epoch: 0,
            lines: 0,
            offset: 0,
            partial: Vec::new(),
            broken: false,
        }
    }
}

impl Reader {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The last verified record.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The seal of the last verified record.
    #[must_use]
    pub fn sealed(&self) -> Option<&Sealed> {
        self.sealed.as_ref()
    }

    /// The epoch of the last verified record; 0 before the first.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The byte after the last verified line.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Verified lines so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Where the next piece must start: after all bytes fed so far.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        self.offset + self.partial.len() as u64
    }

    /// Takes the next bytes of the file and hands on each record that they complete.
    pub fn feed<E: From<JournalError>>(
        &mut self,
        mut bytes: &[u8],
        on_record: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.broken {
            return Err(self.corrupt("an earlier line is damaged").into());
        }
        while let Some(end) = line_end(bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            self.finish_line(line, on_record)?;
            bytes = rest;
        }
        if self.partial.len() + bytes.len() > MAX_LINE_BYTES {
            return Err(self.fail("the line is too long").into());
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn finish_line<E: From<JournalError>>(
        &mut self,
        line: &[u8],
        on_record: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.partial.is_empty() {
            return self.take_line(line, on_record);
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(line);
        let result = self.take_line(&whole, on_record);
        // The buffer is kept for the next cut line.
        whole.clear();
        self.partial = whole;
        result
    }

    fn take_line<E: From<JournalError>>(
        &mut self,
        line: &[u8],
        on_record: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let body = line.strip_prefix(&[JOIN]).unwrap_or(line);
        let record = match record::parse(body) {
            Ok(record) => record,
            Err(BadLine::Newer(found)) => {
                self.broken = true;
                return Err(JournalError::NewerVersion { line: self.lines + 1, found }.into());
            }
            Err(bad) => return Err(self.fail(&bad.to_string()).into()),
        };
        if let Some(what) = self.unchained(&record) {
            return Err(self.fail(&what).into());
        }
        self.head = record.head();
        self.sealed = record.sealed;
        self.epoch = record.epoch;
        self.lines += 1;
        self.offset += line.len() as u64 + 1;
        on_record(record)
    }

    /// Why `record` can't follow the last one.
    fn unchained(&self, record: &Record<'_>) -> Option<String> {
        if record.seq != self.head.seq + 1 {
            return Some(format!("record {} where {} is due", record.seq, self.head.seq + 1));
        }
        if record.prev != self.head.sha {
            return Some("it does not follow the record before it".to_owned());
        }
        if record.epoch < self.epoch {
            return Some(format!("epoch {} after {}", record.epoch, self.epoch));
        }
        None
    }

    fn fail(&mut self, what: &str) -> JournalError {
        self.broken = true;
        self.partial = Vec::new();
        self.corrupt(what)
    }

    fn corrupt(&self, what: &str) -> JournalError {
        JournalError::Corrupt { line: self.lines + 1, offset: self.offset, what: what.to_owned() }
    }
}

/// Where the first line break is. `skip_until` is the standard library's vectorised search.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let end = rest.skip_until(b'\n').ok()?.checked_sub(1)?;
    (bytes.get(end) == Some(&b'\n')).then_some(end)
}
