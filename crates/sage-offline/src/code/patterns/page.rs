//! The patterns as a page that a person keeps beside the editor.

use super::super::look::{Look, count, listed};
use super::super::near::Near;
use super::Pattern;
use super::structure::folders;

const SECTIONS: &[(&str, &str)] = &[
    ("naming", "Names"),
    ("typing", "Types"),
    ("handling", "Errors"),
    ("tests", "Tests"),
    ("structure", "Structure"),
    ("documentation", "Documentation"),
];

pub(super) fn page(look: &Look, patterns: &[Pattern], near: &[Near], method: &str) -> String {
    let mut page = String::from("# Patterns of this code\n\n");
    if look.survey.files.is_empty() {
        page.push_str("There is no source code here that could be read.\n");
        return page;
    }
    let lines = look.survey.lines();
    page.push_str(&format!("{}, {}.\n", listed(&look.survey.languages), count(lines, "line")));
    page.push_str(&rules(patterns));
    page.push_str(&near_section(look, near));
    for (kind, title) in SECTIONS {
        let own: Vec<&Pattern> = patterns.iter().filter(|pattern| pattern.kind == *kind).collect();
        if own.is_empty() {
            continue;
        }
        page.push_str(&format!(
            "\n## {title}\n\n| pattern | share | figures | look at |\n|---|---|---|---|\n"
        ));
        own.iter().for_each(|pattern| page.push_str(&row(pattern)));
        if *kind == "structure" {
            page.push_str(&folder_table(look));
        }
    }
    page.push_str(&exceptions(patterns));
    page.push_str(&format!("\n---\n{method}.\n"));
    page
}

/// What to do in new code, from what nearly everything does.
fn rules(patterns: &[Pattern]) -> String {
    let firm = patterns.iter().filter(|p| p.share >= 0.85 && p.places >= 5);
    let rules: Vec<String> = firm
        .filter(|pattern| {
            !matches!(
                pattern.subject.as_str(),
                "entry points" | "central modules" | "folders" | "modules" | "module size" | "documentation"
            )
        })
        .take(10)
        .map(|pattern| {
            let example = pattern.examples.first().map(|at| format!(", as in `{at}`")).unwrap_or_default();
            format!("- {}{example}\n", pattern.title)
        })
        .collect();
    if rules.is_empty() { String::new() } else { format!("\n## Follow these\n\n{}", rules.concat()) }
}

fn near_section(look: &Look, near: &[Near]) -> String {
    if near.is_empty() || look.title().is_empty() {
        return String::new();
    }
    let mut text =
        format!("\n## Code near \"{}\"\n\n| where | what | nearness |\n|---|---|---|\n", look.title());
    for place in near.iter().take(super::MAX_NEAR) {
        let doc = place.doc().map(|doc| format!(" — {doc}")).unwrap_or_default();
        text.push_str(&format!(
            "| `{}` | `{}`{} | {:.2} |\n",
            place.at(),
            cell(&place.signature()),
            cell(&doc),
            place.score
        ));
    }
    text
}

fn row(pattern: &Pattern) -> String {
    let share = format!("{}%", (pattern.share * 100.0).round());
    let places: Vec<String> = pattern.examples.iter().map(|at| format!("`{at}`")).collect();
    format!("| {} | {share} | {} | {} |\n", cell(&pattern.title), cell(&pattern.detail), places.join(" "))
}

fn folder_table(look: &Look) -> String {
    let folders = folders(look);
    if folders.len() < 2 {
        return String::new();
    }
    let mut text = String::from("\n| folder | files | lines |\n|---|---|---|\n");
    for (folder, files, lines) in folders.iter().take(16) {
        let folder = if folder.is_empty() { "." } else { folder };
        text.push_str(&format!("| `{folder}` | {files} | {lines} |\n"));
    }
    text
}

fn exceptions(patterns: &[Pattern]) -> String {
    let with: Vec<&Pattern> = patterns.iter().filter(|pattern| !pattern.exceptions.is_empty()).collect();
    if with.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Exceptions\n\n");
    for pattern in with {
        let few: Vec<&str> = pattern.exceptions.iter().take(5).map(String::as_str).collect();
        let more = pattern.exceptions.len().saturating_sub(few.len());
        let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
        text.push_str(&format!("- {}: {}{rest}\n", pattern.title, few.join(", ")));
    }
    text
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
