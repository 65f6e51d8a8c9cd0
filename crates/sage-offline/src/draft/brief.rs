//! Everything that is known about a feature before a word is drafted.

use super::behaviour::{Fail, Outside, fails, outside};
use super::earlier::Earlier;
use super::markdown::code;
use super::near::{Near, NearFile};
use super::passages::{self, Passage};
use super::project::{Project, body, function_at, module_name};
use super::uses::{Use, Uses};
use crate::code::{FileFacts, Function, Todo};
use crate::request::Request;

#[derive(Debug)]
pub struct Brief<'a> {
    pub title: String,
    pub project: &'a Project,
    pub uses: Uses<'a>,
    pub earlier: Earlier,
    pub near: Near,
    /// Functions of the core, in the order of their files.
    pub items: Vec<Item>,
    pub says: Vec<Passage>,
}

/// A mark's own words, without the mark.
pub fn words_of(todo: &Todo) -> &str {
    let text = todo.text.trim().trim_start_matches(todo.mark);
    text.trim_start_matches([':', ' ', '-']).trim_end_matches('.')
}

/// One function near the feature.
#[derive(Clone, Debug)]
pub struct Item {
    pub file: usize,
    pub function: usize,
    pub fails: Vec<Fail>,
    pub outside: Vec<(Outside, usize)>,
    /// Calls from the product, outside of its own file.
    pub callers: Vec<Use>,
    /// Calls from its own file.
    pub inside: Vec<Use>,
    /// Calls from tests.
    pub tests: Vec<Use>,
    /// No test calls anything of that name.
    pub is_untested: bool,
}

impl<'a> Brief<'a> {
    pub fn of(request: &Request, project: &'a Project) -> Brief<'a> {
        let uses = Uses::read(project);
        let earlier = Earlier::read(&request.steps);
        let title = match request.title.trim() {
            "" => request.feature.replace('-', " "),
            title => title.to_string(),
        };
        let near = Near::find(&title, project, &uses, &earlier);
        let items = near.core.iter().flat_map(|near| items(near, project, &uses)).collect();
        let says = passages::about(&near, project);
        Brief { title, project, uses, earlier, near, items, says }
    }

    pub fn file(&self, index: usize) -> &'a FileFacts {
        &self.project.sources[index]
    }

    pub fn function(&self, item: &Item) -> &'a Function {
        &self.project.sources[item.file].functions[item.function]
    }

    /// A name that says which one: `charge`, `Cart.add`, `breakers::execute`.
    pub fn name(&self, file: usize, function: usize) -> String {
        let (home, function) = (self.file(file), &self.file(file).functions[function]);
        let dot = if home.language == "Rust" { "::" } else { "." };
        let owner = function.owner.as_deref();
        let several = owner.is_none() && self.uses.named(&function.name) > 1;
        match owner.or(several.then(|| module_name(&home.path))) {
            Some(owner) => format!("{owner}{dot}{}", function.name),
            None => function.name.clone(),
        }
    }

    /// Public functions near the feature: those that the title names first, then those that most rely on.
    pub fn public(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.items.iter().filter(|item| self.function(item).is_public).collect();
        let used = |item: &Item| item.callers.len() + item.inside.len() + item.tests.len();
        let rank = |item: &Item| self.near.core.iter().position(|near| near.file == item.file);
        let named = |item: &Item| self.near.names(&self.function(item).name);
        items.sort_by_key(|item| (!named(item), rank(item), std::cmp::Reverse(used(item).min(5))));
        items
    }

    /// The name of a near function, as code.
    pub fn called(&self, item: &Item) -> String {
        code(&self.name(item.file, item.function))
    }

    /// What a line belongs to: its function, or its file.
    pub fn home(&self, file: usize, line: usize) -> String {
        let facts = self.file(file);
        let inner = function_at(facts, line);
        let at = inner.and_then(|inner| facts.functions.iter().position(|f| std::ptr::eq(f, inner)));
        code(&at.map_or_else(|| facts.path.clone(), |at| self.name(file, at)))
    }

    /// `shop/payments.py:17`
    pub fn place(&self, item: &Item) -> String {
        self.file(item.file).at(self.function(item).line)
    }

    /// The calling function and the place of the call: `place` and `shop/orders.py:14`.
    pub fn caller(&self, call: &Use) -> (String, String) {
        let file = self.file(call.file);
        let by = call.by.filter(|by| *by < file.functions.len()).map(|by| self.name(call.file, by));
        (by.unwrap_or_else(|| file.path.clone()), file.at(call.line))
    }

    /// TODO and FIXME in the core and in what calls it.
    pub fn todos(&self) -> Vec<(usize, &'a Todo)> {
        let files = self.near.core.iter().chain(&self.near.callers);
        files.flat_map(|near| self.file(near.file).todos.iter().map(|todo| (near.file, todo))).collect()
    }

    /// Ways to fail that no test seems to know: none that calls the function names the error or its text.
    pub fn uncovered<'b>(&self, item: &'b Item) -> Vec<&'b Fail> {
        // Tests may call it where only its name can be seen, which says nothing.
        if item.tests.is_empty() && !item.is_untested {
            return Vec::new();
        }
        let bodies: Vec<String> = item.tests.iter().map(|test| self.test_text(test)).collect();
        let named = |fail: &Fail| {
            let name = fail.short_name();
            let by_name = |text: &String| !name.is_empty() && text.contains(name);
            let by_text =
                |text: &String| fail.message.as_ref().is_some_and(|message| text.contains(message.as_str()));
            bodies.iter().any(|text| by_name(text) || by_text(text))
        };
        item.fails.iter().filter(|fail| !named(fail)).collect()
    }

    fn test_text(&self, test: &Use) -> String {
        let file = self.file(test.file);
        let Some(function) = test.by.and_then(|by| file.functions.get(by)) else { return String::new() };
        body(file, function).iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
    }

    /// Paths of the core, the nearest first.
    pub fn core_paths(&self) -> Vec<String> {
        self.near.core.iter().map(|near| self.file(near.file).path.clone()).collect()
    }

    pub fn caller_paths(&self) -> Vec<String> {
        self.near.callers.iter().map(|near| self.file(near.file).path.clone()).collect()
    }

    /// Files with tests that call something of the core, the one with the most such calls first.
    pub fn test_paths(&self) -> Vec<String> {
        let mut paths: Vec<(usize, String)> = Vec::new();
        for test in self.items.iter().flat_map(|item| &item.tests) {
            let path = &self.file(test.file).path;
            match paths.iter_mut().find(|(_, known)| known == path) {
                Some((number, _)) => *number += 1,
                None => paths.push((1, path.clone())),
            }
        }
        paths.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        paths.into_iter().map(|(_, path)| path).collect()
    }
}

fn items(near: &NearFile, project: &Project, uses: &Uses) -> Vec<Item> {
    let file = &project.sources[near.file];
    let item = |&function: &usize| {
        let all = uses.of(project, near.file, function);
        let (tests, calls): (Vec<Use>, Vec<Use>) = all.into_iter().partition(|call| call.in_test);
        let (inside, callers) = calls.into_iter().partition(|call| call.file == near.file);
        Item {
            file: near.file,
            function,
            fails: fails(file, &file.functions[function]),
            outside: outside(file, &file.functions[function]),
            callers,
            inside,
            is_untested: tests.is_empty() && !uses.perhaps_tested(&file.functions[function].name),
            tests,
        }
    };
    near.functions.iter().map(item).collect()
}
