//! Small projects in every language, and what must be said about them.

mod audits;
mod bug;
mod facts;
mod patterns;
mod performance;
mod qa;
mod quality;
mod robust;

use serde_json::{Map, Value};

use crate::request::Request;

/// A project in a directory of its own.
struct Project {
    dir: tempfile::TempDir,
    title: String,
    steps: Map<String, Value>,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap(), title: String::new(), steps: Map::new() };
        files.iter().fold(project, |project, (path, text)| project.file(path, text.as_bytes()))
    }

    fn file(self, path: &str, content: &[u8]) -> Project {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn title(mut self, title: &str) -> Project {
        self.title = title.into();
        self
    }

    fn step(mut self, path: &str, result: Value) -> Project {
        self.steps.insert(path.into(), result);
        self
    }

    fn run(&self, operation: &str) -> Value {
        let request = Request {
            operation: operation.into(),
            project: self.dir.path().to_path_buf(),
            title: self.title.clone(),
            steps: self.steps.clone(),
            ..Request::default()
        };
        crate::perform(&request).unwrap()
    }
}

/// `title @ first place`, sorted: what a report found.
fn found(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap();
    let line = |finding: &Value| {
        let place = finding["evidence"][0].as_str().unwrap_or("-");
        format!("{} @ {place}", finding["title"].as_str().unwrap())
    };
    let mut lines: Vec<String> = findings.iter().map(line).collect();
    lines.sort();
    lines
}

/// The finding whose title contains `text`.
#[track_caller]
fn finding<'a>(report: &'a Value, text: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    let named = |finding: &&Value| finding["title"].as_str().unwrap().contains(text);
    findings.iter().find(named).unwrap_or_else(|| panic!("no finding `{text}` in {:#?}", found(report)))
}
