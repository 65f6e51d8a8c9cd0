//! Python projects: pytest where something speaks of it, else unittest; the linters that are set up.

use super::{Command, Commands, Place, line_of, unittest};
use crate::walk::Tree;

/// Files that name pytest, in the order in which they are believed.
const NAMES_PYTEST: &[&str] = &[
    "pytest.ini",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements.txt",
    "conftest.py",
    "tests/conftest.py",
];

pub(super) fn add(place: &Place, found: &mut Commands) {
    let manifests = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"];
    let manifest = manifests.into_iter().find(|name| place.has(name));
    let sources = sources(place);
    if sources.is_empty() {
        return;
    }
    let prefix = prefix(place);
    let python = format!("{prefix}{}", python(place));
    if let Some(manifest) = manifest {
        found.build.push(place.command(&compile(&python, &sources), manifest, 1));
    }
    if let Some((name, at)) = names_pytest(place) {
        found.test.push(place.command(&format!("{python} -m pytest"), name, at));
    } else if let Some(tests) = unittest::tests(place) {
        let (line, path) = match &tests.needs_pytest {
            Some(path) => (format!("{python} -m pytest"), path.clone()),
            None => (tests.line(&python), tests.first.clone()),
        };
        found.test.push(place.command(&line, &path, 1));
    }
    lint(place, prefix, found);
}

fn compile(python: &str, sources: &[String]) -> String {
    format!("{python} -m compileall -q {}", sources.join(" "))
}

/// Whether the sources of a project without any manifest can be compiled at all.
pub(crate) fn build(tree: &Tree) -> Option<Command> {
    let place = Place { tree, folder: String::new() };
    let sources = sources(&place);
    let first = sources.first()?;
    let python = format!("{}{}", prefix(&place), python(&place));
    Some(place.command(&compile(&python, &sources), first, 1))
}

fn lint(place: &Place, prefix: &str, found: &mut Commands) {
    let pyproject = place.text("pyproject.toml").unwrap_or_default();
    let tools = [
        ("[tool.ruff", &["ruff.toml", ".ruff.toml"][..], "ruff check ."),
        ("[tool.black", &[], "black --check ."),
        ("[tool.mypy", &["mypy.ini", ".mypy.ini"], "mypy ."),
        ("[tool.flake8", &[".flake8"], "flake8"),
    ];
    for (table, files, line) in tools {
        let line = format!("{prefix}{line}");
        if pyproject.contains(table) {
            found.lint.push(place.command(&line, "pyproject.toml", line_of(&pyproject, table)));
        } else if let Some(name) = files.iter().find(|name| place.has(name)) {
            found.lint.push(place.command(&line, name, 1));
        }
    }
}

/// Top-level folders and files with Python in them, so that a virtual environment is not compiled.
fn sources(place: &Place) -> Vec<String> {
    let start = place.path("");
    let mut found: Vec<String> = Vec::new();
    for file in place.tree.files.iter().filter(|file| file.extension() == "py") {
        let Some(rest) = file.path.strip_prefix(&start).filter(|rest| !is_aside(rest)) else { continue };
        let top = rest.split('/').next().unwrap_or(rest);
        let plain = top.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) && !top.starts_with('-');
        if plain && !found.iter().any(|known| known == top) {
            found.push(top.to_string());
        }
    }
    found
}

/// Examples and fixtures are not the project.
pub(super) fn is_aside(path: &str) -> bool {
    path.split('/').any(|part| ["examples", "example", "fixtures", "testdata", "demo"].contains(&part))
}

fn prefix(place: &Place) -> &'static str {
    match () {
        () if place.has("uv.lock") => "uv run ",
        () if place.has("poetry.lock") => "poetry run ",
        () => "",
    }
}

fn python(place: &Place) -> &'static str {
    match () {
        () if !prefix(place).is_empty() => "python",
        () if place.has(".venv/bin/python") => ".venv/bin/python",
        () if place.has("venv/bin/python") => "venv/bin/python",
        () => "python3",
    }
}

fn names_pytest(place: &Place) -> Option<(&'static str, usize)> {
    NAMES_PYTEST.iter().find_map(|name| {
        let text = place.text(name)?;
        let at = text.lines().position(|line| line.contains("pytest"));
        at.map(|at| (*name, at + 1))
    })
}
