//! Requirements that follow from what is there. Each has its evidence; what cannot be derived is a question.

use serde::Serialize;

use super::brief::{Brief, Item, words_of};
use super::markdown::{code, joined, quoted};
use super::passages::Passage;

const MOST_GAPS: usize = 6;
const MOST_PROMISES: usize = 4;
/// Files of the core whose callers are listed.
const MOST_KEPT: usize = 3;
const MOST_TESTS: usize = 5;

/// Where it comes from decides how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Others call it today.
    Kept,
    /// The project says that something is missing or wrong.
    Gap,
    /// The documents say so.
    Promised,
    /// It fails in ways that no test knows.
    Untested,
}

impl Origin {
    pub fn told(self) -> &'static str {
        match self {
            Origin::Kept => "keeps working",
            Origin::Gap => "known gap",
            Origin::Promised => "documented",
            Origin::Untested => "test first",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Requirement {
    pub id: String,
    pub text: String,
    pub evidence: Vec<String>,
    #[serde(skip)]
    pub origin: Option<Origin>,
}

pub fn derive(brief: &Brief) -> Vec<Requirement> {
    let mut found = gaps(brief);
    found.extend(kept(brief));
    found.extend(promised(brief));
    found.extend(untested(brief));
    for (at, requirement) in found.iter_mut().enumerate() {
        requirement.id = format!("R{}", at + 1);
    }
    found
}

fn requirement(origin: Origin, text: String, evidence: Vec<String>) -> Requirement {
    Requirement { id: String::new(), text, evidence, origin: Some(origin) }
}

/// Marks near the feature.
fn gaps(brief: &Brief) -> Vec<Requirement> {
    let mut found = Vec::new();
    for (index, todo) in brief.todos() {
        let file = brief.file(index);
        let home = brief.home(index, todo.line);
        let text = format!(
            "{home}: {} ({}). Closed by this work, or named here as out of scope.",
            quoted(words_of(todo), 200),
            todo.mark,
        );
        found.push(requirement(Origin::Gap, text, vec![file.at(todo.line)]));
    }
    found.truncate(MOST_GAPS);
    found
}

/// One for each file of the core that others call.
fn kept(brief: &Brief) -> Vec<Requirement> {
    let mut found = Vec::new();
    for near in brief.near.core.iter().take(MOST_KEPT) {
        let file = brief.file(near.file);
        let items = brief.items.iter().filter(|item| item.file == near.file && !item.callers.is_empty());
        let mut told = Vec::new();
        let mut evidence = Vec::new();
        for item in items.take(4) {
            let callers: Vec<(String, String)> = item.callers.iter().map(|call| brief.caller(call)).collect();
            let mut names: Vec<String> = callers.iter().map(|(name, _)| code(name)).collect();
            names.dedup();
            let more = names.len().saturating_sub(3);
            names.truncate(3);
            let names =
                if more > 0 { format!("{} and {more} more", names.join(", ")) } else { joined(&names) };
            told.push(format!("{} (called by {names})", brief.called(item)));
            evidence.push(brief.place(item));
            evidence.extend(callers.into_iter().map(|(_, place)| place).take(3));
        }
        if !told.is_empty() {
            let text = format!("What others use of {} keeps working: {}.", code(&file.path), joined(&told));
            found.push(requirement(Origin::Kept, text, evidence));
        }
    }
    found
}

fn promised(brief: &Brief) -> Vec<Requirement> {
    let promises =
        brief.near.says.iter().filter_map(|passage| Some((passage, passage.promise(&brief.near)?)));
    let to_requirement = |(passage, promise): (&Passage, String)| {
        let text = format!("What is promised still holds: {}", quoted(&promise, 240));
        requirement(Origin::Promised, text, vec![passage.place()])
    };
    promises.take(MOST_PROMISES).map(to_requirement).collect()
}

fn untested(brief: &Brief) -> Vec<Requirement> {
    let mut found = Vec::new();
    for item in brief.public() {
        let open = brief.uncovered(item);
        if open.is_empty() {
            continue;
        }
        let ways: Vec<String> = open.iter().map(|fail| fail.told()).collect();
        let name = brief.called(item);
        let today = match tests_of(brief, item).as_slice() {
            [] => format!("No test calls {name} itself today."),
            [one] => format!("Today {one} calls it, but not so that it fails like this."),
            tests => format!("Today {} call it, but not so that it fails like this.", joined(tests)),
        };
        let text = format!("A test holds how {name} fails: {}. {today}", joined(&ways));
        let places = open.iter().map(|fail| brief.file(item.file).at(fail.line)).collect();
        found.push(requirement(Origin::Untested, text, places));
    }
    found.truncate(MOST_TESTS);
    found
}

/// Names of the tests that call a function.
pub fn tests_of(brief: &Brief, item: &Item) -> Vec<String> {
    let mut names: Vec<String> = item.tests.iter().map(|test| code(&brief.caller(test).0)).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(2);
    names.truncate(2);
    names.extend((more > 0).then(|| format!("{more} more")));
    names
}
