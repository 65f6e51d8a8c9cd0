//! MCP servers that steps and agents name, as an agent is given them: in the form of `.mcp.json`, with the user's
//! variables in them by name, so that no key stands in a command line.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Looks a server up when an agent needs it: those of the user are read only then.
#[derive(Clone)]
pub struct NamedServers(Arc<Find>);

type Find = dyn Fn(&str) -> Option<Value> + Send + Sync;

impl NamedServers {
    pub fn new(find: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> NamedServers {
        NamedServers(Arc::new(find))
    }

    /// `None` if there is none, or nobody has trusted it.
    pub fn find(&self, name: &str) -> Option<Value> {
        (self.0)(name)
    }
}

impl Default for NamedServers {
    fn default() -> NamedServers {
        NamedServers::new(|_| None)
    }
}

impl fmt::Debug for NamedServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamedServers")
    }
}
