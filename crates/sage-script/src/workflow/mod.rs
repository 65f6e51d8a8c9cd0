//! Workflows in code: the script computes, the engine runs its calls as steps.
//!
//! ```text
//!  a thread per script                                        the engine
//!    run what is ready -> ended?                  ----------->  Ended
//!    deliver ONE completion of the record, again
//!    nothing left: calls without a record         ----------->  Rests
//!    deliver ONE completion that is told          <-----------  settled, cancel
//! ```
//! One completion at a time, in the order of the journal: a script that runs again sees the same world in the
//! same order, whatever it races or draws.

mod driver;
mod host;
mod identity;
mod program;
mod record;
mod schema;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use sage_core::port::script::{ScriptFailure, ScriptHost, ScriptRun, ScriptSays, ScriptStart, Settled};

use crate::isolate::Stop;

/// The thread's stack beyond what the script may use.
const OWN_STACK: usize = 4 << 20;

type Say = Arc<dyn Fn(ScriptSays) + Send + Sync>;

/// Runs workflows in code, each on a thread of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scripts;

/// What the engine tells a script.
enum Told {
    Settled(Settled),
    Cancel,
}

/// The engine's end of a script. Its channel is not bounded: the engine never says more than the script asked.
struct Handle {
    tell: Sender<Told>,
    stop: Stop,
    cancel: Arc<AtomicBool>,
}

impl ScriptRun for Handle {
    fn settled(&self, settled: Settled) {
        // A script that has ended hears nothing.
        let _ = self.tell.send(Told::Settled(settled));
    }

    fn cancel(&self) {
        // A script that is busy with its record sees the flag, one that waits wakes up.
        self.cancel.store(true, Ordering::Release);
        let _ = self.tell.send(Told::Cancel);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl ScriptHost for Scripts {
    fn start(&self, start: ScriptStart, say: Say) -> Box<dyn ScriptRun> {
        let (tell, hear) = channel();
        let stop = Stop::default();
        let cancel = Arc::new(AtomicBool::new(false));
        let ears = driver::Ears { hear, stop: stop.clone(), cancel: Arc::clone(&cancel) };
        let said = Arc::clone(&say);
        let stack = OWN_STACK + usize::try_from(start.limits.stack_bytes).unwrap_or(OWN_STACK);
        let name = format!("script {}", start.program.name);
        let run = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| driver::run(start, &said, ears)));
            let ended = ended
                .unwrap_or_else(|_| Some(Err(broken("the script's thread panicked; this is a bug of sage"))));
            if let Some(ended) = ended {
                said(ScriptSays::Ended(ended));
            }
        };
        if let Err(why) = thread::Builder::new().name(name).stack_size(stack).spawn(run) {
            say(ScriptSays::Ended(Err(broken(format!("no thread for the script: {why}")))));
        }
        Box::new(Handle { tell, stop, cancel })
    }
}

fn broken(message: impl Into<String>) -> ScriptFailure {
    ScriptFailure::Broken { message: message.into() }
}
