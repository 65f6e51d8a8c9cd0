//! MCP servers: `[mcp.<name>]` of sage.toml, and those that the project's `.mcp.json` names for everybody.
//!
//! `.mcp.json` belongs to others: what is in it and cannot be used is left out with a note, never an error.
//! Only trusted ones are known and have their `${VARIABLES}` filled in; the others are definitions to be shown.

use std::collections::BTreeMap;
use std::path::Path;

use sage_agents::mcp::{Lifecycle, McpServer, check_address};
use sage_agents::text_file;
use serde_json::Value;

use super::file::{File, McpFile};
use super::named::{self, handed};
use super::values::{plain_name, time, wrong};
use super::{FROM_FILE, MAX_BYTES};
use crate::cli::failure::Failure;
use crate::trust::{Definition, Trust};

pub const FILE: &str = ".mcp.json";

#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// Those that may be started, with all variables filled in.
    pub known: BTreeMap<String, McpServer>,
    /// The same, as an agent is given them by name.
    pub handed: BTreeMap<String, Value>,
    /// All, trusted or not.
    pub defined: Vec<Definition>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Servers {
    pub fn of(file: &File, written: &Value, root: &Path, trust: &Trust) -> Result<Servers, Failure> {
        let mut servers = Servers::default();
        let variable = |name: &str| std::env::var(name).ok();
        servers.add_shared(root, &variable, trust);
        for (name, given) in &file.mcp {
            let definition = Definition::server(root, name, FROM_FILE, &written["mcp"][name]);
            let is_trusted = trust.holds(&definition);
            // Errors in it are reported in any case.
            let server = stated(name, given, if is_trusted { &variable } else { &unread })?;
            servers.known.remove(name);
            servers.handed.remove(name);
            if is_trusted {
                servers.known.insert(name.clone(), server);
                servers.handed.insert(name.clone(), handed(&written["mcp"][name], root));
            }
            servers.defined.retain(|it| it.name != definition.name);
            servers.defined.push(definition);
        }
        for server in servers.known.values_mut() {
            server.cwd = Some(root.to_path_buf());
        }
        Ok(servers)
    }

    /// A server as an agent is given it; `None` if there is none, or it is not trusted.
    pub fn named(&self, name: &str, root: &Path) -> Option<Value> {
        let defined = self.defined.iter().any(|it| it.name.strip_prefix("mcp.") == Some(name));
        match self.handed.get(name) {
            None if defined => None,
            None => named::of_user(name, root),
            known => known.cloned(),
        }
    }

    fn add_shared(&mut self, root: &Path, variable: &dyn Fn(&str) -> Option<String>, trust: &Trust) {
        let listed = match read(root) {
            Ok(None) => return,
            Ok(Some(value)) => value,
            Err(why) => return self.notes.push(format!("{FILE} is not used: {why}")),
        };
        for (name, value) in listed["mcpServers"].as_object().into_iter().flatten() {
            // Sage itself, as `sage init` enters it for others: a run that calls it would call itself.
            if is_sage(name, value) {
                continue;
            }
            let definition = Definition::server(root, name, FILE, value);
            let is_trusted = trust.holds(&definition);
            match shared(name, value, if is_trusted { variable } else { &unread }) {
                Ok(server) => {
                    self.known.extend(is_trusted.then(|| (name.clone(), server)));
                    self.handed.extend(is_trusted.then(|| (name.clone(), handed(value, root))));
                    self.defined.push(definition);
                }
                Err(why) => {
                    self.notes.push(format!("`{}` of {FILE} is not used: {why}", name.escape_debug()));
                }
            }
        }
    }
}

/// For definitions that are not trusted: no variable of the user's is read.
fn unread(name: &str) -> Option<String> {
    Some(format!("${{{name}}}"))
}

fn is_sage(name: &str, value: &Value) -> bool {
    let program = value["command"].as_str().and_then(|command| command.rsplit('/').next());
    name == "sage" && program == Some("sage") && value["args"][0] == "mcp"
}

fn stated(
    name: &str,
    given: &McpFile,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<McpServer, Failure> {
    let key = format!("mcp.{name}");
    plain_name(&key, name)?;
    let timeout = given.timeout.as_ref();
    let mut server = McpServer {
        timeout_ms: timeout.map(|limit| time(&format!("{key}.timeout"), limit)).transpose()?,
        parallel: given.parallel,
        ..McpServer::default()
    };
    if given.parallel == Some(0) {
        return Err(wrong(&format!("{key}.parallel"), "it must be at least 1"));
    }
    if let Some(lifecycle) = &given.lifecycle {
        server.lifecycle = Lifecycle::named(lifecycle).ok_or_else(|| {
            wrong(&format!("{key}.lifecycle"), format!("`{}` is none", lifecycle.escape_debug()))
                .hint("lifecycle = \"auto\", \"initialize\" or \"discover\"")
        })?;
    }
    match (&given.command, &given.url) {
        (Some(_), Some(_)) => {
            return Err(wrong(&key, "it has a `command` and a `url`: a server is started or reached")
                .hint(format!("[mcp.{name}] with one of the two in sage.toml")));
        }
        (None, Some(url)) => {
            check_address(url).map_err(|why| wrong(&format!("{key}.url"), format!("it {why}")))?;
            server.url = Some(url.clone());
            // A secret belongs in the environment, not in a file that others read.
            let header = |(header, value): (&String, &String)| {
                let value = expanded(value, variable)
                    .map_err(|why| wrong(&format!("{key}.headers.{header}"), why))?;
                Ok((header.clone(), value))
            };
            server.headers = given.headers.iter().map(header).collect::<Result<_, Failure>>()?;
        }
        (command, None) => {
            server.command = command.clone().unwrap_or_default();
            if server.command.trim().is_empty() {
                return Err(wrong(&format!("{key}.command"), "it is empty").hint(format!(
                    "[mcp.{name}] command = \"program\", or url = \"https://...\", in sage.toml"
                )));
            }
            (server.args, server.env) = (given.args.clone(), given.env.clone());
            let odd = given.inherit.iter().find(|name| !is_variable(name));
            if let Some(odd) = odd {
                let message = format!("`{}` is not a variable's name", odd.escape_debug());
                return Err(
                    wrong(&format!("{key}.inherit"), message).hint("inherit = [\"GITHUB_TOKEN\", \"AWS_*\"]")
                );
            }
            server.inherit = given.inherit.clone();
        }
    }
    Ok(server)
}

/// A definition means one thing, to whoever reads it and to whoever starts it.
pub(super) fn refuse_both(value: &Value) -> Result<(), String> {
    let both = !value["command"].is_null() && !value["url"].is_null();
    if both { Err("it has a `command` and a `url`: a server is started or reached".into()) } else { Ok(()) }
}

/// The name of a variable, or the beginning of names with a `*`.
fn is_variable(name: &str) -> bool {
    let start = name.strip_suffix('*').unwrap_or(name);
    !name.is_empty() && start.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read(root: &Path) -> Result<Option<Value>, String> {
    match text_file::read_in(root, &root.join(FILE), MAX_BYTES) {
        // The sandbox of an agent holds the place of a file that is not there with an empty one.
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn shared(name: &str, value: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<McpServer, String> {
    plain_name(FILE, name).map_err(|_| "its name has spaces, `/` or `:`".to_string())?;
    let text = |value: &Value| {
        let text = value.as_str().ok_or("`command`, `args`, `env`, `url` and `headers` are texts")?;
        expanded(text, variable)
    };
    let texts = |value: &Value| {
        let pairs = value.as_object().into_iter().flatten();
        pairs.map(|(name, value)| Ok((name.clone(), text(value)?))).collect::<Result<_, String>>()
    };
    refuse_both(value)?;
    let by_default = if value["url"].is_string() { "http" } else { "stdio" };
    match value["type"].as_str().unwrap_or(by_default) {
        "stdio" => {
            let args = value["args"].as_array().into_iter().flatten().map(text);
            let command = text(&value["command"])?;
            if command.trim().is_empty() {
                return Err("its `command` is empty".into());
            }
            let (args, env) = (args.collect::<Result<_, _>>()?, texts(&value["env"])?);
            let inherit = value["inherit"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let inherit = inherit.filter(|name| is_variable(name)).map(str::to_string).collect();
            Ok(McpServer { command, args, env, inherit, ..McpServer::default() })
        }
        "http" | "streamable-http" => {
            let url = text(&value["url"])?;
            if !url.contains("${") {
                check_address(&url).map_err(|why| format!("its `url` {why}"))?;
            }
            Ok(McpServer { url: Some(url), headers: texts(&value["headers"])?, ..McpServer::default() })
        }
        "sse" => Err("`sse` is the transport of 2024, which no server needs any more: ask for `http`".into()),
        other => Err(format!("its type `{}` is not known; known: stdio, http", other.escape_debug())),
    }
}

/// `${NAME}` and `${NAME:-what it is if NAME is not set}`; anything else stays as it is.
pub(super) fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut rest, mut out) = (text, String::new());
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else { break };
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, it)| (name, Some(it)));
        let set = variable(name).filter(|value| default.is_none() || !value.is_empty());
        let value = set.or(default.map(str::to_string));
        out.push_str(before);
        out.push_str(&value.ok_or_else(|| format!("the variable `{name}` is not set"))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        [("HOME", "/opt/me"), ("EMPTY", "")].iter().find(|(it, _)| *it == name).map(|(_, v)| v.to_string())
    }

    #[test]
    fn variables_are_filled_in() {
        let expand = |text: &str| expanded(text, &variable);
        assert_eq!(expand("a ${HOME}/x ${HOME:-no}"), Ok("a /opt/me/x /opt/me".into()));
        assert_eq!(expand("${NONE:-a:-b}${EMPTY:-c}${EMPTY}"), Ok("a:-bc".into()));
        assert_eq!(expand("$HOME ${HOME"), Ok("$HOME ${HOME".into()));
        assert_eq!(expand("${NONE}"), Err("the variable `NONE` is not set".into()));
    }

    // covers: R24
    #[test]
    fn the_servers_of_others_are_used_where_possible() {
        let dir = tempfile::tempdir().unwrap();
        let (root, path) = (dir.path(), dir.path().join(FILE));
        let mut servers = Servers::default();
        servers.add_shared(root, &variable, &Trust::load(None, &path));
        assert!(servers.defined.is_empty() && servers.notes.is_empty(), "no file");
        let text = r#"{"mcpServers": {
            "sage": {"type": "stdio", "command": "sage", "args": ["mcp"]},
            "good": {"command": "${HOME}/it", "args": ["-x", "${NONE:-y}"], "env": {"A": "b"}},
            "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"A": "Bearer ${HOME}"}},
            "near": {"url": "http://127.0.0.1:1/mcp"}, "open": {"type": "http", "url": "http://example.com"},
            "old": {"type": "sse", "url": "https://example.com"},
            "both": {"type": "stdio", "url": "https://example.com/mcp", "command": "./evil.sh"},
            "a b": {"command": "x"}, "lost": {"command": "${NONE}"}, "odd": {"command": 5}}}"#;
        std::fs::write(&path, text).unwrap();
        let mut trust = Trust::load(Some(dir.path().join("user")), dir.path());
        let mut seen = Servers::default();
        seen.add_shared(root, &|name| panic!("`{name}` is read for a server that is not trusted"), &trust);
        assert!(seen.known.is_empty(), "{:?}", seen.known);
        let names: Vec<&str> = seen.defined.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["mcp.good", "mcp.web", "mcp.near", "mcp.lost"]);
        trust.add(&seen.defined, "me", "now").unwrap();
        servers.add_shared(root, &variable, &trust);
        let good = &servers.known["good"];
        assert_eq!((good.command.as_str(), good.args.join(" ").as_str()), ("/opt/me/it", "-x y"));
        assert_eq!((good.env["A"].as_str(), servers.known.len(), servers.notes.len()), ("b", 3, 6));
        assert_eq!(servers.known["web"].headers["A"], "Bearer /opt/me");
        assert_eq!(servers.known["near"].url.as_deref(), Some("http://127.0.0.1:1/mcp"));
        let noted =
            |name: &str, why: &str| servers.notes.iter().any(|it| it.contains(name) && it.contains(why));
        assert!(noted("`old`", "ask for `http`") && noted("`open`", "must begin with https"));
        assert!(noted("`both`", "it has a `command` and a `url`"));
        std::fs::write(&path, "{").unwrap();
        servers.add_shared(root, &variable, &trust);
        assert!(servers.notes[6].starts_with(".mcp.json is not used: "), "{:?}", servers.notes);
    }
}
