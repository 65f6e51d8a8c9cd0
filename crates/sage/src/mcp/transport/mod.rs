//! How MCP messages come in and go out. Any handler can be mounted on either way; both speak both lifecycles,
//! `initialize` and 2026-07-28.
//!
//! ```text
//! client -- pipes --> stdio (lines) --+
//!                                     +--> rmcp --> handler
//! client -- TCP ----> http (guard) ---+
//! ```
//! What must stay true: a connection that ends cuts whatever waits for it, and ends no run.

mod guard;
mod http;
mod lines;
mod stdio;
mod visitors;

pub use guard::{Guard, Token};
pub use http::{Door, serve_http};
pub use stdio::serve_stdio;

/// A message larger than this is refused: there is room for a big result, and none for a mistake.
pub const MESSAGE_BYTES: usize = 64 << 20;

/// Ends when a person or a client asks the process to. Signals are listened to from now on, not from when it is
/// first waited for.
pub fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
