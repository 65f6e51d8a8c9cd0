//! How questions of agents are answered where no person does: rules, what is known of the project, deadlines.
//!
//! The decision itself is `sage_core::approval`, which is pure; here are the files that it depends on: real paths,
//! the project's checks, answers that were kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sage_core::approval::{Checks, Judge, Listed, Lists, Mode, Rules, Site, Verdict};
use sage_core::port::{AskKind, PermissionAsk};
use sage_core::role::Access;
use serde_json::Value;

/// Where a tool's input says that its command runs.
const DIRECTORIES: [&str; 5] = ["cwd", "directory", "workdir", "dir_path", "working_directory"];

#[derive(Clone, Debug)]
pub struct Approvals {
    pub rules: Rules,
    /// Rules of other programs' settings.
    pub lists: Lists,
    /// `None`: a question waits for ever. 0: nobody is asked.
    pub deadline_ms: Option<u64>,
    /// After one question that nobody answered, later ones of the run are not waited for.
    pub once: bool,
    pub allow_by_default: bool,
    pub known: Arc<dyn Known>,
}

impl Default for Approvals {
    fn default() -> Approvals {
        Approvals {
            rules: Rules::default(),
            lists: Lists::default(),
            deadline_ms: None,
            once: false,
            allow_by_default: false,
            known: Arc::new(Nothing),
        }
    }
}

/// What is known of a project beside its rules. Reads files.
pub trait Known: Send + Sync + std::fmt::Debug {
    /// How what is in `root` is built and tested.
    fn checks(&self, root: &Path) -> Checks;

    /// Answers that a person gave for all time.
    fn kept(&self) -> Vec<Listed>;
}

#[derive(Clone, Copy, Debug)]
struct Nothing;

impl Known for Nothing {
    fn checks(&self, _root: &Path) -> Checks {
        Checks::default()
    }

    fn kept(&self) -> Vec<Listed> {
        Vec::new()
    }
}

/// What `Known` said for one question.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub checks: Checks,
    pub kept: Vec<Listed>,
}

/// Who asks, and from where.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The project, or the worktree in its place.
    pub root: &'a Path,
    /// Where commands run.
    pub cwd: &'a Path,
    pub facts: &'a Facts,
    pub access: Access,
    pub mode: Mode,
    pub spent_usd: Option<f64>,
}

impl Scene<'_> {
    /// Before a plan is approved only what is known to change nothing is allowed, whatever rules say.
    fn planning(self) -> Self {
        let access = Access { write: false, ..self.access };
        Scene { access, mode: Mode::Ask, spent_usd: None, ..self }
    }
}

impl Approvals {
    /// Reads what a question in `root` depends on; the checks only for commands.
    pub fn facts(&self, root: &Path, is_command: bool) -> Facts {
        let checks = if is_command { self.known.checks(root) } else { Checks::default() };
        Facts { checks, kept: self.known.kept() }
    }

    pub fn judge(&self, ask: &PermissionAsk, scene: &Scene<'_>) -> Verdict {
        if ask.planning && ask.kind == AskKind::Write {
            return Verdict::Deny { why: "nothing may change before your plan is approved".into() };
        }
        let scene = if ask.planning { &scene.planning() } else { scene };
        let project = canonical(scene.root);
        let cwd = canonical(&directory(&ask.input, scene.cwd));
        let (cwd, home) = (cwd.to_string_lossy(), home());
        let real = |path: &str| real(Path::new(cwd.as_ref()), home.as_deref(), path);
        let mut lists = self.lists.clone();
        lists.allow.extend(scene.facts.kept.iter().cloned());
        let mut rules = self.rules.clone();
        if ask.planning {
            (rules, lists.allow) = (rules.without_grants(), Vec::new());
        }
        let home = home.as_deref().map(|home| home.to_string_lossy());
        let judge = Judge {
            rules: &rules,
            mode: scene.mode,
            lists: &lists,
            access: scene.access,
            project: &project.to_string_lossy(),
            home: home.as_deref(),
            spent_usd: scene.spent_usd,
            site: Site { cwd: &cwd, real: &real, checks: &scene.facts.checks },
        };
        judge.decide(ask)
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Some tools name the directory of their command.
fn directory(input: &Value, cwd: &Path) -> PathBuf {
    let named = DIRECTORIES.iter().find_map(|name| input[*name].as_str());
    named.map_or_else(|| cwd.to_path_buf(), |named| cwd.join(named))
}

/// Where a file really is: a link in the project does not make what it leads to a part of it. What cannot be
/// told is no path of the project.
fn real(cwd: &Path, home: Option<&Path>, path: &str) -> String {
    let path = match (path.strip_prefix("~"), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        (Some(rest), None) if rest.is_empty() || rest.starts_with('/') => return "..".to_string(),
        _ => PathBuf::from(path),
    };
    let real = sage_fence::real(cwd, &path);
    real.map_or_else(|_| "..".to_string(), |path| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sage_core::role::Role;
    use serde_json::json;

    // covers: R17
    #[test]
    fn a_link_out_of_the_project_leads_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("p");
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::create_dir_all(root.join("else")).unwrap();
        std::os::unix::fs::symlink("../else", project.join("out")).unwrap();
        std::os::unix::fs::symlink("nowhere", project.join("gone")).unwrap();
        let real = |path: &str| real(&project, Some(Path::new("/h/me")), path);
        let inside = |path: &str| format!("{}/{path}", project.display());
        assert_eq!(real("src/new/a.rs"), inside("src/new/a.rs"));
        assert_eq!(real(&inside("src/a.rs")), inside("src/a.rs"));
        assert_eq!(real("out/x"), root.join("else/x").display().to_string());
        assert_eq!(real("gone"), "..");
        assert!(real("/etc/passwd").starts_with("/etc/"));
        assert_eq!((real("~/x").as_str(), real("~").as_str()), ("/h/me/x", "/h/me"));
    }

    // covers: R17
    #[test]
    fn commands_are_judged_by_the_directory_that_they_run_in_and_by_real_paths() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["sub", ".git/hooks"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../.git/hooks", root.join("sub/h")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("sub/e")).unwrap();
        let approvals = Approvals::default();
        let told = |cwd: &Path, command: &str, input: Value| {
            let facts = Facts::default();
            let (access, mode) = (Role::Implementer.access(), Mode::Ask);
            let scene = Scene { root: &root, cwd, facts: &facts, access, mode, spent_usd: None };
            let (id, tool, command) = ("1".into(), "Bash".into(), Some(command.to_string()));
            let (kind, paths) = (AskKind::Run, Vec::new());
            let (inquiry, planning) = (None, false);
            let ask = PermissionAsk { id, tool, input, kind, paths, command, inquiry, planning };
            match approvals.judge(&ask, &scene) {
                Verdict::Allow { .. } => 'a',
                Verdict::Ask { .. } => '?',
                Verdict::Deny { .. } => '-',
            }
        };
        let plain = |cwd: &str, command: &str| told(&root.join(cwd), command, Value::Null);
        assert_eq!(plain("", "echo x > a"), 'a');
        assert_eq!(plain("", "echo x > ../a"), '?');
        assert_eq!(plain("sub", "echo x > ../a"), 'a');
        assert_eq!(plain("sub", "echo x > h/pre-commit"), '-');
        assert_eq!(plain("", "cd sub && echo x > h/pre-commit"), '-');
        assert_eq!(plain("", "cat sub/e/shadow"), '?');
        assert_eq!(plain("", "cd sub/h && ls"), '?');
        assert_eq!(plain("sub", "echo x > ../.git/config"), '-');
        assert_eq!(told(&root, "echo x > ../a", json!({"directory": "sub"})), 'a');
        assert_eq!(told(&root, "echo x > a", json!({"directory": "/etc"})), '?');
    }
}
