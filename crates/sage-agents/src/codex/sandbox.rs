//! What a role may do, as settings of codex's sandbox. The kernel enforces them on every command.
//!
//! | role may write | writable                         | always                                             |
//! |----------------|----------------------------------|----------------------------------------------------|
//! | everything     | the working directory, temp,     | files that configure agents and git are read-only, |
//! |                | the repository's history;        | Sage's sessions and tokens are not readable,       |
//! |                | with `--allow all` any directory | everything else is; the network is on only if the  |
//! | some folders   | these folders                    | role has it                                        |
//! | nothing        | nothing                          |                                                    |
//!
//! Codex has no switch for "no commands": they are how it reads files. A role that may not run commands gets
//! the sandbox of what it may write. A turn that goes on needs all settings again: threads do not keep them.
//! Only entries that exist can be closed (a missing one would be made as a placeholder): see `newcomer`.

use std::path::{Path, PathBuf};

use sage_core::approval::Mode;
use sage_core::fence::PROTECTED;
use sage_core::role::{Access, Paths};
use sage_fence::Fence;

use super::repository;
use super::toml_text::{table, text};

/// Nested repositories and projects are looked for this deep, in so many directories at most.
const DEPTH: usize = 6;
const DIRECTORIES: usize = 4_000;
/// What tools install and build; nothing in there is a project of its own.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "vendor"];

/// Where codex works and what stays closed there.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub project: &'a Path,
    pub cwd: &'a Path,
    /// Directories of Sage.
    pub private: &'a [PathBuf],
}

impl Site<'_> {
    /// Folders that a role may write. A working directory inside of something protected is none.
    pub fn writable(&self, access: &Access) -> Vec<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        match access.paths {
            Paths::All if Fence::around(self.project, self.cwd).protects(Path::new(".")) => Vec::new(),
            Paths::All => vec![real(self.cwd)],
            Paths::None => Vec::new(),
            // One that a link leads out of the project is none.
            Paths::Only(folders) => {
                let fence = Fence::new(self.project);
                let inside = folders.iter().filter_map(|folder| fence.locate(Path::new(folder)).ok());
                inside.map(|folder| fence.root().join(folder)).collect()
            }
        }
    }

    /// The git directory in which work may be recorded.
    fn repository(&self, access: &Access) -> Option<PathBuf> {
        let writes = access.paths == Paths::All && !self.writable(access).is_empty();
        repository::git_dir(self.cwd).filter(|_| writes)
    }

    /// What configures agents or git, may be made, and does not exist yet.
    pub fn missing(&self, access: &Access) -> Vec<PathBuf> {
        let folders = self.writable(access);
        let agents = folders.iter().flat_map(|folder| PROTECTED.map(|name| folder.join(name)));
        // Sage itself makes worktrees of the repository, also while this agent works.
        let watched = |name: &&str| *name != "worktrees";
        let git = self.repository(access).into_iter();
        let git = git
            .flat_map(|dir| repository::SETTINGS.into_iter().filter(watched).map(move |name| dir.join(name)));
        // What a link at such a name leads to.
        let led_to = folders.iter().flat_map(|folder| sage_fence::targets(folder));
        let led_to = led_to.filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
        agents.chain(led_to).chain(git).filter(|path| path.symlink_metadata().is_err()).collect()
    }

    /// Outside of the project: the user's own agents, and Sage.
    fn protected_elsewhere(&self) -> Vec<PathBuf> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let of_home = home.into_iter().flat_map(|home| PROTECTED.map(|name| home.join(name)));
        of_home.chain(self.private.iter().cloned()).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// Tokens and conversations of Sage, as far as they exist.
    fn secrets(&self) -> Vec<PathBuf> {
        let in_each =
            self.private.iter().flat_map(|dir| [dir.join("state/serve.json"), dir.join("sessions")]);
        in_each.filter_map(|path| path.canonicalize().ok()).collect()
    }
}

/// `name=value` settings.
pub fn settings(access: &Access, site: Site<'_>, mode: Mode) -> Vec<String> {
    let folders = site.writable(access);
    let everywhere = mode == Mode::All && access.paths == Paths::All;
    let mut files = Rights::default();
    files.set(":root", if everywhere { "write" } else { "read" });
    if access.paths == Paths::All {
        files.set(":tmpdir", "write");
        files.set(":slash_tmp", "write");
    }
    folders.iter().for_each(|path| files.set(path.display(), "write"));
    if everywhere {
        site.protected_elsewhere().iter().for_each(|path| files.set(path.display(), "read"));
    }
    folders.iter().flat_map(|folder| protected(folder)).for_each(|path| files.set(path.display(), "read"));
    if let Some(dir) = site.repository(access) {
        files.set(dir.display(), "write");
        let settings = repository::SETTINGS.iter().map(|name| dir.join(name));
        settings.filter(|path| path.exists()).for_each(|path| files.set(path.display(), "read"));
    }
    site.secrets().iter().for_each(|path| files.set(path.display(), "none"));
    let files = table(files.0.iter().map(|(path, access)| (path.as_str(), text(access))));
    let network = table([("enabled", access.network.to_string())]);
    let profile = table([("filesystem", files), ("network", network)]);
    let mut settings = vec![format!("permissions.sage={profile}"), "default_permissions=\"sage\"".into()];
    if !access.network {
        // The provider's own search would be a way out.
        settings.push("web_search=\"disabled\"".into());
    }
    settings
}

/// What may be done with which path; the last word counts.
#[derive(Default)]
struct Rights(Vec<(String, &'static str)>);

impl Rights {
    fn set(&mut self, path: impl std::fmt::Display, right: &'static str) {
        let path = path.to_string();
        self.0.retain(|(known, _)| *known != path);
        self.0.push((path, right));
    }
}

/// The sandbox can only open what exists. A folder that cannot be made stays closed.
pub fn make_folders(access: &Access, site: Site<'_>) {
    if let Paths::Only(_) = access.paths {
        for folder in site.writable(access) {
            let _ = sage_fence::make_folder(&folder);
        }
    }
}

/// Protected entries in a folder and below it, with what links there lead to.
fn protected(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open, mut seen) = (Vec::new(), vec![(folder.to_path_buf(), 0)], 0);
    while let Some((dir, depth)) = open.pop() {
        let here = PROTECTED.iter().map(|name| dir.join(name)).filter(|path| path.symlink_metadata().is_ok());
        found.extend(here);
        let led_to = sage_fence::targets(&dir).into_iter();
        found.extend(led_to.filter(|target| target.starts_with(folder) && target.exists()));
        seen += 1;
        if depth == DEPTH || seen == DIRECTORIES {
            continue;
        }
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let skipped = sage_core::fence::is_protected(&name) || SKIPPED.contains(&name.as_str());
            if !skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    fn of(role: Role, root: &Path) -> Vec<String> {
        settings(&role.access(), Site { project: root, cwd: root, private: &[root.join(".sage")] }, Mode::Ask)
    }

    // covers: S6
    #[test]
    fn every_role_has_its_sandbox() {
        let root = Path::new("/no/such/p");
        let search = "web_search=\"disabled\"".to_string();
        let chosen = "default_permissions=\"sage\"".to_string();
        let profile = |files: &str, network: bool| {
            let network = format!("\"network\"={{\"enabled\"={network}}}");
            format!("permissions.sage={{\"filesystem\"={{\":root\"=\"read\"{files}}},{network}}}")
        };
        let all = r#","":tmpdir"="write",":slash_tmp"="write","/no/such/p"="write""#.replace("\"\":", "\":");
        assert_eq!(of(Role::Implementer, root), [profile(&all, true), chosen.clone()]);
        assert_eq!(of(Role::Cleaner, root), [profile(&all, false), chosen.clone(), search.clone()]);
        for role in [Role::Auditor, Role::Observer, Role::Orchestrator] {
            assert_eq!(of(role, root), [profile("", false), chosen.clone(), search.clone()], "{role}");
        }
        assert_eq!(of(Role::Researcher, root), [profile("", true), chosen.clone()]);
        let docs = r#","/no/such/p/docs"="write""#;
        assert_eq!(of(Role::Planner, root), [profile(docs, false), chosen, search]);
    }

    // covers: R17
    #[test]
    fn what_configures_agents_is_read_only_and_secrets_are_closed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in
            [".git/hooks", "sub/lib/.git/hooks", "node_modules/x/.git", "config/claude", ".sage/sessions"]
        {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::create_dir_all(root.join(".sage/state")).unwrap();
        for file in [".sage/state/serve.json", ".git/HEAD", ".git/config"] {
            std::fs::write(root.join(file), "{}").unwrap();
        }
        std::os::unix::fs::symlink("config/claude", root.join(".claude")).unwrap();
        std::fs::create_dir_all(root.join("tpl")).unwrap();
        std::os::unix::fs::symlink("../tpl", root.join(".sage/templates")).unwrap();
        std::os::unix::fs::symlink("later.json", root.join(".mcp.json")).unwrap();
        let profile = of(Role::Implementer, &root).remove(0);
        let rule = |path: &str, access: &str| {
            profile.contains(&format!("\"{}\"=\"{access}\"", root.join(path).display()))
        };
        for path in [".git/hooks", ".git/config", "sub/lib/.git", ".sage", ".claude", "config/claude", "tpl"]
        {
            assert!(rule(path, "read"), "{path}: {profile}");
        }
        assert!(rule(".git", "write"), "work may be recorded: {profile}");
        assert!(rule(".sage/state/serve.json", "none") && rule(".sage/sessions", "none"), "{profile}");
        // A missing one would be made as an empty file for as long as a command runs.
        assert!(!profile.contains("later.json"), "{profile}");
        assert!(!profile.contains("sage.toml") && !profile.contains("node_modules"), "{profile}");
        let site = Site { project: &root, cwd: &root, private: &[root.join(".sage")] };
        let access = Role::Implementer.access();
        let missing = site.missing(&access);
        for path in [".git/commondir", ".git/config.worktree", "sage.toml", ".codex"] {
            assert!(missing.contains(&root.join(path)), "{path}: {missing:?}");
        }
        assert!(
            !missing.contains(&root.join(".git/hooks")) && site.missing(&Role::Auditor.access()).is_empty()
        );
        let all = settings(&access, site, Mode::All).remove(0);
        assert!(
            all.contains("\":root\"=\"write\"")
                && all.contains(&format!("\"{}/.sage\"=\"read\"", root.display()))
        );
        let auditor = settings(&Role::Auditor.access(), site, Mode::All).remove(0);
        assert!(auditor.contains("\":root\"=\"read\"") && !auditor.contains("write"), "{auditor}");
        let site = Site { project: &root, cwd: &root.join("sub/lib/.git/hooks"), private: &[] };
        assert!(site.writable(&access).is_empty() && site.repository(&access).is_none());
    }
}
