//! Which commands are run: those of the step's `params.commands`, else those of `[checks]` in sage.toml, else those
//! that the project's files name. An empty list names nothing.
//!
//! Of one folder, the first command of each language runs, and the wrapper (`make test`, `./test`) beside it, unless one
//! of them calls the other: then the wrapper is enough.

use std::path::Path;

use serde_json::Value;

use super::baseline::Known;
use super::family::Family;
use crate::parts::{self, Side};
use crate::request::{Request, Trouble};
use crate::research;
use crate::shell::{self, Words};
use crate::walk::Tree;

/// One command line in one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub line: String,
    /// Relative to the project; empty for itself.
    pub folder: String,
    /// Where the project says so; empty when it was asked for.
    pub evidence: String,
    /// What the project says that it does.
    pub definition: String,
}

/// Where the commands come from.
#[derive(Debug, PartialEq, Eq)]
pub enum Chosen {
    /// A person named them.
    Named(Vec<Order>),
    /// The project's owner says that there is nothing to run.
    Nothing,
    /// Of the project's files; there may be none.
    Found(Vec<Order>),
}

impl Order {
    /// The program that it starts, if that is nowhere on the path.
    pub fn missing_program(&self, project: &Path) -> Option<String> {
        (!self.is_comment()).then_some(())?;
        let is_setting = |word: &&str| word.contains('=') && !word.starts_with(['/', '.']);
        let program = self.line.split_whitespace().find(|word| !is_setting(word))?;
        let plain = program.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c));
        // Shell words such as `(cd` or `if` are left to the shell, which says 127 for what it does not find.
        (plain && !BUILT_IN.contains(&program)).then_some(())?;
        let found = match program.contains('/') {
            true => project.join(&self.folder).join(program).exists(),
            false => path_folders().iter().any(|folder| folder.join(program).is_file()),
        };
        (!found).then(|| program.to_string())
    }

    /// There is no command in it.
    pub fn is_comment(&self) -> bool {
        self.line.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
    }

    pub fn family(&self) -> Family {
        family(&self.line)
    }

    /// A person named it, in the step or in sage.toml.
    pub fn is_named(&self) -> bool {
        self.evidence.is_empty()
    }

    pub fn is_same(&self, other: &Order) -> bool {
        (&self.folder, &self.line) == (&other.folder, &other.line)
    }

    /// The same command, so that it does not stop at the first failure and names the tests that it runs, where that is
    /// sure to change nothing else.
    pub fn telling(&self) -> String {
        let line = &self.line;
        if self.is_named() {
            return line.clone();
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        match () {
            () if line.contains(" -m unittest discover") => {
                line.split(" && ").map(|call| format!("{call} -v")).collect::<Vec<_>>().join(" && ")
            }
            () if line.ends_with(" -m pytest") => format!("{line} -rfEp"),
            () if line.starts_with("cargo test") || line.starts_with("cargo nextest run") => {
                format!("{line} --no-fail-fast")
            }
            () if line.ends_with("go test ./...") => line.replace("go test", "go test -v"),
            () if ["npm", "yarn", "pnpm"].contains(&first) => match self.verbose() {
                Some(option) if first == "npm" => format!("{line} -- {option}"),
                Some(option) => format!("{line} {option}"),
                None => line.clone(),
            },
            () => line.clone(),
        }
    }

    /// The option of the only runner that a package's script calls.
    fn verbose(&self) -> Option<&'static str> {
        let is_one = !self.definition.contains(['|', '&', ';', '>', '<', '"', '\'']);
        let started = shell::commands(&self.definition);
        let [words] = started.as_slice() else { return None };
        let runs = |tool: &str| is_one && words.first().is_some_and(|word| word == tool);
        if runs("jest") {
            return Some("--verbose");
        }
        runs("vitest").then_some("--reporter=verbose")
    }

    /// Another runner of Python in the same place, with the same interpreter: they find each other's tests.
    pub fn replaces(&self, folder: &str, line: &str) -> bool {
        let interpreter = |line: &str| line.split(" -m ").next().map(str::to_string);
        let python = |line: &str| family(line) == Family::Python;
        let same = python(line) && python(&self.line) && interpreter(&self.line) == interpreter(line);
        self.folder == folder && (same || family(line) != Family::Wrapper && self.line.starts_with(line))
    }

    /// For a shell that stands in the project.
    pub fn shell(&self) -> String {
        match self.folder.as_str() {
            "" => self.line.clone(),
            folder => format!("cd {folder} && {}", self.line),
        }
    }
}

const BUILT_IN: &[&str] = &[
    "cd", "set", "export", "if", "for", "while", "exec", "eval", ".", "test", "true", "false", "exit",
    "ulimit", "umask", "command",
];

fn path_folders() -> Vec<std::path::PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

pub fn chosen(request: &Request, what: &str, tree: &Tree) -> Result<Chosen, Trouble> {
    let given = given(request.params.get("commands"), what)?;
    if !given.is_empty() {
        return Ok(Chosen::Named(given));
    }
    match &request.named {
        Some(lines) if lines.is_empty() => return Ok(Chosen::Nothing),
        Some(lines) => return Ok(Chosen::Named(lines.iter().cloned().map(plain).collect())),
        None => {}
    }
    Ok(Chosen::Found(select(&all(tree, what), tree, what, part(request)?)))
}

/// The step itself says what to run, so sage.toml does not matter.
pub fn names_its_own(request: &Request) -> bool {
    given(request.params.get("commands"), "").is_ok_and(|given| !given.is_empty())
}

/// Lines that a person named: in the step, and in sage.toml.
pub fn named_lines(request: &Request) -> Vec<String> {
    let given = given(request.params.get("commands"), "").unwrap_or_default();
    let named = request.named.clone().unwrap_or_default();
    given.into_iter().map(|order| order.line).chain(named).collect()
}

/// All commands that the project's files name for a check.
pub fn all(tree: &Tree, what: &str) -> Vec<Order> {
    let known = research::all_commands(tree);
    let mut list = if what == "build" { known.build } else { known.test };
    if what == "build" && list.is_empty() {
        list.extend(research::python_build(tree));
    }
    list.into_iter().map(order).collect()
}

/// Those of them that are run for a part of the project.
pub fn select(all: &[Order], tree: &Tree, what: &str, part: Option<Side>) -> Vec<Order> {
    let orders = match part {
        None => all.to_vec(),
        Some(side) => {
            let own = |order: &&Order| parts::folder_side(&tree.root, &order.folder) == side;
            let own: Vec<Order> = all.iter().filter(own).cloned().collect();
            // A part that is no project of its own is built and tested with the whole.
            let is_home =
                |folder: &String| !folder.is_empty() && parts::folder_side(&tree.root, folder) == side;
            let alone = !own.is_empty() || research::folders(tree).iter().any(is_home);
            let whole = || all.iter().filter(|order| order.folder.is_empty()).cloned().collect();
            if alone { own } else { whole() }
        }
    };
    without_repetition(orders, what, &tree.root)
}

pub fn family(line: &str) -> Family {
    Family::of_command(line)
}

impl From<&Known> for Order {
    fn from(known: &Known) -> Order {
        let Known { line, folder, evidence, definition, .. } = known.clone();
        Order { line, folder, evidence, definition }
    }
}

fn order(command: research::Command) -> Order {
    let research::Command { line, folder, evidence, definition } = command;
    Order { line, folder, evidence, definition }
}

fn plain(line: String) -> Order {
    Order { line, ..Order::default() }
}

fn without_repetition(orders: Vec<Order>, what: &str, project: &Path) -> Vec<Order> {
    let mut kept: Vec<Order> = Vec::new();
    for order in orders {
        let wrapper = order.family() == Family::Wrapper;
        let same = |other: &Order| other.folder == order.folder && other.family() == order.family();
        // Several wrappers may be different things; two tools of one language are not.
        if wrapper || !kept.iter().any(same) {
            kept.push(order);
        }
    }
    let calls = |wrapper: &Order, order: &Order| {
        wrapper != order && wrapper.folder == order.folder && wrapper.calls(order, what)
    };
    // A wrapper that cannot run here is stood in for by what it calls.
    let stood_in = |order: &Order| {
        let missing = order.missing_program(project).is_some();
        missing && kept.iter().any(|other| calls(order, other) && other.missing_program(project).is_none())
    };
    let is_called = |order: &Order| {
        kept.iter().any(|wrapper| calls(wrapper, order) && wrapper.missing_program(project).is_none())
    };
    kept.iter().filter(|order| !is_called(order) && !stood_in(order)).cloned().collect()
}

impl Order {
    /// What it starts, as far as the project's files tell.
    pub fn starts(&self) -> Vec<Words> {
        let is_recipe = ["make ", "just "].iter().any(|tool| self.line.starts_with(tool));
        if !is_recipe {
            return shell::commands(&self.definition);
        }
        // Names before the colon are targets; only what follows a `;` there is run.
        let line = |line: &str| match line.starts_with([' ', '\t']) {
            true => shell::commands(line),
            false => line.split_once(';').map_or_else(Vec::new, |(_, rest)| shell::commands(rest)),
        };
        self.definition.replace("\\\n", " ").lines().flat_map(line).collect()
    }

    /// Its definition starts the other command, or the tool that the other one is.
    fn calls(&self, other: &Order, what: &str) -> bool {
        if self.family() != Family::Wrapper {
            return false;
        }
        let started = self.starts();
        let any = |is_it: &dyn Fn(&Words) -> bool| started.iter().any(is_it);
        match (other.family(), other.line.strip_prefix("./")) {
            (Family::Wrapper, Some(script)) => any(&|words| starts_script(words, script)),
            (Family::Wrapper, None) => any(&|words| shell::runs(words, &other.line)),
            (family, _) => any(&|words| family.tools(what).iter().any(|tool| shell::runs(words, tool))),
        }
    }
}

/// `./test.sh`, `bash test.sh`; the word `test` alone is no file.
fn starts_script(words: &Words, script: &str) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        word.trim_start_matches("./") == script
            && (word.contains('/') || at == 1 && shell::is_shell(&words[0]))
    })
}

fn given(given: Option<&Value>, what: &str) -> Result<Vec<Order>, Trouble> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(Vec::new()) };
    let wrong = || {
        let shape = "a list of command lines, as in `commands: [\"make test\"]`";
        Trouble::Invalid(format!("params.commands of this {what} step must be {shape}; it is `{given}`"))
    };
    let list = match given {
        Value::String(one) => vec![one.clone()],
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_string).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    Ok(list.into_iter().filter(|line| !line.trim().is_empty()).map(plain).collect())
}

/// Nothing for `all`.
pub fn part(request: &Request) -> Result<Option<Side>, Trouble> {
    match part_name(request) {
        "all" => Ok(None),
        "backend" => Ok(Some(Side::Backend)),
        "frontend" => Ok(Some(Side::Frontend)),
        other => Err(Trouble::Invalid(format!(
            "params.part is `{other}`; it can be `backend`, `frontend` or `all`"
        ))),
    }
}

pub fn part_name(request: &Request) -> &str {
    let given = request.params.get("part").and_then(Value::as_str);
    given.filter(|part| !part.is_empty()).unwrap_or("all")
}
