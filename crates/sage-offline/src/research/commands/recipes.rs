//! What the project wraps its tools in: targets of a Makefile, recipes of a justfile, scripts called `test`.

use super::{Command, Commands, Place};

const BUILD: &[&str] = &["build", "compile"];
const TEST: &[&str] = &["test", "tests", "check"];
const LINT: &[&str] = &["lint", "clippy", "fmt-check", "format-check"];

/// In the order in which make looks for them.
pub(crate) const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
pub(crate) const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

pub(super) fn add(place: &Place, found: &mut Commands) {
    for (tool, names) in [("make", &MAKEFILES[..]), ("just", &JUSTFILES)] {
        let file = names.iter().find_map(|name| place.text(name).map(|text| (*name, text)));
        let Some((name, text)) = file else { continue };
        let targets = targets(&text);
        let first = |wanted: &[&str]| -> Option<Command> {
            let target = wanted.iter().find_map(|want| targets.iter().find(|(target, _)| target == want));
            target.map(|(target, at)| {
                let definition = recipe(&text, target, &targets, 0);
                Command { definition, ..place.command(&format!("{tool} {target}"), name, *at) }
            })
        };
        found.build.extend(first(BUILD));
        found.test.extend(first(TEST));
        found.lint.extend(first(LINT));
    }
    for (list, names) in [
        (&mut found.build, &["build.sh", "script/build", "scripts/build.sh", "bin/build"][..]),
        (&mut found.test, &["test", "test.sh", "script/test", "scripts/test.sh", "bin/test"]),
        (&mut found.lint, &["lint.sh", "script/lint", "scripts/lint.sh", "bin/lint"]),
    ] {
        let script = names.iter().find_map(|name| {
            let text = place.text(name).filter(|text| text.starts_with("#!"))?;
            Some(Command { definition: text, ..place.command(&format!("./{name}"), name, 1) })
        });
        list.extend(script);
    }
}

/// Recipes that need recipes that need recipes say nothing new below this.
const MAX_DEPTH: usize = 4;

/// What a target of a Makefile or justfile runs, with what it needs.
pub(crate) fn definition(text: &str, target: &str) -> String {
    recipe(text, target, &targets(text), 0)
}

/// The lines of a target, and those of the targets that it needs.
fn recipe(text: &str, target: &str, targets: &[(&str, usize)], depth: usize) -> String {
    let Some((_, at)) = targets.iter().find(|(name, _)| *name == target) else { return String::new() };
    let mut lines = text.lines().skip(at - 1);
    let head = lines.next().unwrap_or_default();
    let below =
        lines.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t', '#', '@', '-']));
    let mut own: Vec<String> = vec![head.to_string()];
    own.extend(below.filter(|line| !line.trim().is_empty()).map(str::to_string));
    let needs = head.split_once(':').map_or("", |(_, needs)| needs);
    let known = needs.split_whitespace().filter(|need| *need != target && depth < MAX_DEPTH);
    own.extend(known.map(|need| recipe(text, need, targets, depth + 1)).filter(|recipe| !recipe.is_empty()));
    own.join("\n")
}

/// `name: ...` at the start of a line, with its number; not `name := value` and no rules of make itself.
fn targets(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some((head, rest)) = line.split_once(':') else { continue };
        let mut words = head.split_whitespace();
        let name = words.next().unwrap_or_default().trim_start_matches('@');
        // `CC = a:b` and `x := 1` set something; `test filter='':` has a parameter.
        let sets =
            rest.starts_with('=') || words.next().is_some_and(|word| word.starts_with(['=', '?', '+']));
        let starts = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_');
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if starts && plain && !name.is_empty() && !sets {
            found.push((name, at + 1));
        }
    }
    found
}
