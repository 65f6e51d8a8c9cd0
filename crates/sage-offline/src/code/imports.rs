//! Which file of the project an import means, as far as paths tell.

use std::collections::{HashMap, HashSet};

use super::facts::FileFacts;
use super::survey::Survey;

/// The modules that each file imports. A module is a file; in Go, a folder.
pub(super) fn imported(survey: &Survey) -> HashMap<&str, HashSet<String>> {
    let index = Index::new(survey);
    let of = |file: &FileFacts| {
        let modules =
            file.imports.iter().flat_map(|import| index.resolve(&file.path, file.language, &import.path));
        modules.filter(|to| *to != file.path).collect()
    };
    survey.files.iter().map(|file| (file.path.as_str(), of(file))).collect()
}

/// The project's modules by how many files import them, the most first.
pub(super) fn fan_in(survey: &Survey) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    imported(survey).into_values().flatten().for_each(|to| *counts.entry(to).or_default() += 1);
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

struct Index<'a> {
    by_path: HashMap<&'a str, usize>,
    /// Files by the last two parts of their path without extension: `models/user`.
    by_end: HashMap<String, Vec<usize>>,
    /// Folders that hold Go.
    packages: HashSet<&'a str>,
    paths: Vec<&'a str>,
}

impl<'a> Index<'a> {
    fn new(survey: &'a Survey) -> Index<'a> {
        let paths = survey.files.iter().map(|file| file.path.as_str()).collect();
        let go = survey.files.iter().filter(|file| file.language == "Go");
        let packages = go.filter_map(|file| file.path.rsplit_once('/').map(|(folder, _)| folder)).collect();
        let mut index = Index { by_path: HashMap::new(), by_end: HashMap::new(), packages, paths };
        for (at, file) in survey.files.iter().enumerate() {
            index.by_path.insert(&file.path, at);
            let stem = module_path(&file.path);
            let parts: Vec<&str> = stem.rsplit('/').take(2).collect();
            for end in [parts.first().copied().unwrap_or_default().to_string(), ends(&parts)] {
                index.by_end.entry(end).or_default().push(at);
            }
        }
        index
    }

    fn resolve(&self, from: &str, language: &str, import: &str) -> Vec<String> {
        let found: Vec<usize> = match language {
            "Rust" => expanded(import).iter().filter_map(|path| self.rust(from, path)).collect(),
            "TypeScript" | "JavaScript" => self.script(from, import).into_iter().collect(),
            "Python" => self.dotted(from, import).into_iter().collect(),
            "Java" => self.ending(&import.replace('.', "/"), ".java").into_iter().collect(),
            _ => {
                return self
                    .packages
                    .iter()
                    .find(|p| import.ends_with(*p))
                    .map(|p| p.to_string())
                    .into_iter()
                    .collect();
            }
        };
        found.into_iter().map(|at| self.paths[at].to_string()).collect()
    }

    fn rust(&self, from: &str, import: &str) -> Option<usize> {
        let mut parts: Vec<&str> = import.split("::").map(str::trim).collect();
        let source = from
            .rfind("/src/")
            .map(|at| &from[..at + 5])
            .or_else(|| from.starts_with("src/").then_some("src/"))?;
        let module = module_path(from.strip_prefix(source)?);
        let mut base: Vec<String> = match parts.first()? {
            &"crate" => vec![source.trim_end_matches('/').to_string()],
            &"super" => {
                let mut around: Vec<String> =
                    format!("{source}{module}").split('/').map(str::to_string).collect();
                let ups = parts.iter().take_while(|part| **part == "super").count();
                around.truncate(around.len().checked_sub(ups)?);
                around
            }
            &"self" => vec![format!("{source}{module}")],
            other => {
                let dashed = other.replace('_', "-");
                let root = source
                    .trim_end_matches("src/")
                    .trim_end_matches('/')
                    .rsplit_once('/')
                    .map(|(root, _)| root)?;
                vec![format!("{root}/{dashed}/src")]
            }
        };
        let keywords = ["crate", "super", "self"];
        let skip = if keywords.contains(&parts[0]) {
            parts.iter().take_while(|p| keywords.contains(p)).count()
        } else {
            1
        };
        parts.drain(..skip);
        base.extend(parts.into_iter().map(str::to_string));
        (1..=base.len()).rev().find_map(|length| {
            let path = base[..length].join("/");
            let file = |end: &str| self.by_path.get(format!("{path}{end}").as_str()).copied();
            file(".rs").or_else(|| file("/mod.rs")).or_else(|| file("/lib.rs"))
        })
    }

    fn script(&self, from: &str, import: &str) -> Option<usize> {
        let path = match import.strip_prefix("@/").or_else(|| import.strip_prefix("~/")) {
            Some(rest) => format!("src/{rest}"),
            None if import.starts_with('.') => joined(from, import)?,
            None => return None,
        };
        let plain =
            ["", ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.tsx", "/index.js", "/index.jsx"];
        let bare = path.strip_suffix(".js").unwrap_or(&path);
        plain.iter().find_map(|end| self.by_path.get(format!("{bare}{end}").as_str()).copied())
    }

    fn dotted(&self, from: &str, import: &str) -> Option<usize> {
        let dots = import.chars().take_while(|c| *c == '.').count();
        let rest = import[dots..].replace('.', "/");
        if dots > 0 {
            let up = "../".repeat(dots - 1);
            let path = joined(from, &format!("{up}{rest}"))?;
            let file = |end: &str| self.by_path.get(format!("{path}{end}").as_str()).copied();
            return file(".py").or_else(|| file("/__init__.py"));
        }
        self.ending(&rest, ".py")
    }

    /// A file whose path ends so, if only one does.
    fn ending(&self, path: &str, extension: &str) -> Option<usize> {
        let parts: Vec<&str> = path.rsplit('/').take(2).collect();
        let candidates = self.by_end.get(&ends(&parts))?;
        let named = |at: &&usize| self.paths[**at].ends_with(extension);
        let mut fitting = candidates.iter().filter(named);
        fitting.next().copied().filter(|_| fitting.next().is_none())
    }
}

fn ends(parts: &[&str]) -> String {
    parts.iter().rev().copied().collect::<Vec<_>>().join("/")
}

/// `a/b.rs` and `a/b/mod.rs` are both `a/b`.
pub(super) fn module_path(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    ["/mod", "/__init__", "/index", "/lib", "/main"]
        .iter()
        .find_map(|end| stem.strip_suffix(end))
        .unwrap_or(stem)
        .to_string()
}

fn joined(from: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`; nested lists by their first level.
fn expanded(import: &str) -> Vec<String> {
    let Some((head, rest)) = import.split_once('{') else { return vec![import.to_string()] };
    let mut depth = 0;
    let mut part = String::new();
    let mut parts = Vec::new();
    for c in rest.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            _ => {}
        }
        if depth < 0 {
            break;
        }
        if depth == 0 && c != ',' && c != '}' {
            part.push(c);
        }
    }
    parts.push(part);
    let known = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    known.map(|part| format!("{head}{part}")).collect()
}
