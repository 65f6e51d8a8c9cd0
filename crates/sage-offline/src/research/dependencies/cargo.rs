//! Rust: names from the `Cargo.toml`s, versions from `Cargo.lock`, documents from cargo's registry folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toml::{Table, Value};

use super::{Package, head, line_starting, manifests};
use crate::research::places::{Places, children};
use crate::walk::Tree;

/// What a manifest asks for.
#[derive(Debug)]
struct Wanted {
    requirement: String,
    declared: String,
}

pub(super) fn packages(tree: &Tree, places: &Places) -> Vec<Package> {
    let (wanted, own) = wanted(tree);
    let locked = locked(tree);
    let registries =
        places.cargo_home.as_ref().map(|home| children(&home.join("registry/src"))).unwrap_or_default();
    let mut found = Vec::new();
    for (name, want) in wanted.into_iter().filter(|(name, _)| !own.contains(name)) {
        let version = version(&name, &want.requirement, &locked, &registries);
        let mut package =
            Package { ecosystem: "cargo", declared: want.declared, version, name, ..Package::default() };
        let shown = format!("{}-{}", package.name, package.version);
        let folder = registries.iter().map(|registry| registry.join(&shown)).find(|path| path.is_dir());
        if let Some(folder) = folder {
            describe(&mut package, &folder, &shown);
            package.folder = Some((folder, shown));
        }
        found.push(package);
    }
    found
}

/// Dependencies by name, and the names of the project's own packages.
fn wanted(tree: &Tree) -> (BTreeMap<String, Wanted>, BTreeSet<String>) {
    let (mut found, mut own) = (BTreeMap::new(), BTreeSet::new());
    for (path, text) in manifests(tree, |name| name == "Cargo.toml") {
        let Ok(manifest) = text.parse::<Table>() else { continue };
        if let Some(name) =
            manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str)
        {
            own.insert(name.to_string());
        }
        let mut tables = vec![&manifest];
        tables.extend(manifest.get("workspace").and_then(Value::as_table));
        let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
        tables.extend(targets.filter_map(Value::as_table));
        for table in tables {
            for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
                for (key, value) in table.get(kind).and_then(Value::as_table).into_iter().flatten() {
                    let field = |name: &str| value.get(name).and_then(Value::as_str);
                    let name = field("package").unwrap_or(key).to_string();
                    let line =
                        line_starting(&text, &[format!("{key} "), format!("{key}="), format!("{key}.")]);
                    let requirement =
                        value.as_str().or_else(|| field("version")).unwrap_or_default().to_string();
                    let declared = format!("{path}:{line}");
                    found.entry(name).or_insert(Wanted { requirement, declared });
                }
            }
        }
    }
    (found, own)
}

/// Versions by name, the newest last.
fn locked(tree: &Tree) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let text = tree.find("Cargo.lock").and_then(|file| tree.text(file)).unwrap_or_default();
    let mut name = None;
    // A lock file of a large project takes long to parse as TOML; its lines are regular.
    for line in text.lines() {
        if let Some(value) = quoted(line, "name = ") {
            name = Some(value);
        } else if let (Some(value), Some(name)) = (quoted(line, "version = "), name.take()) {
            found.entry(name.to_string()).or_default().push(value.to_string());
        }
    }
    found
}

fn quoted<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_prefix('"')?.strip_suffix('"')
}

/// The locked version that the requirement means, or the newest one on disk.
fn version(
    name: &str,
    requirement: &str,
    locked: &BTreeMap<String, Vec<String>>,
    registries: &[PathBuf],
) -> String {
    let start = requirement.trim_start_matches(['^', '~', '=', '>', ' ']);
    let meant = |version: &&String| !start.is_empty() && version.starts_with(start);
    if let Some(versions) = locked.get(name) {
        return versions.iter().rev().find(meant).or(versions.last()).cloned().unwrap_or_default();
    }
    let mut on_disk: Vec<(Vec<u64>, String)> = Vec::new();
    for registry in registries {
        for path in children(registry) {
            let folder = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
            let version = folder.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
            if let Some(version) = version.filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
            {
                let numbers = version.split('.').map(|part| part.parse().unwrap_or(0)).collect();
                on_disk.push((numbers, version.to_string()));
            }
        }
    }
    on_disk.sort();
    on_disk.pop().map(|(_, version)| version).unwrap_or_default()
}

fn describe(package: &mut Package, folder: &std::path::Path, shown: &str) {
    let Some(text) = head(folder, "Cargo.toml") else { return };
    let Ok(manifest) = text.parse::<Table>() else { return };
    let description = manifest.get("package").and_then(|package| package.get("description"));
    package.description = description.and_then(Value::as_str).unwrap_or_default().trim().replace('\n', " ");
    package.description_path = format!("{shown}/Cargo.toml");
    package.description_line = line_starting(&text, &["description".to_string()]);
    let features = manifest.get("features").and_then(Value::as_table);
    package.features = features.into_iter().flat_map(Table::keys).cloned().collect();
}
