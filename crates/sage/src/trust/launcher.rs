//! Programs of the project that a definition starts: `./agent.sh`, or `tools/server.py` behind an interpreter. Their
//! content is part of the definition, so that a pull which changes the program asks again as a changed command does.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sage_core::digest::Digest;
use sage_engine::vfs::{DiskFs, Vfs};

/// Of larger ones size and time count.
const MAX_BYTES: u64 = 64 << 20;
/// Scripts that are given to an interpreter by their name, without being executable themselves.
const SCRIPTS: [&str; 12] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "lua", "jar"];

/// By the word that names it. Relative words start in the project's root.
pub fn programs(root: &Path, words: &[String]) -> BTreeMap<String, Digest> {
    let Ok(root) = root.canonicalize() else { return BTreeMap::new() };
    let Some((launcher, arguments)) = words.split_first() else { return BTreeMap::new() };
    let own = launcher.contains('/').then(|| content(&root, launcher)).flatten();
    let found = match own {
        Some(digest) => Some((launcher, digest)),
        // Whatever an interpreter is told to run.
        None => arguments.iter().find_map(|word| {
            is_script(&root.join(word)).then(|| content(&root, word)).flatten().map(|digest| (word, digest))
        }),
    };
    found.map(|(word, digest)| (word.clone(), digest)).into_iter().collect()
}

fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let executable = path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0);
    SCRIPTS.contains(&extension) || executable
}

/// `None` if it is no file of the project.
fn content(root: &Path, word: &str) -> Option<Digest> {
    let path = root.join(word).canonicalize().ok().filter(|path| path.starts_with(root))?;
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    match DiskFs::default().read(&path, MAX_BYTES) {
        Ok(bytes) => Some(Digest::of(&bytes)),
        Err(_) => Some(Digest::of(format!("{} {:?}", about.len(), about.modified().ok()).as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R17
    #[test]
    fn the_content_of_what_is_started_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("tools")).unwrap();
        std::fs::write(root.join("agent.sh"), "1").unwrap();
        std::fs::write(root.join("tools/server.py"), "1").unwrap();
        std::fs::write(root.join("data.db"), "1").unwrap();
        std::fs::write(dir.path().join("outside.sh"), "1").unwrap();
        let named = |words: &[&str]| -> Vec<String> {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            programs(&root, &words).into_keys().collect()
        };
        assert_eq!(named(&["./agent.sh", "tools/server.py"]), ["./agent.sh"]);
        assert_eq!(named(&["python3", "-u", "tools/server.py", "data.db"]), ["tools/server.py"]);
        assert_eq!(named(&["uv", "run", "tools/server.py"]), ["tools/server.py"]);
        let absolute = root.join("agent.sh").display().to_string();
        assert_eq!(named(&[&absolute]), [absolute.as_str()]);
        for none in
            [&["agent.sh"][..], &["sqlite-mcp", "data.db"], &["../outside.sh"], &["npx", "-y", "x"], &[]]
        {
            assert_eq!(named(none), [""; 0], "{none:?}");
        }
        let before = programs(&root, &["./agent.sh".into()]);
        std::fs::write(root.join("agent.sh"), "2").unwrap();
        assert_ne!(programs(&root, &["./agent.sh".into()]), before);
    }
}
