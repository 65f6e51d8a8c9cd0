//! Rules in prose: sentences of files for contributors and agents that tell them what to do.

use crate::finding::Finding;
use crate::research::library::excerpt::{cut, sentences};
use crate::research::library::{prose, rounded};
use crate::research::places::children;
use crate::research::rank::Query;
use crate::walk::Tree;

use super::text;

/// Files for agents say it most plainly; they are asked first.
const FOR_AGENTS: &[&str] = &[
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
    ".claude/CLAUDE.md",
];
/// How the name of a file for people begins.
const FOR_PEOPLE: &[&str] =
    &["contributing", "style", "coding", "code_style", "conventions", "guidelines", "development"];
/// Words that make a sentence a rule.
const DUTY: &[&str] = &[
    "must",
    "must not",
    "never",
    "always",
    "do not",
    "don't",
    "should",
    "should not",
    "shouldn't",
    "avoid",
    "prefer",
    "required",
    "only use",
    "at most",
    "at least",
    "cannot",
    "may not",
    "no longer",
    "make sure",
    "ensure",
];
/// Verbs that a rule begins with.
const ORDERS: &[&str] = &[
    "use", "run", "keep", "write", "add", "put", "follow", "name", "avoid", "prefer", "ensure", "do",
    "don't", "never", "always", "no", "return", "handle", "test", "document", "commit", "update", "check",
    "format", "import", "export", "place", "create", "remove", "wrap", "log", "throw", "read", "make",
    "include", "include", "only",
];
const MAX_PER_FILE: usize = 40;

pub(super) fn rules(tree: &Tree, query: &Query) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in FOR_AGENTS {
        found.extend(text(tree, path).map(|text| in_text(path, &text, 0.45, query)).unwrap_or_default());
    }
    for folder in [".cursor/rules", ".claude/rules"] {
        for path in children(&tree.root.join(folder)) {
            let Some(name) = path.strip_prefix(&tree.root).ok().and_then(|path| path.to_str()) else {
                continue;
            };
            found.extend(text(tree, name).map(|text| in_text(name, &text, 0.45, query)).unwrap_or_default());
        }
    }
    let hidden = [".github/CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md"].map(str::to_string);
    let near =
        tree.files.iter().filter(|file| file.path.matches('/').count() <= 2 && is_for_people(file.name()));
    for path in near.map(|file| file.path.clone()).chain(hidden) {
        found.extend(text(tree, &path).map(|text| in_text(&path, &text, 0.35, query)).unwrap_or_default());
    }
    found
}

fn is_for_people(name: &str) -> bool {
    let lower = name.to_lowercase();
    let document =
        [".md", ".rst", ".txt", ".adoc"].iter().any(|end| lower.ends_with(end)) || !lower.contains('.');
    document && FOR_PEOPLE.iter().any(|start| lower.starts_with(start))
}

fn in_text(path: &str, text: &str, base: f64, query: &Query) -> Vec<Finding> {
    let mut found = Vec::new();
    for piece in prose::points(text) {
        let mut rest = piece.line;
        for sentence in sentences(&piece.text) {
            let line = line_of(text, rest, sentence).unwrap_or(rest);
            rest = line;
            let sentence = sentence.trim();
            let below = piece.point && piece.headings.last().is_some_and(|heading| is_of_rules(heading));
            if found.len() == MAX_PER_FILE || !(is_rule(sentence) || (below && is_statement(sentence))) {
                continue;
            }
            let heads = piece.headings.join(" ");
            let share = query.share(&format!("{heads} {sentence}"));
            found.push(Finding {
                title: cut(sentence, 100),
                detail: match piece.headings.last() {
                    Some(heading) => format!("{heading}: {}", cut(sentence, 400)),
                    None => cut(sentence, 400),
                },
                relevance: rounded(base + (1.0 - base) * share),
                evidence: vec![format!("{path}:{line}")],
                kind: "standard".into(),
                confidence: 0.8,
            });
        }
    }
    found
}

/// The line at or after `from` that holds the first words of a sentence.
fn line_of(text: &str, from: usize, sentence: &str) -> Option<usize> {
    let start: Vec<&str> = sentence.split_whitespace().take(3).collect();
    let start = start.join(" ");
    let mut lines = text.lines().enumerate().skip(from - 1).take(40);
    lines.find(|(_, line)| prose::plain(line).contains(&start)).map(|(at, _)| at + 1)
}

/// Below such a heading every point is a rule.
fn is_of_rules(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    ["style", "rules", "convention", "guideline", "standards", "principles"]
        .iter()
        .any(|word| lower.contains(word))
}

fn is_statement(sentence: &str) -> bool {
    (4..=60).contains(&sentence.split_whitespace().count()) && !sentence.ends_with(['?', ':'])
}

fn is_rule(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let count = lower.split_whitespace().count();
    if !(3..=60).contains(&count) || sentence.ends_with('?') {
        return false;
    }
    let words: Vec<&str> = lower
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\''))
        .collect();
    let bounded = format!(" {} ", words.join(" "));
    let duty = DUTY.iter().any(|word| bounded.contains(&format!(" {word} ")));
    let order = ORDERS.contains(&words[0]) && !sentence.ends_with(':');
    duty || order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::research::tests::project;

    // covers: R6
    #[test]
    fn sentences_that_tell_what_to_do_with_their_lines() {
        let dir = project(&[
            (
                "CLAUDE.md",
                "# Rules\n\nThis is a shop. You must never\nlog card numbers. It sells books.\n\n- Use `Money`, not floats.\n- Prices are whole numbers of cents.\n\n## Jokes\n- Prices are fun for everybody.\n",
            ),
            ("docs/CONTRIBUTING.md", "Always run the tests before a commit.\n"),
            ("docs/notes.md", "You must not see this.\n"),
        ]);
        let found = rules(&Tree::read(dir.path()).unwrap(), &Query::new(&["card payments"]));
        let told: Vec<String> =
            found.iter().map(|f| format!("{} {} {}", f.evidence[0], f.relevance, f.detail)).collect();
        assert_eq!(
            told,
            [
                "CLAUDE.md:3 0.73 Rules: You must never log card numbers.",
                "CLAUDE.md:6 0.45 Rules: Use `Money`, not floats.",
                "CLAUDE.md:7 0.45 Rules: Prices are whole numbers of cents.",
                "docs/CONTRIBUTING.md:1 0.35 Always run the tests before a commit.",
            ]
        );
    }
}
