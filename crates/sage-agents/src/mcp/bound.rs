//! A body of events, none of which may be longer than a limit: who never ends one fills no memory.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};

#[derive(Debug)]
pub struct Bounded<B> {
    body: B,
    limit: usize,
    /// Bytes since the last empty line, which ends an event.
    length: usize,
    at_line_start: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Broken<E: std::error::Error + 'static> {
    #[error("an event of more than {} MiB", .0 >> 20)]
    TooLong(usize),
    #[error(transparent)]
    Body(E),
}

impl<B> Bounded<B> {
    pub fn new(body: B, limit: usize) -> Bounded<B> {
        Bounded { body, limit, length: 0, at_line_start: true }
    }

    fn fits(&mut self, data: &[u8]) -> bool {
        for byte in data {
            match byte {
                b'\n' if self.at_line_start => self.length = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => self.at_line_start = false,
            }
            self.length += 1;
            if self.length > self.limit {
                return false;
            }
        }
        true
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    type Data = Bytes;
    type Error = Broken<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(Broken::Body)?;
            let fits = frame.data_ref().is_none_or(|data| self.fits(data));
            if fits { Ok(frame) } else { Err(Broken::TooLong(self.limit)) }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_the_whole_limit() {
        let fits = |limit, parts: &[&str]| {
            let mut body = Bounded::new((), limit);
            parts.iter().all(|part| body.fits(part.as_bytes()))
        };
        assert!(fits(12, &["data: abcd\n\n", "data: efgh\n", "\n", "data: i\r\n\r\ndata: jkl\n\n"]));
        assert!(!fits(8, &["data: abcd\n\n"]));
        assert!(!fits(20, &["data: a\n", "data: b\n", "data: c\n"]), "lines of one event are added up");
        assert!(fits(20, &[": ping\n\n"; 50]));
    }
}
