//! The runtime of commands that run or signal, on a machine that may have few threads left.
//!
//! What must stay true: without threads or descriptors a command fails with an error, it neither panics nor hangs. Tokio panics if
//! it cannot start its first threads, and if a blocking call finds no thread at all. So the threads are asked for
//! before the runtime is built, and one for blocking calls is started with it and kept: a call that gets no thread of
//! its own waits for that one.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use tokio::runtime::Runtime;

const WORKERS: usize = 2;
/// For blocking calls, journal, checkpoint, display and wakes.
const OTHERS: usize = 5;
/// For the runtime, signals, the journal and its readers, a lock and a first child.
const DESCRIPTORS: usize = 16;
/// Longer than any run.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub fn runtime() -> io::Result<Runtime> {
    rehearse(WORKERS + OTHERS)?;
    reserve()?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(WORKERS).thread_keep_alive(KEPT).enable_all().build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Opens as many descriptors at once as a run needs, and closes them: without them Tokio panics, and a display
/// waits for a journal that it cannot open.
fn reserve() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    let opened: io::Result<Vec<_>> = (0..DESCRIPTORS).map(|_| null.try_clone()).collect();
    opened.map(drop)
}

/// Starts as many threads at once as a run needs, and ends them.
fn rehearse(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    std::thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |_| Builder::new().spawn_scoped(scope, || drop(gate.lock()));
        let started: io::Result<Vec<_>> = (0..count).map(start).collect();
        drop(closed);
        started?.into_iter().for_each(|thread| drop(thread.join()));
        Ok(())
    })
}
