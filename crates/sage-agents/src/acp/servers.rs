//! MCP servers, from the form of `.mcp.json` to the protocol's.

use agent_client_protocol::v1::schema::{
    EnvVariable, HttpHeader, McpCapabilities, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};
use serde_json::{Map, Value};

use crate::agent::Order;
use crate::outcome::Miss;

pub fn servers(order: &Order, agent: &McpCapabilities) -> Result<Vec<McpServer>, Miss> {
    let value_of = |name: &str| order.config.variable(name);
    order.mcp_servers.iter().map(|(name, server)| convert(name, server, agent, &value_of)).collect()
}

fn convert(
    name: &str,
    server: &Value,
    agent: &McpCapabilities,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<McpServer, Miss> {
    let wrong = |why: &str| Miss::invalid(format!("MCP server `{name}`: {why}"));
    let text = |field: &str| server.get(field).and_then(Value::as_str).map(|text| expanded(text, value_of));
    let pairs = |field: &str| pairs(server.get(field), value_of);
    if let Some(command) = text("command") {
        let list = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let args = list.filter_map(Value::as_str).map(|arg| expanded(arg, value_of)).collect();
        let env = pairs("env").into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
        return Ok(McpServer::Stdio(McpServerStdio::new(name, command).args(args).env(env)));
    }
    let url = text("url").ok_or_else(|| wrong("it has neither `command` nor `url`"))?;
    let headers = pairs("headers").into_iter().map(|(name, value)| HttpHeader::new(name, value)).collect();
    match server.get("type").and_then(Value::as_str).unwrap_or("http") {
        "sse" if agent.sse => Ok(McpServer::Sse(McpServerSse::new(name, url).headers(headers))),
        "http" if agent.http => Ok(McpServer::Http(McpServerHttp::new(name, url).headers(headers))),
        "sse" | "http" => Err(wrong("the agent takes only servers with a `command`")),
        other => Err(wrong(&format!("unknown type `{other}`; known: stdio, http, sse"))),
    }
}

fn pairs(value: Option<&Value>, value_of: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let empty = Map::new();
    let map = value.and_then(Value::as_object).unwrap_or(&empty);
    map.iter().filter_map(|(name, value)| Some((name.clone(), expanded(value.as_str()?, value_of)))).collect()
}

/// `${NAME}` and `${NAME:-default}`, so that no key has to stand in a file.
fn expanded(text: &str, value_of: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
        done.push_str(before);
        done.push_str(&value_of(name).unwrap_or_else(|| default.to_string()));
        rest = behind;
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_keep_what_they_had() {
        let value_of = |name: &str| (name == "KEY").then(|| "secret".to_string());
        let agent = McpCapabilities::new().http(true);
        let made = |server: Value| {
            convert("s", &server, &agent, &value_of).map(|it| serde_json::to_value(it).unwrap())
        };
        let stdio =
            made(json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "${KEY}", "B": "${NO:-b}"}}));
        assert_eq!(
            stdio.unwrap(),
            json!({"name": "s", "command": "npx", "args": ["-y", "x"],
                "env": [{"name": "A", "value": "secret"}, {"name": "B", "value": "b"}]})
        );
        let http =
            made(json!({"type": "http", "url": "http://x", "headers": {"H": "Bearer ${KEY}"}})).unwrap();
        assert_eq!(http["headers"], json!([{"name": "H", "value": "Bearer secret"}]));
        for wrong in
            [json!({}), json!({"type": "sse", "url": "http://x"}), json!({"type": "x", "url": "http://x"})]
        {
            assert!(made(wrong.clone()).is_err(), "{wrong}");
        }
        assert_eq!(expanded("a ${b", &value_of), "a ${b");
    }
}
