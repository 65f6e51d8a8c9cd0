//! Git with an index and an object database beside those of the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A power cut may cost the explanation. A shared index would be written to the repository.
const SETTINGS: [&str; 6] =
    ["-c", "core.fsync=none", "-c", "core.splitIndex=false", "-c", "core.sharedRepository=0600"];
/// Sage's own files, whatever the project ignores.
const OWN: &str = ".sage";

/// Where git writes instead of the repository.
#[derive(Debug)]
pub struct Aside {
    index: PathBuf,
    /// Names of files that differ from the index, for git to read.
    names: PathBuf,
    objects: PathBuf,
    /// The repository's own objects, which are read.
    repository: PathBuf,
}

impl Aside {
    /// In `dir`, which exists. It begins with what the repository's index knows: files that it knows to be unchanged
    /// are not read again.
    pub fn new(dir: &Path, own_index: &Path, own_objects: &Path, listed: &str) -> std::io::Result<Aside> {
        let id = ulid::Ulid::generate();
        let aside = Aside {
            index: dir.join(format!("index-{id}")),
            names: dir.join(format!("names-{id}")),
            objects: dir.join("objects"),
            repository: own_objects.to_path_buf(),
        };
        sage_fence::private::create_dir_all(&aside.objects)?;
        let names: String = wanted(listed).flat_map(|name| [name, "\0"]).collect();
        sage_fence::private::write(&aside.names, names.as_bytes())?;
        match std::fs::read(own_index) {
            Ok(index) => sage_fence::private::write(&aside.index, &index)?,
            // Nothing was ever added.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(aside)
    }

    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut all = vec![("GIT_INDEX_FILE".into(), self.index.clone().into())];
        all.extend(objects_variables(&self.objects, &self.repository));
        all
    }

    /// What git reads its standard input from.
    pub fn names(&self) -> &Path {
        &self.names
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.index);
        let _ = std::fs::remove_file(&self.names);
    }
}

/// Repositories inside of the project are listed as folders, and are left out.
fn wanted(listed: &str) -> impl Iterator<Item = &str> {
    let own = |name: &str| name.split('/').any(|part| part == OWN);
    listed.split('\0').filter(move |name| !name.is_empty() && !name.ends_with('/') && !own(name))
}

/// For git to find objects that lie beside the repository.
pub fn objects_variables(objects: &Path, repository: &Path) -> [(OsString, OsString); 2] {
    // In quotes: a list is separated by colons, which a path may have.
    let quoted = repository.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    [
        ("GIT_OBJECT_DIRECTORY".into(), objects.into()),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), format!("\"{quoted}\"").into()),
    ]
}

/// What is new or differs from the index.
pub const LIST: [&str; 6] = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"];

/// Takes the named files into the index.
pub fn add_args() -> Vec<&'static str> {
    let mut args = SETTINGS.to_vec();
    args.extend(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]);
    args
}

pub fn write_args() -> Vec<&'static str> {
    let mut args = SETTINGS.to_vec();
    args.push("write-tree");
    args
}

/// The lines that it answers are the index and the objects.
pub const PLACES: [&str; 6] =
    ["rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects"];

/// Why a project is too large to be looked at twice per step; `None` if it is not.
pub fn too_much(cwd: &Path, listed: &str) -> Option<String> {
    const FILES: usize = 20_000;
    const BYTES: u64 = 64 << 20;
    let names: Vec<&str> = wanted(listed).collect();
    if names.len() > FILES {
        return Some(format!("{} files of the project are not committed", names.len()));
    }
    let sizes = names.iter().filter_map(|name| cwd.join(name).symlink_metadata().ok());
    let bytes: u64 = sizes.map(|meta| meta.len()).sum();
    (bytes > BYTES).then(|| format!("{} MiB of the project are not committed", bytes >> 20))
}
