//! Files that an agent reads and writes through us: inside of where it works, and only as its role may.

use std::io;
use std::path::{Component, Path, PathBuf};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use sage_core::role::{Access, Paths};

/// Longest file that is read for an agent.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Where the agent works.
#[derive(Clone, Debug)]
pub struct Place {
    cwd: PathBuf,
    /// What the folders of a role are counted from.
    root: PathBuf,
    access: Access,
}

impl Place {
    pub fn new(cwd: &Path, project: &Path, access: Access) -> Place {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let (cwd, project) = (real(cwd), real(project));
        let root = if cwd.starts_with(&project) { project } else { cwd.clone() };
        Place { cwd, root, access }
    }

    /// The path as its role knows it; `None` if it leads out of where the agent works.
    pub fn relative(&self, path: &Path) -> Option<String> {
        let path = self.real(path).ok()?;
        Some(path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned())
    }

    pub fn read(&self, request: &ReadTextFileRequest) -> Result<String, Error> {
        let path = self.real(&request.path).map_err(|why| refused(&request.path, why))?;
        let text = read_text(&path).map_err(|error| refused(&request.path, error.to_string()))?;
        let (from, limit) = (request.line.unwrap_or(1).max(1) - 1, request.limit);
        if from == 0 && limit.is_none() {
            return Ok(text);
        }
        let (from, limit) = (from as usize, limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(text.split_inclusive('\n').skip(from).take(limit).collect())
    }

    pub fn write(&self, request: &WriteTextFileRequest) -> Result<(), Error> {
        let path = self.real(&request.path).map_err(|why| refused(&request.path, why))?;
        let relative = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
        if !self.access.write || (self.access.paths != Paths::All && !self.access.paths.contains(&relative)) {
            return Err(refused(&request.path, "your role may not change it".into()));
        }
        if self.access.paths == Paths::All && relative.split('/').any(sage_core::approval::is_own) {
            return Err(refused(
                &request.path,
                "it decides about agents, and is not theirs to change".into(),
            ));
        }
        let folder = path.parent().unwrap_or(&self.cwd);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, &request.content));
        written.map_err(|error| refused(&request.path, error.to_string()))
    }

    /// The file that is meant, whatever links lead there; it need not exist.
    fn real(&self, path: &Path) -> Result<PathBuf, String> {
        let path = self.cwd.join(path);
        let mut missing = Vec::new();
        let mut there = path.as_path();
        let mut real = loop {
            match there.canonicalize() {
                Ok(real) => break real,
                // A link to nowhere is there, and writing would follow it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !there.is_symlink() => {}
                Err(error) => return Err(error.to_string()),
            }
            match (there.components().next_back(), there.parent()) {
                (Some(Component::Normal(name)), Some(parent)) => {
                    missing.push(name);
                    there = parent;
                }
                _ => return Err("not a path of a file".into()),
            }
        };
        real.extend(missing.iter().rev());
        if real.starts_with(&self.cwd) { Ok(real) } else { Err("it lies outside of where you work".into()) }
    }
}

/// Only what is a file: a pipe would keep us waiting for ever.
fn read_text(path: &Path) -> io::Result<String> {
    let about = path.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if about.len() > FILE_BYTES {
        return Err(io::Error::other("too long"));
    }
    std::fs::read_to_string(path)
}

fn refused(path: &Path, why: String) -> Error {
    Error::invalid_params().data(serde_json::json!({ "path": path, "message": why }))
}

#[cfg(test)]
mod tests {
    use sage_core::role::Role;

    use super::*;

    fn place(role: Role) -> (tempfile::TempDir, Place) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/docs")).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let project = dir.path().join("project");
        let place = Place::new(&project, &project, role.access());
        (dir, place)
    }

    // covers: S6, R17
    #[test]
    fn nothing_outside_is_read_or_written_by_any_path() {
        let (dir, place) = place(Role::Implementer);
        let project = dir.path().join("project");
        std::os::unix::fs::symlink(dir.path(), project.join("up")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("new"), project.join("nowhere")).unwrap();
        for path in ["../secret", "up/secret", "docs/../../secret", "/etc/passwd", "missing/../../secret"] {
            assert!(place.read(&ReadTextFileRequest::new("s", path)).is_err(), "{path}");
        }
        for path in ["../new", "up/new", "nowhere", "missing/../../new"] {
            assert!(place.write(&WriteTextFileRequest::new("s", path, "x")).is_err(), "{path}");
        }
        assert!(!dir.path().join("new").exists());
        let deep = project.join("a/b/c.txt");
        place.write(&WriteTextFileRequest::new("s", &deep, "1\n2\n3\n")).unwrap();
        let lines = ReadTextFileRequest::new("s", "a/b/c.txt").line(2).limit(1);
        assert_eq!(place.read(&lines).unwrap(), "2\n");
        assert_eq!(place.relative(&deep).as_deref(), Some("a/b/c.txt"));
    }

    // covers: S6
    #[test]
    fn a_role_writes_where_it_may() {
        let (_dir, planner) = place(Role::Planner);
        planner.write(&WriteTextFileRequest::new("s", "docs/plan.md", "x")).unwrap();
        assert!(planner.write(&WriteTextFileRequest::new("s", "src/main.rs", "x")).is_err());
        let (_dir, auditor) = place(Role::Auditor);
        assert!(auditor.write(&WriteTextFileRequest::new("s", "docs/plan.md", "x")).is_err());
        let (_dir, implementer) = place(Role::Implementer);
        for own in [".sage/state/x", ".git/hooks/post-commit", "sage.toml", "a/.claude/settings.json"] {
            assert!(implementer.write(&WriteTextFileRequest::new("s", own, "x")).is_err(), "{own}");
        }
    }

    #[test]
    fn a_pipe_is_not_read() {
        let (dir, place) = place(Role::Auditor);
        let path = dir.path().join("project/pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(place.read(&ReadTextFileRequest::new("s", &path)).is_err());
    }
}
