//! Named operations: those that come with Sage, over them the project's own in `.sage/operations/<name>.md`, over
//! them those that `sage.toml` binds to tools of MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sage_agents::text_file;
use sage_core::check::Loaded;
use sage_core::diagnostic::Diagnostic;
use sage_core::read::{Binding, Library};

/// A Markdown file is a prompt; larger ones are a mistake.
const MAX_BYTES: u64 = 1 << 20;

macro_rules! embedded {
    ($folder:literal, $extension:literal, $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $folder, "/", $name, ".", $extension)))),*]
    };
}

/// Templates that come with Sage, by name.
pub const TEMPLATES: &[(&str, &str)] =
    embedded!("templates", "yaml", "audit", "bugfix", "delivery", "enhancement", "feature", "swarm",);

/// Operations that come with Sage, by name.
pub const OPERATIONS: &[(&str, &str)] = embedded!(
    "operations",
    "md",
    "analyze.code",
    "audit.accessibility",
    "audit.performance",
    "audit.security",
    "build.verify",
    "clean",
    "critique",
    "devops.prepare",
    "document",
    "errors.track",
    "implement",
    "implement.backend",
    "implement.fix",
    "implement.frontend",
    "patterns.extract",
    "performance.profile",
    "plan",
    "qa.backend",
    "qa.frontend",
    "quality.review",
    "research.alternatives",
    "research.competitive",
    "research.market",
    "research.practices",
    "research.similar",
    "research.solutions",
    "skills.discover",
    "specify",
    "standards.discover",
    "statistics",
    "swarm.audit",
    "swarm.implement",
    "swarm.plan",
    "test.regression",
    "test.run",
    "tickets.create",
    "tickets.update",
);

/// Shapes of results that front matter can name: `schema: ${report}`.
const SHAPES: &[(&str, &str)] = embedded!(
    "operations/shapes",
    "json",
    "check",
    "parts",
    "plan",
    "report",
    "specification",
    "verdict",
    "work",
);

/// The operations of a project, and what is wrong with its own.
#[derive(Debug, Default)]
pub struct Operations {
    pub library: Library,
    broken: Vec<Broken>,
}

#[derive(Debug)]
struct Broken {
    name: String,
    file: String,
    text: String,
    problems: Vec<Diagnostic>,
}

impl Operations {
    /// Built-in ones, over them those in `dir`, over these the bound ones.
    pub fn of(root: &Path, dir: &Path, bound: &BTreeMap<String, Binding>) -> Operations {
        let mut operations = Operations::default();
        for (name, text) in OPERATIONS {
            operations.add(name, name.to_string(), (*text).to_string());
        }
        for (name, path) in files(dir) {
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            match text_file::read_in(root, &path, MAX_BYTES) {
                Ok(text) => operations.add(&name, file, text),
                Err(error) => operations.refuse(&name, file, &error.to_string()),
            }
        }
        for (name, binding) in bound {
            let text = binding.text(operations.library.get(name));
            operations.add(name, format!("sage.toml, operations.{name}"), text);
        }
        operations
    }

    fn add(&mut self, name: &str, file: String, text: String) {
        let text = with_shapes(&text);
        let problems = self.library.add(name, &text);
        if !problems.is_empty() {
            self.broken.push(Broken { name: name.to_string(), file, text, problems });
        }
    }

    fn refuse(&mut self, name: &str, file: String, why: &str) {
        let problem = Diagnostic::error("", Default::default(), format!("cannot be read: {why}"));
        let name = name.to_string();
        self.broken.push(Broken { name, file, text: String::new(), problems: vec![problem] });
    }

    /// Tells what is wrong with the project's operations; of those that this template does not speak of, only
    /// that something is.
    pub fn report(&self, template: &str, report: &mut dyn FnMut(&str, &Loaded, &str)) {
        for broken in &self.broken {
            if template.contains(&broken.name) {
                let loaded =
                    Loaded { template: None, diagnostics: broken.problems.clone(), shown: Vec::new() };
                report(&broken.file, &loaded, &broken.text);
            } else {
                let unused = "the file has mistakes; this template does not use it";
                let diagnostics = vec![Diagnostic::warning("", Default::default(), unused)];
                report(
                    &broken.file,
                    &Loaded { template: None, diagnostics, shown: Vec::new() },
                    &broken.text,
                );
            }
        }
    }

    /// The file of an operation that is not to be used, not even the built-in one of the same name.
    pub fn broken(&self, name: &str) -> Option<&str> {
        let of_it = |broken: &&Broken| broken.name == name && broken.problems.iter().any(|it| it.is_error());
        self.broken.iter().find(of_it).map(|broken| broken.file.as_str())
    }
}

/// The shapes written out, so that what a run freezes stands by itself.
fn with_shapes(text: &str) -> String {
    let mut text = text.to_string();
    for (name, shape) in SHAPES {
        text = text.replace(&format!("schema: ${{{name}}}"), &format!("schema: {}", shape.trim_end()));
    }
    text
}

/// Name -> file; names may have dots: `research.market.md`.
fn files(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().to_str()?.strip_suffix(".md")?.to_string();
        Some((name, entry.path()))
    });
    let mut files: Vec<_> = named.collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn what_is_no_file_is_told_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.md");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(dir.path().join("large.md"), vec![b'x'; MAX_BYTES as usize + 1]).unwrap();
        std::fs::write(dir.path().join("odd.md"), [0xff, 0xfe]).unwrap();
        std::fs::write(dir.path().join("own.md"), "Do it").unwrap();
        let operations = Operations::of(dir.path(), dir.path(), &BTreeMap::new());
        let names: Vec<&str> = operations.broken.iter().map(|broken| broken.file.as_str()).collect();
        assert_eq!(names, ["large.md", "odd.md", "pipe.md"]);
        assert!(operations.library.get("own").is_some());
    }
}
