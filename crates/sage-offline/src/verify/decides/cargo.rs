//! Cargo: targets whose tests are off or renamed, members of the workspace, runners and filters.

use toml::{Table, Value};

use super::Gather;

const SETTINGS: &[&str] =
    &[".cargo/config.toml", ".cargo/config", ".config/nextest.toml", "rust-toolchain.toml", "rust-toolchain"];

impl Gather<'_> {
    pub(super) fn cargo(&mut self, folder: &str) {
        self.whole_of(folder, SETTINGS);
        for path in self.below(folder, "Cargo.toml") {
            let table = self.text(&path).and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
            let (keep, bar) = facts(&table);
            let facts = self.facts(&path);
            keep.iter().for_each(|fact| facts.keep(fact));
            bar.iter().for_each(|fact| facts.bar(fact));
        }
    }
}

/// What must stay and what nobody may add.
fn facts(table: &Table) -> (Vec<String>, Vec<String>) {
    let (mut keep, mut bar) = (Vec::new(), Vec::new());
    let package = table.get("package").and_then(Value::as_table);
    if package.and_then(|package| package.get("autotests")) == Some(&Value::Boolean(false)) {
        bar.push("autotests".to_string());
    }
    let lib = table.get("lib").into_iter().filter_map(Value::as_table).map(|target| ("lib", target));
    let many = ["test", "bin", "example"].into_iter().flat_map(|kind| {
        let targets = table.get(kind).and_then(Value::as_array).into_iter().flatten();
        targets.filter_map(Value::as_table).map(move |target| (kind, target))
    });
    for (kind, target) in lib.chain(many) {
        let name = target.get("name").and_then(Value::as_str).unwrap_or_default();
        let path = target.get("path").and_then(Value::as_str);
        if kind == "test" {
            keep.push(format!("test {name}"));
            bar.extend(path.map(|path| format!("test {name} {path}")));
        }
        for switch in ["test", "doctest", "harness"] {
            if target.get(switch) == Some(&Value::Boolean(false)) {
                bar.push(format!("{kind} {name} {switch}"));
            }
        }
        if let Some(features) = target.get("required-features") {
            bar.push(format!("{kind} {name} {features:?}"));
        }
    }
    let workspace = table.get("workspace").and_then(Value::as_table);
    let entries = |field: &str| -> Vec<String> {
        let list = workspace.and_then(|workspace| workspace.get(field)).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| format!("{field} {name}")).collect()
    };
    keep.extend(entries("members"));
    bar.extend(entries("exclude"));
    bar.extend(entries("default-members"));
    (keep, bar)
}
