//! `specify`: what is there, what the project says, what must hold, and what nobody has decided yet.

use serde_json::{Value, json};

use super::brief::{Brief, Item, words_of};
use super::conventions;
use super::earlier::Said;
use super::markdown::{capital, code, count, joined, list, places, quoted, section, short, table};
use super::near::NearFile;
use super::place;
use super::project::{Project, about};
use super::questions::{self, Question};
use super::requirements::{self, Requirement, tests_of};
use super::risks;
use crate::code::{Function, Type};
use crate::finding::Finding;
use crate::request::{Request, Trouble};

pub const METHOD: &str =
    "offline: drafted from the project's files and the reports before it, without a model";
const MOST_FINDINGS: usize = 8;
const MOST_INTERFACES: usize = 12;

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let project = Project::read(request)?;
    let brief = Brief::of(request, &project);
    let requirements = requirements::derive(&brief);
    let questions = questions::ask(&brief, &requirements);
    let document = document(&brief, &requirements, &questions);
    let mut files = brief.core_paths();
    files.extend(brief.caller_paths());
    files.extend(brief.test_paths().into_iter().filter(|path| !files.contains(path)).collect::<Vec<_>>());
    let asked: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
    Ok(json!({"document": document, "summary": summary(&brief, &requirements, &questions),
        "requirements": requirements, "openQuestions": asked, "files": files, "method": METHOD}))
}

fn summary(brief: &Brief, requirements: &[Requirement], questions: &[Question]) -> String {
    let (near, calling) = (brief.near.core.len(), brief.near.callers.len());
    let where_it_is = match near {
        0 => "Nothing in the project is near it yet".to_string(),
        _ => format!("{} near it, {calling} more use them", files_are(near)),
    };
    let drafts = count(requirements.len(), "requirement");
    format!("{where_it_is}; {drafts} drafted from facts, {} to decide.", count(questions.len(), "question"))
}

fn files_are(number: usize) -> String {
    if number == 1 { "1 file is".to_string() } else { format!("{number} files are") }
}

fn document(brief: &Brief, requirements: &[Requirement], questions: &[Question]) -> String {
    let mut text = format!("# {}: specification\n\n{}", capital(&brief.title), opening(brief));
    text += &format!(
        "\n> [!NOTE]\n> A draft from facts, made without a model. Each statement names its place. What shall be \
         different afterwards is for you to say: start with the {} below.\n",
        count(questions.len(), "open question")
    );
    text += &section("What is there", &what_is_there(brief));
    text += &section("What the project already says about it", &says(brief));
    text += &section("What the research found", &research(brief));
    text += &section("Conventions to keep", &conventions::told(brief));
    text += &section("Requirements (draft)", &requirement_list(requirements));
    text += &section("Interfaces that will be touched", &interfaces(brief));
    text += &section("Risks", &list(&risks::name(brief), "None that the files show."));
    text += &section("Open questions", &question_list(questions));
    text += &section("How this was made", &made(brief));
    text
}

/// What it is about, in the project's own words.
fn opening(brief: &Brief) -> String {
    let title = &brief.title;
    let own = brief.near.core.iter().find_map(|near| {
        let file = brief.file(near.file);
        let spoken = near.mentions.iter().find_map(|mention| mention.said.clone()).filter(|_| near.is_narrow);
        spoken.or_else(|| about(file)).map(|(line, text)| (file.at(line), text))
    });
    let said = brief.near.says.first().map(|passage| (passage.place(), passage.text.clone()));
    match own.or(said) {
        Some((place, text)) => {
            format!(
                "This is about **{title}**. The project says there: {} (`{place}`).\n",
                quoted(&text, 300)
            )
        }
        None if brief.project.sources.is_empty() => {
            format!("This is about **{title}**. The project has no code yet that could say more.\n")
        }
        None => {
            format!("This is about **{title}**. No file and no document of the project is about it yet.\n")
        }
    }
}

fn what_is_there(brief: &Brief) -> String {
    if brief.near.core.is_empty() {
        return nothing_near(brief);
    }
    let core = brief.near.core.iter().map(|near| file_row(brief, near, true));
    let rows: Vec<Vec<String>> =
        core.chain(brief.near.callers.iter().map(|near| file_row(brief, near, false))).collect();
    let tests = match brief.test_paths().as_slice() {
        [] => "No test calls any of the functions above.".to_string(),
        paths => format!("Tests that call them are in {}.", places(paths, 4)),
    };
    format!(
        "{}\nThe numbers after the names are lines. {tests}",
        table(&["file", "lines:", "what it has", "near because of"], &rows)
    )
}

/// Path, lines, what it has, why it is near. Of a file that only calls, the calling functions are enough.
fn file_row(brief: &Brief, near: &NearFile, core: bool) -> Vec<String> {
    let file = brief.file(near.file);
    let things: Vec<(String, usize)> =
        near.things().into_iter().map(|thing| brief.thing(near.file, thing)).collect();
    let types = file.types.iter().filter(|t| core && !near.is_narrow && !t.in_test).take(3);
    let types = types.map(|t| (t.name.clone(), t.line));
    let functions = near.functions.iter().map(|at| (brief.name(near.file, *at), file.functions[*at].line));
    let mut offers = things.clone();
    offers.extend(types.chain(functions).filter(|offer| !things.contains(offer)));
    // What the title names or somebody speaks of is seen first.
    let last = |name: &str| name.rsplit([':', '.']).next().unwrap_or(name).to_string();
    offers.sort_by_key(|offer| !(things.contains(offer) || brief.near.names(&last(&offer.0))));
    let mut offers: Vec<String> =
        offers.iter().map(|(name, line)| format!("{} :{line}", code(name))).collect();
    let more = offers.len().saturating_sub(8);
    offers.truncate(8);
    offers.extend((more > 0).then(|| format!("{more} more")));
    let mut why = near.why.clone();
    why.truncate(3);
    vec![code(&file.path), file.lines.to_string(), offers.join(", "), why.join(", ")]
}

fn nothing_near(brief: &Brief) -> String {
    let sources = brief.project.products().count();
    if sources == 0 {
        return "No source file was found.".to_string();
    }
    let central: Vec<String> = questions::central(brief).iter().map(|path| code(path)).collect();
    let used = match central.is_empty() {
        true => String::new(),
        false => format!(" The files that most others use: {}.", joined(&central)),
    };
    let shares = |near: &NearFile| format!("{} ({})", code(&brief.file(near.file).path), near.why.join(", "));
    let loose: Vec<String> = brief.near.loose.iter().map(shares).collect();
    let loose = match loose.is_empty() {
        true => String::new(),
        false => format!(" These share a word with the title: {}.", joined(&loose)),
    };
    let read = if sources == 1 {
        "The 1 source file was".to_string()
    } else {
        format!("All {sources} source files were")
    };
    format!(
        "{read} looked at; none is about \"{}\" by its name, its functions or what it speaks of.{loose}{used}",
        brief.title
    )
}

fn says(brief: &Brief) -> String {
    let mut items: Vec<String> = Vec::new();
    for near in brief.near.core.iter().filter(|near| !near.is_narrow) {
        let file = brief.file(near.file);
        items.extend(
            about(file)
                .map(|(line, text)| format!("`{}` {}", file.at(line), quoted(&text, 200)))
                .into_iter()
                .skip(usize::from(items.is_empty() && near.file == brief.near.core[0].file)),
        );
    }
    items.truncate(3);
    for passage in &brief.near.says {
        let heading =
            if passage.heading.is_empty() { String::new() } else { format!(" under *{}*", passage.heading) };
        items.push(format!("`{}`{heading}: {}", passage.place(), quoted(&passage.nearest(&brief.near), 240)));
    }
    for (index, todo) in brief.todos() {
        let file = brief.file(index);
        items.push(format!("`{}` {}: {}", file.at(todo.line), todo.mark, quoted(words_of(todo), 200)));
    }
    list(&items, "Nothing: no document speaks about it, and near code has no TODO or FIXME.")
}

/// Findings of the steps before that no other section shows; what several found is told once.
fn research(brief: &Brief) -> String {
    let shown = |found: &Finding| {
        let code = |at: &String| brief.project.source(place::split(at).0).is_some();
        let in_table =
            found.kind == "document" && !found.evidence.is_empty() && found.evidence.iter().all(code);
        let quoted = brief.near.says.iter().any(|passage| found.evidence == [passage.place()]);
        !found.is_convention() && found.kind != "near" && !in_table && !quoted && found.relevance >= 0.3
    };
    let mut all: Vec<(Vec<String>, &Finding)> = Vec::new();
    for (step, found) in brief.earlier.findings().into_iter().filter(|(_, found)| shown(found)) {
        let same = |known: &&mut (Vec<String>, &Finding)| {
            known.1.title == found.title || !found.evidence.is_empty() && known.1.evidence == found.evidence
        };
        match all.iter_mut().find(same) {
            Some((steps, _)) if steps.contains(&code(step)) => {}
            Some((steps, _)) => steps.push(code(step)),
            None => all.push((vec![code(step)], found)),
        }
    }
    let told = |(steps, found): &(Vec<String>, &Finding)| {
        let detail =
            if found.detail.is_empty() { String::new() } else { format!(": {}", short(&found.detail, 220)) };
        let at = if found.evidence.is_empty() {
            String::new()
        } else {
            format!("; {}", places(&found.evidence, 3))
        };
        format!("**{}**{detail} ({}{at})", short(&found.title, 140), steps.join(", "))
    };
    let mut items: Vec<String> = all.iter().take(MOST_FINDINGS).map(told).collect();
    // Our own reports without findings say that there is nothing; another agent's text may be all it has.
    let ours =
        |said: &Said| said.value["method"].as_str().is_some_and(|method| method.starts_with("offline"));
    let without =
        brief.earlier.said.iter().filter(|s| s.findings.is_empty() && !s.summary.is_empty() && !ours(s));
    items.extend(without.map(|said| format!("{}: {}", code(&said.step), short(&said.summary, 240))));
    let more = all.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        items.push(format!(
            "{} that are less relevant are in the results of the steps.",
            count(more, "finding")
        ));
    }
    if items.is_empty() { String::new() } else { list(&items, "") }
}

fn requirement_list(requirements: &[Requirement]) -> String {
    let told = |r: &Requirement| {
        let origin = r.origin.map_or("", |origin| origin.told());
        format!("**{}** ({origin}) {} {}", r.id, r.text, evidence(&r.evidence))
    };
    let items: Vec<String> = requirements.iter().map(told).collect();
    let none = "None follows from what is there.";
    format!(
        "{}\nWhat is new is not in this list: nothing in the project says it yet. See the open questions.",
        list(&items, none)
    )
}

fn evidence(at: &[String]) -> String {
    if at.is_empty() { String::new() } else { format!("[{}]", places(at, 5)) }
}

fn interfaces(brief: &Brief) -> String {
    let row = |item: &Item| {
        let function = brief.function(item);
        let mut callers: Vec<String> =
            item.callers.iter().chain(&item.inside).map(|call| code(&brief.caller(call).1)).collect();
        let more = callers.len().saturating_sub(3);
        callers.truncate(3);
        callers.extend((more > 0).then(|| format!("{more} more")));
        let unsure = item.tests.is_empty() && !item.is_untested;
        let tests = if unsure { vec!["not known".to_string()] } else { tests_of(brief, item) };
        let fails = if item.fails.is_empty() { String::new() } else { item.fails.len().to_string() };
        vec![
            code(&short(signature(function), 90)),
            code(&brief.place(item)),
            function.doc.as_deref().map(|doc| short(doc, 80)).unwrap_or_default(),
            callers.join(", "),
            tests.join(", "),
            fails,
        ]
    };
    let public = brief.public().into_iter().chain(&brief.touched);
    let rows: Vec<Vec<String>> = public.take(MOST_INTERFACES).map(row).collect();
    let heads =
        ["function", "where", "what it says of itself", "called at", "tests that call it", "ways to fail:"];
    let types = types(brief);
    match (rows.is_empty(), types.is_empty()) {
        (true, true) => "None is known: no public function is near.".to_string(),
        (true, false) => types,
        (false, _) => format!(
            "{types}Candidates, from the files above; which of them change is an open question.\n\n{}",
            table(&heads, &rows)
        ),
    }
}

/// The types that are spoken of, each with who uses it.
fn types(brief: &Brief) -> String {
    let told = |(file, known): (usize, &Type)| {
        let uses = format!("uses {}", code(&known.name));
        let callers = brief.near.callers.iter().filter(|near| near.why.contains(&uses));
        let users: Vec<String> = callers.map(|near| code(&brief.file(near.file).path)).collect();
        let used = match users.is_empty() {
            true => String::new(),
            false => format!(", used by {}", joined(&users)),
        };
        let doc = known.doc.as_ref().map(|doc| format!(": {}", short(doc, 80))).unwrap_or_default();
        let place = brief.file(file).at(known.line);
        format!("The {} {} (`{place}`){doc}{used}.\n\n", known.kind, code(&known.name))
    };
    brief.types().into_iter().map(told).collect()
}

/// Without a comment that stands between it and the body.
fn signature(function: &Function) -> &str {
    [": # ", " # ", " // "]
        .iter()
        .fold(&function.signature, |text, mark| text.split(mark).next().unwrap_or(text))
}

fn question_list(questions: &[Question]) -> String {
    let told = |(at, question): (usize, &Question)| {
        let at_places = evidence(&question.evidence);
        format!("- [ ] **Q{}** {} {at_places}", at + 1, question.text).trim_end().to_string() + "\n"
    };
    questions.iter().enumerate().map(told).collect()
}

fn made(brief: &Brief) -> String {
    let read = format!(
        "By Sage's offline agent, from {} and {}. No model was asked: nothing here is an opinion, and nothing was \
         invented.",
        count(brief.project.sources.len(), "source file"),
        count(brief.project.documents.len(), "document")
    );
    let steps: Vec<String> = brief.earlier.said.iter().map(|said| code(&said.step)).collect();
    let used = match steps.is_empty() {
        true => " No report of an earlier step was at hand.".to_string(),
        false => format!(" Reports used: {}.", joined(&steps)),
    };
    let silent: Vec<String> = brief.earlier.silent.iter().map(|step| code(step)).collect();
    let silent = match silent.is_empty() {
        true => String::new(),
        false => format!(" Nothing came back from {}.", joined(&silent)),
    };
    let left = match brief.project.left_out {
        0 => String::new(),
        n => format!(" {} of the project were not read: too large, too many, or not text.", count(n, "file")),
    };
    format!(
        "{read}{used}{silent}{left} Calls are matched by name and import, not by type; a test counts if it calls the \
         function itself, and is \"not known\" where other functions have the same name."
    )
}
