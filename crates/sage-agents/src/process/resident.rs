//! A program that stays when the attempt that started it is over, but never longer than its owner.
//!
//! ```text
//! owner ===lifeline=== keeper ---> program      dropping the `Resident`, or the owner's death, ends the tree
//!   ^ stdout (to the caller), stderr (its end is kept)
//! ```

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sage_core::secret::{self, Redactor};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use super::capture::Capture;
use super::report::Report;
use super::spawn::{Spec, spawn};

/// A report is one short line.
const REPORT_BYTES: usize = 4 * 1024;
const CHUNK_BYTES: usize = 8 * 1024;
/// The pipe ends with the tree that writes to it; anything else is not waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Resident {
    lifeline: UnixStream,
    /// False once the keeper is gone, and with it everything that it had started.
    alive: watch::Receiver<bool>,
    stderr: Arc<Mutex<Capture>>,
}

impl Resident {
    /// Starts `spec` under a keeper; its output is the caller's. `log` gets at most `log_bytes` of its stderr.
    pub fn start(
        keeper: &Path,
        spec: &Spec,
        inherited: Option<&File>,
        log: Option<File>,
        log_bytes: u64,
        redactor: &Redactor,
    ) -> io::Result<(Resident, Receiver)> {
        let mut spawned = spawn(keeper, spec, inherited.into_iter())?;
        let (living, alive) = watch::channel(true);
        let stderr = Arc::new(Mutex::new(Capture::new(0, log, log_bytes)));
        let drained = tokio::spawn(drain(spawned.stderr, Arc::clone(&stderr), redactor.stream()));
        tokio::spawn(async move {
            // Whatever it says about it: nobody waits for a keeper twice.
            let _ = spawned.keeper.wait().await;
            // Its last words may still be in the pipe.
            let _ = tokio::time::timeout(LAST_WORDS, drained).await;
            let _ = living.send(false);
        });
        Ok((Resident { lifeline: spawned.lifeline, alive, stderr }, spawned.stdout))
    }

    /// Waits for its end; false if it is still there then.
    pub async fn ended_within(&self, patience: Duration) -> bool {
        let mut alive = self.alive.clone();
        tokio::time::timeout(patience, alive.wait_for(|alive| !alive)).await.is_ok()
    }

    /// Ends it now, and waits until nothing of it is left.
    pub async fn end(self, patience: Duration) -> bool {
        let Resident { lifeline, mut alive, .. } = self;
        drop(lifeline);
        tokio::time::timeout(patience, alive.wait_for(|alive| !alive)).await.is_ok()
    }

    /// How it ended, if it has, and what it said last.
    pub fn report(&self) -> Option<Report> {
        let mut buffer = [0u8; REPORT_BYTES];
        // Not through tokio, which may not have noticed the last words yet.
        let count = rustix::io::read(&self.lifeline, &mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..count]);
        text.lines().next().and_then(Report::parse)
    }

    pub fn stderr_tail(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).tail()
    }
}

/// A program that nobody listens to would stand still.
async fn drain(mut pipe: Receiver, capture: Arc<Mutex<Capture>>, mut redacted: secret::Stream) {
    let take = |bytes: &[u8]| capture.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    let mut buffer = [0u8; CHUNK_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        take(&redacted.push(&buffer[..count]));
    }
    take(&redacted.finish());
}
