//! How the project does things, as a specification tells it: what people wrote, what the code shows, what tools check.

use super::brief::Brief;
use super::markdown::{code, list, places, short};
use super::place;
use crate::finding::Finding;

/// In all, commands included.
const MOST: usize = 8;
const MOST_RULES: usize = 4;

pub fn told(brief: &Brief) -> String {
    let mut all: Vec<&Finding> = brief.earlier.findings().into_iter().map(|(_, found)| found).collect();
    all.retain(|found| found.is_convention() && is_spoken_here(brief, &found.title));
    all.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let (set, all): (Vec<&Finding>, Vec<&Finding>) =
        all.into_iter().partition(|found| found.kind == "setting");
    // What somebody wrote down comes before what can be counted.
    let (rules, counted): (Vec<&Finding>, Vec<&Finding>) =
        all.into_iter().partition(|found| found.kind == "standard");
    let (settings, commands) = (settings(&set), commands(brief));
    let free = MOST.saturating_sub(commands.len() + usize::from(settings.is_some()));
    // One line is left for what the code shows, where it shows something.
    let most = MOST_RULES.min(free.saturating_sub(usize::from(!counted.is_empty())));
    let mut items: Vec<String> = rules.into_iter().take(most).map(line).collect();
    items.extend(counted.into_iter().map(line).take(free.saturating_sub(items.len())));
    items.extend(settings);
    items.extend(commands);
    list(
        &items,
        "No report about patterns or standards came with this step, and no build or test command is known.",
    )
}

/// `... (Python)` is no convention where the files near the feature are in Rust.
fn is_spoken_here(brief: &Brief, title: &str) -> bool {
    let Some((_, language)) = title.strip_suffix(')').and_then(|title| title.rsplit_once('(')) else {
        return true;
    };
    let spoken =
        |language: &str| brief.near.core.iter().any(|near| brief.file(near.file).language == language);
    let known = brief.project.sources.iter().any(|file| file.language == language);
    brief.near.core.is_empty() || !known || spoken(language)
}

fn line(found: &Finding) -> String {
    let title = found.title.trim_end_matches('.');
    // A rule in prose is its own detail, whole, after the heading it stands under.
    let whole = found.detail.find(title).map(|at| found.detail[at..].trim_end_matches('.'));
    let detail = match whole.is_some() || found.detail.is_empty() {
        true => String::new(),
        false => format!(" {}", short(&found.detail, 200)),
    };
    let at = match found.evidence.is_empty() {
        true => String::new(),
        false => format!("; {}", places(&found.evidence, 2)),
    };
    format!("**{}.**{detail} (confidence {:.2}{at})", short(whole.unwrap_or(title), 200), found.confidence)
}

/// `rustfmt, 4 settings: rustfmt.toml`: what tools check needs nobody to remember it.
fn settings(set: &[&Finding]) -> Option<String> {
    let mut tools: Vec<(String, String, usize)> = Vec::new();
    for found in set {
        let tool = found.title.split([':', ' ']).next().unwrap_or_default().to_string();
        let path = found.evidence.first().map_or("", |at| place::split(at).0).to_string();
        match tools.iter_mut().find(|(known, at, _)| *known == tool && *at == path) {
            Some((_, _, number)) => *number += 1,
            None => tools.push((tool, path, 1)),
        }
    }
    let told = |(tool, path, number): &(String, String, usize)| {
        let settings = if *number == 1 { "setting" } else { "settings" };
        format!("{tool}, {number} {settings}: {}", code(path))
    };
    let told: Vec<String> = tools.iter().map(told).collect();
    (!told.is_empty()).then(|| format!("Checked by tools: {}", told.join("; ")))
}

fn commands(brief: &Brief) -> Vec<String> {
    let commands = &brief.project.commands;
    let mut items = Vec::new();
    for (what, known) in [("Tests", &commands.test), ("Checks", &commands.lint), ("Build", &commands.build)] {
        let lines: Vec<String> =
            known.iter().take(3).map(|c| format!("{} (`{}`)", code(&c.shell()), c.evidence)).collect();
        if !lines.is_empty() {
            items.push(format!("{what}: {}", lines.join(", ")));
        }
    }
    items
}
