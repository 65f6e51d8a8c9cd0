//! A server without tools, until the real one is here.

use rmcp::ServerHandler;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};

use crate::cli::context::Context;

#[derive(Clone, Debug)]
pub struct SageServer;

impl SageServer {
    pub fn new(_context: Context) -> SageServer {
        SageServer
    }
}

impl ServerHandler for SageServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("sage", env!("CARGO_PKG_VERSION")))
    }
}
