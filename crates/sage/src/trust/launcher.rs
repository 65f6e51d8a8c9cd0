//! Files of the project that a definition starts: `./agent.sh`, `tools/server.py` behind an interpreter, `./a.sh` in
//! `sh -c`, a library in `LD_PRELOAD`. Their content is part of the definition, so that a pull which changes one asks
//! again as a changed command does.
//!
//! What is named and is a program is covered: by its ending, its mode or its first line, or because an interpreter is
//! given it, in words, in shell text and in the values of variables; a module or a folder with an entry; the manifest of
//! `npm` and `make`. Other files are data that programs write: a changed one is no other program. What a covered file
//! starts or loads in turn is not covered.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sage_core::digest::Digest;
use sage_engine::vfs::{DiskFs, Vfs};
use serde_json::Value;

/// Of larger ones size and time count.
const MAX_BYTES: u64 = 64 << 20;
/// Endings of scripts, and of what programs load.
const PROGRAMS: [&str; 24] = [
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "pl",
    "php", "lua", "jar", "so", "dylib", "wasm", "ps1", "tcl", "mk",
];
/// Whatever they are given is a program. Without the number of a version.
const INTERPRETERS: [&str; 15] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "source", "python", "node", "ruby", "perl", "php", "lua",
    "tsx", "ts-node",
];
/// Options of theirs that are followed by one more program.
const LOADING: [&str; 4] = ["-r", "--require", "--import", "--loader"];
/// What a folder begins with when an interpreter is given it.
const ENTRIES: [&str; 7] =
    ["package.json", "index.js", "index.mjs", "index.cjs", "index.ts", "__main__.py", "__init__.py"];
/// Tools that take what they run from a file that nobody names.
const MANIFESTS: [(&str, &[&str]); 7] = [
    ("npm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("bun", &["package.json"]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("rake", &["Rakefile"]),
];
/// Folders that a text changes to; more are not looked in.
const FOLDERS: usize = 16;

/// What a definition starts.
#[derive(Debug, Default)]
pub struct Started {
    /// Commands, word by word.
    commands: Vec<Vec<String>>,
    /// Shell text, and values of variables.
    texts: Vec<String>,
    /// Scripts of the fake agent.
    scripts: Vec<String>,
}

impl Started {
    pub fn command(mut self, words: Vec<String>) -> Started {
        self.commands.push(words);
        self
    }

    pub fn texts(mut self, texts: impl IntoIterator<Item = String>) -> Started {
        self.texts.extend(texts);
        self
    }

    /// A script of the fake agent: a file, or turns with commands in them.
    pub fn fake(mut self, root: &Path, script: &Value) -> Started {
        let Some(path) = script.as_str() else { return self.texts(texts_at(script, &["run"])) };
        let file = root.join(path).canonicalize().unwrap_or_default();
        let turns = DiskFs::default().read(&file, MAX_BYTES).unwrap_or_default();
        let turns = serde_json::from_slice(&turns).unwrap_or_default();
        self.scripts.push(path.to_string());
        self.texts(texts_at(&turns, &["run"]))
    }

    /// By the path in the project. Relative ones begin at its root.
    pub fn files(&self, root: &Path) -> BTreeMap<String, Digest> {
        let Ok(root) = root.canonicalize() else { return BTreeMap::new() };
        let mut found = Found { root, seen: BTreeSet::new(), files: BTreeMap::new() };
        for words in &self.commands {
            // A bare program is looked for in `PATH`, which never leads into the project.
            let skipped = usize::from(words.first().is_some_and(|program| !program.contains('/')));
            words.iter().skip(skipped).for_each(|word| found.name(word, Path::new(""), false));
            found.text(&words.join(" "), skipped);
            words.iter().skip(skipped).for_each(|word| found.text(word, 0));
        }
        self.texts.iter().for_each(|text| found.text(text, 0));
        self.scripts.iter().for_each(|script| found.name(script, Path::new(""), true));
        found.files
    }
}

/// All texts below these keys of a value, at any depth.
pub fn texts_at(value: &Value, keys: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(value, false)];
    while let Some((value, wanted)) = open.pop() {
        match value {
            Value::String(text) if wanted => found.push(text.clone()),
            Value::Array(items) => open.extend(items.iter().map(|item| (item, wanted))),
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(key, item)| (item, wanted || keys.contains(&key.as_str()))));
            }
            _ => {}
        }
    }
    found
}

struct Found {
    root: PathBuf,
    seen: BTreeSet<(PathBuf, String, bool)>,
    files: BTreeMap<String, Digest>,
}

impl Found {
    /// Everything in it that could be the name of a file. `skipped` words at the beginning are none.
    fn text(&mut self, text: &str, skipped: usize) {
        let text = text.replace("${PWD}/", "./").replace("$PWD/", "./");
        let apart = |c: char| c.is_whitespace() || ";|&()<>\"'`=,{}:[]".contains(c);
        let tokens: Vec<&str> = text.split(apart).filter(|token| !token.is_empty()).collect();
        let is_folder = |token: &&&str| self.root.join(token).is_dir() && self.root.join(token) != self.root;
        let mut folders: Vec<PathBuf> = vec![PathBuf::new()];
        folders.extend(tokens.iter().filter(is_folder).take(FOLDERS).map(PathBuf::from));
        let interpreted = interpreted(&tokens);
        for folder in &folders {
            for (number, token) in tokens.iter().enumerate() {
                let manifests =
                    MANIFESTS.iter().find(|(tool, _)| *tool == base(token)).map(|(_, files)| *files);
                manifests.into_iter().flatten().for_each(|file| self.name(file, folder, true));
                if number < skipped {
                    continue;
                }
                self.name(token, folder, interpreted.contains(&number));
                // `-r./x`, `${X:-./x}`
                let start = ["./", "../"].iter().filter_map(|start| token.find(start)).min();
                start.filter(|at| *at > 0).into_iter().for_each(|at| self.name(&token[at..], folder, false));
                if number > 0 && tokens[number - 1] == "-m" {
                    let module = token.replace('.', "/");
                    self.name(&format!("{module}.py"), folder, true);
                    self.name(&module, folder, true);
                }
            }
        }
    }

    /// The file of that name, or where the folder of that name begins. `started`: it is a program, however it looks.
    fn name(&mut self, word: &str, folder: &Path, started: bool) {
        let is_name = !word.is_empty() && !word.contains('\0');
        if !is_name || !self.seen.insert((folder.to_path_buf(), word.to_string(), started)) {
            return;
        }
        let Ok(path) = self.root.join(folder).join(word).canonicalize() else { return };
        let Ok(inside) = path.strip_prefix(&self.root).map(Path::to_path_buf) else { return };
        if !path.is_dir() {
            self.file(&path, &inside, started);
        } else if started {
            ENTRIES.iter().for_each(|entry| self.file(&path.join(entry), &inside.join(entry), true));
        }
    }

    fn file(&mut self, path: &Path, inside: &Path, started: bool) {
        let key = inside.to_string_lossy().into_owned();
        let Some(about) = path.metadata().ok().filter(std::fs::Metadata::is_file) else { return };
        let Ok(real) = path.canonicalize() else { return };
        if self.files.contains_key(&key) {
            return;
        }
        let content = DiskFs::default().read(&real, MAX_BYTES);
        let has_interpreter = content.as_ref().is_ok_and(|bytes| bytes.starts_with(b"#!"));
        if !(started || has_interpreter || looks_started(inside, &about)) {
            return;
        }
        let digest = match content {
            Ok(bytes) => Digest::of(&bytes),
            Err(_) => Digest::of(format!("{} {:?}", about.len(), about.modified().ok()).as_bytes()),
        };
        self.files.insert(key, digest);
    }
}

fn looks_started(path: &Path, about: &std::fs::Metadata) -> bool {
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default().to_lowercase();
    PROGRAMS.contains(&ending.as_str()) || about.permissions().mode() & 0o111 != 0
}

fn base(token: &str) -> &str {
    token.rsplit('/').next().unwrap_or(token)
}

/// The numbers of the words that interpreters are given as their programs.
fn interpreted(tokens: &[&str]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut waits = false;
    for (number, token) in tokens.iter().enumerate() {
        let is_loaded = number > 0 && LOADING.contains(&tokens[number - 1]);
        if waits && !token.starts_with('-') {
            found.insert(number);
            waits = is_loaded;
        }
        let name = base(token).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        waits |= INTERPRETERS.contains(&name);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in
            ["root/agent.sh", "root/tools/server.py", "root/data.db", "root/e.so", "root/p.js", "outside.sh"]
        {
            write(dir.path(), path);
        }
        for path in ["root/pkg/__main__.py", "root/srv/index.js", "root/web/package.json", "root/Makefile"] {
            write(dir.path(), path);
        }
        for path in ["root/package.json", "root/memory.json", "root/plain", "root/tools/sub"] {
            write(dir.path(), path);
        }
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path().join("root/tools/sub"), executable).unwrap();
        dir
    }

    fn write(dir: &Path, path: &str) {
        std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        std::fs::write(dir.join(path), "1").unwrap();
    }

    // covers: R17
    #[test]
    fn every_program_that_a_command_names_counts() {
        let dir = project();
        let root = dir.path().join("root");
        let named = |words: &[&str]| -> Vec<String> {
            let words = words.iter().map(ToString::to_string).collect();
            Started::default().command(words).files(&root).into_keys().collect()
        };
        let absolute = root.join("agent.sh").display().to_string();
        for (words, files) in [
            (&["./agent.sh", "tools/server.py"][..], &["agent.sh", "tools/server.py"][..]),
            (&["python3", "-u", "tools/server.py", "data.db"], &["tools/server.py"]),
            (&["sh", "plain", "memory.json"], &["plain"]),
            (&["tools/sub", "memory.json"], &["tools/sub"]),
            (&["uv", "run", "tools/server.py"], &["tools/server.py"]),
            (&["sh", "-c", "exec ./agent.sh"], &["agent.sh"]),
            (&["sh", "-c", "cd tools && python3 server.py"], &["tools/server.py"]),
            (&["node", "-r", "./p.js", "srv"], &["p.js", "srv/index.js"]),
            (&["python3", "-m", "pkg"], &["pkg/__main__.py"]),
            (&["make"], &["Makefile"]),
            (&["sh", "-c", "cd web && npm start"], &["package.json", "web/package.json"]),
            (&[&absolute], &["agent.sh"]),
            (&["x", "--with=./p.js", "${PWD}/agent.sh", "${A:-./e.so}"], &["agent.sh", "e.so", "p.js"]),
        ] {
            assert_eq!(named(words), files, "{words:?}");
        }
        for none in [
            &["agent.sh"][..],
            &["sqlite-mcp", "data.db"],
            &["memory-mcp", "--file=memory.json", "plain", "web", "."],
            &["../outside.sh"],
            &["npx", "-y", "x"],
            &["."],
            &[],
        ] {
            assert_eq!(named(none), [""; 0], "{none:?}");
        }
        let preloaded = Started::default().texts(["./e.so".to_string()]).files(&root);
        assert_eq!(preloaded.into_keys().collect::<Vec<_>>(), ["e.so"]);
    }

    // covers: R17
    #[test]
    fn another_content_is_another_program_also_behind_a_script_of_the_fake_agent() {
        let dir = project();
        let root = dir.path().join("root");
        std::fs::write(root.join("turns.json"), r#"[{"run": "./agent.sh", "say": "p.js"}]"#).unwrap();
        let files = || Started::default().fake(&root, &Value::from("turns.json")).files(&root);
        assert_eq!(files().into_keys().collect::<Vec<_>>(), ["agent.sh", "turns.json"]);
        let before = files();
        std::fs::write(root.join("agent.sh"), "2").unwrap();
        assert_ne!(files(), before);
        let inline = serde_json::json!([{"say": "x", "run": "sh tools/server.py"}]);
        let files = Started::default().fake(&root, &inline).files(&root);
        assert_eq!(files.into_keys().collect::<Vec<_>>(), ["tools/server.py"]);
    }
}
