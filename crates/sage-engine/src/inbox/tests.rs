mod delivering;
mod dropping;
mod dying;
mod posting;
mod reading;
mod telling;
mod waiting;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;

/// Far beyond what anything here takes: only a hang gets there.
const DEADLINE: Duration = Duration::from_secs(60);

struct Place {
    dir: tempfile::TempDir,
    inbox: Inbox,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(dir.path().join("inbox"));
        Place { dir, inbox }
    }

    /// With its directories, so that a file can be dropped.
    fn ready() -> Place {
        let place = Place::new();
        place.inbox.prepare().unwrap();
        place
    }

    fn post(&self, session: &str, summary: &str) -> Wake {
        let wake = wake(session, summary);
        self.inbox.post(&wake).unwrap();
        wake
    }

    fn drop_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.inbox.new_dir().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn deliver(&self, handler: &Arc<Notebook>) -> Delivered {
        Delivery::new(self.inbox.clone(), handler.clone()).until_quiet(DEADLINE).unwrap()
    }

    /// Summaries in the order of the ledger.
    fn handled(&self) -> Vec<String> {
        let all = self.inbox.handled().unwrap();
        all.into_iter().map(|handled| handled.wake.unwrap().summary).collect()
    }
}

fn wake(session: &str, summary: &str) -> Wake {
    Wake { summary: summary.into(), ..Wake::new(WakeType::Complete, session) }
}

/// A handler that notes what it was given, and fails for summaries with `poison` in them.
#[derive(Default)]
struct Notebook {
    calls: Mutex<Vec<String>>,
}

impl Notebook {
    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

impl Handler for Notebook {
    fn handle(&self, wake: &Wake) -> Result<(), HandleError> {
        self.calls.lock().unwrap().push(wake.summary.clone());
        if wake.summary.contains("poison") { Err(HandleError("it is poison".into())) } else { Ok(()) }
    }
}

#[track_caller]
fn wait_until(mut done: impl FnMut() -> bool, what: &str) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < DEADLINE, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
