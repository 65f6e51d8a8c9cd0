//! Where an agent's program is, as the shell would find it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::AgentConfig;

impl AgentConfig {
    /// The program of `command`, or the adapter's own; `None` if nobody could start it.
    pub fn program(&self, own: &str) -> Option<PathBuf> {
        let name = PathBuf::from(self.argv(own).into_iter().next()?);
        if name.components().count() > 1 {
            return is_program(&name).then_some(name);
        }
        let path = self.variable("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| is_program(file))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_the_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my-agent");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = dir.path().display().to_string();
        let mut config = AgentConfig { env: [("PATH".to_string(), path)].into(), ..AgentConfig::default() };
        assert_eq!(config.program("my-agent"), None, "nobody may execute it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(config.program("my-agent"), Some(file.clone()));
        assert_eq!(config.program("other"), None);
        config.command = vec![file.display().to_string(), "-x".into()];
        assert_eq!(config.program("other"), Some(file));
        config.command = vec!["./no/such".into()];
        assert_eq!(config.program("other"), None);
    }
}
