//! The body of an answer: there at once, or piece by piece with a chance to break off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use sage_core::port::Usage;
use tokio::sync::{mpsc, oneshot};

use super::piece::Piece;
use super::turn::Hang;

pub type Answer = Either<Full<Bytes>, Streamed>;

/// One piece on the way is enough: the client sets the pace.
const CHANNEL_PIECES: usize = 1;

#[derive(Debug)]
pub struct Streamed {
    pieces: mpsc::Receiver<Bytes>,
    /// Said before the last piece is gone, if it ends badly.
    broken: oneshot::Receiver<()>,
    flushed: bool,
}

/// Sends the pieces in its own time; `sent` hears of each usage before the client can.
pub fn stream(pieces: Vec<Piece>, sent: impl Fn(&Usage) + Send + 'static) -> Streamed {
    let (sender, receiver) = mpsc::channel(CHANNEL_PIECES);
    let (broken, breaks) = oneshot::channel();
    tokio::spawn(async move {
        for piece in pieces {
            match piece {
                Piece::Event { bytes, sent: usage } => {
                    usage.iter().for_each(&sent);
                    if sender.send(bytes).await.is_err() {
                        return;
                    }
                }
                Piece::Pause(time) => tokio::time::sleep(time).await,
                Piece::Hang(hang) => tokio::select! {
                    () = hang_on(hang) => {}
                    () = sender.closed() => return,
                },
                Piece::Drop => {
                    let _ = broken.send(());
                    return;
                }
            }
        }
    });
    Streamed { pieces: receiver, broken: breaks, flushed: false }
}

pub async fn hang_on(hang: Hang) {
    match hang {
        Hang::Seconds(seconds) => tokio::time::sleep(std::time::Duration::from_secs_f64(seconds)).await,
        Hang::UntilTheClientGoes => std::future::pending().await,
    }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.pieces.poll_recv(cx) {
            Poll::Ready(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {}
        }
        if self.flushed {
            return Poll::Ready(Some(Err(io::Error::other("the script hangs up"))));
        }
        if self.broken.try_recv().is_ok() {
            // The connection is closed at the error. What came before it must be on its way by then, and
            // hyper flushes whenever there is nothing to write.
            self.flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(None)
    }
}
