//! Code mode as long as the server lives: its sessions keep what they hold between calls, and the project's MCP
//! servers are started once. Nothing is there before somebody uses it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cli::context::Context;
use crate::code::{Author, CodeMode};

#[derive(Debug, Default)]
pub struct Workshop(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    /// The servers that it knows and the rules for them; with others it is made anew.
    servers: String,
    mode: Arc<CodeMode>,
}

impl Workshop {
    pub fn of(&self, context: &Context) -> Arc<CodeMode> {
        let config = &context.config;
        let servers = format!("{:?} {:?}", config.servers.known, config.approvals.rules);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.as_ref().filter(|open| open.servers == servers) {
            Some(open) => open.mode.clone(),
            None => {
                let mode = Arc::new(context.code_mode(context.hub(), Author::Model));
                *open = Some(Open { servers, mode: mode.clone() });
                mode
            }
        }
    }
}
