//! Agents name their tools as they like; what a tool does is told by its name and what it is given.

use sage_core::port::{AskKind, PermissionAsk};
use serde_json::Value;

use super::inquire::inquiry;

const READS: &[&str] =
    &["Read", "Glob", "Grep", "LS", "NotebookRead", "TodoRead", "TodoWrite", "ToolSearch", "read_file"];
const WRITES: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "edit_file"];
const RUNS: &[&str] =
    &["Bash", "BashOutput", "KillShell", "KillBash", "Monitor", "PowerShell", "shell", "exec_command"];
const NETWORK: &[&str] = &["WebFetch", "WebSearch", "fetch"];
/// Where a tool's input names a file.
const PATHS: &[&str] = &["file_path", "notebook_path", "path"];
const COMMANDS: &[&str] = &["command", "cmd"];

/// The question that a tool call is.
pub fn describe(id: &str, tool: &str, input: Value) -> PermissionAsk {
    if let Some(inquiry) = inquiry(tool, &input) {
        return PermissionAsk::of_person(id, tool, input, inquiry);
    }
    let kind = kind(tool);
    let text = |name: &&str| input.get(*name).and_then(Value::as_str).map(str::to_string);
    let paths = PATHS.iter().filter_map(text).collect();
    let command = COMMANDS.iter().find_map(text).filter(|_| kind == AskKind::Run);
    let (id, tool) = (id.into(), tool.into());
    PermissionAsk { id, tool, kind, paths, command, input, inquiry: None, planning: false }
}

/// What a tool of this name does, as far as it is known.
pub fn kind(tool: &str) -> AskKind {
    let listed =
        [(READS, AskKind::Read), (WRITES, AskKind::Write), (RUNS, AskKind::Run), (NETWORK, AskKind::Network)];
    listed.iter().find(|(names, _)| names.contains(&tool)).map_or(AskKind::Other, |(_, kind)| *kind)
}
