//! Everything that is known about a feature before a word is drafted.

use super::behaviour::{Fail, Outside, fails, outside};
use super::callers::has_word;
use super::earlier::Earlier;
use super::markdown::code;
use super::mentions::{Mention, Thing};
use super::near::{Near, NearFile};
use super::project::{Project, body, function_index, module_name};
use super::uses::{Use, Uses};
use crate::code::{FileFacts, Function, Todo, Type};
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
    /// Public functions elsewhere that take or return a type of the core that is spoken of.
    pub touched: Vec<Item>,
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
        let touched = touched(&near, project, &uses);
        Brief { title, project, uses, earlier, near, items, touched }
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
        let named = |item: &Item| {
            let near = self.near.core.iter().find(|near| near.file == item.file);
            let spoken = near.is_some_and(|near| near.things().contains(&Thing::Function(item.function)));
            spoken || self.near.names(&self.function(item).name)
        };
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
        let spoken = self.near.core.iter().filter(|near| near.file == file).flat_map(|near| &near.mentions);
        let held = |mention: &Mention| {
            let here = mention.said.as_ref().is_some_and(|(said, _)| *said == line);
            mention.thing.filter(|_| here)
        };
        match spoken.filter_map(held).next() {
            Some(thing) => code(&self.thing(file, thing).0),
            None => code(
                &function_index(facts, line).map_or_else(|| facts.path.clone(), |at| self.name(file, at)),
            ),
        }
    }

    /// The name of a thing, and its line.
    pub fn thing(&self, file: usize, thing: Thing) -> (String, usize) {
        let facts = self.file(file);
        match thing {
            Thing::Function(at) => (self.name(file, at), facts.functions[at].line),
            Thing::Type(at) => (facts.types[at].name.clone(), facts.types[at].line),
        }
    }

    /// Types that are spoken of, with their file.
    pub fn types(&self) -> Vec<(usize, &'a Type)> {
        let of = |near: &NearFile| {
            let types = near.things().into_iter().filter_map(|thing| match thing {
                Thing::Type(at) => Some(at),
                Thing::Function(_) => None,
            });
            types.map(|at| (near.file, &self.file(near.file).types[at])).collect::<Vec<_>>()
        };
        self.near.core.iter().flat_map(of).collect()
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

    /// TODO and FIXME in the core, and in functions that call it. Of a file that is near for one thing, those that
    /// speak of the title.
    pub fn todos(&self) -> Vec<(usize, &'a Todo)> {
        let narrow = |file: &usize| self.near.core.iter().any(|near| near.file == *file && near.is_narrow);
        let is_near = |near: &NearFile, todo: &Todo| {
            let spoken =
                |mention: &Mention| mention.said.as_ref().is_some_and(|(line, _)| *line == todo.line);
            let calls = function_index(self.file(near.file), todo.line)
                .is_some_and(|at| near.functions.contains(&at));
            match near.relies_on.is_empty() {
                true => !near.is_narrow || near.mentions.iter().any(spoken),
                false => calls && !near.relies_on.iter().all(narrow),
            }
        };
        let files = self.near.core.iter().chain(&self.near.callers);
        let of = |near: &'_ NearFile| {
            let todos = self.file(near.file).todos.iter().filter(|todo| is_near(near, todo));
            todos.map(|todo| (near.file, todo)).collect::<Vec<_>>()
        };
        files.flat_map(of).collect()
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
    near.functions.iter().map(|function| item(near.file, *function, project, uses)).collect()
}

fn item(index: usize, function: usize, project: &Project, uses: &Uses) -> Item {
    let file = &project.sources[index];
    let all = uses.of(project, index, function);
    let (tests, calls): (Vec<Use>, Vec<Use>) = all.into_iter().partition(|call| call.in_test);
    let (inside, callers) = calls.into_iter().partition(|call| call.file == index);
    Item {
        file: index,
        function,
        fails: fails(file, &file.functions[function]),
        outside: outside(file, &file.functions[function]),
        callers,
        inside,
        is_untested: tests.is_empty() && !uses.perhaps_tested(&file.functions[function].name),
        tests,
    }
}

fn touched(near: &Near, project: &Project, uses: &Uses) -> Vec<Item> {
    let types = near.core.iter().flat_map(|near| {
        let name = |thing| match thing {
            Thing::Type(at) => Some(project.sources[near.file].types[at].name.as_str()),
            Thing::Function(_) => None,
        };
        near.things().into_iter().filter_map(name)
    });
    let types: Vec<&str> = types.collect();
    let mut found = Vec::new();
    for caller in &near.callers {
        let functions = project.sources[caller.file].functions.iter().enumerate();
        let takes = functions.filter(|(_, function)| {
            let named = types.iter().any(|name| has_word(&function.signature, name));
            named && function.is_public && !function.in_test
        });
        found.extend(takes.map(|(at, _)| item(caller.file, at, project, uses)));
    }
    found
}
