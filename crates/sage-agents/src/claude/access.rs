//! What a role may do, in the words of Claude Code's tools.
//!
//! | role           | tools it does not have   | denied here                          |
//! |----------------|--------------------------|--------------------------------------|
//! | writes nowhere | Edit, Write ...          |                                      |
//! | some folders   |                          | edits elsewhere: `Reach`             |
//! | runs nothing   | Bash, Monitor ...        |                                      |
//! | no network     | WebFetch, WebSearch      |                                      |
//! | every role     |                          | edits of files that configure agents |
//!
//! Whatever writes or runs something always asks, whatever the program's own settings allow. Here is only said
//! no: every yes comes from whoever is asked, who knows the project's rules.

use std::path::{Path, PathBuf};

use sage_core::fence::PROTECTED;
use sage_core::port::PermissionAsk;
use sage_core::role::{Access, Paths};
use serde_json::Value;

use crate::agent::{ASK_TOOL, PLAN_TOOL, describe};

const WRITES: &[&str] = &["Edit", "Write", "NotebookEdit", "MultiEdit"];
const RUNS: &[&str] = &["Bash", "BashOutput", "KillShell", "Monitor", "PowerShell"];
/// Those of them that begin something.
const ASKED_RUNS: &[&str] = &["Bash", "Monitor", "PowerShell"];
const NETWORK: &[&str] = &["WebFetch", "WebSearch"];
/// Its turn must end, and where it works and when it plans is not its own decision.
const NEVER: &[&str] = &[
    "EnterPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
];

/// Tools that the agent does not have, nor have its subagents.
pub fn denied(access: Access, asks: bool, plans: bool) -> Vec<&'static str> {
    let mut denied = NEVER.to_vec();
    let lists = [
        (asks, &[ASK_TOOL] as &[_]),
        (plans, &[PLAN_TOOL]),
        (access.write, WRITES),
        (access.run, RUNS),
        (access.network, NETWORK),
    ];
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

/// Rules that no setting and no answer overrides: files that configure agents, and secrets of Sage. What asks is
/// decided by its real path as well; these also hold for tools that a step has opened.
pub fn closed(root: &Path, private: &[PathBuf]) -> Vec<String> {
    let root = literal(root);
    let names = PROTECTED.iter();
    let mut rules: Vec<String> =
        names.flat_map(|name| ["", "/**"].map(|rest| format!("Edit(/{root}/**/{name}{rest})"))).collect();
    for dir in private {
        let dir = literal(dir);
        rules.extend(["state/serve.json", "sessions/**"].map(|rest| format!("Read(/{dir}/{rest})")));
    }
    rules
}

/// A path as a pattern that matches nothing else. Patterns are those of `.gitignore`.
fn literal(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let special = |c: char| "\\*?[]!#".contains(c);
    path.to_string_lossy().chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
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

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    // covers: R17
    #[test]
    fn a_role_has_only_the_tools_that_it_may_use() {
        let has = |role: Role, tool: &str| !denied(role.access(), true, false).contains(&tool);
        assert!(has(Role::Implementer, "Edit") && has(Role::Implementer, "Bash"));
        assert!(has(Role::Implementer, "WebFetch") && !has(Role::Implementer, PLAN_TOOL));
        assert!(
            has(Role::Observer, ASK_TOOL)
                && !denied(Role::Implementer.access(), true, true).contains(&PLAN_TOOL)
        );
        assert!(denied(Role::Implementer.access(), false, false).contains(&ASK_TOOL));
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
}
