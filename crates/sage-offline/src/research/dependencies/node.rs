//! JavaScript and TypeScript: `package.json`, and `node_modules` beside it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Package, head, line_starting, manifests};
use crate::plain;
use crate::walk::Tree;

pub(super) fn packages(tree: &Tree) -> Vec<Package> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    for (path, text) in manifests(tree, |name| name == "package.json") {
        let Ok(manifest) = serde_json::from_str::<Value>(&text) else { continue };
        for kind in ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"] {
            for (name, version) in manifest.get(kind).and_then(Value::as_object).into_iter().flatten() {
                let line = line_starting(&text, &[format!("{name}\"")]);
                let wanted = version.as_str().unwrap_or_default();
                let local = wanted.starts_with("workspace:") || wanted.starts_with("file:");
                // A name is a path below `node_modules`; one that leads elsewhere is no name.
                if found.contains_key(name) || local || name.split('/').any(|part| part == "..") {
                    continue;
                }
                let package = Package {
                    name: name.clone(),
                    ecosystem: "npm",
                    declared: format!("{path}:{line}"),
                    ..Package::default()
                };
                found.insert(name.clone(), on_disk(package, tree, &path, wanted));
            }
        }
    }
    found.into_values().collect()
}

/// With what `node_modules` beside the manifest, or at the root, says about it.
fn on_disk(mut package: Package, tree: &Tree, manifest: &str, wanted: &str) -> Package {
    let beside = manifest.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let candidates =
        [format!("{beside}node_modules/{}", package.name), format!("node_modules/{}", package.name)];
    // One that leads out of the project belongs to somebody else, and its documents would be quoted.
    let in_project = |shown: String| Some((plain::real_in(&tree.root, Path::new(&shown))?, shown));
    let folder = candidates.into_iter().filter_map(in_project).find(|(path, _)| path.is_dir());
    package.version = wanted.trim_start_matches(['^', '~', '=', '>', ' ']).to_string();
    let Some((path, shown)) = folder else { return package };
    if let Some(text) = head(&path, "package.json") {
        let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
        let field = |name: &str| manifest.get(name).and_then(Value::as_str);
        package.version = field("version").map_or(package.version, str::to_string);
        package.description = field("description").unwrap_or_default().to_string();
        package.description_path = format!("{shown}/package.json");
        package.description_line = line_starting(&text, &["description\"".to_string()]);
    }
    package.folder = Some((path, shown));
    package
}
