//! Where a program is, as the shell would find it, but for folders of `PATH` that are relative: what they have is
//! whatever the project put there.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::AgentConfig;

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl AgentConfig {
    /// The program of `command`, or the adapter's own; `None` if nobody could start it. `dir` is where the
    /// agent works.
    pub fn program(&self, own: &str, dir: &Path) -> Option<PathBuf> {
        let name = PathBuf::from(self.argv(own).into_iter().next()?);
        if name.components().count() > 1 {
            return Some(dir.join(name)).filter(|file| is_program(file));
        }
        on_path(name.as_os_str(), OsStr::new(&self.variable("PATH")?))
    }
}

/// The program `name` in the absolute folders of `path`.
pub fn on_path(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    absolute(path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// `PATH` of this process, without relative folders. An empty one would mean the current folder.
pub fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(absolute(&path)).unwrap_or_default();
    if path.is_empty() { DEFAULT_PATH.into() } else { path }
}

fn absolute(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the current folder.
    fn pathdiff(dir: &Path) -> String {
        let up = std::env::current_dir().unwrap().components().count() - 1;
        format!("{}{}", "../".repeat(up), dir.strip_prefix("/").unwrap().display())
    }

    // covers: R17
    #[test]
    fn a_program_is_found_as_the_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my-agent");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = dir.path().display().to_string();
        let mut config = AgentConfig { env: [("PATH".to_string(), path)].into(), ..AgentConfig::default() };
        assert_eq!(config.program("my-agent", dir.path()), None, "nobody may execute it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(config.program("my-agent", dir.path()), Some(file.clone()));
        assert_eq!(config.program("other", dir.path()), None);
        config.command = vec![file.display().to_string(), "-x".into()];
        assert_eq!(config.program("other", Path::new(".")), Some(file));
        config.command = vec!["./my-agent".into()];
        assert!(config.program("other", dir.path()).is_some());
        config.command = vec!["./no/such".into()];
        assert_eq!(config.program("other", dir.path()), None);
        // Whatever the current folder has.
        let relative = pathdiff(dir.path());
        assert!(Path::new(&relative).join("my-agent").is_file());
        for path in [relative.as_str(), "", "."] {
            assert_eq!(on_path(OsStr::new("my-agent"), OsStr::new(path)), None, "{path}");
        }
    }
}
