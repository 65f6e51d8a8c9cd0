//! A file size limit (`ulimit -f`) fails the write that exceeds it instead of killing the process.
//!
//! The kernel sends SIGXFSZ, whose default ends the process, before the write returns `EFBIG`. Handling the signal
//! rather than ignoring it gives children the default again: `exec` resets handlers, and keeps what is ignored.

use rustix::process::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Handles SIGXFSZ for the rest of the process. Without it, Sage works the same below the limit.
pub fn survive() {
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
    let _inside = runtime.enter();
    // The handler stays installed when its stream is dropped.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())));
}
