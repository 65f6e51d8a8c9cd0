//! Who calls what, by name and by what the calling file imports.
//!
//! There are no types here. A call counts for a function if the name is the only one of its kind in the project,
//! or if the call's receiver or an import of the calling file names the function's module or type.

use std::collections::BTreeMap;

use super::project::{Project, module_name};
use crate::code::{FileFacts, Function};

/// One call of a function from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub file: usize,
    pub line: usize,
    /// The index of the calling function, if the call is in one.
    pub by: Option<usize>,
    pub in_test: bool,
}

/// All calls of a project by the called name.
#[derive(Debug, Default)]
pub struct Uses<'a> {
    calls: BTreeMap<&'a str, Vec<Found<'a>>>,
    /// How many functions of the product have a name.
    named: BTreeMap<&'a str, usize>,
}

#[derive(Clone, Debug)]
struct Found<'a> {
    at: Use,
    /// `payments.charge`
    callee: &'a str,
}

impl<'a> Uses<'a> {
    pub fn read(project: &'a Project) -> Uses<'a> {
        let mut uses = Uses::default();
        for (index, file) in project.sources.iter().enumerate() {
            for function in file.functions.iter().filter(|function| !function.in_test && !file.is_test) {
                *uses.named.entry(function.name.as_str()).or_default() += 1;
            }
            for call in &file.calls {
                let by = call.function.map(|by| by as usize);
                let in_test = call.in_test || file.is_test;
                let at = Use { file: index, line: call.line as usize, by, in_test };
                let found = Found { at, callee: file.slice(call.callee) };
                uses.calls.entry(file.slice(call.name)).or_default().push(found);
            }
        }
        uses
    }

    /// The calls of one function, tests included, not those in itself.
    pub fn of(&self, project: &Project, file: usize, function: usize) -> Vec<Use> {
        let home = &project.sources[file];
        let wanted = &home.functions[function];
        let only = self.named.get(wanted.name.as_str()).copied().unwrap_or(0) <= 1;
        let own = |found: &&Found| !(found.at.file == file && found.at.by == Some(function));
        let meant = |found: &&Found| {
            let caller = &project.sources[found.at.file];
            // A method of something else may have the same name as the only function: `list.append`.
            let known = caller.path == home.path || names(caller, found.callee, home, wanted);
            known || (only && !is_everyday(&wanted.name))
        };
        let all = self.calls.get(wanted.name.as_str()).into_iter().flatten();
        all.filter(own).filter(meant).map(|found| found.at.clone()).collect()
    }
}

/// The receiver or an import names the module or the type.
fn names(caller: &FileFacts, callee: &str, home: &FileFacts, wanted: &Function) -> bool {
    let module = module_name(&home.path);
    let is_it = |word: &str| word == module || wanted.owner.as_deref() == Some(word);
    let receiver = callee.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(is_it);
    let segments =
        |path: &str| path.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).any(is_it);
    let bare = callee == wanted.name;
    receiver || (bare || wanted.owner.is_some()) && caller.imports.iter().any(|import| segments(&import.path))
}

/// Names that every library has too.
fn is_everyday(name: &str) -> bool {
    let everyday = [
        "new", "get", "set", "add", "remove", "push", "pop", "insert", "append", "find", "filter", "map",
        "read", "write", "open", "close", "run", "start", "stop", "from", "into", "next", "len", "size",
        "clear", "update", "delete", "load", "save", "list", "send", "search", "join", "split", "parse",
        "format", "print", "default", "clone", "text", "name", "call", "apply", "then", "keys", "values",
        "items", "count", "index", "main",
    ];
    everyday.contains(&name)
}
