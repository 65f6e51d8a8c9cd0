//! Only the tests that have to do with what changed, where the framework lets one choose; else all of them.
//!
//! What changed is what git says since the run began, and what the steps before say (`filesChanged`). Their word alone
//! is not enough: without git, all tests run.

use std::path::Path;

use serde_json::Value;

use super::order::Order;
use super::verdict::Verdict;
use crate::draft;
use crate::git::git;
use crate::plain;
use crate::request::Request;
use crate::walk::{File, Tree};

/// More files than these are the whole project.
const MOST_FILES: usize = 40;

/// The commands for the tests of what changed, and a sentence that says what was chosen.
pub fn narrowed(request: &Request, tree: &Tree, orders: Vec<Order>) -> (Vec<Order>, String) {
    let (files, source) = looked_at(request, tree);
    if files.is_empty() || files.len() > MOST_FILES {
        return (orders, "All tests ran: it is not known what changed.".to_string());
    }
    let mut narrow = Vec::new();
    let mut whole = Vec::new();
    for order in orders {
        let own: Vec<&str> = files.iter().filter_map(|file| within(file, &order.folder)).collect();
        match related(&order, &own, tree) {
            Some(line) => narrow.push(Order { line, ..order }),
            None => whole.push(order),
        }
    }
    let named = files.iter().take(5).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    let more = if files.len() > 5 { format!(" and {} more", files.len() - 5) } else { String::new() };
    let all = match (narrow.is_empty(), whole.is_empty()) {
        (_, true) => "",
        (true, false) => " No tests of theirs can be chosen, so all ran.",
        (false, false) => " Where none can be chosen, all ran.",
    };
    let note = format!("Chosen for {source}: {named}{more}.{all}");
    narrow.extend(whole);
    (narrow, note)
}

fn within<'a>(file: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(file) } else { file.strip_prefix(folder)?.strip_prefix('/') }
}

fn looked_at(request: &Request, tree: &Tree) -> (Vec<String>, &'static str) {
    let Some(mut files) = git_changes(&request.project) else { return (Vec::new(), "") };
    files.extend(super::weakened::committed_since(request));
    // Tests of a file that is gone cannot be chosen.
    if files.iter().any(|path| !request.project.join(path).exists()) {
        return (Vec::new(), "");
    }
    files.extend(draft::changed_files(request));
    let source = if files.is_empty() { "the files near the title" } else { "the files that changed" };
    if files.is_empty() {
        files = draft::near_paths(request);
    }
    files.retain(|path| tree.find(path).is_some());
    files.sort();
    files.dedup();
    (files, source)
}

/// The commit that the files of a project are at, if none of them differs from it.
pub fn clean_commit(project: &Path) -> Option<String> {
    uncommitted(project)?.is_empty().then_some(())?;
    git(project, &["rev-parse", "--verify", "--quiet", "HEAD"]).ok().map(|commit| commit.trim().to_string())
}

/// Files that differ from the last commit, but for Sage's own.
pub fn uncommitted(project: &Path) -> Option<Vec<String>> {
    let own = |path: &str| path.starts_with(".sage/") || path.starts_with("docs/specs/");
    let changes = git_changes(project)?;
    Some(changes.into_iter().filter(|path| !own(path)).collect())
}

fn git_changes(project: &Path) -> Option<Vec<String>> {
    // In a submodule git would be run with settings of its own.
    let status = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=dirty",
    ];
    let text = git(project, &status).ok()?;
    // Paths are relative to the repository, which may lie above the project.
    let prefix = git(project, &["rev-parse", "--show-prefix"]).unwrap_or_default();
    let prefix = prefix.trim_end_matches('\n');
    let paths = text.split('\0').filter_map(|entry| entry.get(3..)?.strip_prefix(prefix));
    Some(paths.map(str::to_string).collect())
}

/// The same command for the tests of `files` only.
fn related(order: &Order, files: &[&str], tree: &Tree) -> Option<String> {
    let line = order.line.as_str();
    if files.is_empty() {
        return None;
    }
    if let Some(start) = line.strip_suffix(" -m pytest") {
        return Some(format!("{start} -m pytest {}", quoted(&python_tests(order, files, tree)?)));
    }
    if let Some((start, _)) = line.split_once(" -m unittest discover").filter(|_| !line.contains("&&")) {
        return Some(format!("{start} -m unittest {}", quoted(&python_tests(order, files, tree)?)));
    }
    if line.starts_with("cargo test") || line.starts_with("cargo nextest run") {
        return cargo(line, files, &tree.root.join(&order.folder));
    }
    if line == "go test ./..." {
        let mut folders: Vec<String> =
            files.iter().filter(|file| file.ends_with(".go")).map(go_folder).collect();
        folders.sort();
        folders.dedup();
        return (!folders.is_empty()).then(|| format!("go test {}", quoted(&folders)));
    }
    node(order, files, tree)
}

fn go_folder(file: &&str) -> String {
    file.rsplit_once('/').map_or("./".to_string(), |(folder, _)| format!("./{folder}"))
}

/// Test files that are among `files` or name the module of one of them.
fn python_tests(order: &Order, files: &[&str], tree: &Tree) -> Option<Vec<String>> {
    let is_test =
        |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    let tests = naming(order, files, tree, &is_test);
    (!tests.is_empty()).then_some(tests)
}

fn naming(order: &Order, files: &[&str], tree: &Tree, is_test: &dyn Fn(&str) -> bool) -> Vec<String> {
    let stems: Vec<&str> =
        files.iter().filter_map(|file| file.rsplit('/').next()?.split('.').next()).collect();
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| is_test(file.name())) {
        let Some(path) = within(&file.path, &order.folder) else { continue };
        if files.contains(&path) || names_any(tree, file, &stems) {
            found.push(path.to_string());
        }
    }
    found
}

fn names_any(tree: &Tree, file: &File, stems: &[&str]) -> bool {
    let text = tree.text(file).unwrap_or_default();
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    words.any(|word| stems.contains(&word))
}

/// The packages that the files belong to, if the workspace has several.
fn cargo(line: &str, files: &[&str], root: &Path) -> Option<String> {
    let start = line.strip_suffix(" --workspace")?;
    let mut names: Vec<String> = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs") || file.ends_with("Cargo.toml")) {
        let name = package(root, file)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let chosen = names.iter().map(|name| format!(" -p {name}")).collect::<String>();
    (!names.is_empty()).then(|| format!("{start}{chosen}"))
}

/// The name in the nearest `Cargo.toml` above a file.
fn package(root: &Path, file: &str) -> Option<String> {
    let mut folder = Path::new(file).parent();
    while let Some(here) = folder {
        if let Some(text) = plain::text(root, &here.join("Cargo.toml"), plain::MOST_BYTES) {
            let manifest: toml::Table = text.parse().ok()?;
            return Some(manifest.get("package")?.get("name")?.as_str()?.to_string());
        }
        folder = here.parent();
    }
    None
}

fn node(order: &Order, files: &[&str], tree: &Tree) -> Option<String> {
    let manifest =
        plain::text(&tree.root, &Path::new(&order.folder).join("package.json"), plain::MOST_BYTES)?;
    let manifest: Value = serde_json::from_str(&manifest).ok()?;
    let script = manifest["scripts"]["test"].as_str().filter(|_| order.line.ends_with(" test"))?;
    let scripts = |file: &&&str| {
        ["js", "jsx", "ts", "tsx", "mjs", "cjs"].iter().any(|end| file.ends_with(&format!(".{end}")))
    };
    let files: Vec<String> = files.iter().filter(scripts).map(|file| file.to_string()).collect();
    if files.is_empty() {
        return None;
    }
    match script {
        _ if script.contains("vitest") => {
            Some(format!("npx --no-install vitest related --run {}", quoted(&files)))
        }
        _ if script.contains("jest") => {
            Some(format!("npx --no-install jest --findRelatedTests {}", quoted(&files)))
        }
        _ if script.starts_with("node --test") => {
            let is_test =
                |name: &str| name.contains(".test.") || name.contains("_test.") || name.starts_with("test-");
            let own: Vec<&str> = files.iter().map(String::as_str).collect();
            let tests = naming(order, &own, tree, &is_test);
            (!tests.is_empty()).then(|| format!("node --test {}", quoted(&tests)))
        }
        _ => None,
    }
}

fn quoted(words: &[String]) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "._-/@+".contains(c));
    let quote = |word: &String| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// What is new against the `test.run` among the steps before.
pub fn compare(verdict: &mut Verdict, request: &Request) {
    let Some(before) = draft::failures_before(request) else { return };
    let new: Vec<&str> = verdict
        .failures
        .iter()
        .map(|failure| failure.name.as_str())
        .filter(|name| !before.contains(&name.to_string()))
        .collect();
    let note = match (verdict.ran, new.is_empty()) {
        (false, _) => return,
        (true, true) => {
            format!("Nothing fails that did not fail in the test step before ({} there).", before.len())
        }
        (true, false) => format!("New against the test step before: {}.", new.join(", ")),
    };
    verdict.add_note(&note);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    // covers: R17
    #[test]
    fn changes_are_found_without_running_what_the_repository_names() {
        let dir = tempfile::tempdir().unwrap();
        let (top, project) = (dir.path(), dir.path().join("sub"));
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("new.rs"), "x").unwrap();
        std::fs::write(project.join("old.rs"), "x").unwrap();
        std::fs::write(top.join(".gitattributes"), "*.rs filter=odd=name\n").unwrap();
        let hook = top.join("hook.sh");
        std::fs::write(&hook, "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n").unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let git = |args: &[&str]| {
            assert!(Command::new("git").args(args).current_dir(top).output().unwrap().status.success());
        };
        git(&["init", "-q"]);
        git(&["add", "sub/old.rs"]);
        for name in ["core.fsmonitor", "filter.odd=name.clean", "filter.odd=name.process"] {
            git(&["config", name, hook.to_str().unwrap()]);
        }
        git(&["config", "filter.odd=name.required", "true"]);
        std::fs::write(project.join("old.rs"), "y").unwrap();
        assert_eq!(git_changes(&project).unwrap(), ["old.rs", "new.rs"]);
        assert!(!top.join("ran").exists(), "a program that the repository names was run");
    }
}
