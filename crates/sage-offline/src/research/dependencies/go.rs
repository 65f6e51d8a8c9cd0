//! Go: `go.mod`, and the module cache.

use std::collections::BTreeMap;

use super::{Package, manifests};
use crate::research::places::Places;
use crate::walk::Tree;

pub(super) fn packages(tree: &Tree, places: &Places) -> Vec<Package> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    for (path, text) in manifests(tree, |name| name == "go.mod") {
        let mut block = false;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            let one = line.strip_prefix("require ").filter(|rest| !rest.starts_with('('));
            if line.starts_with("require (") {
                block = true;
            } else if line == ")" {
                block = false;
            } else if let Some(required) =
                one.or(block.then_some(line)).filter(|line| !line.contains("// indirect"))
            {
                let mut words = required.split_whitespace();
                let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
                let shown = format!("{}@{version}", escaped(name));
                let folder = places.go_modules.as_ref().map(|modules| modules.join(&shown));
                let leaves = name.split('/').any(|part| part == "..");
                let package = Package {
                    name: name.to_string(),
                    version: version.to_string(),
                    ecosystem: "go",
                    declared: format!("{path}:{}", at + 1),
                    folder: folder.filter(|path| !leaves && path.is_dir()).map(|path| (path, shown)),
                    ..Package::default()
                };
                found.entry(name.to_string()).or_insert(package);
            }
        }
    }
    found.into_values().collect()
}

/// The cache writes `Azure` as `!azure`, for disks that cannot tell them apart.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('!');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
