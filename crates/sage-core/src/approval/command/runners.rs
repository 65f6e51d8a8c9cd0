//! Tools that build and test: known if the project uses them, with arguments that choose and show tests but cannot make
//! them run another program.
//!
//! A command of the project is known as it is written. Beyond that, a tool that one of them names may be used with its
//! other subcommands that check something (`cargo clippy` beside `cargo test`).

mod go;
mod jvm;
mod make;
mod node;
mod python;
mod rust;

use super::args::{Args, Options};
use super::checks::CheckKind;
use super::place::Site;
use super::walk::program_name;
use super::{Does, Effect};
use crate::shell::Word;

pub fn effect(words: &[Word], site: &Site<'_>) -> Option<Effect> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let exact = site.checks.programs().find(|(_, known)| known.iter().eq(texts.iter()));
    if let Some((kind, _)) = exact.filter(|_| words.iter().all(Word::is_literal)) {
        return Some(Effect::new(does(kind)));
    }
    let (first, args) = words.split_first()?;
    match program_name(&first.text) {
        "cargo" => rust::cargo(args, site),
        "npm" | "pnpm" | "yarn" | "bun" => node::package(&first.text, args, site),
        "npx" | "bunx" | "node" => node::direct(&first.text, args, site),
        "go" | "gofmt" => go::effect(&first.text, args, site),
        "make" | "just" => make::effect(&first.text, args, site),
        "mvn" | "./mvnw" => jvm::maven(args, site),
        "gradle" | "./gradlew" => jvm::gradle(args, site),
        "source" | "." => activates(args, site),
        name => node::installed(name, args, site).or_else(|| python::effect(words, site)),
    }
}

fn does(kind: CheckKind) -> Does {
    match kind {
        CheckKind::Test => Does::Tests,
        CheckKind::Build => Does::Builds,
    }
}

/// A run of the tool with these options and no others. What they and the operands name must be readable files, if it
/// is a file.
fn run(kind: CheckKind, args: &[Word], options: &Options) -> Option<Effect> {
    let args = Args::split(args, options).ok()?;
    let named = args.values.iter().map(|(_, value)| value).chain(args.operands.iter().copied());
    Some(Effect::new(does(kind)).reading(named))
}

/// The virtual environment of the project.
fn activates(args: &[Word], site: &Site<'_>) -> Option<Effect> {
    let [file] = args else { return None };
    let own = ["venv/bin/activate", ".venv/bin/activate", "./venv/bin/activate", "./.venv/bin/activate"];
    let known = own.contains(&file.text.as_str()) && site.checks.uses(python::NAMES);
    known.then(|| Effect::new(Does::Tests).reading([file]))
}
