//! Which side of a project a file is on: what people see in a browser, or the rest.

use std::io::Read;
use std::path::Path;

use crate::plain;
use crate::walk::{File, Tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Backend,
    Frontend,
}

/// Folders whose name says that a browser runs what is in them.
const FOLDERS: &[&str] = &[
    "frontend",
    "front-end",
    "web",
    "ui",
    "client",
    "webapp",
    "components",
    "pages",
    "public",
    "static",
    "styles",
];
const EXTENSIONS: &[&str] = &["tsx", "jsx", "css", "scss", "sass", "less", "html", "vue", "svelte"];

/// By its ending, then by its folders.
pub fn side(path: &str) -> Side {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let script = ["ts", "js", "mjs", "json"].contains(&extension);
    let folder = script && parts.iter().any(|part| FOLDERS.contains(&part.to_lowercase().as_str()));
    if EXTENSIONS.contains(&extension) || folder { Side::Frontend } else { Side::Backend }
}

/// Endings of texts, settings, data and pictures. Everything else may be code, in whatever language.
const NO_CODE: &[&str] = &[
    "md", "markdown", "rst", "adoc", "txt", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf",
    "lock", "csv", "tsv", "xml", "png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "pdf", "log", "license",
    "sum", "mod",
];

/// Whether a project has this side at all: files that people see, or code behind them.
pub fn has(tree: &Tree, wanted: Side) -> bool {
    let package = |path: &str| {
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            if tree.root.join(above).join("package.json").is_file() {
                return folder_side(&tree.root, above);
            }
            folder = above;
        }
        folder_side(&tree.root, "")
    };
    tree.files.iter().any(|file| match wanted {
        Side::Frontend => {
            side(&file.path) == Side::Frontend
                || file.name() == "package.json" && package(&file.path) == wanted
        }
        Side::Backend => {
            let code = match file.extension() {
                "" => is_script(tree, file),
                ending => !NO_CODE.contains(&ending) && !file.name().contains(".config."),
            };
            code && side(&file.path) == Side::Backend && package(&file.path) == Side::Backend
        }
    })
}

/// Without an ending, the first line tells.
fn is_script(tree: &Tree, file: &File) -> bool {
    let mut start = [0; 2];
    let read =
        std::fs::File::open(tree.root.join(&file.path)).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

/// The side of a folder with commands of its own: by its name, or by what its `package.json` depends on.
pub fn folder_side(project: &Path, folder: &str) -> Side {
    if folder.split('/').any(|part| FOLDERS.contains(&part.to_lowercase().as_str())) {
        return Side::Frontend;
    }
    let manifest =
        plain::text(project, &Path::new(folder).join("package.json"), plain::MOST_BYTES).unwrap_or_default();
    let browser =
        ["\"react\"", "\"vue\"", "\"svelte\"", "\"@angular/core\"", "\"preact\"", "\"solid-js\"", "\"vite\""];
    let other = ["Cargo.toml", "go.mod", "pyproject.toml", "pom.xml", "build.gradle"];
    let alone = !other.iter().any(|name| project.join(folder).join(name).is_file());
    if alone && browser.iter().any(|name| manifest.contains(name)) { Side::Frontend } else { Side::Backend }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: P2
    #[test]
    fn sides_follow_from_endings_and_folders() {
        let frontend = ["src/App.tsx", "web/src/cart.ts", "a.css", "app/components/Cart.vue"];
        assert!(frontend.iter().all(|path| side(path) == Side::Frontend));
        let backend = ["src/lib.rs", "server/cart.ts", "web/server.py", "shop/payments.py"];
        assert!(backend.iter().all(|path| side(path) == Side::Backend));
    }

    // covers: P4
    #[test]
    fn a_script_without_an_ending_is_code() {
        let has = |files: &[(&str, &str)]| {
            let dir = crate::research::tests::project(files);
            self::has(&Tree::read(dir.path()).unwrap(), Side::Backend)
        };
        assert!(has(&[("bin/tool", "#!/bin/sh\nexit 1\n")]));
        assert!(!has(&[("LICENSE", "MIT\n"), ("README.md", "x"), ("empty", "")]));
    }
}
