//! Whether the manifest of a project speaks for the folders below it as well.

use std::path::Path;

/// Manifests of the kind `name` below the project belong to the one of the project itself.
pub(crate) fn holds(root: &Path, name: &str) -> bool {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    let is_there = |name: &str| root.join(name).is_file();
    if !is_there(name) {
        return false;
    }
    match name {
        "Cargo.toml" => read(name).contains("[workspace"),
        "package.json" => {
            let others = ["pnpm-workspace.yaml", "lerna.json", "nx.json", "turbo.json", "rush.json"];
            read(name).contains("\"workspaces\"") || others.into_iter().any(is_there)
        }
        // `go test ./...` stops at other modules; a workspace names them.
        "go.mod" => is_there("go.work"),
        "pom.xml" => read(name).contains("<modules>"),
        "build.gradle" | "build.gradle.kts" => is_there("settings.gradle") || is_there("settings.gradle.kts"),
        // pytest looks below, unittest does not.
        "pyproject.toml" | "setup.py" | "setup.cfg" => {
            is_there("pytest.ini") || read(name).contains("pytest")
        }
        _ => true,
    }
}
