//! What a role may do, in the words of Claude Code's tools.
//!
//! | role           | tools it does not have   | denied here                          |
//! |----------------|--------------------------|--------------------------------------|
//! | writes nowhere | Edit, Write ...          |                                      |
//! | some folders   |                          | edits elsewhere: by their real path  |
//! | runs nothing   | Bash, Monitor ...        |                                      |
//! | no network     | WebFetch, WebSearch      |                                      |
//!
//! Whatever writes or runs something always asks, whatever the program's own settings allow. Here is only said
//! no: every yes comes from whoever is asked, who knows the project's rules.

use std::path::{Component, Path, PathBuf};

use sage_core::port::{AskKind, PermissionAsk};
use sage_core::role::{Access, Paths};
use serde_json::Value;

use crate::agent::describe;

const WRITES: &[&str] = &["Edit", "Write", "NotebookEdit", "MultiEdit"];
const RUNS: &[&str] = &["Bash", "BashOutput", "KillShell", "Monitor", "PowerShell"];
/// Those of them that begin something.
const ASKED_RUNS: &[&str] = &["Bash", "Monitor", "PowerShell"];
const NETWORK: &[&str] = &["WebFetch", "WebSearch"];
/// Nobody sits in front of it, its turn must end, and where it works is not its own decision.
const NEVER: &[&str] = &[
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
];

/// Tools that the agent does not have, nor have its subagents.
pub fn denied(access: Access) -> Vec<&'static str> {
    let mut denied = NEVER.to_vec();
    let lists = [(access.write, WRITES), (access.run, RUNS), (access.network, NETWORK)];
    lists.iter().filter(|(may, _)| !may).for_each(|(_, tools)| denied.extend(*tools));
    denied
}

/// Tools that ask whatever the program's settings allow. A role without limits leaves out those that its step
/// opens by name, as `Bash` or as `Bash(git *)`.
pub fn asked(access: Access, opened: &[String]) -> Vec<&'static str> {
    let limited = access.paths != Paths::All;
    let is_open = |tool: &str| {
        opened.iter().filter_map(|open| open.strip_prefix(tool)).any(|rest| ["", "("].contains(&first(rest)))
    };
    [WRITES, ASKED_RUNS].concat().into_iter().filter(|tool| limited || !is_open(tool)).collect()
}

fn first(text: &str) -> &str {
    text.get(..1).unwrap_or_default()
}

/// A question of the program in the words of the port.
pub fn question(id: &str, tool: &str, input: &Value, blocked_path: Option<&str>) -> PermissionAsk {
    let mut ask = describe(id, tool, input.clone());
    ask.paths.extend(blocked_path.map(str::to_string).filter(|path| !ask.paths.contains(path)));
    ask
}

/// Why its role alone forbids it; `None` where somebody must be asked.
pub fn forbidden(access: Access, project: &Path, cwd: &Path, ask: &PermissionAsk) -> Option<String> {
    let deny = |why: &str| Some(why.to_string());
    let inside = |path: &String| is_inside(access.paths, project, &cwd.join(path));
    match (ask.kind, access.paths) {
        (AskKind::Write, Paths::Only(folders)) if ask.paths.is_empty() || !ask.paths.iter().all(inside) => {
            Some(format!("your role may only change files in {}", folders.join(" and ")))
        }
        (AskKind::Write, _) if !access.write => deny("your role may not change files"),
        (AskKind::Run, _) if !access.run => deny("your role may not run commands"),
        (AskKind::Network, _) if !access.network => deny("your role may not use the network"),
        _ => None,
    }
}

/// By the real path: a link in an allowed folder does not lead out of it.
fn is_inside(paths: Paths, project: &Path, path: &Path) -> bool {
    let (Some(project), Some(path)) = (real(project), real(path)) else { return false };
    let relative = path.strip_prefix(&project).ok().and_then(Path::to_str);
    relative.is_some_and(|relative| paths.contains(relative))
}

/// What exists of a path is resolved; the rest must be plain names.
fn real(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(mut real) = known.canonicalize() {
            real.extend(rest.iter().rev());
            return Some(real);
        }
        // A link that leads nowhere would be written through.
        if known.is_symlink() {
            return None;
        }
        match known.components().next_back()? {
            Component::Normal(name) => rest.push(name.to_owned()),
            _ => return None,
        }
        known = known.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;
    use serde_json::json;

    use super::*;

    fn write(path: &str) -> PermissionAsk {
        question("1", "Write", &json!({"file_path": path, "content": "x"}), None)
    }

    // covers: R17
    #[test]
    fn a_role_has_only_the_tools_that_it_may_use() {
        let has = |role: Role, tool: &str| !denied(role.access()).contains(&tool);
        assert!(has(Role::Implementer, "Edit") && has(Role::Implementer, "Bash"));
        assert!(has(Role::Implementer, "WebFetch") && !has(Role::Implementer, "AskUserQuestion"));
        assert!(
            !has(Role::Auditor, "Write") && has(Role::Auditor, "Bash") && !has(Role::Auditor, "WebSearch")
        );
        assert!(has(Role::Planner, "Write") && !has(Role::Planner, "Bash") && !has(Role::Planner, "Monitor"));
        assert!(!has(Role::Researcher, "NotebookEdit") && has(Role::Researcher, "WebSearch"));
    }

    // covers: R17
    #[test]
    fn what_writes_or_runs_asks_unless_its_step_has_opened_it() {
        let asks = |role: Role, open: &str, tool: &str| asked(role.access(), &[open.into()]).contains(&tool);
        for role in [Role::Implementer, Role::Auditor, Role::Planner] {
            for tool in ["Bash", "Monitor", "Write", "Edit", "NotebookEdit"] {
                assert!(asks(role, "Read", tool), "{role} {tool}");
            }
        }
        assert!(!asks(Role::Implementer, "Bash", "Bash") && !asks(Role::Implementer, "Bash(git *)", "Bash"));
        assert!(asks(Role::Implementer, "BashOutput", "Bash") && asks(Role::Implementer, "Bash", "Write"));
        assert!(asks(Role::Auditor, "Bash", "Bash") && asks(Role::Planner, "Write", "Write"));
    }

    // covers: R17
    #[test]
    fn edits_of_a_planner_are_decided_by_their_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path();
        for folder in ["docs", "src"] {
            std::fs::create_dir(project.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../src", project.join("docs/link")).unwrap();
        std::os::unix::fs::symlink("../src/gone", project.join("docs/dangling")).unwrap();
        let access = Role::Planner.access();
        let decided = |path: &str| forbidden(access, project, project, &write(path));
        let absolute = project.join("docs/deep/er/b.md");
        for path in ["docs/a.md", "docs/new/a.md", absolute.to_str().unwrap()] {
            assert_eq!(decided(path), None, "{path}");
        }
        for path in ["src/a.rs", "docs/../src/a.rs", "docs/link/a.rs", "docs/dangling", "/etc/passwd", ""] {
            assert!(decided(path).is_some_and(|why| why.contains("docs/")), "{path}");
        }
    }

    // covers: R17
    #[test]
    fn what_a_role_leaves_open_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let decided = |role: Role, ask: &PermissionAsk| forbidden(role.access(), dir.path(), dir.path(), ask);
        let bash = question("1", "Bash", &json!({"command": "make"}), Some("/x"));
        assert_eq!((bash.kind, bash.command.as_deref()), (AskKind::Run, Some("make")));
        assert_eq!(bash.paths, ["/x"]);
        assert_eq!(decided(Role::Implementer, &bash), None);
        assert!(decided(Role::Planner, &bash).is_some() && decided(Role::Auditor, &write("a")).is_some());
        assert_eq!(decided(Role::Implementer, &write(".git/hooks/x")), None);
        let read = |path: &str| question("1", "Read", &json!({ "file_path": path }), None);
        assert_eq!(decided(Role::Observer, &read("a")), None);
        assert_eq!(decided(Role::Observer, &read("/etc/passwd")), None);
        assert_eq!(decided(Role::Observer, &question("1", "mcp__a__b", &json!({}), None)), None);
    }
}
