//! What a server's program sees of the user's environment: what every program needs, and what the configuration
//! names. Keys of other services stay here.
//!
//! The list is that of the reference SDKs (HOME, LOGNAME, PATH, SHELL, TERM, USER) with what decides about
//! language, time zone and the places of temporary and cached files. Proxies are not in it: their addresses
//! can hold passwords. `inherit` names more, `env` sets values.

use std::ffi::{OsStr, OsString};

use super::server::McpServer;

/// Names, or beginnings of names with a `*`.
const INHERITED: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Variables that a hint names.
const HINTED: usize = 3;

/// What programs say that miss a variable.
const COMPLAINTS: &[&str] =
    &["environment", "variable", "not set", "api key", "api_key", "token", "credential"];

type Variable = (OsString, OsString);

/// What the server gets of `user`, before its own `env`.
pub fn inherited(server: &McpServer, user: impl IntoIterator<Item = Variable>) -> Vec<Variable> {
    let wanted = |(name, value): &Variable| is_inherited(server, name) && !is_function(value);
    user.into_iter().filter(wanted).collect()
}

fn is_inherited(server: &McpServer, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let known = INHERITED.iter().copied().chain(server.inherit.iter().map(String::as_str));
    known.into_iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    })
}

/// A function that bash has exported would be run by the next bash.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

/// What to do about a server that ended at its start, if it seems to miss a variable. Those that it complains
/// about and that the user has are named.
pub fn hint(
    name: &str,
    server: &McpServer,
    words: &str,
    user: impl IntoIterator<Item = Variable>,
) -> Option<String> {
    let mentioned = |variable: &str| {
        let mut parts = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        parts.any(|part| part == variable)
    };
    let missed = user.into_iter().filter_map(|(variable, _)| variable.into_string().ok());
    let missed = missed.filter(|variable| {
        variable.len() > 2 && mentioned(variable) && !is_inherited(server, variable.as_ref())
    });
    let mut missed: Vec<String> = missed.filter(|variable| !server.env.contains_key(variable)).collect();
    missed.sort();
    missed.truncate(HINTED);
    if !missed.is_empty() {
        let named: Vec<String> = missed.iter().map(|variable| format!("{variable:?}")).collect();
        return Some(format!("[mcp.{name}] inherit = [{}] passes these variables on", named.join(", ")));
    }
    let lower = words.to_lowercase();
    let complains = COMPLAINTS.iter().any(|complaint| lower.contains(complaint));
    let general = || format!("a server sees few environment variables; `inherit` in [mcp.{name}] names more");
    complains.then(general)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Vec<Variable> {
        let pairs = [
            ("HOME", "/h"),
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "k"),
            ("AWS_REGION", "r"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("HTTPS_PROXY", "http://u:p@h"),
            ("TERM", "() { evil; }"),
        ];
        pairs.map(|(name, value)| (name.into(), value.into())).into()
    }

    fn names(server: &McpServer) -> Vec<String> {
        inherited(server, user()).into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    // covers: R17, R24
    #[test]
    fn a_server_sees_what_programs_need_and_what_is_named() {
        assert_eq!(names(&McpServer::default()), ["HOME", "PATH", "LC_ALL"]);
        let server =
            McpServer { inherit: vec!["AWS_*".into(), "HTTPS_PROXY".into()], ..McpServer::default() };
        assert_eq!(
            names(&server),
            ["HOME", "PATH", "LC_ALL", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"]
        );
    }

    // covers: R24
    #[test]
    fn a_hint_names_what_the_server_complains_about() {
        let told = |words: &str| hint("x", &McpServer::default(), words, user()).unwrap_or_default();
        assert_eq!(
            told("Error: ANTHROPIC_API_KEY is not set (HOME=/h)"),
            "[mcp.x] inherit = [\"ANTHROPIC_API_KEY\"] passes these variables on"
        );
        assert!(told("no credentials found").contains("`inherit` in [mcp.x]"));
        assert_eq!(told("it broke"), "");
    }
}
