//! Waiting for a session's wake: for agents that know nothing of sage and report by dropping a file.
//!
//! Whoever waits also delivers, so it depends on nobody; a wake that was handled before the waiting began is
//! found in the ledger.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::delivery::{DeliverError, Delivery};
use super::handler::Recorded;
use super::ledger::{Handled, Reader};
use super::{Inbox, Wake};

/// How often the one who waits looks. A look at an empty inbox is three directory listings.
const LOOK: Duration = Duration::from_millis(50);
/// Longer than a file that is being written is left alone.
const SETTLED: Duration = Duration::from_secs(5);

/// Sees the handled wakes of one session, each once, in their order.
#[derive(Debug)]
pub struct Waiter {
    reader: Reader,
    session: String,
    /// Wakes up to this one are known.
    after: Option<String>,
    /// Seen already: a compacted ledger is read from its beginning again.
    seen: std::collections::HashSet<String>,
}

impl Waiter {
    /// What is new since the last look.
    pub fn look(&mut self) -> io::Result<Vec<Wake>> {
        let mut found: Vec<Wake> = Vec::new();
        let (session, after, seen) = (&self.session, &mut self.after, &mut self.seen);
        self.reader.read(&mut |handled: Handled| {
            if after.as_ref() == Some(&handled.wake_id) {
                *after = None;
                seen.extend(found.drain(..).map(|wake| wake.wake_id));
                seen.insert(handled.wake_id);
                return;
            }
            let own = handled.wake.filter(|wake| wake.session_id == *session);
            found.extend(own.filter(|wake| !seen.contains(&wake.wake_id)));
        })?;
        seen.extend(found.iter().map(|wake| wake.wake_id.clone()));
        Ok(found)
    }
}

impl Inbox {
    /// `after` is the id of the last wake that the caller knows; if it is not in the ledger, all count.
    pub fn waiter(&self, session: &str, after: Option<&str>) -> Waiter {
        Waiter {
            reader: Reader::new(&self.dir),
            session: session.into(),
            after: after.map(str::to_string),
            seen: Default::default(),
        }
    }

    /// All handled wakes of a session that the ledger still has, oldest first.
    pub fn handled_of(&self, session: &str) -> io::Result<Vec<Wake>> {
        self.waiter(session, None).look()
    }

    /// The id of the session's newest wake, after what lies in the inbox has been delivered.
    pub fn last_of(&self, session: &str) -> Result<Option<String>, DeliverError> {
        Delivery::new(self.clone(), Arc::new(Recorded)).until_quiet(SETTLED)?;
        let failed =
            |source| DeliverError::Io { what: "read the ledger", dir: self.dir.to_path_buf(), source };
        Ok(self.handled_of(session).map_err(failed)?.pop().map(|wake| wake.wake_id))
    }

    /// Blocks until a wake of the session after `after` was handled; `None` when `stop` says so. Delivers itself.
    pub fn wait_for(
        &self,
        session: &str,
        after: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Wake>, DeliverError> {
        let mut waiter = self.waiter(session, after);
        let mut delivery = Delivery::new(self.clone(), Arc::new(Recorded));
        let failed =
            |source| DeliverError::Io { what: "read the ledger", dir: self.dir.to_path_buf(), source };
        loop {
            // Found wakes first: an inbox that cannot be written may still have been.
            if let Some(wake) = waiter.look().map_err(failed)?.into_iter().next() {
                return Ok(Some(wake));
            }
            if stop() {
                return Ok(None);
            }
            if delivery.pass()?.handled == 0 {
                std::thread::sleep(LOOK);
            }
        }
    }
}
