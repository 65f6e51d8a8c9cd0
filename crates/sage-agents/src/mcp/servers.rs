//! The servers that run now: one connection each, shared by all steps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::connection::Connection;
use super::server::McpServer;
use crate::attempt::Attempt;
use crate::outcome::Miss;

/// For a server to write down what it must before it goes.
const FAREWELL: Duration = Duration::from_secs(2);

/// Held while the server starts: who needs it at the same time waits for the same one.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

#[derive(Debug, Default)]
pub struct Servers(Mutex<BTreeMap<String, Slot>>);

impl Servers {
    /// The connection to a server, which is started if it does not run.
    pub async fn get(
        &self,
        name: &str,
        server: &McpServer,
        attempt: &Attempt<'_>,
    ) -> Result<Arc<Connection>, Miss> {
        let slot = self.slots().entry(name.to_owned()).or_default().clone();
        let mut slot = slot.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        // What is left of a dead one goes first.
        *slot = None;
        let connection = Arc::new(Connection::open(name, server, attempt).await?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Ends all of them, at the same time.
    pub async fn close(&self) {
        let slots = std::mem::take(&mut *self.slots());
        let mut closing = tokio::task::JoinSet::new();
        for slot in slots.into_values() {
            // One that is still in use is ended by its lifeline.
            if let Some(connection) = slot.lock().await.take().and_then(Arc::into_inner) {
                closing.spawn(connection.close(FAREWELL));
            }
        }
        closing.join_all().await;
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
