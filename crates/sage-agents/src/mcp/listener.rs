//! What a server says without being asked: that a call is at work, and that its tools are others now.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RoleClient};

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
