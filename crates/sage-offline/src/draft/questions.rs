//! The questions that a senior engineer would ask first, each made from a fact of this project.

use super::behaviour::Outside;
use super::brief::{Brief, Item};
use super::markdown::{code, joined};
use super::project::{body, function_at};
use super::requirements::{Origin, Requirement};
use crate::code::{FileFacts, Type};

const MOST: usize = 14;
/// Of one sort, so that none drowns the others.
const MOST_OF_A_SORT: usize = 3;
const MOST_REPORTED: usize = 4;

/// The question, and the places it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    pub evidence: Vec<String>,
}

pub fn ask(brief: &Brief, requirements: &[Requirement]) -> Vec<Question> {
    let mut all = meaning(brief);
    for sort in [
        which(brief),
        gaps(requirements),
        failing(brief),
        between(brief),
        outside(brief),
        data(brief),
        signatures(brief),
    ] {
        all.extend(sort.into_iter().take(MOST_OF_A_SORT));
    }
    all.truncate(MOST);
    all.extend(acceptance(brief));
    all.extend(reported(brief));
    all
}

fn question(text: String, evidence: Vec<String>) -> Question {
    Question { text, evidence }
}

/// What the title means here.
fn meaning(brief: &Brief) -> Vec<Question> {
    let title = &brief.title;
    let core: Vec<String> = brief.core_paths().iter().take(1).map(|path| code(path)).collect();
    let unknown: Vec<String> = brief.near.unknown.iter().map(|word| format!("\"{word}\"")).collect();
    let text = match (core.is_empty(), unknown.is_empty()) {
        (true, _) if brief.project.sources.is_empty() => {
            format!(
                "There is no code yet: who needs \"{title}\", and what is the smallest thing that helps them?"
            )
        }
        (true, _) => format!(
            "No file of the project is about \"{title}\": is it new here, or does the project call it something else?"
        ),
        (false, false) => format!(
            "Nothing in the project is called {}: what shall \"{title}\" do that {} does not do today?",
            joined(&unknown),
            joined(&core)
        ),
        (false, true) => format!("What shall \"{title}\" do that {} does not do today?", joined(&core)),
    };
    vec![question(text, Vec::new())]
}

/// Which of the near functions changes.
fn which(brief: &Brief) -> Vec<Question> {
    let Some(near) = brief.near.core.first() else {
        let all: Vec<String> = central(brief).iter().map(|path| code(path)).collect();
        if all.is_empty() {
            return Vec::new();
        }
        let text = format!("Where does it belong? The files that most others use are {}.", joined(&all));
        return vec![question(text, central(brief))];
    };
    let mut found: Vec<Question> =
        brief.types().into_iter().take(1).map(|known| changing(brief, known)).collect();
    let items: Vec<&Item> = brief.public().into_iter().filter(|item| item.file == near.file).collect();
    if items.len() < 2 {
        return found;
    }
    let names: Vec<String> = items.iter().take(5).map(|item| brief.called(item)).collect();
    let text = format!(
        "Which of {} in {} changes, or does a new one stand beside them?",
        joined(&names),
        code(&brief.file(near.file).path)
    );
    found.push(question(text, items.iter().take(5).map(|item| brief.place(item)).collect()));
    found
}

/// Does a type that is spoken of change?
fn changing(brief: &Brief, (file, known): (usize, &Type)) -> Question {
    let name = code(&known.name);
    let uses = format!("uses {name}");
    let users = brief.near.callers.iter().filter(|near| near.why.contains(&uses)).count();
    let who = match users {
        0 => String::new(),
        1 => ", which 1 other file uses,".to_string(),
        n => format!(", which {n} other files use,"),
    };
    let text = format!(
        "Does {name}{who} change, or does a new type stand beside it; and what becomes of values that exist already?"
    );
    question(text, vec![brief.file(file).at(known.line)])
}

/// The files with the most callers, when nothing is near.
pub fn central(brief: &Brief) -> Vec<String> {
    let mut used: Vec<(usize, String)> = Vec::new();
    for (index, file) in brief.project.products() {
        let calls = |function| brief.uses.of(brief.project, index, function).into_iter();
        let mut users: Vec<usize> = (0..file.functions.len())
            .flat_map(calls)
            .map(|call| call.file)
            .filter(|user| *user != index)
            .collect();
        users.sort_unstable();
        users.dedup();
        if !users.is_empty() {
            used.push((users.len(), file.path.clone()));
        }
    }
    used.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    used.into_iter().take(4).map(|(_, path)| path).collect()
}

/// What happens when it fails, for each that fails and is called.
fn failing(brief: &Brief) -> Vec<Question> {
    let mut items: Vec<&Item> = brief.items.iter().filter(|item| !item.fails.is_empty()).collect();
    let named = |item: &Item| brief.near.names(&brief.function(item).name);
    items.sort_by_key(|item| (!named(item), item.callers.is_empty(), std::cmp::Reverse(item.fails.len())));
    let ask = |(at, item): (usize, &Item)| {
        let name = brief.called(item);
        let file = brief.file(item.file);
        let mut ways: Vec<String> = item.fails.iter().take(3).map(|fail| fail.told()).collect();
        ways.dedup();
        let mut evidence: Vec<String> = item.fails.iter().take(3).map(|fail| file.at(fail.line)).collect();
        let Some(call) = item.callers.first() else {
            let text = format!("{name} fails with {}: who deals with that, and how?", joined(&ways));
            return question(text, evidence);
        };
        let (caller, place) = brief.caller(call);
        let how = call.by.map_or("which is no function", |by| catching(brief.file(call.file), by));
        evidence.push(place);
        let text = format!("{name} fails with {}, up to {}, {how}", joined(&ways), code(&caller));
        let ask = "what shall the user see, and what must not have happened by then?";
        question(if at == 0 { format!("{text}: {ask}") } else { format!("The same for: {text}.") }, evidence)
    };
    items.into_iter().enumerate().map(ask).collect()
}

/// What a caller does with errors, by its words.
fn catching(file: &FileFacts, function: usize) -> &'static str {
    let Some(function) = file.functions.get(function) else { return "which is not known" };
    let lines = body(file, function);
    let says = |words: &[&str]| lines.iter().any(|(_, line)| words.iter().any(|word| line.contains(word)));
    match () {
        () if says(&[
            "try:",
            "try {",
            "except",
            "catch",
            "Err(",
            ".map_err(",
            "unwrap_or",
            "if err != nil",
        ]) =>
        {
            "which deals with some errors"
        }
        () if says(&["?;", ")?", "throws "]) => "which hands errors on",
        () => "which catches nothing",
    }
}

/// Which known gaps are part of this?
fn gaps(requirements: &[Requirement]) -> Vec<Question> {
    let gaps: Vec<&Requirement> = requirements.iter().filter(|r| r.origin == Some(Origin::Gap)).collect();
    let ids: Vec<String> = gaps.iter().map(|gap| gap.id.clone()).collect();
    let text = match ids.len() {
        0 => return Vec::new(),
        1 => format!("{} is a known gap: is it part of this work, or does it stay?", ids[0]),
        _ => format!("{} are known gaps: which of them are part of this work, and which stay?", joined(&ids)),
    };
    vec![question(text, gaps.iter().flat_map(|gap| gap.evidence.clone()).collect())]
}

/// What is true if the program stops after a call that matters and before the rest?
fn between(brief: &Brief) -> Vec<Question> {
    let acts = |item: &&Item| item.outside.iter().any(|(kind, _)| *kind != Outside::Environment);
    let mut found = Vec::new();
    // A value that cannot be made leaves nothing half done; of what is only near for one thing, nobody knows more.
    let narrow = |file: usize| brief.near.core.iter().any(|near| near.file == file && near.is_narrow);
    let matters = |item: &&Item| !item.fails.is_empty() && !narrow(item.file) || acts(item);
    for item in brief.items.iter().filter(matters) {
        let unfinished = item.callers.iter().find_map(|call| {
            let file = brief.file(call.file);
            let by = call.by.and_then(|by| file.functions.get(by))?;
            goes_on(&body(file, by), call.line)
                .then(|| (call, format!("{}-{}", file.at(call.line), by.end())))
        });
        if let Some((call, place)) = unfinished {
            let text = format!(
                "{} goes on after {} has returned: what is true if the program stops in between, and who puts it \
                 right?",
                code(&brief.caller(call).0),
                brief.called(item),
            );
            found.push(question(text, vec![place]));
        }
    }
    found.truncate(2);
    found
}

/// Something more is called at the depth of the call: not in another branch, and not only the end.
fn goes_on(lines: &[(usize, &str)], call: usize) -> bool {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let Some((_, here)) = lines.iter().find(|(number, _)| *number == call) else { return false };
    if here.contains("=>")
        || here.trim_start().starts_with("return")
        || here.contains("\"") && !here.contains('=')
    {
        return false;
    }
    let ends = ["}", ")", "]", "else", "elif", "except", "catch", "case", "finally", "#", "//", ".", "|"];
    let follows =
        |line: &str| line.contains('(') && !ends.iter().any(|end| line.trim_start().starts_with(end));
    lines.iter().any(|(number, line)| *number > call && depth(line) == depth(here) && follows(line))
}

/// What is touched outside of the program.
fn outside(brief: &Brief) -> Vec<Question> {
    let mut found: Vec<(Outside, Question)> = Vec::new();
    for item in &brief.items {
        let name = brief.called(item);
        for (kind, line) in &item.outside {
            let text = match kind {
                Outside::Stored => format!(
                    "{name} stores something: what is left if it is interrupted half way, or called twice; and what \
                     becomes of data that exists already?"
                ),
                Outside::Network => format!(
                    "{name} talks to another system: how long does it wait, what is tried again, and what is shown \
                     when the other side is down?"
                ),
                Outside::Process => {
                    format!("{name} starts a program: what if it is missing, hangs, or is stopped half way?")
                }
                Outside::Environment => {
                    format!(
                        "{name} reads the environment: does this need a new setting, and what is its default?"
                    )
                }
            };
            if found.iter().filter(|(known, _)| known == kind).count() == 0 {
                found.push((*kind, question(text, vec![brief.file(item.file).at(*line)])));
            }
        }
    }
    found.into_iter().map(|(_, question)| question).collect()
}

/// Data files that near code names.
fn data(brief: &Brief) -> Vec<Question> {
    let mut found = Vec::new();
    let endings = ["json", "csv", "sql", "db", "sqlite", "yaml", "yml", "toml", "xml", "proto", "prisma"];
    let near: Vec<usize> = brief.near.core.iter().chain(&brief.near.callers).map(|near| near.file).collect();
    for data in &brief.project.tree.files {
        if !endings.contains(&data.extension()) || data.name().len() < 6 {
            continue;
        }
        for &index in &near {
            let file = brief.file(index);
            let quotes =
                |line: &str| ['"', '\''].iter().any(|q| line.contains(&format!("{}{q}", data.name())));
            let line = file.text.lines().position(quotes);
            if let Some(line) = line.filter(|line| function_at(file, line + 1).is_none_or(|f| !f.in_test)) {
                let text = format!(
                    "{} is used by {}: does its format change, and who converts what exists?",
                    code(&data.path),
                    code(&file.path)
                );
                found.push(question(text, vec![file.at(line + 1)]));
                break;
            }
        }
    }
    found
}

/// May a signature change that several files rely on? Asked for the one with the most.
fn signatures(brief: &Brief) -> Vec<Question> {
    let files = |item: &Item| {
        let mut files: Vec<usize> = item.callers.iter().map(|call| call.file).collect();
        files.sort_unstable();
        files.dedup();
        files.len()
    };
    let most = brief.items.iter().filter(|item| files(item) > 1).max_by_key(|item| item.callers.len());
    let ask = |item: &Item| {
        let text = format!(
            "{} is called in {} places of {} files: may its signature change, or must the old one go on working?",
            brief.called(item),
            item.callers.len(),
            files(item)
        );
        question(text, item.callers.iter().map(|call| brief.caller(call).1).take(4).collect())
    };
    most.map(ask).into_iter().collect()
}

/// How one would see that it is done.
fn acceptance(brief: &Brief) -> Vec<Question> {
    let tests = brief.test_paths();
    let near =
        tests.first().map(|path| format!("; {} is where it would stand", code(path))).unwrap_or_default();
    let text = format!("Which example shows that it is done? One input and what must come out{near}.");
    vec![question(text, Vec::new())]
}

/// What the steps before could not answer: the first of each, then the second, each once.
fn reported(brief: &Brief) -> Vec<Question> {
    let mut found: Vec<Question> = Vec::new();
    let deepest = brief.earlier.said.iter().map(|said| said.open_questions.len()).max().unwrap_or(0);
    for round in 0..deepest {
        for said in &brief.earlier.said {
            let Some(asked) = said.open_questions.get(round).map(|asked| asked.trim()) else { continue };
            // We know where it belongs when something is near.
            let known = asked.contains("where does it belong") && !brief.near.core.is_empty();
            if !known && !found.iter().any(|before| before.text.starts_with(asked)) {
                found.push(question(format!("{asked} ({})", code(&said.step)), Vec::new()));
            }
        }
    }
    found.truncate(MOST_REPORTED);
    found
}
