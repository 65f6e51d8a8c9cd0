//! Python: `pyproject.toml` and `requirements*.txt`; the `METADATA` of what is installed holds its README.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Package, head, line_starting, manifests};
use crate::plain;
use crate::research::places::{Places, children, site_packages};
use crate::walk::Tree;

pub(super) fn packages(tree: &Tree, places: &Places) -> Vec<Package> {
    let wanted = wanted(tree);
    if wanted.is_empty() {
        return Vec::new();
    }
    let installed = installed(tree, places);
    let complete = |(name, declared): (String, String)| {
        let package = Package { name, ecosystem: "python", declared, ..Package::default() };
        match installed.get(&package.name) {
            Some((path, shown)) => on_disk(package, path, shown),
            None => package,
        }
    };
    wanted.into_iter().map(complete).collect()
}

/// Names as Python compares them, with where they are declared.
fn wanted(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let is_list = |name: &str| name.starts_with("requirements") && name.ends_with(".txt");
    for (path, text) in manifests(tree, |name| name == "pyproject.toml") {
        let Ok(manifest) = text.parse::<Table>() else { continue };
        for requirement in in_pyproject(&manifest) {
            let name = name(&requirement);
            let line = line_starting(&text, std::slice::from_ref(&requirement));
            if !name.is_empty() && name != "python" {
                found.entry(name).or_insert(format!("{path}:{line}"));
            }
        }
    }
    for (path, text) in manifests(tree, is_list) {
        for (at, line) in text.lines().enumerate() {
            let name = name(line.trim());
            if !name.is_empty() {
                found.entry(name).or_insert(format!("{path}:{}", at + 1));
            }
        }
    }
    found
}

fn in_pyproject(manifest: &Table) -> Vec<String> {
    let strings = |value: Option<&Value>| -> Vec<String> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_string).collect()
    };
    let project = manifest.get("project");
    let mut found = strings(project.and_then(|project| project.get("dependencies")));
    let extras = project.and_then(|project| project.get("optional-dependencies"));
    for group in [extras, manifest.get("dependency-groups")].into_iter().flatten().filter_map(Value::as_table)
    {
        found.extend(group.values().flat_map(|list| strings(Some(list))));
    }
    let poetry = manifest.get("tool").and_then(|tool| tool.get("poetry"));
    let tables = ["dependencies", "dev-dependencies"].map(|name| poetry.and_then(|poetry| poetry.get(name)));
    for table in tables.into_iter().flatten().filter_map(Value::as_table) {
        found.extend(table.keys().cloned());
    }
    found
}

/// `Flask_Login[x] >= 1` is `flask-login`; comments, options and addresses are nothing.
fn name(requirement: &str) -> String {
    if !requirement.starts_with(|c: char| c.is_alphanumeric()) || requirement.contains("://") {
        return String::new();
    }
    let end =
        requirement.find(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).unwrap_or(requirement.len());
    requirement[..end].to_lowercase().replace(['_', '.'], "-")
}

/// The `.dist-info` folders by name; those of the project's own environment win.
fn installed(tree: &Tree, places: &Places) -> BTreeMap<String, (PathBuf, String)> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for environment in [".venv", "venv", "env"] {
        folders.extend(site_packages(&tree.root.join(environment)));
    }
    folders.extend(places.python.iter().cloned());
    let mut found = BTreeMap::new();
    for path in folders.iter().flat_map(|folder| children(folder)) {
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some((package, _)) = file.strip_suffix(".dist-info").and_then(|name| name.split_once('-')) else {
            continue;
        };
        let shown = match path.strip_prefix(&tree.root) {
            Ok(inside) if plain::real_in(&tree.root, inside).is_none() => continue,
            Ok(inside) => inside.display().to_string(),
            Err(_) => format!("site-packages/{file}"),
        };
        found.entry(name(package)).or_insert((path.clone(), shown));
    }
    found
}

fn on_disk(mut package: Package, path: &Path, shown: &str) -> Package {
    let text = head(path, "METADATA").unwrap_or_default();
    for (at, line) in text.lines().take_while(|line| !line.is_empty()).enumerate() {
        if let Some(version) = line.strip_prefix("Version: ") {
            package.version = version.to_string();
        } else if let Some(summary) = line.strip_prefix("Summary: ") {
            package.description = summary.to_string();
            package.description_path = format!("{shown}/METADATA");
            package.description_line = at + 1;
        }
    }
    package.folder = Some((path.to_path_buf(), shown.to_string()));
    package
}
