//! From texts to modules: types off, imports asked for, until nothing is missing.

use std::collections::BTreeSet;

use super::{Link, failed};
use crate::code::answer::FailureKind;
use crate::code::wire::{FromWorker, Module, Start, ToWorker};
use crate::strip::{Form, Stripped, strip};

/// Modules of one run; skills may import skills.
const MAX_MODULES: usize = 200;
/// Around code that returns its value.
const HEAD: &str = "export default async (input) => { ";

/// Modules that are there without being asked for.
const OWN: &[&str] = &["sage"];

/// JavaScript, ready to be added to an isolate.
#[derive(Debug, Default)]
pub struct Loaded {
    pub modules: Vec<(String, String)>,
    /// Characters that stand before the first line of the code itself.
    pub shift: usize,
    /// The code exports its value instead of returning it.
    pub exports: bool,
}

pub fn load(start: &Start, link: &mut Link) -> Result<Loaded, FromWorker> {
    let mut loaded = Loaded::default();
    let main = script(&start.name, &start.code)?;
    (loaded.shift, loaded.exports) = (main.shift, main.exports);
    let mut known: BTreeSet<String> = OWN.iter().map(ToString::to_string).collect();
    let mut wanted: Vec<String> = main.imports;
    loaded.modules.push((start.name.clone(), main.code));
    loop {
        wanted.retain(|name| known.insert(name.clone()));
        if wanted.is_empty() {
            return Ok(loaded);
        }
        if known.len() > MAX_MODULES {
            return Err(failed(
                FailureKind::Import,
                format!("the code imports more than {MAX_MODULES} modules"),
            ));
        }
        link.say(&FromWorker::Need(std::mem::take(&mut wanted)));
        let ToWorker::Modules(found) = link.hear()? else {
            return Err(failed(FailureKind::Broken, "the owner did not send the modules"));
        };
        for (name, module) in found {
            match module {
                Module::Script(code) => loaded.modules.push((name, code)),
                Module::TypeScript(text) => {
                    let script = script(&name, &text)?;
                    wanted.extend(script.imports);
                    loaded.modules.push((name, script.code));
                }
                Module::Missing { why } => return Err(missing(start, &name, why)),
            }
        }
    }
}

struct Script {
    code: String,
    imports: Vec<String>,
    shift: usize,
    exports: bool,
}

/// Code that exports is a module; all other code is the body of a function that returns its value.
fn script(name: &str, text: &str) -> Result<Script, FromWorker> {
    let stripped = strip(name, text, Form::Body).map_err(|problems| {
        let told: Vec<String> = problems.iter().take(5).map(ToString::to_string).collect();
        failed(FailureKind::Syntax, told.concat().trim_end())
    })?;
    let imports = stripped.scan.imports.clone();
    let exports = !stripped.scan.returns && exports(&stripped);
    let code = if exports { stripped.code.clone() } else { stripped.wrapped(HEAD, "}") };
    let around = code.len().saturating_sub(stripped.code.len() + "\n}".len());
    Ok(Script { shift: if exports { 0 } else { around }, code, imports, exports })
}

fn exports(stripped: &Stripped) -> bool {
    stripped.code.lines().any(|line| {
        let rest = line.trim_start().strip_prefix("export");
        rest.is_some_and(|rest| rest.starts_with([' ', '{', '*']))
    })
}

/// With the line that imports it.
fn missing(start: &Start, name: &str, why: String) -> FromWorker {
    let quoted = [format!("\"{name}\""), format!("'{name}'")];
    let line = start.code.lines().position(|line| quoted.iter().any(|name| line.contains(name)));
    let at = line.map(|line| {
        let text = start.code.lines().nth(line).unwrap_or_default();
        let column = quoted.iter().find_map(|name| text.find(name)).unwrap_or(0);
        format!("\n    at {}:{}:{}", start.name, line + 1, text[..column].chars().count() + 1)
    });
    failed(FailureKind::Import, format!("{why}{}", at.unwrap_or_default()))
}
