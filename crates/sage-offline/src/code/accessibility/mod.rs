//! `audit.accessibility`: markup that a screen reader or a keyboard cannot use.
//!
//! Pages, templates and JSX are read as tags; what a component makes of its own tags is not known.

mod rules;
mod tags;

use serde_json::{Value, json};

use super::issue::{Issue, by_severity};
use super::look::{Look, count};
use crate::finding::Report;
use crate::request::{Request, Trouble};
use tags::{Event, events};

const PAGES: &[&str] = &[
    "html", "htm", "vue", "svelte", "hbs", "ejs", "njk", "jinja", "jinja2", "j2", "erb", "astro", "mustache",
    "twig",
];

pub(super) fn audit(request: &Request) -> Result<Value, Trouble> {
    let look = Look::new(request)?;
    let mut issues: Vec<Issue> = Vec::new();
    let mut files = 0;
    let mut elements = 0;
    for file in look.tree.files.iter().filter(|file| PAGES.contains(&file.extension())) {
        let Some(text) = look.tree.text(file) else { continue };
        let found = events(&text, 1);
        elements += opened(&found);
        files += usize::from(opened(&found) > 0);
        let whole = matches!(file.extension(), "html" | "htm");
        issues.extend(rules::issues(&file.path, &found, whole));
    }
    for file in look.products().filter(|file| !file.markup.is_empty()) {
        let found: Vec<Event> =
            file.markup.iter().flat_map(|m| events(file.slice(m.span), m.line as usize)).collect();
        elements += opened(&found);
        files += 1;
        issues.extend(rules::issues(&file.path, &found, false));
    }
    let summary = match (files, issues.len()) {
        (0, _) => {
            "There is no user interface in markup here: no HTML, no templates, no JSX. Nothing to audit."
                .to_string()
        }
        (_, 0) => format!("Nothing was found in {} of {}.", count(elements, "element"), count(files, "file")),
        (_, all) => format!(
            "{} in {} of {}: {}.",
            count(all, "problem"),
            count(elements, "element"),
            count(files, "file"),
            by_severity(&issues)
        ),
    };
    let mut report = Report { summary, ..Report::default() };
    report.findings = issues.iter().map(|issue| issue.finding(&look, "accessibility")).collect();
    report.claims = issues.iter().take(60).map(|issue| issue.claim(&look)).collect();
    if files > 0 {
        report
            .open_questions
            .push("Colours, focus order and what scripts change can only be seen in a browser.".into());
    }
    let mut report = look.finish(report, "tags of pages, templates and JSX checked against rules");
    report.open_questions.retain(|question| files > 0 || !question.starts_with("No source file"));
    Ok(json!(report))
}

fn opened(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Open(_))).count()
}
