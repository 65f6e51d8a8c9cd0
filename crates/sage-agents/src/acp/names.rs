//! Names of tools across agents: a step that allows `Bash` allows what other agents call `run_shell_command`.
//!
//! Agents name a tool call in its `name`, in `_meta`, in its id, or only by its kind.

use agent_client_protocol::v1::schema::{Meta, ToolKind};

/// The same tool, as different agents call it, and its kind. An agent that names no tools has only the kind.
const SAME: &[(ToolKind, &[&str])] = &[
    (ToolKind::Execute, &["Bash", "bash", "exec_command", "run_shell_command", "shell"]),
    (
        ToolKind::Edit,
        &[
            "Edit",
            "MultiEdit",
            "NotebookEdit",
            "Write",
            "edit",
            "edit_file",
            "replace",
            "write",
            "write_file",
        ],
    ),
    (ToolKind::Fetch, &["WebFetch", "fetch", "web_fetch", "webfetch"]),
    (ToolKind::Read, &["NotebookRead", "Read", "read", "read_file", "read_many_files"]),
];

/// Where agents put the name in `_meta`: Qwen, claude-agent-acp.
const META: &[&[&str]] = &[&["toolName"], &["claudeCode", "toolName"]];

/// A tool's name, as `_meta` of a call has it.
pub fn of_meta(meta: &Meta) -> Option<String> {
    META.iter().find_map(|path| {
        let (first, rest) = path.split_first()?;
        let found = rest.iter().try_fold(meta.get(*first)?, |value, key| value.get(key))?;
        found.as_str().filter(|name| !name.is_empty()).map(str::to_string)
    })
}

/// A tool's name, as Gemini makes ids of calls: `replace__replace_1763420000000_0`, `replace-1763420000000-1`.
pub fn of_id(id: &str) -> Option<&str> {
    let repeated = |(at, _)| {
        let (name, rest) = (&id[..at], &id[at + 2..]);
        is_stamp(rest.strip_prefix(name)?.strip_prefix('_')?, '_').then_some(name)
    };
    let plain = |(at, _)| is_stamp(&id[at + 1..], '-').then_some(&id[..at]);
    let found = id.match_indices("__").find_map(repeated).or_else(|| id.match_indices('-').find_map(plain));
    found.filter(|name| !name.is_empty())
}

/// Milliseconds and a count.
fn is_stamp(text: &str, between: char) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(between).is_some_and(|(time, count)| time.len() >= 13 && number(time) && number(count))
}

/// Whether a tool that a step lists is the one of a call.
pub fn covers(listed: &str, name: Option<&str>, kind: Option<ToolKind>) -> bool {
    let is_kind = |kind: ToolKind| serde_json::to_value(kind).is_ok_and(|kind| kind == listed);
    if name == Some(listed) || kind.is_some_and(|kind| kind != ToolKind::Other && is_kind(kind)) {
        return true;
    }
    SAME.iter().filter(|(_, names)| names.contains(&listed)).any(|(of, names)| match name {
        Some(name) => names.contains(&name),
        None => kind == Some(*of),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: S4, S6
    #[test]
    fn a_tool_is_known_under_the_names_of_all_agents() {
        let run = Some(ToolKind::Execute);
        for listed in ["Bash", "run_shell_command", "shell", "execute"] {
            assert!(covers(listed, None, run) && covers(listed, Some("run_shell_command"), run), "{listed}");
        }
        for listed in ["Edit", "edit", "Bash(git *)", "other", ""] {
            assert!(!covers(listed, None, run) && !covers(listed, Some("bash"), run), "{listed}");
        }
        // A name says more than a kind.
        assert!(
            !covers("Bash", Some("kill_process"), run) && covers("kill_process", Some("kill_process"), run)
        );
        assert!(
            !covers("Write", None, Some(ToolKind::Delete)) && covers("Write", None, Some(ToolKind::Edit))
        );
        assert!(!covers("other", Some("mcp_a_b"), Some(ToolKind::Other)));
    }

    #[test]
    fn names_are_found_where_agents_put_them() {
        assert_eq!(of_id("run_shell_command-1763420000000-12"), Some("run_shell_command"));
        assert_eq!(of_id("mcp-a-b-1763420000000-1"), Some("mcp-a-b"));
        assert_eq!(of_id("write_file__write_file_1794977008059_0"), Some("write_file"));
        assert_eq!(of_id("mcp__a__mcp__a_1794977008059_0"), Some("mcp__a"));
        for id in [
            "write_file__other_1794977008059_0",
            "__1794977008059_0",
            "call_1",
            "toolu-12-1",
            "-1763420000000-1",
            "a-1763420000000-",
            "a-b-c",
        ] {
            assert_eq!(of_id(id), None, "{id}");
        }
        let name = |meta: serde_json::Value| of_meta(meta.as_object().unwrap());
        assert_eq!(name(json!({"toolName": "edit"})).as_deref(), Some("edit"));
        assert_eq!(name(json!({"claudeCode": {"toolName": "Bash"}})).as_deref(), Some("Bash"));
        assert_eq!((name(json!({"toolName": 1})), name(json!({}))), (None, None));
    }
}
