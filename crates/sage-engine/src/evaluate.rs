//! Expressions run here: on threads of their own, with a deadline, never on the loop.
//!
//! One output of a jq program cannot be interrupted. A program that overruns its deadline keeps its thread
//! until it ends by itself or the process does; its step fails at once.

use std::time::Duration;

/// Far beyond any honest filter (a megabyte takes some 30 ms), short enough to be noticed.
pub const DEADLINE: Duration = Duration::from_secs(10);

pub async fn off_loop<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::time::timeout(DEADLINE, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(why))) => Err(format!("{what}: {why}")),
        Ok(Err(_)) => Err(format!("{what}: the evaluation broke off")),
        Err(_) => Err(format!("{what}: no value within {} s", DEADLINE.as_secs())),
    }
}
