//! The files that say what git ignores. Whoever walks a project reads them in every folder; a pipe or a device in
//! their place never ends.

use std::path::{Path, PathBuf};

/// More are no rules.
const MAX_BYTES: u64 = 1 << 20;

/// Whether all such files in `dir` can be read.
pub fn has_plain_rules(dir: &Path) -> bool {
    let git = dir.join(".git");
    [".gitignore", ".ignore"].iter().all(|name| is_plain(&dir.join(name)))
        && if git.is_dir() { is_plain(&git.join("info/exclude")) } else { is_plain_link(&git) }
}

/// Also in the folders above, whose rules hold for it, too.
pub fn has_plain_rules_above(dir: &Path) -> bool {
    dir.ancestors().all(has_plain_rules)
}

/// Nothing there is as good.
fn is_plain(path: &Path) -> bool {
    path.metadata().map_or(true, |about| about.is_file() && about.len() <= MAX_BYTES)
}

/// A worktree or a submodule names its git directory in a file, and that one the common directory.
fn is_plain_link(git: &Path) -> bool {
    let first = |path: &Path| -> Option<String> {
        let text = std::fs::read_to_string(path).ok()?;
        text.lines().next().map(str::to_string)
    };
    if !is_plain(git) {
        return false;
    }
    let Some(line) = first(git) else { return true };
    let Some(dir) = line.strip_prefix("gitdir: ").map(PathBuf::from) else { return true };
    let common = dir.join("commondir");
    is_plain(&common) && first(&common).is_none_or(|common| is_plain(&dir.join(common).join("info/exclude")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn a_device_is_no_rule_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let (root, sub) = (dir.path(), dir.path().join("sub"));
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        std::fs::create_dir_all(root.join("linked/info")).unwrap();
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join(".git"), format!("gitdir: {}\n", root.join("linked").display())).unwrap();
        std::fs::write(root.join("linked/commondir"), ".\n").unwrap();
        assert!(has_plain_rules_above(&sub));
        for (name, of) in [
            (".gitignore", root),
            (".ignore", root),
            (".git/info/exclude", root),
            ("sub/.gitignore", &sub),
            ("linked/info/exclude", &sub),
        ] {
            std::os::unix::fs::symlink("/dev/zero", root.join(name)).unwrap();
            assert!(!has_plain_rules(of) && !has_plain_rules_above(&sub), "{name}");
            std::fs::remove_file(root.join(name)).unwrap();
        }
        std::fs::remove_file(root.join("linked/commondir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join("linked/commondir")).unwrap();
        assert!(!has_plain_rules(&sub));
    }
}
