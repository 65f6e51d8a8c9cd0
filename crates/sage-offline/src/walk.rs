//! The project's own files, as git would see them: no ignored, hidden, generated or binary ones.
//!
//! The order is the same on every machine, and what is left out because there is too much is counted.

use std::path::{Path, PathBuf};

use crate::plain;
use crate::request::Trouble;

/// Larger files are generated or data.
const MAX_FILE_BYTES: u64 = 512 * 1024;
/// Of a `.gitignore`.
const MAX_RULE_BYTES: u64 = 1 << 20;
/// More files than these are sampled evenly.
const MAX_FILES: usize = 20_000;
/// Folders that hold other people's code or what a build made, also where nobody ignores them. `.sage` is hidden.
const FOREIGN: &[&str] =
    &["node_modules", "target", "vendor", "dist", "build", "__pycache__", "venv", "site-packages"];

/// The files of a project, by path.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub root: PathBuf,
    pub files: Vec<File>,
    /// Files that are there and were left out: too large, or too many.
    pub left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the project, with `/`.
    pub path: String,
    pub bytes: u64,
}

impl File {
    pub fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Whether the files that say what is ignored in `dir` can be read: a pipe or a device in their place never ends.
pub fn has_plain_rules(dir: &Path) -> bool {
    let is_plain = |name: &&str| match dir.join(name).metadata() {
        Ok(about) => about.is_file() && about.len() <= MAX_RULE_BYTES,
        Err(_) => true,
    };
    [".gitignore", ".ignore", ".git/info/exclude"].iter().all(is_plain)
}

impl Tree {
    /// Walks the project. `docs/specs` is what earlier runs wrote and is not the project's own.
    pub fn read(root: &Path) -> Result<Tree, Trouble> {
        let tree = Tree::walked(root, true);
        // A worktree lies in a folder that the repository around it ignores.
        Ok(if tree.files.is_empty() { Tree::walked(root, false) } else { tree })
    }

    /// `above`: whether folders above the project say what is ignored, too.
    fn walked(root: &Path, above: bool) -> Tree {
        let mut tree = Tree { root: root.to_path_buf(), ..Tree::default() };
        let plain = has_plain_rules(root);
        let walk = ignore::WalkBuilder::new(root)
            .require_git(false)
            .parents(above && root.ancestors().all(has_plain_rules))
            .git_ignore(plain)
            .ignore(plain)
            .git_exclude(plain)
            .sort_by_file_name(|a, b| a.cmp(b))
            .filter_entry(|entry| !is_foreign(entry) && has_plain_rules(entry.path()))
            .build();
        for entry in walk.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let relative = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
            let Some(path) = relative.filter(|path| metadata.is_file() && !path.starts_with("docs/specs/"))
            else {
                continue;
            };
            if metadata.len() > MAX_FILE_BYTES {
                tree.left_out += 1;
            } else {
                tree.files.push(File { path: path.to_string(), bytes: metadata.len() });
            }
        }
        tree.sample(MAX_FILES);
        tree
    }

    /// Keeps at most `most` files, evenly spread.
    pub fn sample(&mut self, most: usize) {
        let count = self.files.len();
        if count > most {
            let files = std::mem::take(&mut self.files);
            let kept = |index: &usize| (index + 1) * most / count > index * most / count;
            self.files = files.into_iter().enumerate().filter(|(i, _)| kept(i)).map(|(_, f)| f).collect();
            self.left_out += count - self.files.len();
        }
    }

    /// A file's text; nothing for what is no text.
    pub fn text(&self, file: &File) -> Option<String> {
        // The walk followed no link, and something else may stand there by now.
        let bytes = plain::read(plain::open(&self.root.join(&file.path))?, MAX_FILE_BYTES)?;
        String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
    }

    /// A file of the project by its path, if it is one of these.
    pub fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn is_foreign(entry: &ignore::DirEntry) -> bool {
    let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    directory && entry.depth() > 0 && entry.file_name().to_str().is_some_and(|name| FOREIGN.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn only_the_projects_own_files_in_a_fixed_order() {
        let dir = project(&[
            ("src/b.rs", "fn b() {}"),
            ("src/a.rs", "fn a() {}"),
            ("ignored.rs", ""),
            (".gitignore", "ignored.rs\n"),
            ("node_modules/x/index.js", ""),
            ("docs/specs/old/spec.md", ""),
            (".sage/state/x.json", ""),
        ]);
        let tree = Tree::read(dir.path()).unwrap();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/a.rs", "src/b.rs"]);
        assert_eq!(tree.text(&tree.files[0]).unwrap(), "fn a() {}");
    }

    // covers: P4, S6
    #[test]
    fn what_lies_in_an_ignored_folder_is_read_all_the_same() {
        let dir = project(&[(".gitignore", "*\n"), ("trees/step/src/a.rs", "fn a() {}")]);
        let tree = Tree::read(&dir.path().join("trees/step")).unwrap();
        assert_eq!(tree.files.len(), 1);
    }

    #[test]
    fn too_many_files_are_sampled_evenly_and_counted() {
        let file = |n: usize| File { path: format!("{n:03}"), bytes: 0 };
        let mut tree = Tree { files: (0..100).map(file).collect(), ..Tree::default() };
        tree.sample(10);
        assert_eq!((tree.files.len(), tree.left_out), (10, 90));
        assert_eq!(tree.files[0].path, "009");
        assert_eq!(tree.files[9].path, "099");
    }
}
