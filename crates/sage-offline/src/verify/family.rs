//! Languages, as far as commands and test files are concerned.

use crate::walk::File;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Rust,
    Go,
    Node,
    Python,
    Jvm,
    /// `make`, `just`, scripts: whatever the project does.
    Wrapper,
    /// One whose tools are not known here.
    Other(&'static str),
}

/// Other languages by the endings of their files.
const OTHER: &[(&str, &str)] = &[
    ("rb", "Ruby"),
    ("php", "PHP"),
    ("cs", "C#"),
    ("fs", "F#"),
    ("ex", "Elixir"),
    ("exs", "Elixir"),
    ("swift", "Swift"),
    ("dart", "Dart"),
    ("c", "C"),
    ("cc", "C++"),
    ("cpp", "C++"),
    ("bats", "Bats"),
    ("t", "Perl"),
];

impl Family {
    pub fn of_command(line: &str) -> Family {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "cargo" => Family::Rust,
            "go" => Family::Go,
            "npm" | "pnpm" | "yarn" | "bun" => Family::Node,
            _ if line.contains("python") => Family::Python,
            _ if line.contains("mvn") || line.contains("gradle") => Family::Jvm,
            _ => Family::Wrapper,
        }
    }

    fn of_file(file: &File) -> Option<Family> {
        Some(match file.extension() {
            "rs" => Family::Rust,
            "go" => Family::Go,
            "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => Family::Node,
            "py" => Family::Python,
            "java" | "kt" | "kts" | "scala" | "groovy" => Family::Jvm,
            other => {
                let known = OTHER.iter().find(|(ending, _)| *ending == other)?;
                Family::Other(known.1)
            }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Family::Rust => "Rust",
            Family::Go => "Go",
            Family::Node => "JavaScript",
            Family::Python => "Python",
            Family::Jvm => "Java",
            Family::Wrapper => "other",
            Family::Other(name) => name,
        }
    }

    /// Files that make a folder a project of this language.
    pub fn manifests(self) -> &'static [&'static str] {
        match self {
            Family::Rust => &["Cargo.toml"],
            Family::Go => &["go.mod"],
            Family::Node => &["package.json"],
            Family::Jvm => &["pom.xml", "build.gradle", "build.gradle.kts"],
            Family::Python => &["pyproject.toml", "setup.py", "setup.cfg"],
            Family::Wrapper | Family::Other(_) => &[],
        }
    }

    /// The tools of this language: words that stand in a command which runs one of them.
    pub fn tools(self, what: &str) -> &'static [&'static str] {
        match (self, what) {
            (Family::Rust, "build") => &["cargo build", "cargo b"],
            (Family::Rust, _) => &["cargo test", "cargo nextest", "cargo t"],
            (Family::Go, "build") => &["go build"],
            (Family::Go, _) => &["go test", "gotestsum"],
            (Family::Node, "build") => {
                &["run build", "run compile", "yarn build", "pnpm build", "vite build"]
            }
            (Family::Node, _) => &[
                "npm test",
                "npm t",
                "run test",
                "yarn test",
                "pnpm test",
                "bun test",
                "jest",
                "vitest",
                "mocha",
                "node --test",
            ],
            (Family::Python, "build") => &["compileall", "-m build"],
            (Family::Python, _) => &["pytest", "py.test", "unittest", "tox", "nox"],
            (Family::Jvm, _) => &["mvn", "mvnw", "gradle", "gradlew"],
            (Family::Wrapper | Family::Other(_), _) => &[],
        }
    }

    /// The language of a file that is a test by its name. Rust's tests are in the sources, so `tests/` stands for them.
    pub fn of_test(file: &File) -> Option<Family> {
        let family = Family::of_file(file)?;
        let stem = file.name().rsplit_once('.').map_or("", |(stem, _)| stem);
        let is_test = match family {
            Family::Rust => file.path.split('/').rev().nth(1) == Some("tests"),
            Family::Go => stem.ends_with("_test"),
            Family::Python => stem.starts_with("test_") || stem.ends_with("_test"),
            Family::Node => {
                let folder = file.path.split('/').rev().skip(1).any(|part| part == "__tests__");
                stem.ends_with(".test") || stem.ends_with(".spec") || folder
            }
            Family::Jvm => {
                let ends = ["Test", "Tests", "Spec", "IT"];
                let begins =
                    stem.strip_prefix("Test").is_some_and(|rest| rest.starts_with(char::is_uppercase));
                begins || ends.iter().any(|end| stem.ends_with(end))
            }
            Family::Other("Bats") => true,
            Family::Other("Perl") => file.path.split('/').rev().nth(1) == Some("t"),
            _ => {
                let ends = ["_test", "_spec", "Test", "Tests"];
                stem.starts_with("test_") || ends.iter().any(|end| stem.ends_with(end))
            }
        };
        is_test.then_some(family)
    }

    /// The language of a file that may be a test by its folder.
    pub fn of_folder(file: &File) -> Option<Family> {
        let is_there = file.path.split('/').rev().skip(1).any(|part| ["test", "tests"].contains(&part));
        Family::of_file(file).filter(|family| is_there && *family == Family::Node)
    }
}
