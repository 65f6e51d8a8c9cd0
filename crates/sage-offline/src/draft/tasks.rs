//! The tasks that follow from what is there, in the order in which they can be done.
//!
//! ```text
//!   answers --+--> core files --> files that call them --+--> documents --> check
//!   tests ----+                                          |
//!   what earlier steps found in other files -------------+
//! ```

use super::brief::{Brief, Item};
use super::found;
use super::markdown::{code, count, joined};
use super::mentions::Thing;
use super::passages;
use super::project::module_name;
use super::requirements::{Origin, Requirement};
use super::task::Task;

pub struct Tasks<'a, 'b> {
    brief: &'b Brief<'a>,
    requirements: &'b [Requirement],
    /// Where the open questions stand, and what that is called.
    asked_in: (String, &'static str),
    pub all: Vec<Task>,
}

/// All tasks; `questions` is how many are open in the specification.
pub fn derive(brief: &Brief, requirements: &[Requirement], feature: &str, questions: usize) -> Vec<Task> {
    let (file, name) = match brief.earlier.specification() {
        Some(_) => ("spec.md", "specification"),
        None => ("plan.md", "plan"),
    };
    let written = brief.earlier.specification_file().map(str::to_string);
    let asked_in = (written.unwrap_or_else(|| format!("docs/specs/{feature}/{file}")), name);
    let mut tasks = Tasks { brief, requirements, asked_in, all: Vec::new() };
    let answers = tasks.answers(questions);
    let core = tasks.core(&answers);
    tasks.callers(&core, &answers);
    tasks.elsewhere(&answers);
    if tasks.all.len() > answers.len() {
        tasks.documents();
    } else {
        tasks.begin_anew(&answers);
    }
    tasks.check();
    tasks.all
}

impl Tasks<'_, '_> {
    fn add(&mut self, task: Task) -> String {
        let id = format!("T{}", self.all.len() + 1);
        self.all.push(Task { id: id.clone(), ..task });
        id
    }

    fn answers(&mut self, questions: usize) -> Vec<String> {
        if questions == 0 {
            return Vec::new();
        }
        let range = if questions == 1 { "Q1 has".to_string() } else { format!("Q1 to Q{questions} have") };
        let (file, name) = self.asked_in.clone();
        let id = self.add(Task {
            title: format!("Answer the {} of the {name}", count(questions, "open question")),
            detail: "A person decides. What is decided here is what the other tasks build.".to_string(),
            acceptance: vec![format!("{range} an answer in `{file}`.")],
            files: vec![file],
            priority: "P0".to_string(),
            person: true,
            ..Task::default()
        });
        vec![id]
    }

    /// For each file of the core: its missing tests, then itself. Gives the ids with the file's index.
    fn core(&mut self, answers: &[String]) -> Vec<(usize, String)> {
        let mut done: Vec<(usize, String)> = Vec::new();
        for index in core_order(self.brief) {
            let tests = self.tests_first(index);
            let needed =
                done.iter().filter(|(other, _)| calls(self.brief, index, *other)).map(|(_, id)| id.clone());
            let mut depends_on: Vec<String> = answers.iter().cloned().chain(tests).chain(needed).collect();
            depends_on.dedup();
            let file = self.brief.file(index);
            let items: Vec<&Item> =
                self.brief.public().into_iter().filter(|item| item.file == index).collect();
            let names: Vec<String> = items
                .iter()
                .take(6)
                .map(|item| format!("{} :{}", self.brief.called(item), self.brief.function(item).line))
                .collect();
            let mut detail = self.types(index);
            if !names.is_empty() {
                detail += &format!("Functions that may change: {}.", names.join(", "));
            }
            detail += &found::sentences(self.brief, &file.path);
            let id = self.add(Task {
                title: format!("Change {}", code(&file.path)),
                detail: detail.trim().to_string(),
                files: vec![file.path.clone()],
                depends_on,
                acceptance: self.acceptance(&file.path),
                priority: "P1".to_string(),
                ..Task::default()
            });
            done.push((index, id));
        }
        done
    }

    /// The types of a file that are spoken of, and who speaks of them.
    fn types(&self, index: usize) -> String {
        let Some(near) = self.brief.near.core.iter().find(|near| near.file == index) else {
            return String::new();
        };
        let mut told = String::new();
        for thing in near.things().into_iter().filter(|thing| matches!(thing, Thing::Type(_))) {
            let (name, line) = self.brief.thing(index, thing);
            let spoken = near.mentions.iter().filter(|mention| mention.thing == Some(thing));
            let mut why: Vec<String> = spoken.map(|mention| mention.why.clone()).collect();
            why.dedup();
            told += &format!("The type that may change: {} :{line} ({}). ", code(&name), why.join(", "));
        }
        told
    }

    /// Tests for what is near, public and not held by one; they can be written before anything is decided.
    fn tests_first(&mut self, index: usize) -> Option<String> {
        let brief = self.brief;
        let items = brief.items.iter().filter(|item| item.file == index && brief.function(item).is_public);
        let (mut names, mut acceptance) = (Vec::new(), Vec::new());
        for item in items {
            let name = brief.called(item);
            let open = brief.uncovered(item);
            if item.is_untested {
                acceptance.push(format!("A test calls {name} (`{}`).", brief.place(item)));
            }
            for fail in &open {
                let place = brief.file(index).at(fail.line);
                let id = self
                    .requirements
                    .iter()
                    .find(|r| r.origin == Some(Origin::Untested) && r.evidence.contains(&place));
                let id = id.map(|requirement| format!("{}: a", requirement.id)).unwrap_or("A".to_string());
                acceptance.push(format!("{id} test shows {name} failing with {} (`{place}`).", fail.told()));
            }
            if item.is_untested || !open.is_empty() {
                names.push(name);
            }
        }
        if names.is_empty() {
            return None;
        }
        let more = names.len().saturating_sub(3);
        let what =
            if more > 0 { format!("{} and {more} more", names[..3].join(", ")) } else { joined(&names) };
        acceptance.truncate(8);
        acceptance.extend(self.command_passes("test"));
        Some(self.add(Task {
            title: format!("Cover {what} with tests, as they behave today"),
            detail: format!(
                "Before {} is changed: what they do today is then held.",
                code(&brief.file(index).path)
            ),
            files: self.test_files(index),
            acceptance,
            priority: "P1".to_string(),
            ..Task::default()
        }))
    }

    /// Where the tests of a file are: those that call it, those named after it, or itself where tests live inside.
    fn test_files(&self, index: usize) -> Vec<String> {
        let brief = self.brief;
        let items = brief.items.iter().filter(|item| item.file == index);
        let mut paths: Vec<String> =
            items.flat_map(|item| &item.tests).map(|test| brief.file(test.file).path.clone()).collect();
        let module = module_name(&brief.file(index).path);
        if paths.is_empty() {
            let named = brief
                .project
                .sources
                .iter()
                .filter(|file| file.is_test && module_name(&file.path).contains(module));
            paths.extend(named.map(|file| file.path.clone()).take(1));
        }
        if paths.is_empty() && brief.file(index).functions.iter().any(|function| function.is_test) {
            paths.push(brief.file(index).path.clone());
        }
        paths.sort();
        paths.dedup();
        paths.truncate(3);
        paths
    }

    fn callers(&mut self, core: &[(usize, String)], answers: &[String]) {
        for near in self.brief.near.callers.clone() {
            let file = self.brief.file(near.file);
            let with = |start: &str| -> Vec<String> {
                near.why.iter().filter_map(|why| why.strip_prefix(start)).map(str::to_string).collect()
            };
            let (called, used) = (with("calls "), with("uses "));
            let relies = match (called.is_empty(), used.is_empty()) {
                (false, true) => format!("calls {}", joined(&called)),
                (true, _) => format!("uses {}", joined(&used)),
                (false, false) => format!("uses {} and calls {}", joined(&used), joined(&called)),
            };
            let of_core = core.iter().filter(|(index, _)| near.relies_on.contains(index));
            let mut depends_on: Vec<String> = of_core.map(|(_, id)| id.clone()).collect();
            if depends_on.is_empty() {
                depends_on = answers.to_vec();
            }
            let named = |at: &usize| {
                format!("{} :{}", code(&self.brief.name(near.file, *at)), file.functions[*at].line)
            };
            let names: Vec<String> = near.functions.iter().take(5).map(named).collect();
            let within = if names.is_empty() { String::new() } else { format!(", in {}", joined(&names)) };
            let detail = format!("It {relies}{within}.{}", found::sentences(self.brief, &file.path));
            let task = Task {
                title: format!("Adapt {}", code(&file.path)),
                detail,
                files: vec![file.path.clone()],
                depends_on,
                acceptance: self.acceptance(&file.path),
                priority: "P2".to_string(),
                ..Task::default()
            };
            self.add(task);
        }
    }

    /// Requirements and findings that point at files that no other task touches.
    fn elsewhere(&mut self, answers: &[String]) {
        let taken: Vec<String> = self.all.iter().flat_map(|task| task.files.clone()).collect();
        let mut tasks = found::tasks(self.brief, &taken);
        tasks.extend(found::requirements(self.brief, self.requirements, &taken));
        for mut task in tasks {
            task.depends_on = answers.to_vec();
            task.acceptance.extend(self.command_passes("test"));
            self.add(task);
        }
    }

    /// Nothing is near: what is left is to find the place.
    fn begin_anew(&mut self, answers: &[String]) {
        let mut acceptance = vec!["A first test says what it does, and fails.".to_string()];
        acceptance.push(format!("`{}` names the file it belongs to.", self.asked_in.0));
        let task = Task {
            title: "Decide where it belongs, and write its first test".to_string(),
            detail: "Nothing in the project is near it, so no file is named here. The rest of the plan follows from \
                     this: make it again afterwards."
                .to_string(),
            depends_on: answers.to_vec(),
            acceptance,
            priority: "P1".to_string(),
            ..Task::default()
        };
        self.add(task);
    }

    fn documents(&mut self) {
        let brief = self.brief;
        let functions = brief.items.iter().map(|item| brief.function(item).name.clone());
        let types = brief.types().into_iter().map(|(_, known)| known.name.clone());
        let names: Vec<String> = functions.chain(types).chain(brief.core_paths()).collect();
        let mut files: Vec<String> =
            passages::naming(&names, brief.project).into_iter().map(|(_, p)| p.path).collect();
        files.extend(brief.near.says.iter().map(|passage| passage.path.clone()));
        let changelog = changelog(brief);
        files.retain(|path| Some(path) != changelog.as_ref());
        files.sort();
        files.dedup();
        files.truncate(6);
        let mut acceptance: Vec<String> =
            files.iter().map(|path| format!("{} says what is true afterwards.", code(path))).collect();
        acceptance.extend(changelog.as_ref().map(|path| format!("{} has an entry.", code(path))));
        if acceptance.is_empty() {
            return;
        }
        files.extend(changelog);
        self.add(Task {
            title: "Bring the documents up to date".to_string(),
            detail: "They speak about it, or list what changed.".to_string(),
            depends_on: self.leaves(),
            files,
            acceptance,
            priority: "P3".to_string(),
            ..Task::default()
        });
    }

    fn check(&mut self) {
        let mut acceptance = self.command_passes("test");
        acceptance.extend(self.command_passes("lint"));
        acceptance.extend(self.command_passes("build"));
        if acceptance.is_empty() || self.all.is_empty() {
            return;
        }
        self.add(Task {
            title: "Check the whole".to_string(),
            depends_on: self.leaves(),
            acceptance,
            priority: "P2".to_string(),
            ..Task::default()
        });
    }

    /// Tasks that nothing waits for yet.
    fn leaves(&self) -> Vec<String> {
        let waited = |id: &String| self.all.iter().any(|task| task.depends_on.contains(id));
        self.all.iter().map(|task| task.id.clone()).filter(|id| !waited(id)).collect()
    }

    /// What must be true of a file afterwards: its requirements, and the tests.
    fn acceptance(&self, path: &str) -> Vec<String> {
        let touches = |requirement: &&Requirement| {
            requirement.evidence.iter().any(|at| super::place::split(at).0 == path)
        };
        let is_first = |requirement: &Requirement| {
            requirement.evidence.first().is_some_and(|at| super::place::split(at).0 == path)
        };
        // What is to be tested first has a task of its own, and what is kept belongs to the file that offers it.
        let meant = |requirement: &&Requirement| match requirement.origin {
            Some(Origin::Untested) => false,
            Some(Origin::Kept) => is_first(requirement),
            _ => true,
        };
        let told = |requirement: &Requirement| match requirement.origin {
            Some(Origin::Gap) => {
                let place = requirement.evidence.first().cloned().unwrap_or_default();
                format!(
                    "{}: the mark at `{place}` is gone, or the specification says why it stays.",
                    requirement.id
                )
            }
            Some(Origin::Kept) => format!("{}: those who call it today still work.", requirement.id),
            Some(Origin::Promised) => format!("{}: what the documents promise still holds.", requirement.id),
            Some(Origin::Untested) | None => format!("{} holds.", requirement.id),
        };
        let mut all: Vec<String> = self.requirements.iter().filter(touches).filter(meant).map(told).collect();
        all.extend(self.command_passes("test"));
        all
    }

    fn command_passes(&self, what: &str) -> Vec<String> {
        let commands = &self.brief.project.commands;
        let known = match what {
            "test" => &commands.test,
            "lint" => &commands.lint,
            _ => &commands.build,
        };
        let most = if what == "lint" { 3 } else { 1 };
        known.iter().take(most).map(|command| format!("{} passes.", code(&command.shell()))).collect()
    }
}

/// The file that lists what changed.
pub fn changelog(brief: &Brief) -> Option<String> {
    let stems = ["changelog", "changes", "history", "news", "releases"];
    let is_it = |path: &&String| stems.contains(&module_name(path).to_lowercase().as_str());
    let mut paths: Vec<&String> =
        brief.project.documents.iter().map(|document| &document.path).filter(is_it).collect();
    paths.sort_by_key(|path| path.matches('/').count());
    paths.first().map(|path| path.to_string())
}

/// Files that others of the core call come first.
fn core_order(brief: &Brief) -> Vec<usize> {
    let mut left: Vec<usize> = brief.near.core.iter().map(|near| near.file).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let free = |index: &usize| !left.iter().any(|other| other != index && calls(brief, *index, *other));
        // Files that call each other have no order: the nearest goes first.
        let at = left.iter().position(free).unwrap_or(0);
        order.push(left.remove(at));
    }
    order
}

/// Does a function of `caller` call a near function of `called`?
fn calls(brief: &Brief, caller: usize, called: usize) -> bool {
    let items = brief.items.iter().filter(|item| item.file == called);
    items.flat_map(|item| &item.callers).any(|call| call.file == caller)
}
