//! What reaches a running program from outside: a stop, a reminder, a message, and the end of patience.
//!
//! ```text
//! stop     -> interrupt -> its result -> it ends by itself -> SIGTERM -> (process layer) SIGKILL
//! reminder -> interrupt -> its result -> "go on"
//! result   -> it ends by itself -> SIGTERM
//! ```

use std::convert::Infallible;
use std::time::Duration;

use sage_core::port::{StepCx, Stop, StopSignal};

use super::channel::Channel;

/// An interrupt is answered at once; whoever stops does not want to wait.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// Passes on to `process` what `cx` is told, for as long as the program runs. After its result and the end of
/// its input it needs tenths of a second to end; it gets `grace`.
pub async fn watch(cx: &StepCx, process: &StopSignal, channel: &Channel, grace: Duration) -> Infallible {
    let mut nudges = 0;
    loop {
        tokio::select! {
            () = cx.stop.reached(Stop::Graceful) => {
                stop(cx, channel).await;
                break;
            }
            () = channel.closed() => {
                tokio::select! {
                    () = tokio::time::sleep(grace) => {}
                    () = cx.stop.reached(Stop::Graceful) => {}
                }
                break;
            }
            () = message(cx, channel) => {
                for message in cx.messages.take() {
                    // Closed in between: it is for the next turn.
                    if let Err(message) = channel.message(message) {
                        cx.messages.send(message);
                    }
                }
            }
            () = cx.nudge.after(nudges) => {
                nudges = cx.nudge.count();
                channel.nudge();
            }
        }
    }
    process.set(Stop::Graceful);
    cx.stop.reached(Stop::Now).await;
    process.set(Stop::Now);
    std::future::pending().await
}

/// A person has sent a message, and the program has its prompt. After its end a message is for the next turn.
async fn message(cx: &StepCx, channel: &Channel) {
    channel.begun().await;
    cx.messages.come().await;
    if channel.is_closed() {
        std::future::pending().await
    }
}

/// In words first: an interrupted turn says what it has used, a killed one does not.
async fn stop(cx: &StepCx, channel: &Channel) {
    if !channel.is_working() {
        return;
    }
    channel.interrupt();
    tokio::select! {
        () = tokio::time::sleep(STOP_PATIENCE) => {}
        () = cx.stop.reached(Stop::Now) => {}
    }
}
