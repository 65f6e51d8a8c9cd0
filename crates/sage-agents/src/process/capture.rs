//! One output stream: its beginning for the result, its end for messages, a log file for people who watch.
//!
//! Whatever a program prints, memory and disk stay bounded: beyond the cap it is read, counted and dropped.

use std::fs::File;
use std::io::Write;

/// Enough for the last lines of an error message.
const TAIL_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    total_bytes: u64,
    keep_bytes: usize,
    log: Option<File>,
    log_left_bytes: u64,
    /// Why the log is not whole, where it could not be written.
    log_error: Option<String>,
}

/// A stream that has ended. Invalid UTF-8 is replaced; NUL and escape sequences are data and stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    pub text: String,
    /// The last few KiB, also when `text` was cut.
    pub tail: String,
    pub total_bytes: u64,
    pub truncated: bool,
    /// Why the log has less than the stream had, if it was to have all of it.
    pub log_error: Option<String>,
}

impl Capture {
    /// `keep_bytes` go to the result, `log_bytes` to the file.
    pub fn new(keep_bytes: usize, log: Option<File>, log_bytes: u64) -> Capture {
        Capture {
            head: Vec::new(),
            tail: Vec::new(),
            total_bytes: 0,
            keep_bytes,
            log,
            log_left_bytes: log_bytes,
            log_error: None,
        }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        let room = self.keep_bytes - self.head.len();
        self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        self.tail.extend_from_slice(&chunk[chunk.len().saturating_sub(TAIL_BYTES)..]);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
        self.write_log(chunk);
    }

    /// A log is a convenience: when the disk is full, the program goes on without it. Who needs all of it looks
    /// at the error.
    fn write_log(&mut self, chunk: &[u8]) {
        let room = usize::try_from(self.log_left_bytes).unwrap_or(usize::MAX);
        let part = &chunk[..chunk.len().min(room)];
        self.log_left_bytes -= part.len() as u64;
        if let Some(file) = &mut self.log
            && !part.is_empty()
            && let Err(error) = file.write_all(part)
        {
            self.log_error = Some(error.to_string());
            self.log = None;
        }
    }

    /// The last few KiB so far.
    pub fn tail(&self) -> String {
        let start = self.tail.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&self.tail[start..]).into_owned()
    }

    pub fn finish(self) -> Captured {
        let truncated = self.total_bytes > self.head.len() as u64;
        let tail = self.tail();
        let (total_bytes, log_error) = (self.total_bytes, self.log_error);
        Captured { text: lossy(self.head), tail, total_bytes, truncated, log_error }
    }
}

/// Without a copy when the text is valid, which is nearly always.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R20
    #[test]
    fn the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let mut capture = Capture::new(10, None, 0);
        for n in 0..10_000 {
            capture.push(format!("line {n}\n").as_bytes());
        }
        assert!(capture.tail.capacity() < 8 * TAIL_BYTES);
        let captured = capture.finish();
        assert_eq!(captured.text, "line 0\nlin");
        assert!(captured.truncated);
        assert_eq!(captured.total_bytes, 98_890);
        assert!(captured.tail.ends_with("line 9999\n") && captured.tail.len() <= TAIL_BYTES);
    }

    #[test]
    fn exactly_the_cap_is_not_truncated() {
        let mut capture = Capture::new(3, None, 0);
        capture.push(b"a\0\xff");
        let captured = capture.finish();
        assert_eq!(captured.text, "a\0\u{fffd}");
        assert!(!captured.truncated);
    }
}
