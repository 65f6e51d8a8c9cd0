//! A file of the user's own directory that holds something for each project: what is trusted, answers that were kept.
//!
//! A project is known by its real path. What must stay true: a file that cannot be read holds nothing and is not
//! overwritten; writers take turns.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_engine::lock::lock_within;
use sage_engine::vfs::{self, DiskFs, Vfs};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 16 << 20;
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct Document<T> {
    version: u32,
    #[serde(default = "BTreeMap::new")]
    projects: BTreeMap<String, T>,
}

/// The part of one project.
#[derive(Clone, Debug)]
pub struct PerProject<T> {
    /// Without one nothing can be kept.
    dir: Option<PathBuf>,
    /// Without its ending.
    name: &'static str,
    project: String,
    kind: PhantomData<T>,
}

impl<T: Default + Clone + PartialEq + Serialize + DeserializeOwned> PerProject<T> {
    pub fn new(dir: Option<PathBuf>, name: &'static str, root: &Path) -> PerProject<T> {
        PerProject { dir, name, project: real(root), kind: PhantomData }
    }

    pub fn load(&self) -> T {
        let read = self.dir.as_deref().and_then(|dir| read::<T>(&self.file(dir)).ok());
        read.and_then(|mut all| all.projects.remove(&self.project)).unwrap_or_default()
    }

    /// Changes what is there now, and gives what it has become.
    pub fn change(&self, change: impl FnOnce(&mut T)) -> Result<T, String> {
        let dir = self.dir.as_deref().ok_or("neither XDG_STATE_HOME nor HOME is set")?;
        let path = self.file(dir);
        let failed = |error: io::Error| format!("cannot write `{}`: {error}", path.display());
        let disk = DiskFs::default();
        disk.create_dir_all(dir).map_err(failed)?;
        let _lock = lock_within(&dir.join(format!("{}.lock", self.name)), LOCK_TIMEOUT).map_err(failed)?;
        let mut all = read::<T>(&path)?;
        let mut project = all.projects.remove(&self.project).unwrap_or_default();
        change(&mut project);
        if project != T::default() {
            all.projects.insert(self.project.clone(), project.clone());
        }
        all.version = VERSION;
        let mut text = serde_json::to_vec_pretty(&all).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        vfs::write_atomic(&disk, &path, &text).map_err(failed)?;
        Ok(project)
    }

    fn file(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.json", self.name))
    }
}

/// The project's real path; one that is no text is written byte by byte, so that no two share an entry.
fn real(root: &Path) -> String {
    let path = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let bytes = path.as_os_str().as_encoded_bytes();
    let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    path.to_str().map_or_else(|| format!("hex:{}", hex()), str::to_string)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Document<T>, String> {
    let unread = |why: String| format!("cannot read `{}`: {why}", path.display());
    let bytes = match DiskFs::default().read(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Document { version: VERSION, projects: BTreeMap::new() });
        }
        Err(error) => return Err(unread(error.to_string())),
    };
    let document: Document<T> = serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))?;
    if document.version > VERSION {
        return Err(unread(format!("version {} is newer than this sage", document.version)));
    }
    Ok(document)
}
