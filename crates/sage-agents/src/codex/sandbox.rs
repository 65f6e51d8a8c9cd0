//! What a role may do, as settings of codex's sandbox. The kernel enforces them on every command.
//!
//! | role may write | network | settings                                                            |
//! |----------------|---------|---------------------------------------------------------------------|
//! | everything     | yes, no | `workspace-write` with or without network: the working directory, temp |
//! | nothing        | no      | `read-only`                                                         |
//! | nothing        | yes     | a permission profile: read everything, network                      |
//! | some folders   | yes, no | a permission profile: read everything, write there                  |
//!
//! Codex has no switch for "no commands": they are how it reads files. A role that may not run commands gets
//! the sandbox of what it may write. A turn that goes on needs all settings again: threads do not keep them.

use std::path::Path;

use sage_core::role::{Access, Paths};

use super::toml_text::{table, text};

/// `name=value` settings. Folders are relative to `project`.
pub fn settings(access: &Access, project: &Path) -> Vec<String> {
    let mut settings = match access.paths {
        Paths::All => vec![
            "sandbox_mode=\"workspace-write\"".to_string(),
            format!("sandbox_workspace_write.network_access={}", access.network),
        ],
        Paths::None if !access.network => vec!["sandbox_mode=\"read-only\"".to_string()],
        Paths::None => profile(&[], project, true),
        Paths::Only(folders) => profile(folders, project, access.network),
    };
    if !access.network {
        // The provider's own search would be a way out.
        settings.push("web_search=\"disabled\"".into());
    }
    settings
}

fn profile(folders: &[&str], project: &Path, network: bool) -> Vec<String> {
    let paths: Vec<String> =
        folders.iter().map(|folder| place(project, folder).display().to_string()).collect();
    let writable = paths.iter().map(|path| (path.as_str(), text("write")));
    let files = table([(":root", text("read"))].into_iter().chain(writable));
    let network = table([("enabled", network.to_string())]);
    let profile = table([("filesystem", files), ("network", network)]);
    vec![format!("permissions.sage={profile}"), "default_permissions=\"sage\"".into()]
}

/// The sandbox can only open what exists. A folder that cannot be made stays closed.
pub fn make_folders(access: &Access, project: &Path) {
    if let Paths::Only(folders) = access.paths {
        for folder in folders {
            let _ = std::fs::create_dir_all(place(project, folder));
        }
    }
}

fn place(project: &Path, folder: &str) -> std::path::PathBuf {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_path_buf());
    project.join(folder.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    fn of(role: Role) -> Vec<String> {
        settings(&role.access(), Path::new("/no/such/p"))
    }

    // covers: S6
    #[test]
    fn every_role_has_its_sandbox() {
        let network = |on: bool| format!("sandbox_workspace_write.network_access={on}");
        let search = "web_search=\"disabled\"".to_string();
        let write = "sandbox_mode=\"workspace-write\"".to_string();
        assert_eq!(of(Role::Implementer), [write.clone(), network(true)]);
        assert_eq!(of(Role::Cleaner), [write, network(false), search.clone()]);
        for role in [Role::Auditor, Role::Observer, Role::Orchestrator] {
            assert_eq!(of(role), ["sandbox_mode=\"read-only\"".to_string(), search.clone()], "{role}");
        }
        let profile = |rest: &str| format!("permissions.sage={{\"filesystem\"={{\":root\"=\"read\"{rest}");
        let chosen = "default_permissions=\"sage\"".to_string();
        let online = profile("},\"network\"={\"enabled\"=true}}");
        assert_eq!(of(Role::Researcher), [online, chosen.clone()]);
        let docs = ",\"/no/such/p/docs\"=\"write\",\"/no/such/p/.sage/handoffs\"=\"write\"},\"network\"={\"enabled\"=false}}";
        assert_eq!(of(Role::Planner), [profile(docs), chosen, search]);
    }
}
