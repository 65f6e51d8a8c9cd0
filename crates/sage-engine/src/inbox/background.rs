//! A deliverer beside something else: a run, a supervisor. It looks every 100 ms and ends with its owner.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Inbox;
use super::delivered::Delivered;
use super::delivery::Delivery;
use super::handler::Handler;

const LOOK: Duration = Duration::from_millis(100);
/// For what is there at the end; tries that need longer are left to the next one.
const LAST_LOOK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    total: Delivered,
    problem: Option<String>,
}

impl Background {
    pub fn start(inbox: Inbox, handler: Arc<dyn Handler>) -> Background {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let work = move || theirs.work(Delivery::new(inbox, handler));
        // Without a thread the wakes stay where they are, and the next owner delivers them.
        let thread = std::thread::Builder::new().spawn(work);
        if let Err(error) = &thread {
            shared.lock().problem = Some(error.to_string());
        }
        Background { shared, thread: thread.ok() }
    }

    /// Delivers what is there, then ends. Gives what was done, and the last problem if there was one.
    pub fn finish(mut self) -> (Delivered, Option<String>) {
        self.close();
        let state = self.shared.lock();
        (state.total, state.problem.clone())
    }

    fn close(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A deliverer that broke off has told so on its own.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, mut delivery: Delivery) {
        loop {
            let closed = self.lock().closed;
            let result = if closed { delivery.until_quiet(LAST_LOOK) } else { delivery.pass() };
            let mut state = self.lock();
            match result {
                Ok(delivered) => {
                    state.problem = None;
                    state.total = state.total.then(delivered);
                }
                Err(error) => state.problem = Some(error.to_string()),
            }
            if closed {
                return;
            }
            if !state.closed {
                let waited = self.changed.wait_timeout(state, LOOK);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}
