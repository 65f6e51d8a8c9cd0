//! One call of a tool: the project as it is now, who calls, how long it may take.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{InputResponses, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::Semaphore;

use super::error::{Code, ToolError};
use super::workshop::Workshop;
use crate::cli::context::Context;
use crate::code::CodeMode;

/// Clients give up after 60 seconds, some earlier; every call has answered by then.
pub const LIMIT: Duration = Duration::from_millis(44_500);
/// Of these a call may spend on waiting; the rest is for what it does before and after.
pub const MAX_WAIT_MS: u64 = 40_000;

#[derive(Clone)]
pub struct Call {
    directory: PathBuf,
    /// What may be at the disk at once, over all calls.
    slots: Arc<Semaphore>,
    workshop: Arc<Workshop>,
    pub started: Instant,
    pub request: RequestContext<RoleServer>,
    /// What the client has asked its user, and the state that it was given for it.
    pub responses: Option<InputResponses>,
    pub state: Option<String>,
    /// What the client says its user answered counts.
    pub person: bool,
}

impl Call {
    pub fn new(
        directory: PathBuf,
        slots: Arc<Semaphore>,
        workshop: Arc<Workshop>,
        request: RequestContext<RoleServer>,
    ) -> Call {
        let (responses, state) = (None, None);
        Call { directory, slots, workshop, started: Instant::now(), request, responses, state, person: false }
    }

    pub fn by_person(self, person: bool) -> Call {
        Call { person, ..self }
    }

    /// With what the client was asked for before.
    pub fn with(self, responses: Option<InputResponses>, state: Option<String>) -> Call {
        Call { responses, state, ..self }
    }

    /// The client can show a form to its user.
    pub fn can_elicit(&self) -> bool {
        let can = self.request.client_capabilities().and_then(|can| can.elicitation);
        can.is_some_and(|can| can.form.is_some() || can.url.is_none())
    }

    /// Every request of the client stands for itself (since 2026-07-28): nothing can be asked in the middle of one.
    pub fn is_stateless(&self) -> bool {
        self.request.meta.protocol_version().is_some()
    }

    pub fn peer(&self) -> &Peer<RoleServer> {
        &self.request.peer
    }

    pub fn token(&self) -> Option<ProgressToken> {
        self.request.meta.get_progress_token()
    }

    /// The way by which its user answered: `mcp` and the client's name.
    pub fn client(&self) -> String {
        let name = self.request.client_info().map(|info| info.name.clone()).unwrap_or_default();
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().filter(plain).take(40).collect();
        if name.is_empty() { "mcp".into() } else { format!("mcp ({name})") }
    }

    /// Where code of models runs, with the servers that the project has now.
    pub async fn code_mode(&self) -> Result<Arc<CodeMode>, ToolError> {
        let workshop = self.workshop.clone();
        self.blocking(move |context| Ok(workshop.of(context))).await
    }

    /// Does what touches the disk, with the configuration as it is now.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Context) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let directory = self.directory.clone();
        self.threaded(move || work(&Context::find(Some(&directory))?)).await
    }

    /// On a thread of its own: whoever hangs there hangs alone, the call itself has a limit.
    pub async fn threaded<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let slot = self.slots.clone().acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        done.await.unwrap_or_else(|error| {
            let message = format!("this is a mistake in sage: {error}");
            Err(ToolError::new(Code::Filesystem, message).hint("tell its authors what you called"))
        })
    }
}
