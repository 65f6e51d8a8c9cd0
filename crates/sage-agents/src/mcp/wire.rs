//! The output of a server that is a program: lines, none of which may be longer than a limit.
//!
//! Longer ones are not skipped: who waits for such an answer would wait in vain. The connection ends, and whoever
//! uses it is told why.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Of one message, over whatever way it comes.
pub const MESSAGE_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct Lines<R> {
    inner: R,
    limit: usize,
    length: usize,
    overflow: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    /// The flag is set when a line was too long.
    pub fn new(inner: R, limit: usize) -> (Lines<R>, Arc<AtomicBool>) {
        let overflow = Arc::new(AtomicBool::new(false));
        (Lines { inner, limit, length: 0, overflow: Arc::clone(&overflow) }, overflow)
    }

    fn fits(&mut self, data: &[u8]) -> bool {
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            if self.length > self.limit {
                return false;
            }
            if part.ends_with(b"\n") {
                self.length = 0;
            }
        }
        true
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        if self.fits(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        self.overflow.store(true, Ordering::SeqCst);
        buffer.set_filled(before);
        Poll::Ready(Err(std::io::Error::other("a line is too long")))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn only_lines_that_are_too_long_are_refused() {
        let read = async |text: &str| {
            let (mut lines, overflow) = Lines::new(text.as_bytes(), 8);
            let outcome = lines.read_to_end(&mut Vec::new()).await;
            assert_eq!(outcome.is_err(), overflow.load(Ordering::SeqCst));
            outcome.is_ok()
        };
        assert!(read("1234567\n1234567\n12345678").await);
        assert!(!read("1234567\n123456789").await);
        assert!(!read("12345678\n").await, "the end of the line counts");
    }
}
