//! Named operations: those that come with Sage, over them the project's own in `.sage/operations/<name>.md`, over
//! them those that `sage.toml` binds to tools of MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sage_agents::text_file;
use sage_core::check::Loaded;
use sage_core::diagnostic::Diagnostic;
use sage_core::read::{Binding, Library, NamedOperation};
use sage_core::role::Role;
use sage_core::template::Kind;
use serde_json::json;

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
    own: BTreeMap<String, Own>,
    broken: Vec<Broken>,
}

/// Where the project defines an operation, and as what.
#[derive(Debug)]
pub struct Own {
    pub file: String,
    pub written: String,
    /// The role of the built-in operation that it replaces.
    pub replaced_role: Option<Role>,
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
            operations.library.add_checked(name, &with_shapes(text));
        }
        for (name, path) in files(dir) {
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            match text_file::read_in(root, &path, MAX_BYTES) {
                Ok(text) => operations.add_own(&name, &file, &text, &file, text.clone()),
                Err(error) => operations.refuse(&name, file, &error.to_string()),
            }
        }
        for (name, binding) in bound {
            let text = binding.text(operations.library.get(name));
            let Binding { server, tool, arguments, .. } = binding;
            let written = json!([server, tool, arguments, binding.on_unknown, binding.is_checked]);
            let place = format!("sage.toml, operations.{name}");
            operations.add_own(name, &place, &text, "sage.toml", written.to_string());
        }
        operations
    }

    /// One that the project defines. In the place of a built-in one it has that one's role, unless it names another.
    fn add_own(&mut self, name: &str, place: &str, text: &str, file: &str, written: String) {
        let replaced_role = role(self.library.get(name));
        self.add(name, place.to_string(), text.to_string());
        let own = self.library.get(name).filter(|own| own.kind == Kind::Agent && self.broken(name).is_none());
        if let (Some(replaced), Some(_), None) = (replaced_role, own, role(own)) {
            // What is wrong with it has been told.
            self.library.add(name, &with_shapes(&with_role(text, replaced)));
        }
        self.own.insert(name.to_string(), Own { file: file.to_string(), written, replaced_role });
    }

    /// An operation that the project defines.
    pub fn own(&self, name: &str) -> Option<&Own> {
        self.own.get(name)
    }

    /// Names of all that the project defines.
    pub fn own_names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
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

fn role(operation: Option<&NamedOperation>) -> Option<Role> {
    operation.and_then(NamedOperation::alone).and_then(|alone| alone.role)
}

/// As the last line of the front matter, so that what a run freezes stands by itself.
fn with_role(text: &str, role: Role) -> String {
    let field = format!("role: {role}\n");
    let start = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut lines = start.split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return format!("---\n{field}---\n{start}");
    }
    let mut at = start.len() - lines.clone().map(str::len).sum::<usize>();
    for line in lines {
        if line.trim_end() == "---" {
            return format!("{}{field}{}", &start[..at], &start[at..]);
        }
        at += line.len();
    }
    format!("---\n{field}---\n{start}")
}

/// The shapes written out, so that what a run freezes stands by itself.
fn with_shapes(text: &str) -> String {
    let mut text = text.to_string();
    if !text.contains("schema: ${") {
        return text;
    }
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

    #[test]
    fn built_in_operations_have_no_mistakes() {
        for (name, text) in OPERATIONS {
            let problems = Library::default().add(name, &with_shapes(text));
            assert!(problems.is_empty(), "{name}: {problems:?}");
        }
    }

    // covers: R17
    #[test]
    fn an_operation_in_the_place_of_a_built_in_one_keeps_its_role() {
        let dir = tempfile::tempdir().unwrap();
        let role_of = |name: &str, text: &str| {
            let file = dir.path().join(format!("{name}.md"));
            std::fs::write(&file, text).unwrap();
            let operations = Operations::of(dir.path(), dir.path(), &BTreeMap::new());
            std::fs::remove_file(file).unwrap();
            assert!(operations.broken.is_empty(), "{:?}", operations.broken);
            // What a run freezes says the same.
            let text = operations.library.get(name).unwrap().text.clone();
            let frozen = Library::frozen(&BTreeMap::from([(name.to_string(), text)]));
            assert_eq!(role(frozen.get(name)), role(operations.library.get(name)));
            role(operations.library.get(name))
        };
        for text in
            ["Look", "---\nmodel: m\n---\nLook", "---\nmodel: m\n---\nLook\n---\nmore", "\u{FEFF}Look"]
        {
            assert_eq!(role_of("audit.security", text), Some(Role::Auditor), "{text}");
            assert_eq!(role_of("of.my.own", text), None);
        }
        let own = "---\nrole: planner\n---\nLook";
        assert_eq!(role_of("audit.security", own), Some(Role::Planner));
        assert_eq!(role_of("audit.security", "---\nkind: shell\n---\nls"), None);
    }

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
