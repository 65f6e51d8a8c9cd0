//! What a server says without being asked: only that it is at work.

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::watch;

/// Counts the signs of progress of one connection.
#[derive(Clone, Debug)]
pub struct Listener(pub watch::Sender<u64>);

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("sage", env!("CARGO_PKG_VERSION"));
        // The newest version is another lifecycle, which `initialize` must not name.
        ClientConfig::new(ClientCapabilities::default(), own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.send_modify(|count| *count += 1);
    }
}
