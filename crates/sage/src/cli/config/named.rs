//! MCP servers that agents are given by name: `[agents.<name>] mcp = [...]`, or `mcp: [...]` of a step.
//!
//! ```text
//! name -> sage.toml [mcp.<name>] -> .mcp.json -> the user's own: ~/.claude.json, ~/.codex/config.toml
//! ```
//! Those of the project count only if they are trusted. An agent starts its servers itself, so it gets definitions,
//! with the user's variables in `env` and `headers` by name; programs of the project keep their place.

use std::path::{Path, PathBuf};

use sage_agents::text_file;
use serde_json::{Map, Value, json};

use super::servers::expanded;

/// Settings of other programs can hold whole histories.
const MAX_BYTES: u64 = 64 << 20;

/// A server of the project as an agent gets it.
pub fn handed(written: &Value, root: &Path) -> Value {
    let variable = |name: &str| std::env::var(name).ok();
    // What cannot be filled in is the agent's to complain about.
    let filled = |text: &str| expanded(text, &variable).unwrap_or_else(|_| text.to_string());
    let text = |name: &str| written[name].as_str().map(filled);
    let kept = |name: &str| written[name].as_object().cloned().unwrap_or_default();
    if let Some(url) = text("url") {
        return json!({"type": "http", "url": url, "headers": kept("headers")});
    }
    let command = text("command").unwrap_or_default();
    let command = if command.contains('/') { root.join(command).display().to_string() } else { command };
    let args = written["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(filled);
    let mut env = inherited(&written["inherit"]);
    env.extend(kept("env"));
    json!({"type": "stdio", "command": command, "args": args.collect::<Vec<_>>(), "env": env})
}

/// Variables of the user that a server wants to see, as far as they are set.
fn inherited(wanted: &Value) -> Map<String, Value> {
    let wanted: Vec<&str> = wanted.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fits = |name: &str| {
        wanted.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        })
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| fits(name));
    names.map(|name| (name.clone(), json!(format!("${{{name}}}")))).collect()
}

/// One of the user's own servers, as Claude Code or Codex have it.
pub fn of_user(name: &str, root: &Path) -> Option<Value> {
    of_claude(name, root).or_else(|| of_codex(name))
}

fn home(variable: &str, folder: &str) -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    path(variable).or_else(|| Some(path("HOME")?.join(folder)))
}

/// Those for all projects, and those that the user has added for this one.
fn of_claude(name: &str, root: &Path) -> Option<Value> {
    let file = home("CLAUDE_CONFIG_DIR", "")?.join(".claude.json");
    let all: Value = serde_json::from_str(&text_file::read(&file, MAX_BYTES).ok()?).ok()?;
    let here = &all["projects"][root.display().to_string()]["mcpServers"][name];
    let found = [here, &all["mcpServers"][name]].into_iter().find(|it| it.is_object())?;
    Some(found.clone())
}

/// In the form of `.mcp.json`.
fn of_codex(name: &str) -> Option<Value> {
    let file = home("CODEX_HOME", ".codex")?.join("config.toml");
    let all: Value = toml::from_str(&text_file::read(&file, MAX_BYTES).ok()?).ok()?;
    let server = Some(&all["mcp_servers"][name]).filter(|it| it.is_object())?;
    let pairs = |field: &str| server[field].as_object().cloned().unwrap_or_default();
    let by_name = |name: &str| json!(format!("${{{name}}}"));
    if let Some(url) = server["url"].as_str() {
        let mut headers = pairs("http_headers");
        let named = pairs("env_http_headers").into_iter();
        headers.extend(named.filter_map(|(header, name)| Some((header, by_name(name.as_str()?)))));
        if let Some(token) = server["bearer_token_env_var"].as_str() {
            headers.insert("Authorization".into(), json!(format!("Bearer ${{{token}}}")));
        }
        return Some(json!({"type": "http", "url": url, "headers": headers}));
    }
    let mut env = pairs("env");
    let passed = server["env_vars"].as_array().into_iter().flatten().filter_map(Value::as_str);
    env.extend(passed.map(|name| (name.to_string(), by_name(name))));
    let args = server["args"].as_array().cloned().unwrap_or_default();
    Some(json!({"type": "stdio", "command": server["command"].as_str()?, "args": args, "env": env}))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R24, R17
    #[test]
    fn a_server_keeps_its_place_and_its_keys_stay_names() {
        let root = Path::new("/srv/shop");
        let own = json!({"command": "./tools/db", "args": ["-x"], "env": {"KEY": "${DB_KEY}"}, "inherit": ["PAT*"]});
        let given = handed(&own, root);
        assert_eq!(
            (&given["command"], &given["env"]["KEY"]),
            (&json!("/srv/shop/./tools/db"), &json!("${DB_KEY}"))
        );
        assert_eq!(given["env"]["PATH"], "${PATH}", "{given}");
        assert!(given["inherit"].is_null());
        assert_eq!(handed(&json!({"command": "npx"}), root)["command"], "npx");
        let web = json!({"url": "https://e/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
        assert_eq!(handed(&web, root)["headers"]["Authorization"], "Bearer ${TOKEN}");
    }
}
