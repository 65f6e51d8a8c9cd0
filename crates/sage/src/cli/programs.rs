//! Code of workflows: which files are code, what a run freezes of them, and what is wrong with them.
//!
//! A workflow in code is a template of one `script` step: everything that reads templates reads it, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use sage_agents::text_file;
use sage_core::diagnostic::{Diagnostic, Shown};
use sage_core::event::{Frozen, FrozenProgram};
use sage_core::port::script::{Dialect, Module, Program};
use sage_core::source::{Format, SourceText};
use sage_core::template::Span;
use sage_script::strip::{Form, Scan, strip};
use serde_json::json;

use super::failure::Failure;

pub const EXTENSIONS: [&str; 4] = ["ts", "mts", "js", "mjs"];
/// Modules of one program.
const MAX_MODULES: usize = 1_000;

pub fn is_code(path: &Path) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
}

/// A workflow in code as a template.
pub fn freeze(path: &Path, root: &Path) -> Result<Frozen, Failure> {
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let text = read(root, path).map_err(|why| Failure::usage(format!("cannot read `{shown}`: {why}")))?;
    let stem = path.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    let meta = scan(&shown, &text).and_then(|scan| scan.meta).unwrap_or_default();
    let mut template = json!({
        "name": stem.chars().take(100).collect::<String>(),
        "phases": [{"id": Program::PHASE, "operations": [
            {"id": Program::STEP, "type": "script", "params": {"file": shown}}
        ]}],
    });
    if let Some(about) = meta["description"].as_str() {
        template["description"] = about.into();
    }
    // There a call that nothing is left for throws; here it would wait for somebody.
    if Dialect::of(&text) == Dialect::Claude {
        template["onBudget"] = "fail".into();
    }
    let program = FrozenProgram { text, modules: Vec::new() };
    let programs = BTreeMap::from([(shown.clone(), program)]);
    Ok(Frozen { file: Some(shown), programs, ..Frozen::new(stem, Format::Json, template.to_string()) })
}

fn scan(name: &str, text: &str) -> Option<Scan> {
    strip(name, text, Form::Workflow).ok().map(|stripped| stripped.scan)
}

/// What a workflow script of Claude Code calls itself.
pub fn own_name(path: &Path, root: &Path) -> Option<String> {
    let text = read(root, path).ok()?;
    scan("", &text)?.meta?["name"].as_str().map(str::to_owned)
}

/// A program with all that it imports, and what it names.
#[derive(Debug, Default)]
pub struct Found {
    pub modules: Vec<Module>,
    /// Workflows that it calls by a name that is written out.
    pub workflows: Vec<String>,
    /// It also calls one by a computed name.
    pub calls_any: bool,
    pub wrong: Vec<Shown>,
}

/// Reads a program's imports. `file` is as its step names it, `skills` is where skills are.
pub fn complete(file: &str, text: &str, root: &Path, skills: &Path) -> Found {
    let mut found = Found::default();
    let folder = root.join(file).parent().map(Path::to_path_buf).unwrap_or_else(|| root.to_path_buf());
    let mut wanted = match strip(file, text, Form::Workflow) {
        Err(wrong) => return Found { wrong, ..found },
        Ok(stripped) => {
            found.wrong.extend(foreign_imports(file, text, &stripped.scan.imports));
            found.wrong.extend(no_workflow(file, text));
            (found.workflows, found.calls_any) = (stripped.scan.workflows, stripped.scan.calls_any);
            found.wrong.extend(missing(file, text, &stripped.scan.imports, &folder));
            found.wrong.extend(outside(file, text, &stripped.scan.imports, Path::new(".")));
            paths(&stripped.scan.imports, Path::new("."))
        }
    };
    let mut seen = BTreeSet::new();
    while let Some(path) = wanted.pop() {
        if path == "sage" || !seen.insert(path.clone()) || seen.len() > MAX_MODULES {
            continue;
        }
        let place = match path.strip_prefix("skills/") {
            Some(name) => skills.join(name).join("skill.ts"),
            None => folder.join(path.strip_prefix("./").unwrap_or(&path)),
        };
        let Ok(text) = read(root, &place).or_else(|_| read(root, &place.with_extension("ts"))) else {
            continue;
        };
        let shown = place.strip_prefix(root).unwrap_or(&place).display().to_string();
        match strip(&shown, &text, Form::Module) {
            Err(mut wrong) => found.wrong.append(&mut wrong),
            Ok(stripped) => {
                let around = place.parent().unwrap_or(root);
                found.wrong.append(&mut missing(&shown, &text, &stripped.scan.imports, around));
                let folder = Path::new(&path).parent().unwrap_or(Path::new("."));
                found.wrong.extend(outside(&shown, &text, &stripped.scan.imports, folder));
                wanted.extend(paths(&stripped.scan.imports, folder));
                found.wrong.extend(foreign_imports(&shown, &text, &stripped.scan.imports));
                found.workflows.extend(stripped.scan.workflows);
                found.calls_any |= stripped.scan.calls_any;
                found.modules.push(Module { path, text });
            }
        }
    }
    found.modules.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Packages and built-in modules of other places.
fn foreign_imports(name: &str, text: &str, imports: &[String]) -> Vec<Shown> {
    let known =
        |import: &str| import == "sage" || ["./", "../", "skills/"].iter().any(|own| import.starts_with(own));
    let hint = "import files of the same folder (`./lib.ts`) or skills (`skills/<name>`)";
    let told = |import: &String| {
        let message = format!("`{import}` cannot be imported: workflows have no packages");
        wrong_import(name, text, import, message, hint)
    };
    imports.iter().filter(|import| !known(import)).map(told).collect()
}

fn wrong_import(name: &str, text: &str, import: &str, message: String, hint: &str) -> Shown {
    let start = text.find(import).unwrap_or(0);
    let span = Span { start: start as u32, end: (start + import.len()) as u32 };
    SourceText::new(name, text).show(&Diagnostic::error("", span, message).hint(hint))
}

fn no_workflow(name: &str, text: &str) -> Option<Shown> {
    if Dialect::of(text) == Dialect::Claude || text.contains("export default") || text.contains("as default")
    {
        return None;
    }
    let problem = Diagnostic::error("", Span { start: 0, end: 1 }, "there is no workflow in this file");
    let hint = "export default async (sage: Sage, input) => { ... }";
    Some(SourceText::new(name, text).show(&problem.hint(hint)))
}

/// Calls of workflows that `knows` does not know, in a script of Claude Code: there each of them throws when it is
/// made, and the rest of the script runs.
pub fn unknown_workflows(name: &str, text: &str, knows: impl Fn(&str) -> Result<(), String>) -> Vec<Shown> {
    let Some(scan) = scan(name, text).filter(|scan| scan.dialect == Dialect::Claude) else {
        return Vec::new();
    };
    let calls = scan.workflows.iter().zip(&scan.workflow_spans);
    let told = |(called, (start, end)): (&String, &(usize, usize))| {
        let hint = knows(called).err()?;
        let span = Span { start: *start as u32, end: *end as u32 };
        let problem = Diagnostic::warning("", span, format!("no workflow `{called}`; this call will fail"));
        Some(SourceText::new(name, text).show(&problem.hint(hint)))
    };
    calls.filter_map(told).collect()
}

/// Imports of files that are not there. Of all others the script engine says what may be imported.
fn missing(name: &str, text: &str, imports: &[String], folder: &Path) -> Vec<Shown> {
    let there = |import: &str| {
        let place = folder.join(import);
        place.is_file() || place.with_extension("ts").is_file()
    };
    let hint = "write the path from this file on, with its ending: `./lib.ts`";
    let lost = imports.iter().filter(|import| import.starts_with('.') && !there(import));
    lost.map(|import| wrong_import(name, text, import, format!("there is no file `{import}`"), hint))
        .collect()
}

/// Imports that leave the folder of the workflow: a run does not take them.
fn outside(name: &str, text: &str, imports: &[String], folder: &Path) -> Vec<Shown> {
    let hint = "import files of the workflow's folder and below (`./lib.ts`), or skills (`skills/<name>`)";
    let leaves = |import: &&String| import.starts_with('.') && plain(&folder.join(import)).is_none();
    let told = |import: &String| {
        let message = format!("`{import}` is outside of the workflow's folder");
        wrong_import(name, text, import, message, hint)
    };
    imports.iter().filter(leaves).map(told).collect()
}

/// Imports as the first module would write them.
fn paths(imports: &[String], folder: &Path) -> Vec<String> {
    let own = |import: &String| match import.starts_with('.') {
        true => plain(&folder.join(import)),
        false => Some(import.clone()),
    };
    imports.iter().filter_map(own).collect()
}

/// `./a/../b.ts` becomes `./b.ts`; nothing leaves the folder of the first module.
fn plain(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(format!("./{}", parts.join("/")))
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    text_file::read_in(root, path, sage_script::strip::MAX_BYTES as u64).map_err(|error| error.to_string())
}

/// Where Claude Code keeps workflow scripts: the user's, then the project's.
pub fn foreign(root: &Path) -> Vec<PathBuf> {
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".claude"));
    let user = config.or(home).filter(|dir| dir.is_absolute());
    let dirs = user.into_iter().chain([root.join(".claude")]).map(|dir| dir.join("workflows"));
    let mut files = Vec::new();
    for dir in dirs {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_code(path)).collect();
        found.sort();
        files.append(&mut found);
    }
    files
}
