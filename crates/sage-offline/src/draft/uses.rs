//! Who calls what, by name and by what the calling file imports.
//!
//! There are no types here. A call counts for a function if its receiver names the function's module or type, if
//! the calling file imports the module, or if the name is the only one of its kind in the project.

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

    /// How many functions of the product have this name.
    pub fn named(&self, name: &str) -> usize {
        self.named.get(name).copied().unwrap_or(0)
    }

    /// Some test calls something of that name; which one cannot always be told.
    pub fn perhaps_tested(&self, name: &str) -> bool {
        self.calls.get(name).into_iter().flatten().any(|found| found.at.in_test)
    }

    /// The calls of one function, tests included, not those in itself.
    pub fn of(&self, project: &Project, file: usize, function: usize) -> Vec<Use> {
        let wanted = &project.sources[file].functions[function];
        let target = Target {
            home: file,
            path: &project.sources[file].path,
            module: module_name(&project.sources[file].path),
            function: wanted,
            telling: self.named(&wanted.name) <= 1 && !is_everyday(&wanted.name),
        };
        let own = |found: &&Found| !(found.at.file == file && found.at.by == Some(function));
        let meant = |found: &&Found| target.is_meant(&project.sources[found.at.file], found);
        let all = self.calls.get(wanted.name.as_str()).into_iter().flatten();
        all.filter(own).filter(meant).map(|found| found.at.clone()).collect()
    }
}

/// The function whose calls are looked for.
struct Target<'a> {
    home: usize,
    path: &'a str,
    module: &'a str,
    function: &'a Function,
    /// The name alone says which function it is.
    telling: bool,
}

impl Target<'_> {
    fn is_meant(&self, caller: &FileFacts, found: &Found) -> bool {
        let mut segments =
            found.callee.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|s| !s.is_empty());
        segments.next();
        let receiver = segments.next();
        let here = found.at.file == self.home && caller.path == self.path;
        match (&self.function.owner, receiver) {
            (Some(owner), Some(receiver)) if receiver == owner => true,
            (Some(owner), Some("self" | "Self" | "this" | "cls")) => {
                let by = found.at.by.and_then(|by| caller.functions.get(by));
                here && by.is_some_and(|by| by.owner.as_ref() == Some(owner))
            }
            (Some(_), _) => self.telling,
            (None, None) => here || self.telling || self.is_imported(caller),
            (None, Some(receiver)) => receiver == self.module || (self.telling && self.is_imported(caller)),
        }
    }

    /// An import names the module: `shop.payments`, `./payments`, `super::payments::charge`.
    fn is_imported(&self, caller: &FileFacts) -> bool {
        let names = |path: &str| {
            path.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).any(|s| s == self.module)
        };
        caller.imports.iter().any(|import| names(&import.path))
    }
}

/// Names that every library has too.
pub fn is_everyday(name: &str) -> bool {
    let everyday = [
        "new", "get", "set", "add", "remove", "push", "pop", "insert", "append", "find", "filter", "map",
        "read", "write", "open", "close", "run", "start", "stop", "from", "into", "next", "len", "size",
        "clear", "update", "delete", "load", "save", "list", "send", "search", "join", "split", "parse",
        "format", "print", "default", "clone", "text", "name", "call", "apply", "then", "keys", "values",
        "items", "count", "index", "main", "first", "last", "open", "told",
    ];
    name.len() < 3 || everyday.contains(&name)
}
