//! MCP servers of the order as `mcp_servers.<name>` settings: from the form of `.mcp.json` to codex's own.
//!
//! Keys never appear in the command line: `${NAME}` becomes the name of a variable that codex reads itself.
//! The user's own servers, from codex's own configuration, stay as they are.
//!
//! `codex exec` cannot ask, so a tool that needs an approval is denied. Each server has its mode: all of its tools are
//! allowed for roles that may do everything, those that say that they only read for the others.

use sage_core::role::{Access, Paths, Role};
use serde_json::{Map, Value};

use super::toml_text::{list, table, text};
use crate::outcome::Miss;

pub fn settings(servers: &Map<String, Value>, access: Access) -> Result<Vec<String>, Miss> {
    servers.iter().map(|(name, server)| setting(name, server, access)).collect()
}

/// Why codex cannot use a server, whatever the role.
pub fn refuses(name: &str, server: &Value) -> Option<String> {
    match setting(name, server, Role::Implementer.access()) {
        Err(Miss::Failed { message, .. }) => Some(message),
        _ => None,
    }
}

/// Codex's word for what needs no approval: everything, or all but what writes.
fn approval(access: Access) -> &'static str {
    let all = access.write && access.paths == Paths::All && access.run && access.network;
    if all { "approve" } else { "writes" }
}

fn setting(name: &str, server: &Value, access: Access) -> Result<String, Miss> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let message =
            format!("codex cannot use the MCP server `{name}`: its name needs a-z, 0-9, - and _ only");
        return Err(Miss::invalid(message));
    }
    let wrong = |what: &str| Miss::invalid(format!("MCP server `{name}`: {what}"));
    let mut fields = match (server["command"].as_str(), server["url"].as_str()) {
        (Some(command), _) => local(command, server).map_err(|what| wrong(&what))?,
        (None, Some(url)) => remote(url, server).map_err(|what| wrong(&what))?,
        (None, None) => return Err(wrong("it has neither `command` nor `url`")),
    };
    fields.push(("default_tools_approval_mode", text(approval(access))));
    Ok(format!("mcp_servers.{name}={}", table(fields.iter().map(|(name, value)| (*name, value.clone())))))
}

type Fields = Vec<(&'static str, String)>;

fn local(command: &str, server: &Value) -> Result<Fields, String> {
    let mut fields = vec![("command", text(literal(command)?))];
    if let Some(args) = server["args"].as_array() {
        let args: Option<Vec<&str>> = args.iter().map(Value::as_str).collect();
        let args = args.ok_or("`args` is not a list of texts")?;
        args.iter().try_for_each(|arg| literal(arg).map(drop))?;
        fields.push(("args", list(args)));
    }
    let (mut given, mut passed) = (Vec::new(), Vec::new());
    for (name, value) in pairs(server, "env")? {
        match variable(value) {
            Some(variable) if variable == name => passed.push(name),
            _ => given.push((name, text(literal(value)?))),
        }
    }
    fields.extend((!given.is_empty()).then(|| ("env", table(given))));
    fields.extend((!passed.is_empty()).then(|| ("env_vars", list(passed))));
    Ok(fields)
}

fn remote(url: &str, server: &Value) -> Result<Fields, String> {
    let mut fields = vec![("url", text(literal(url)?))];
    let (mut given, mut passed) = (Vec::new(), Vec::new());
    for (name, value) in pairs(server, "headers")? {
        let bearer = value.strip_prefix("Bearer ").filter(|_| name.eq_ignore_ascii_case("authorization"));
        if let Some(variable) = bearer.and_then(variable) {
            fields.push(("bearer_token_env_var", text(variable)));
        } else if let Some(variable) = variable(value) {
            passed.push((name, text(variable)));
        } else {
            given.push((name, text(literal(value)?)));
        }
    }
    fields.extend((!given.is_empty()).then(|| ("http_headers", table(given))));
    fields.extend((!passed.is_empty()).then(|| ("env_http_headers", table(passed))));
    Ok(fields)
}

fn pairs<'a>(server: &'a Value, name: &str) -> Result<Vec<(&'a str, &'a str)>, String> {
    let Some(fields) = server.get(name) else { return Ok(Vec::new()) };
    let pairs = fields.as_object().map(|fields| fields.iter().map(|(k, v)| Some((k.as_str(), v.as_str()?))));
    pairs.and_then(Iterator::collect).ok_or_else(|| format!("`{name}` is not a table of texts"))
}

/// `NAME` of `${NAME}`.
fn variable(value: &str) -> Option<&str> {
    let name = value.strip_prefix("${")?.strip_suffix('}')?;
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

fn literal(value: &str) -> Result<&str, String> {
    if value.contains("${") {
        return Err(format!(
            "codex cannot fill in `{value}`; it knows `${{NAME}}` as the value of the variable NAME, as a whole \
             header, or after `Bearer `"
        ));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(servers: Value) -> Result<Vec<String>, Miss> {
        settings(servers.as_object().unwrap(), Role::Implementer.access())
    }

    // covers: S6
    #[test]
    fn roles_that_may_not_do_everything_use_only_tools_that_read() {
        let mode = |role: Role| approval(role.access());
        assert_eq!((mode(Role::Implementer), mode(Role::Auditor)), ("approve", "writes"));
        assert_eq!((mode(Role::Planner), mode(Role::Observer)), ("writes", "writes"));
    }

    #[test]
    fn servers_are_told_in_codex_own_words_and_keys_stay_out_of_sight() {
        let local =
            json!({"sage": {"command": "sage", "args": ["mcp", "a b"], "env": {"A": "1", "KEY": "${KEY}"}}});
        let told = r#"mcp_servers.sage={"command"="sage","args"=["mcp","a b"],"env"={"A"="1"},"env_vars"=["KEY"],"default_tools_approval_mode"="approve"}"#;
        assert_eq!(of(local), Ok(vec![told.into()]));
        let remote = json!({"web": {"type": "http", "url": "http://x/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X-A": "1", "X-B": "${B}"}}});
        let told = r#"mcp_servers.web={"url"="http://x/mcp","bearer_token_env_var"="TOKEN","http_headers"={"X-A"="1"},"env_http_headers"={"X-B"="B"},"default_tools_approval_mode"="approve"}"#;
        assert_eq!(of(remote), Ok(vec![told.into()]));
    }

    #[test]
    fn what_codex_would_misunderstand_is_told_before_it_starts() {
        for (servers, why) in [
            (json!({"a.b": {"command": "x"}}), "its name needs"),
            (json!({"a": {}}), "neither `command` nor `url`"),
            (json!({"a": {"command": "x", "args": [1]}}), "`args` is not a list of texts"),
            (json!({"a": {"command": "x", "env": {"A": 1}}}), "`env` is not a table of texts"),
            (json!({"a": {"command": "x", "args": ["${HOME}/y"]}}), "cannot fill in"),
            (json!({"a": {"url": "x", "headers": {"A": "k ${K}"}}}), "cannot fill in"),
        ] {
            let Err(Miss::Failed { message, .. }) = of(servers) else { panic!("{why}") };
            assert!(message.contains(why), "{message}");
        }
    }
}
