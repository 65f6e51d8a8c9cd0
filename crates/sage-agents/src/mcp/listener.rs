//! What a server says without being asked: that a call is at work, and that its tools are others now.
//!
//! What it asks of us is declined at once: there is no person in front of it, no model is lent, no folder shown.

#![expect(deprecated, reason = "older servers still ask for what the newest protocol has dropped")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation, ListRootsResult,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use crate::outcome::excerpt;

/// Kept of what was declined: more would say the same.
const MAX_DECLINED: usize = 5;

/// A sign of life of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolProgress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Is told of the progress of one call. Never blocks.
pub type OnProgress = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// Hears what one connection says.
#[derive(Clone, Default)]
pub struct Listener(Arc<Heard>);

#[derive(Default)]
struct Heard {
    /// Counts how often the list of tools has changed.
    changes: AtomicU64,
    calls: Mutex<HashMap<ProgressToken, OnProgress>>,
    /// What was declined, for people.
    declined: Mutex<Vec<String>>,
}

/// The registration of one call; it ends with it.
pub struct Attention {
    listener: Listener,
    token: ProgressToken,
}

impl Listener {
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::SeqCst)
    }

    pub fn has_changed(&self) {
        self.0.changes.fetch_add(1, Ordering::SeqCst);
    }

    pub fn attend(&self, token: ProgressToken, told: OnProgress) -> Attention {
        self.calls().insert(token.clone(), told);
        Attention { listener: self.clone(), token }
    }

    /// What the server has asked for in vain since this was called.
    pub fn take_declined(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.declined.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn decline(&self, what: String) {
        let mut declined = self.0.declined.lock().unwrap_or_else(PoisonError::into_inner);
        if declined.len() < MAX_DECLINED && !declined.contains(&what) {
            declined.push(what);
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, OnProgress>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        self.listener.calls().remove(&self.token);
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("changes", &self.changes()).finish_non_exhaustive()
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("sage", env!("CARGO_PKG_VERSION"));
        // The newest version is another lifecycle, which `initialize` must not name.
        ClientConfig::new(ClientCapabilities::default(), own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let message = match asked {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message,
            _ => "something".into(),
        };
        self.decline(format!(
            "asked `{}`; nobody is there to answer a server, so it was declined",
            excerpt(&message)
        ));
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.decline("asked for a model; sage lends none to servers, so it was declined".into());
        Err(not_here("sage lends no model to servers: sampling is not supported"))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(not_here("roots are not supported"))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let call = self.calls().get(&told.progress_token).cloned();
        if let Some(call) = call {
            call(ToolProgress { progress: told.progress, total: told.total, message: told.message });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed();
    }
}

fn not_here(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}
