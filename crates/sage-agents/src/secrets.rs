//! Which values this process sends to agents, endpoints and servers and must never keep: keys and passwords in
//! its environment, in the configuration of agents and servers, and in the variables of a step.

use std::ffi::OsString;

use sage_core::secret::{Known, Redactor, of_header, of_variable};
use serde_json::{Map, Value};

use crate::agent::AgentConfig;
use crate::executor::ExecutorConfig;
use crate::mcp::McpServer;

/// Finds what the environment and the configuration hold.
pub fn redactor(config: &ExecutorConfig) -> Redactor {
    let user = std::env::vars().filter_map(|(name, value)| of_variable(&name, &value));
    let agents = config.agents.values().flat_map(of_agent);
    let servers = config.servers.values().flat_map(of_server);
    Redactor::new(user.chain(agents).chain(servers))
}

/// Those among the variables that a step gives to its program.
pub fn of_step(env: &[(OsString, OsString)]) -> Vec<Known> {
    let known = |(name, value): &(OsString, OsString)| of_variable(name.to_str()?, value.to_str()?);
    env.iter().filter_map(known).collect()
}

fn of_agent(agent: &AgentConfig) -> Vec<Known> {
    let mut known: Vec<Known> =
        agent.env.iter().filter_map(|(name, value)| of_variable(name, value)).collect();
    // Named as a key, whatever it is called.
    let key = agent.api_key_env.as_ref().and_then(|name| Some((name.clone(), agent.variable(name)?)));
    known.extend(key.map(|(name, value)| Known { name, value }));
    known.extend(of_servers(&agent.mcp_servers));
    known
}

/// Of servers that an agent starts or calls itself.
pub fn of_servers(servers: &Map<String, Value>) -> Vec<Known> {
    let mut known = Vec::new();
    for server in servers.values() {
        let texts = |part: &str| {
            let pairs = server[part].as_object().into_iter().flatten();
            // The name of a variable is no secret, and its value is known by that name.
            let pairs = pairs.filter(|(_, value)| !value.as_str().is_some_and(|value| value.contains("${")));
            pairs.filter_map(|(name, value)| Some((name.clone(), Value::as_str(value)?.to_string())))
        };
        known.extend(texts("env").filter_map(|(name, value)| of_variable(&name, &value)));
        known.extend(texts("headers").filter_map(|(name, value)| of_header(&name, &value)));
    }
    known
}

fn of_server(server: &McpServer) -> Vec<Known> {
    let env = server.env.iter().filter_map(|(name, value)| of_variable(name, value));
    let headers = server.headers.iter().filter_map(|(name, value)| of_header(name, value));
    env.chain(headers).collect()
}
