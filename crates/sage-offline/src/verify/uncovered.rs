//! Tests that no command runs: of a language or in a folder for which the project names none.
//!
//! A project whose Rust tests pass has not passed its tests if those of its web page were never started.

use std::path::Path;

use super::family::Family;
use super::order::Order;
use crate::parts::{Side, side};
use crate::research::belongs_to_root;
use crate::walk::{File, Tree};

/// Folders whose tests are not the project's.
const ASIDE: &[&str] =
    &["examples", "example", "fixtures", "fixture", "testdata", "demo", "third_party", "templates"];

/// A sentence for each language with tests that none of the commands runs.
pub fn uncovered(tree: &Tree, orders: &[Order], part: Option<Side>) -> Vec<String> {
    let mut found: Vec<(Family, Vec<&File>)> = Vec::new();
    for file in tree.files.iter().filter(|file| !is_aside(file)) {
        let Some(family) = Family::of_test(file) else { continue };
        let wanted = part.is_none_or(|part| side(&file.path) == part);
        if !wanted {
            continue;
        }
        let home = home(&tree.root, family, file);
        if orders.iter().any(|order| covers(order, family, file, &home)) {
            continue;
        }
        match found.iter_mut().find(|(known, _)| *known == family) {
            Some((_, files)) => files.push(file),
            None => found.push((family, vec![file])),
        }
    }
    found.iter().map(|(family, files)| told(*family, files)).collect()
}

fn is_aside(file: &File) -> bool {
    file.path.split('/').any(|part| ASIDE.contains(&part))
}

fn covers(order: &Order, family: Family, file: &File, home: &str) -> bool {
    let is_below = |path: &str, folder: &str| folder.is_empty() || path.starts_with(&format!("{folder}/"));
    let at_home = order.folder == home || is_below(&order.folder, home);
    let runs = order.family() == Family::Wrapper || (order.family() == family && at_home);
    runs && is_below(&file.path, &order.folder)
}

/// The folder with the manifest that a test file belongs to, if that is one of its own; else the project itself.
fn home(root: &Path, family: Family, file: &File) -> String {
    let mut folder = file.path.as_str();
    while let Some((above, _)) = folder.rsplit_once('/') {
        let names = family.manifests().iter();
        let found = names.copied().find(|name| root.join(above).join(name).is_file());
        if found.is_some_and(|name| !belongs_to_root(root, name)) {
            return above.to_string();
        }
        folder = above;
    }
    String::new()
}

fn told(family: Family, files: &[&File]) -> String {
    let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    format!("No command is known that runs the {} tests in `{}`{more}.", family.name(), files[0].path)
}
