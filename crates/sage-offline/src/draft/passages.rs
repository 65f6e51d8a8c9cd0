//! What the project's documents say about a feature, sentence by sentence, with the line.

use super::near::{Near, share};
use super::project::{Document, Project};
use crate::words::terms;

const MOST: usize = 6;
/// Of one heading, so that a long section does not hide the others.
const MOST_OF_A_HEADING: usize = 2;
/// This share of the title's weight must be in a passage or its heading, and this share of the best one.
const LEAST: f64 = 0.3;
const LEAST_SHARE: f64 = 0.6;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passage {
    pub path: String,
    pub line: usize,
    /// The nearest heading above it.
    pub heading: String,
    pub text: String,
}

impl Passage {
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    /// The sentence of it that says the most about the title.
    pub fn nearest(&self, near: &Near) -> String {
        let weight = |sentence: &&str| {
            let said = terms(&prose(sentence));
            near.wanted.iter().filter(|(term, _)| said.contains(term)).map(|(_, weight)| weight).sum::<f64>()
        };
        let all = sentences(&self.text);
        let best = all.iter().map(weight).fold(0.0, f64::max);
        match all.iter().position(|sentence| weight(sentence) >= best) {
            Some(at) if at > 0 && best > 0.0 => format!("... {}", all[at]),
            // A short beginning needs what follows it.
            _ => self.text.clone(),
        }
    }

    /// A sentence about the title in the words of promises: how something is, must be or can never be.
    pub fn promise(&self, near: &Near) -> Option<String> {
        let words =
            ["can", "cannot", "must", "never", "always", "only", "will", "shall", "guarantees", "every"];
        let promises = |sentence: &&str| {
            let said: Vec<&str> = sentence.split(|c: char| !c.is_alphanumeric()).collect();
            let not_yet = sentence.to_lowercase().contains("not yet") || sentence.ends_with(':');
            let table = sentence.contains(" | ");
            !not_yet && !table && said.iter().any(|word| words.contains(&word.to_lowercase().as_str()))
        };
        let about =
            |sentence: &&str| terms(&prose(sentence)).iter().any(|t| near.wanted.iter().any(|(w, _)| w == t));
        sentences(&self.text).into_iter().filter(promises).find(about).map(str::to_string)
    }
}

/// Cut after `. ` before a capital letter.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(". ") {
        if text[at + 2..].starts_with(|c: char| c.is_uppercase() || c == '`' || c == '*') {
            found.push(text[start..=at].trim());
            start = at + 2;
        }
    }
    found.push(text[start..].trim());
    found
}

/// Passages that speak about the title, by its terms with their weights; the most of it first.
pub fn about(wanted: &[(String, f64)], project: &Project) -> Vec<Passage> {
    let mut found: Vec<(f64, Passage)> = Vec::new();
    for passage in project.documents.iter().flat_map(passages) {
        let said = prose(&passage.text);
        let share = share(wanted, &format!("{said} {}", passage.heading));
        let itself = terms(&said).iter().any(|term| wanted.iter().any(|(known, _)| known == term));
        if share >= LEAST {
            // A heading alone says less.
            found.push((if itself { share } else { share * 0.7 }, passage));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = found.first().map_or(0.0, |(share, _)| *share);
    let mut kept: Vec<Passage> = Vec::new();
    for (_, passage) in found.into_iter().filter(|(share, _)| *share >= LEAST && *share >= best * LEAST_SHARE)
    {
        let alike = kept
            .iter()
            .filter(|known| known.path == passage.path && known.heading == passage.heading)
            .count();
        if kept.len() < MOST && alike < MOST_OF_A_HEADING {
            kept.push(passage);
        }
    }
    kept
}

/// Without paths: `run/mod.rs` does not speak about modes.
pub fn prose(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains('/') && !word.contains("::"));
    words.collect::<Vec<_>>().join(" ")
}

/// Passages that name one of `names` as code: `charge`, `shop/payments.py`.
pub fn naming(names: &[String], project: &Project) -> Vec<(String, Passage)> {
    let mut found = Vec::new();
    for passage in project.documents.iter().flat_map(passages) {
        let spans: Vec<&str> = passage.text.split('`').skip(1).step_by(2).collect();
        let is_it = |span: &str, name: &str| {
            span == name || span.trim_end_matches("()") == name || span.starts_with(&format!("{name}("))
        };
        if let Some(name) = names.iter().find(|name| spans.iter().any(|span| is_it(span, name))) {
            found.push((name.clone(), passage));
        }
    }
    found
}

/// Paragraphs and items of a document; code blocks are not prose.
pub fn passages(document: &Document) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let (mut heading, mut fenced, mut open) = (String::new(), false, false);
    for (at, line) in document.text.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            fenced = !fenced;
            open = false;
            continue;
        }
        let is_heading = text.starts_with('#');
        if fenced || text.is_empty() || is_heading || text.starts_with("|--") || text.starts_with("<!--") {
            open = false;
            if is_heading && !fenced {
                heading = text.trim_start_matches('#').trim().to_string();
            }
            continue;
        }
        let item = ["- ", "* ", "+ ", "| ", "> "].iter().find_map(|mark| text.strip_prefix(mark));
        let numbered =
            text.split_once(". ").filter(|(number, _)| number.parse::<u32>().is_ok()).map(|(_, rest)| rest);
        let begins = item.or(numbered);
        match found.last_mut().filter(|_| open && begins.is_none()) {
            Some(before) => before.text = format!("{} {text}", before.text),
            None => {
                let text = begins.unwrap_or(text).trim_end_matches('|').trim().to_string();
                found.push(Passage {
                    path: document.path.clone(),
                    line: at + 1,
                    heading: heading.clone(),
                    text,
                });
                open = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn items_and_paragraphs_keep_their_lines() {
        let text = "# Shop\n\nPay by\ncard.\n\n- one\n  more\n- two\n\n```\ncode\n```\n1. three\n";
        let all = passages(&Document { path: "a.md".into(), text: text.into() });
        let told: Vec<String> = all.iter().map(|p| format!("{} {} {}", p.line, p.heading, p.text)).collect();
        assert_eq!(told, ["3 Shop Pay by card.", "6 Shop one more", "8 Shop two", "13 Shop three"]);
    }
}
