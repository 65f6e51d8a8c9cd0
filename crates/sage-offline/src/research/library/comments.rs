//! What a project says in its own code: comments and docstrings that are prose, with what they stand above.

use super::prose::Piece;

/// Fewer words are a label, not a sentence.
const LEAST_WORDS: usize = 6;
/// The others of one file say little about a project.
const MAX_PER_FILE: usize = 60;
const MAX_TEXT: usize = 1_500;

/// How a language writes comments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `//` and `/* */`
    Slashes,
    /// `#` and, in Python, strings in three quotes.
    Hash,
}

fn kind(extension: &str) -> Option<Kind> {
    match extension {
        "rs" | "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "go" | "java" | "kt" | "c" | "h"
        | "cc" | "cpp" | "hpp" | "cs" | "swift" | "scala" | "php" | "dart" | "proto" => Some(Kind::Slashes),
        "py" | "pyi" | "rb" | "sh" | "ex" | "exs" => Some(Kind::Hash),
        _ => None,
    }
}

pub(crate) fn is_code(extension: &str) -> bool {
    kind(extension).is_some()
}

/// The comments of a file that are prose. The last heading is what the comment is about.
pub(crate) fn comments(text: &str, extension: &str) -> Vec<Piece> {
    let Some(kind) = kind(extension) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = Piece::default();
    let mut block: Option<&'static str> = None;
    // A docstring stands below what it is about.
    let mut above = "";
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let docstring = kind == Kind::Hash && (block.is_some() || !trimmed.starts_with('#'));
        let (said, goes_on) = said(trimmed, kind, block);
        let ends = docstring && said.is_some() && goes_on.is_none();
        block = goes_on;
        match said {
            Some(words) => add(&mut open, &mut fenced, words, at + 1),
            // Attributes may stand between a comment and what it is about.
            None if trimmed.starts_with("#[") || trimmed.starts_with('@') => {}
            None => {
                fenced = false;
                close(&mut found, &mut open, trimmed);
            }
        }
        if ends {
            close(&mut found, &mut open, above);
        } else if said.is_none() {
            above = trimmed;
        }
        if found.len() >= MAX_PER_FILE {
            return found;
        }
    }
    close(&mut found, &mut open, "");
    found
}

/// The words of a comment on this line, and the end of the block that goes on after it.
fn said<'a>(
    line: &'a str,
    kind: Kind,
    block: Option<&'static str>,
) -> (Option<&'a str>, Option<&'static str>) {
    if let Some(end) = block {
        return match line.find(end) {
            Some(at) => (Some(line[..at].trim_start_matches('*').trim()), None),
            None => (Some(line.trim_start_matches('*').trim()), block),
        };
    }
    match kind {
        Kind::Slashes => {
            if line.starts_with("//") {
                (Some(line.trim_start_matches(['/', '!']).trim()), None)
            } else if let Some(rest) = line.strip_prefix("/*") {
                let rest = rest.trim_start_matches(['*', '!']);
                opened(rest, "*/")
            } else {
                (None, None)
            }
        }
        Kind::Hash => {
            if line.starts_with('#') && !line.starts_with("#!") {
                return (Some(line.trim_start_matches('#').trim()), None);
            }
            let quotes = ["\"\"\"", "'''", "r\"\"\""].into_iter().find(|quotes| line.starts_with(quotes));
            match quotes {
                Some(quotes) => opened(&line[quotes.len()..], if quotes == "'''" { "'''" } else { "\"\"\"" }),
                None => (None, None),
            }
        }
    }
}

fn opened<'a>(rest: &'a str, end: &'static str) -> (Option<&'a str>, Option<&'static str>) {
    match rest.find(end) {
        Some(at) => (Some(rest[..at].trim()), None),
        None => (Some(rest.trim()), Some(end)),
    }
}

fn add(open: &mut Piece, fenced: &mut bool, words: &str, number: usize) {
    // Code that was put out of use, and lines that only draw.
    let code = words.ends_with([';', '{', '}']);
    if words.starts_with("```") {
        *fenced = !*fenced;
    } else if *fenced && open.code.len() < MAX_TEXT {
        open.code.push_str(words);
        open.code.push('\n');
    }
    if *fenced
        || words.starts_with("```")
        || code
        || open.text.len() > MAX_TEXT
        || !words.chars().any(char::is_alphanumeric)
    {
        return;
    }
    if open.text.is_empty() {
        open.line = number;
    } else {
        open.text.push(' ');
    }
    open.text.push_str(&words.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn close(found: &mut Vec<Piece>, open: &mut Piece, next: &str) {
    let mut piece = std::mem::take(open);
    let lower = piece.text.to_lowercase();
    let licence = ["copyright", "spdx-", "licensed under", "eslint-"].iter().any(|word| lower.contains(word));
    if piece.text.split_whitespace().count() < LEAST_WORDS || licence {
        return;
    }
    let about = next.trim_end_matches(['{', ':', ' ']);
    piece.headings.extend((!about.is_empty()).then(|| about.chars().take(70).collect()));
    found.push(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, extension: &str) -> Vec<String> {
        let tell = |piece: &Piece| format!("{} {}: {}", piece.line, piece.headings.join(" "), piece.text);
        comments(text, extension).iter().map(tell).collect()
    }

    // covers: R6
    #[test]
    fn comments_of_rust_javascript_and_python() {
        let rust = "//! Orders and   how they are paid for.\n//! ```text\n//!  a --> b\n//! ```\n\nuse x;\n\n/// Takes the money of an order,\n/// once only.\n\
                    #[must_use]\npub fn pay() {\n    // let a = 1;\n    // short one\n}\n";
        assert_eq!(
            told(rust, "rs"),
            [
                "1 : Orders and how they are paid for.",
                "8 pub fn pay(): Takes the money of an order, once only."
            ]
        );
        let script = "/**\n * Takes the money of an order once.\n */\nexport function pay() {}\n/* Copyright of somebody \
                      who wrote all of it */\n";
        assert_eq!(told(script, "ts"), ["2 export function pay() {}: Takes the money of an order once."]);
        let python =
            "#!/bin/python\ndef pay():\n    \"\"\"Takes the money of an order once.\"\"\"\n    x = 1\n";
        assert_eq!(told(python, "py"), ["3 def pay(): Takes the money of an order once."]);
        assert_eq!(told("# a b c d e f g", "csv"), Vec::<String>::new());
    }
}
