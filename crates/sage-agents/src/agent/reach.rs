//! What an agent may touch: its role, inside of the fence around the project. One rule for all adapters.

use std::path::{Path, PathBuf};

use sage_core::diagnostic::printable;
use sage_core::port::{AskKind, PermissionAsk};
use sage_core::role::{Access, Paths};
use sage_fence::{Fence, Refused};

use super::Order;
use crate::attempt::Attempt;

/// Larger files are not for models.
const FILE_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug)]
pub struct Reach {
    fence: Fence,
    pub access: Access,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the file is not text")]
    NotText,
}

impl Unread {
    /// Whether there is no such file, where the agent may look.
    pub fn is_missing(&self) -> bool {
        matches!(self, Unread::Refused(refused) if refused.is_missing())
    }
}

impl Reach {
    pub fn of(attempt: &Attempt<'_>, order: &Order) -> Reach {
        Reach::new(&attempt.cx.project, &order.cwd, order.access).closing(&attempt.config.private)
    }

    pub fn new(project: &Path, cwd: &Path, access: Access) -> Reach {
        Reach { fence: Fence::around(project, cwd), access }
    }

    #[must_use]
    pub fn closing(self, closed: &[PathBuf]) -> Reach {
        Reach { fence: self.fence.closing(closed), ..self }
    }

    pub fn read(&self, path: &Path) -> Result<String, Unread> {
        let bytes = self.fence.read(path, FILE_BYTES)?;
        String::from_utf8(bytes).map_err(|_| Unread::NotText)
    }

    /// Returns the path below the root that was written.
    pub fn write(&self, path: &Path, content: &str) -> Result<PathBuf, String> {
        self.may_write(path)?;
        self.fence.write(path, content.as_bytes()).map_err(|refused| refused.to_string())
    }

    /// The folder that is meant, for listing it.
    pub fn folder(&self, path: &Path) -> Result<PathBuf, String> {
        let inside = self.fence.readable(path).map_err(|refused| refused.to_string())?;
        Ok(self.fence.root().join(inside))
    }

    /// Whether a path may be read; links are followed.
    pub fn may_read(&self, path: &Path) -> bool {
        self.fence.readable(path).is_ok()
    }

    /// Whether a path leads into the project, allowed or not.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.fence.locate(path).is_ok()
    }

    fn may_write(&self, path: &Path) -> Result<(), String> {
        let inside = self.fence.writable(path).map_err(|refused| refused.to_string())?;
        let inside = inside.to_string_lossy();
        match self.access.paths {
            paths if self.access.write && paths.contains(&inside) => Ok(()),
            Paths::Only(folders) => {
                Err(format!("your role may only change files in {}", folders.join(" and ")))
            }
            _ => Err("your role may not change files".into()),
        }
    }

    /// Why neither the project's rules nor a person can allow it; `None` where they decide.
    pub fn forbids(&self, ask: &PermissionAsk) -> Option<String> {
        let access = self.access;
        let role = |what: &str| Some(format!("your role may not {what}"));
        match ask.kind {
            AskKind::Write if !access.write => role("change files"),
            AskKind::Write if access.paths != Paths::All && ask.paths.is_empty() => {
                role("change files that it does not name")
            }
            AskKind::Write => self.protects(ask).or_else(|| self.forbids_place(ask)),
            AskKind::Run if !access.run => role("run commands"),
            AskKind::Network if !access.network => role("use the network"),
            AskKind::Read => ask.paths.iter().find_map(|path| match self.fence.readable(path.as_ref()) {
                Err(refused @ Refused::Private(_)) => Some(refused.to_string()),
                _ => None,
            }),
            // What such a tool does with a file is not known.
            AskKind::Other => self.protects(ask),
            AskKind::Run | AskKind::Network | AskKind::Question | AskKind::Plan => None,
        }
    }

    fn protects(&self, ask: &PermissionAsk) -> Option<String> {
        let path = ask.paths.iter().find(|path| self.fence.protects(path.as_ref()))?;
        Some(Refused::Protected(printable(path)).to_string())
    }

    /// Elsewhere in the project, and outside of it, a person decides unless the role has folders of its own.
    fn forbids_place(&self, ask: &PermissionAsk) -> Option<String> {
        if self.access.paths == Paths::All {
            return None;
        }
        ask.paths.iter().find_map(|path| self.may_write(path.as_ref()).err())
    }
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;
    use serde_json::json;

    use super::super::describe;
    use super::*;

    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap().join("project");
        for folder in ["docs", "src", ".git/hooks", ".sage/state"] {
            std::fs::create_dir_all(project.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../src", project.join("docs/link")).unwrap();
        std::os::unix::fs::symlink("../src/gone", project.join("docs/dangling")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", project.join("hooks")).unwrap();
        std::fs::write(project.join(".sage/state/serve.json"), "token").unwrap();
        (dir, project)
    }

    fn decided(project: &Path, role: Role, tool: &str, path: &str) -> Option<String> {
        let ask = describe("1", tool, json!({"file_path": path, "content": "x"}));
        Reach::new(project, project, role.access()).forbids(&ask)
    }

    // covers: R17
    #[test]
    fn edits_of_a_planner_are_decided_by_their_real_path() {
        let (_dir, project) = project();
        let write = |path: &str| decided(&project, Role::Planner, "Write", path);
        let absolute = project.join("docs/deep/er/b.md");
        for path in ["docs/a.md", "docs/new/a.md", absolute.to_str().unwrap()] {
            assert_eq!(write(path), None, "{path}");
        }
        for path in ["src/a.rs", "docs/../src/a.rs", "docs/link/a.rs", "docs/dangling", "/etc/passwd", ""] {
            assert!(write(path).is_some(), "{path}");
        }
    }

    // covers: R17
    #[test]
    fn nobody_is_asked_whether_an_agent_may_change_what_configures_agents() {
        let (_dir, project) = project();
        for path in [".git/hooks/x", "hooks/x", "sage.toml", "a/.claude/settings.json", "docs/../.MCP.json"] {
            for tool in ["Write", "Edit", "mcp__files__write"] {
                let told = decided(&project, Role::Implementer, tool, path);
                assert!(told.is_some_and(|why| why.contains("protected")), "{tool} {path}");
            }
        }
        // Elsewhere the project's rules and a person decide.
        assert_eq!(decided(&project, Role::Implementer, "Write", "src/a.rs"), None);
        assert_eq!(decided(&project, Role::Implementer, "Write", "/elsewhere/x"), None);
        assert!(decided(&project, Role::Implementer, "Write", "/elsewhere/.claude/settings.json").is_some());
    }

    // covers: R17
    #[test]
    fn a_role_is_no_question_and_secrets_are_not_read() {
        let (_dir, project) = project();
        let ask = |role: Role, tool: &str, path: &str| decided(&project, role, tool, path);
        assert!(
            ask(Role::Auditor, "Write", "docs/a").is_some_and(|why| why.contains("may not change files"))
        );
        assert!(ask(Role::Planner, "Bash", "").is_some() && ask(Role::Auditor, "WebFetch", "").is_some());
        assert_eq!(ask(Role::Observer, "Read", "src/a.rs"), None);
        assert!(
            ask(Role::Observer, "Read", ".sage/state/serve.json").is_some_and(|why| why.contains("private"))
        );
    }

    // covers: S6, R17
    #[test]
    fn files_are_written_where_the_role_may_write() {
        let (_dir, project) = project();
        let write = |role: Role, path: &str| {
            Reach::new(&project, &project, role.access()).write(Path::new(path), "x")
        };
        write(Role::Planner, "docs/plan.md").unwrap();
        write(Role::Implementer, "new/a/b.rs").unwrap();
        assert!(write(Role::Planner, "src/main.rs").is_err());
        assert!(write(Role::Auditor, "docs/plan.md").is_err());
        assert!(write(Role::Implementer, "docs").is_err(), "a folder");
        assert_eq!(std::fs::read_to_string(project.join("docs/plan.md")).unwrap(), "x");
    }
}
