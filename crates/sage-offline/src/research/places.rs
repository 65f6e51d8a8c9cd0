//! Where the documents of dependencies lie on this machine. Folders that are not there are no failure.

use std::path::{Path, PathBuf};

/// Given, not asked for where it is used: tests name folders of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Holds `registry/src/*/<name>-<version>`.
    pub cargo_home: Option<PathBuf>,
    /// Holds `<module>@<version>`.
    pub go_modules: Option<PathBuf>,
    /// `site-packages` beside those in the project.
    pub python: Vec<PathBuf>,
}

impl Places {
    /// As the tools themselves would look.
    pub fn of_this_machine() -> Places {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = folder("HOME");
        let below = |path: &str| home.as_ref().map(|home| home.join(path));
        let go_path = folder("GOPATH").or_else(|| below("go"));
        let mut python = Vec::new();
        if let Some(active) = folder("VIRTUAL_ENV") {
            python.extend(site_packages(&active));
        }
        for prefix in [below(".local"), Some("/usr/local".into()), Some("/usr".into())].into_iter().flatten()
        {
            python.extend(site_packages(&prefix));
        }
        for version in below(".pyenv/versions").map(|path| children(&path)).unwrap_or_default() {
            python.extend(site_packages(&version));
        }
        Places {
            cargo_home: folder("CARGO_HOME").or_else(|| below(".cargo")),
            go_modules: folder("GOMODCACHE").or_else(|| go_path.map(|path| path.join("pkg/mod"))),
            python,
        }
    }
}

/// `lib/python3.x/site-packages` and Debian's `dist-packages` below a prefix.
pub(crate) fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let versions = children(&prefix.join("lib"));
    let python = versions.into_iter().filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    });
    let folders = python.flat_map(|path| [path.join("site-packages"), path.join("dist-packages")]);
    folders.filter(|path| path.is_dir()).collect()
}

/// The entries of a folder by name; none of one that cannot be read.
pub(crate) fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}
