//! The repository keeps its own rules (CONTRIBUTING.md): sizes, names, words, purity, arrows between crates.
//!
//! These are plain tests on the text of the sources; `source` knows just enough Rust to tell code from
//! comments, strings and tests. Each test lists everything it finds, as `file:line: what`.

mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 500;
const MODULE_DOC_LINES: usize = 15;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `dir` that `wanted` takes, sorted. What runs and builds write is left out.
fn files(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                let written = ["target", ".git", "state", "specs", "dist", "reports", "__pycache__"];
                // A build's `target`, not a module of that name.
                let source = dir.ends_with("src");
                if source || !written.iter().any(|skipped| name == *skipped) {
                    open.push(path);
                }
            } else if wanted(&path) && name != ".git" {
                // In a worktree of git that is a file, and names its place.
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn relative(path: &Path) -> String {
    let root = fs::canonicalize(root()).unwrap();
    let path = fs::canonicalize(path).unwrap();
    path.strip_prefix(root).unwrap_or(&path).display().to_string()
}

/// Everything in `crates/*/src`.
fn sources() -> Vec<Source> {
    let crates = root().join("crates");
    let in_src = |path: &Path| is_rust(path) && path.components().any(|part| part.as_os_str() == "src");
    let read = |path: PathBuf| Source::new(relative(&path), fs::read_to_string(path).unwrap());
    files(&crates, &in_src).into_iter().map(read).collect()
}

/// Without files that are compiled for tests only.
fn products() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| !source.is_test())
}

#[track_caller]
fn assert_none(rule: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn functions_fit_a_screen() {
    let mut found = Vec::new();
    for source in products() {
        for function in source.functions().into_iter().filter(|f| f.lines > FUNCTION_LINES) {
            found.push(format!(
                "{}:{}: {} has {} lines",
                source.path, function.line, function.name, function.lines
            ));
        }
    }
    assert_none(&format!("functions have at most {FUNCTION_LINES} lines"), found);
}

#[test]
fn files_are_short() {
    let lines = |source: &Source| source.product_lines().count();
    let long = products().filter(|source| lines(source) > FILE_LINES);
    let found = long.map(|source| format!("{}: {} lines", source.path, lines(&source))).collect();
    assert_none(&format!("files have at most {FILE_LINES} lines without their tests"), found);
}

#[test]
fn files_begin_by_saying_what_they_are() {
    let mut found = Vec::new();
    for source in products() {
        let doc = source.text.lines().take_while(|line| line.starts_with("//!")).count();
        match doc {
            0 => found.push(format!("{}:1: no `//!`", source.path)),
            1..=MODULE_DOC_LINES => {}
            _ => found.push(format!("{}:1: {doc} lines of `//!`, at most {MODULE_DOC_LINES}", source.path)),
        }
    }
    assert_none("each file begins with a short module doc", found);
}

#[test]
fn nothing_unfinished_is_left() {
    let marks = ["todo!(", "unimplemented!(", "dbg!("];
    let mut found = Vec::new();
    for source in sources() {
        for (number, line) in source.code_lines() {
            found.extend(
                marks
                    .iter()
                    .filter(|mark| line.contains(**mark))
                    .map(|mark| format!("{}:{number}: {mark}..)", source.path)),
            );
        }
    }
    assert_none("finish it or leave it out", found);
}

#[test]
fn what_may_panic_says_why_it_cannot() {
    let mut found = Vec::new();
    for source in products() {
        let text: Vec<&str> = source.text.lines().collect();
        let explained = |number: usize| {
            let near = &text[number.saturating_sub(3)..number];
            near.iter().any(|line| line.contains("//") || line.contains("reason"))
        };
        for (number, line) in source.product_lines() {
            let calls = [".unwrap()", ".expect(\"", ".unwrap_err()", "panic!("];
            // What gives an error to its caller is a method of our own that happens to be called `expect`.
            let panics = calls.iter().any(|call| line.contains(call)) && !line.contains("\")?");
            if panics && !explained(number) {
                found.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none("outside of tests, a comment states the invariant", found);
}

#[test]
fn ignored_tests_have_a_reason() {
    let mut found = Vec::new();
    for path in files(&root().join("crates"), &is_rust) {
        let source = Source::new(relative(&path), fs::read_to_string(&path).unwrap());
        let bare = source.code_lines().filter(|(_, line)| line.contains("#[ignore]"));
        found.extend(bare.map(|(number, _)| format!("{}:{number}", source.path)));
    }
    assert_none("#[ignore = \"reason\"]", found);
}

#[test]
fn files_are_named_after_what_they_hold() {
    let vague = ["util", "utils", "helper", "helpers", "manager", "service", "services", "misc", "common"];
    let is_vague = |path: &str| {
        let words = path.trim_end_matches(".rs").split(['/', '_']);
        words.into_iter().any(|word| vague.contains(&word))
    };
    let found = sources().into_iter().map(|source| source.path).filter(|path| is_vague(path)).collect();
    assert_none("a file is named after its concept", found);
}

/// Words that mean something else to our users, or nothing at all.
#[test]
fn people_are_told_in_the_projects_own_words() {
    let words = ["task", "tasks", "job", "jobs", "manager", "helper", "util"];
    let mut found = Vec::new();
    for source in products().filter(|source| source.path.starts_with("crates/sage/src/cli/")) {
        for (number, text) in source.told() {
            let lower = text.to_lowercase();
            let used = |word: &&&str| lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == **word);
            found.extend(
                words.iter().filter(used).map(|word| format!("{}:{number}: \"{word}\"", source.path)),
            );
        }
    }
    assert_none("use the words of the glossary in ARCHITECTURE.md", found);
}

#[test]
fn no_paths_of_somebodys_machine() {
    // Written in two parts, so that this file does not hold them.
    let paths =
        [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("../sha", "red")];
    let is_text = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = ["rs", "toml", "md", "yaml", "json", "sh", "py"];
        let plain = !name.contains('.') || name == "run" || name.starts_with(".git");
        plain || known.iter().any(|end| name.ends_with(&format!(".{end}")))
    };
    let mut found = Vec::new();
    for path in files(&root(), &is_text) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if paths.iter().any(|part| names_path(line, part)) {
                found.push(format!("{}:{}: {}", relative(&path), number + 1, line.trim()));
            }
        }
    }
    assert_none("the repository stands for itself", found);
}

/// Not where it is the end of another path or name, such as `$work/home`.
fn names_path(line: &str, part: &str) -> bool {
    line.match_indices(part).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Invariant 2: the core does no input or output and cannot fail for outside reasons.
#[test]
fn the_core_is_pure() {
    let outside = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "std::io",
        "tokio",
        "SystemTime",
        "Instant::",
        "rand::",
        "getrandom",
        "Ulid::generate",
        "Ulid::new",
        "print!(",
        "println!(",
        "unsafe ",
        "async ",
        ".await",
    ];
    let mut found = Vec::new();
    for source in products().filter(|source| source.path.starts_with("crates/sage-core/")) {
        // A port is the shape of what others do: it may be async and hand over an open file.
        let port = source.path.ends_with("/port.rs");
        let shapes = ["async ", ".await", "std::fs::File"];
        for (number, line) in source.product_lines() {
            if port && shapes.iter().any(|shape| line.contains(shape)) {
                continue;
            }
            if let Some(what) = outside.iter().find(|what| line.contains(**what)) {
                found.push(format!("{}:{number}: {what}", source.path));
            }
        }
    }
    assert_none("sage-core does no I/O, has no clock, no randomness, no tasks", found);
}

/// core <- fence <- engine, agents <- sage; engine <- history <- sage; core <- script <- sage; adapters never see each other.
#[test]
fn crates_depend_in_one_direction() {
    let mut found = Vec::new();
    for (name, dependencies) in manifests() {
        let allowed: &[&str] = match name.as_str() {
            "sage-core" => &[],
            "sage" => continue,
            "sage-engine" | "sage-agents" => &["sage-core", "sage-fence"],
            "sage-history" => &["sage-core", "sage-fence", "sage-engine"],
            _ => &["sage-core"],
        };
        let wrong = dependencies.iter().filter(|on| !allowed.contains(&on.as_str()));
        found.extend(wrong.map(|on| format!("{name} -> {on}")));
    }
    assert_none("core <- fence <- engine, agents <- sage", found);
}

/// A file of Sage is private and whole, a file of the project stays inside of it: `sage-fence` knows how to write
/// both, and the engine's `Vfs` what must be durable.
#[test]
fn files_are_written_by_those_who_know_how() {
    let ways = [
        "fs::write(",
        "File::create(",
        "File::create_new(",
        "fs::create_dir_all(",
        "fs::create_dir(",
        "fs::copy(",
    ];
    let allowed = [
        "crates/sage-fence/",
        "crates/sage-engine/src/vfs/",
        // Equipment of tests and measurements.
        "crates/sage-agents/src/fake/server.rs",
        "crates/sage-agents/src/fake_",
        "crates/sage-agents/src/bin/",
        "crates/sage/src/cli/bench",
        // Files that a person asked for, or that belong to git or to the project.
        "crates/sage/src/cli/init",
        "crates/sage/src/cli/agent_choice.rs",
        "crates/sage/src/cli/code.rs",
        "crates/sage/src/cli/session.rs",
        "crates/sage-agents/src/worktree/repair.rs",
        "crates/sage-agents/src/worktree/take.rs",
        "crates/sage-agents/src/codex/sandbox.rs",
    ];
    let mut found = Vec::new();
    for source in products().filter(|source| !allowed.iter().any(|start| source.path.starts_with(start))) {
        for (number, line) in source.product_lines() {
            let used = ways.iter().filter(|way| names_path(line, way));
            found.extend(used.map(|way| format!("{}:{number}: {way}..)", source.path)));
        }
    }
    assert_none("use sage_fence::private, sage_fence::Fence or the engine's Vfs", found);
}

/// What reaches a terminal is cleaned: by `say`, or line by line in the display.
#[test]
fn only_one_place_talks_to_the_terminal() {
    let ways = ["stdout()", "stderr()", "println!(", "print!("];
    let allowed = [
        "crates/sage/src/say.rs",
        "crates/sage/src/out.rs",
        "crates/sage/src/display/",
        "crates/sage/src/mcp/transport/",
        "crates/sage/src/main.rs",
    ];
    let mut found = Vec::new();
    let doors = products().filter(|source| source.path.starts_with("crates/sage/src/"));
    for source in doors.filter(|source| !allowed.iter().any(|start| source.path.starts_with(start))) {
        for (number, line) in source.product_lines() {
            // Asking whether it is one, flushing a question, and giving it to a child say nothing.
            let harmless = [
                "is_terminal()",
                "use_stderr()",
                ".flush()",
                "Stdio::from(",
                "eprintln!(",
                "eprint!(",
                "tcgetwinsize(",
            ];
            let used =
                ways.iter().any(|way| line.contains(way)) && !harmless.iter().any(|it| line.contains(it));
            if used {
                found.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none("print through `say`", found);
}

/// Each crate with the crates of this workspace that it depends on.
fn manifests() -> BTreeMap<String, Vec<String>> {
    let is_manifest = |path: &Path| path.ends_with("Cargo.toml");
    let mut crates = BTreeMap::new();
    for path in files(&root().join("crates"), &is_manifest) {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        let ours =
            |line: &&str| line.starts_with("sage-") || line.starts_with("sage.") || line.starts_with("sage ");
        let dependency = |line: &str| line.split([' ', '.', '=']).next().unwrap_or_default().to_owned();
        crates.insert(name, text.lines().filter(ours).map(dependency).collect());
    }
    crates
}

/// Documents that name files are wrong as soon as one is renamed.
#[test]
fn files_that_documents_name_exist() {
    let mut found = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for (number, line) in text.lines().enumerate() {
            for name in line.split('`').skip(1).step_by(2) {
                let path = name.split_whitespace().next().unwrap_or_default();
                let is_file =
                    ["crates/", "examples/", "tools/", ".ci/"].iter().any(|start| path.starts_with(start));
                if is_file && !path.contains('*') && !root().join(path).exists() {
                    found.push(format!("{document}:{}: {path}", number + 1));
                }
            }
        }
    }
    assert_none("documents name files that exist", found);
}
