//! `document`: which documents speak about what changes, and an entry for the list of changes.

use serde_json::{Value, json};

use super::brief::Brief;
use super::fuzzy;
use super::markdown::{capital, code, count, list, quoted, section, short, table};
use super::passages::{self, Passage};
use super::project::Project;
use super::spec::METHOD;
use super::task::Task;
use super::tasks::changelog;
use crate::finding::{Claim, Finding, Report};
use crate::request::{Request, Trouble};

const MOST: usize = 20;

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let project = Project::read(request)?;
    let brief = Brief::of(request, &project);
    let passages = mentioned(&brief);
    let undocumented = undocumented(&brief);
    let mut report = Report { method: METHOD.to_string(), ..Report::default() };
    report.findings.extend(passages.iter().map(|(why, passage)| told(why, passage)));
    let files = distinct(&passages);
    report.claims.push(Claim {
        subject: brief.title.clone(),
        predicate: "documents that speak about it".to_string(),
        value: json!(files.len()),
        evidence: files.clone(),
        confidence: 0.8,
    });
    let entry = entry(&brief);
    if changelog(&brief).is_none() {
        report
            .open_questions
            .push("The project keeps no list of changes: where do its users read what is new?".to_string());
    }
    report.summary = format!(
        "{} in {} must be read again; {} near it say nothing of themselves.",
        count(passages.len(), "passage"),
        count(files.len(), "document"),
        count(undocumented.len(), "public function")
    );
    let document = document(&brief, &passages, &undocumented, &entry, &report);
    let mut result = json!(report);
    result["document"] = json!(document);
    Ok(result)
}

/// Passages that name near code, then those that speak about the title.
fn mentioned(brief: &Brief) -> Vec<(String, Passage)> {
    let functions = brief.items.iter().map(|item| brief.function(item).name.clone());
    let types = brief
        .near
        .core
        .iter()
        .flat_map(|near| brief.file(near.file).types.iter().map(|known| known.name.clone()));
    let names: Vec<String> =
        functions.chain(types).chain(brief.core_paths()).filter(|name| name.len() > 2).collect();
    let by_name = passages::naming(&names, brief.project)
        .into_iter()
        .map(|(name, p)| (format!("names {}", code(&name)), p));
    let mut found: Vec<(String, Passage)> = by_name.collect();
    for passage in &brief.near.says {
        if !found.iter().any(|(_, known)| known == passage) {
            found.push((format!("speaks about {}", brief.title), passage.clone()));
        }
    }
    found.truncate(MOST);
    found
}

fn told(why: &str, passage: &Passage) -> Finding {
    Finding {
        title: format!("`{}` {why}", passage.place()),
        detail: short(&passage.text, 300),
        relevance: if why.starts_with("names") { 0.9 } else { 0.7 },
        evidence: vec![passage.place()],
        kind: "document".to_string(),
        confidence: 0.8,
    }
}

fn distinct(passages: &[(String, Passage)]) -> Vec<String> {
    let mut files: Vec<String> = passages.iter().map(|(_, passage)| passage.path.clone()).collect();
    files.sort();
    files.dedup();
    files
}

/// Public functions near it without a word about themselves.
fn undocumented(brief: &Brief) -> Vec<String> {
    let bare = brief
        .items
        .iter()
        .filter(|item| brief.function(item).is_public && brief.function(item).doc.is_none());
    bare.map(|item| format!("{} (`{}`)", brief.called(item), brief.place(item))).collect()
}

/// What was done according to the steps before; what is only planned is marked so.
fn entry(brief: &Brief) -> Vec<String> {
    let tasks = Task::planned(&brief.earlier);
    let done: Vec<String> =
        brief.earlier.said.iter().flat_map(|said| fuzzy::texts(said.value.get("done"))).collect();
    let titles: Vec<String> =
        tasks.iter().filter(|task| done.contains(&task.id)).map(|task| task.title.clone()).collect();
    if titles.is_empty() {
        return vec![format!(
            "{}: TO BE WRITTEN when it is done; no step says that anything is.",
            capital(&brief.title)
        )];
    }
    titles.into_iter().map(|title| format!("{}: {title}", capital(&brief.title))).collect()
}

fn document(
    brief: &Brief,
    passages: &[(String, Passage)],
    undocumented: &[String],
    entry: &[String],
    report: &Report,
) -> String {
    let mut text = format!("# {}: documents\n\n{}\n", capital(&brief.title), report.summary);
    let row = |(why, passage): &(String, Passage)| {
        vec![code(&passage.place()), why.clone(), quoted(&passage.text, 120)]
    };
    let rows: Vec<Vec<String>> = passages.iter().map(row).collect();
    let none = "No document speaks about it or names a function near it.".to_string();
    text += &section(
        "Passages to read again",
        &if rows.is_empty() { none } else { table(&["where", "why", "it says"], &rows) },
    );
    text += &section("Functions that say nothing of themselves", &list(undocumented, "None near it."));
    let place = match changelog(brief) {
        Some(path) => {
            let newest = newest(brief, &path)
                .map(|(line, heading)| format!(", whose newest section is *{heading}* (`{path}:{line}`)"));
            format!("For `{path}`{}:", newest.unwrap_or_default())
        }
        None => "The project keeps no list of changes. If it did:".to_string(),
    };
    let lines: String = entry.iter().map(|line| format!("- {line}\n")).collect();
    text += &section("Entry for the list of changes", &format!("{place}\n\n```markdown\n{lines}```"));
    let asked = &report.open_questions;
    text += &section("Open questions", &if asked.is_empty() { String::new() } else { list(asked, "") });
    text += &section(
        "How this was made",
        "By Sage's offline agent, from the documents and the code. Nothing was changed, and no model was asked.",
    );
    text
}

fn newest(brief: &Brief, path: &str) -> Option<(usize, String)> {
    let document = brief.project.documents.iter().find(|document| document.path == path)?;
    let mut headings = document.text.lines().enumerate().filter(|(_, line)| line.starts_with("## "));
    headings.next().map(|(at, line)| (at + 1, line.trim_start_matches('#').trim().to_string()))
}
