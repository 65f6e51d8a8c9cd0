//! What speaks of the title word for word: a comment in the code, or a document that names code.
//!
//! ```text
//!   // TODO: due dates          ---> Card      "its TODO in line 11 speaks of it"
//!   export interface Card {
//!
//!   ... the currency in `Amount` ---> Amount   "named in `docs/decisions.md:7`"
//! ```

use super::near::share;
use super::passages::{Passage, prose, sentences};
use super::project::{Project, function_at};
use super::uses::is_everyday;
use crate::code::{FileFacts, Note};
use crate::words::terms;

const OF_A_MARK: f64 = 0.9;
const OF_A_COMMENT: f64 = 0.55;
const OF_A_DOCUMENT: f64 = 0.5;
/// What comments in more files say is how the project talks, not about the title.
const MOST_FILES: usize = 4;
/// A sentence about the title has this share of its weight.
const LEAST_SHARE: f64 = 0.45;
/// A sentence that names more is a list.
const MOST_NAMES: usize = 4;
/// So many things of one name cannot be told apart.
const MOST_NAMESAKES: usize = 2;

/// A function or a type, by its index in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    Function(usize),
    Type(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mention {
    pub file: usize,
    /// What it is about; the whole file where nothing holds it.
    pub thing: Option<Thing>,
    pub score: f64,
    pub why: String,
    /// The line and the words of a comment.
    pub said: Option<(usize, String)>,
}

/// All terms, or most of several.
fn speaks(wanted: &[String], text: &str, mark: bool) -> Option<f64> {
    let said = terms(text);
    let known = wanted.iter().filter(|term| said.contains(term)).count();
    let all = known == wanted.len() && (known > 1 || mark && known == 1);
    let most = known > 1 && known * 3 >= wanted.len() * 2;
    (all || most).then(|| known as f64 / wanted.len() as f64)
}

/// Marks and comments that speak of the title, with what they stand in or above.
pub fn in_comments(wanted: &[String], project: &Project) -> Vec<Mention> {
    let mut found: Vec<(bool, Mention)> = Vec::new();
    for (index, file) in project.products() {
        for note in file.notes.iter().filter(|note| !note.in_test) {
            for piece in pieces(file, note) {
                let Some(share) = piece.share(wanted) else { continue };
                let thing = holder(file, piece.line, note.last);
                let its = if thing.is_some() { "its" } else { "a" };
                let why =
                    format!("{its} {} in line {} speaks of it", piece.mark.unwrap_or("comment"), piece.line);
                let score = share * if piece.mark.is_some() { OF_A_MARK } else { OF_A_COMMENT };
                let said = Some((piece.line, piece.text));
                found.push((piece.mark.is_some(), Mention { file: index, thing, score, why, said }));
            }
        }
        found.extend(docstrings(wanted, index, file).into_iter().map(|mention| (false, mention)));
    }
    let mut files: Vec<usize> =
        found.iter().filter(|(mark, _)| !mark).map(|(_, mention)| mention.file).collect();
    files.dedup();
    found.retain(|(mark, _)| *mark || files.len() <= MOST_FILES);
    found.into_iter().map(|(_, mention)| mention).collect()
}

/// What stands inside of a function or class as its documentation.
fn docstrings(wanted: &[String], index: usize, file: &FileFacts) -> Vec<Mention> {
    let functions = file.functions.iter().enumerate().filter(|(_, function)| !function.in_test);
    let types = file.types.iter().enumerate().filter(|(_, known)| !known.in_test);
    let docs = functions
        .map(|(at, function)| (Thing::Function(at), function.line, &function.doc))
        .chain(types.map(|(at, known)| (Thing::Type(at), known.line, &known.doc)));
    let python = docs.filter(|_| file.language == "Python");
    let mention = |(thing, line, doc): (Thing, usize, &Option<String>)| {
        let text = doc.as_ref()?;
        let share = speaks(wanted, text, false)?;
        Some(Mention {
            file: index,
            thing: Some(thing),
            score: share * OF_A_COMMENT,
            why: "its documentation speaks of it".to_string(),
            said: Some((line, text.clone())),
        })
    };
    python.filter_map(mention).collect()
}

/// A part of a comment: up to the first mark, and from each mark to the next.
struct Piece {
    line: usize,
    mark: Option<&'static str>,
    text: String,
}

impl Piece {
    /// A mark is about one thing; of other comments, one sentence has to say it.
    fn share(&self, wanted: &[String]) -> Option<f64> {
        match self.mark {
            Some(_) => speaks(wanted, &self.text, true),
            None => {
                sentences(&self.text).iter().filter_map(|s| speaks(wanted, s, false)).max_by(f64::total_cmp)
            }
        }
    }
}

fn pieces(file: &FileFacts, note: &Note) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    for (at, line) in file.slice(note.span).lines().enumerate() {
        let number = note.line + at;
        let words =
            line.trim().trim_start_matches(['/', '*', '!', '#', ' ']).trim_end_matches(['*', '/', ' ']);
        let mark = file.todos.iter().find(|todo| todo.line == number).map(|todo| todo.mark);
        match found.last_mut().filter(|_| mark.is_none()) {
            Some(open) => open.text = format!("{} {words}", open.text),
            None => {
                let after = mark.and_then(|mark| words.split_once(mark)).map_or(words, |(_, rest)| rest);
                let text = after.trim_start_matches([':', ' ', '-']).to_string();
                found.push(Piece { line: number, mark, text });
            }
        }
    }
    found
}

/// What follows a comment directly, else the innermost thing around it.
fn holder(file: &FileFacts, line: usize, last: usize) -> Option<Thing> {
    let functions = || file.functions.iter().enumerate().filter(|(_, function)| !function.in_test);
    let types = || file.types.iter().enumerate().filter(|(_, known)| !known.in_test);
    let below = code_below(file, last);
    let function = functions().find(|(_, f)| Some(f.line) == below).map(|(at, _)| Thing::Function(at));
    let known = types().find(|(_, t)| Some(t.line) == below).map(|(at, _)| Thing::Type(at));
    let inside = || {
        let inner = function_at(file, line)?;
        functions().find(|(_, f)| std::ptr::eq(*f, inner)).map(|(at, _)| Thing::Function(at))
    };
    let around = || {
        let holds = types().filter(|(_, t)| t.line <= line && line < t.line + t.lines);
        holds.min_by_key(|(_, t)| t.lines).map(|(at, _)| Thing::Type(at))
    };
    known.or(function).or_else(inside).or_else(around)
}

/// The first line of code after a comment, over attributes, not over an empty line.
fn code_below(file: &FileFacts, last: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, line) in file.text.lines().enumerate().skip(last) {
        let text = line.trim();
        let attribute = text.starts_with("#[") || text.starts_with('@');
        if text.is_empty() || (depth == 0 && !attribute) {
            return (!text.is_empty()).then_some(at + 1);
        }
        let count = |marks: [char; 2]| text.matches(marks).count() as i32;
        depth += count(['(', '[']) - count([')', ']']);
    }
    None
}

/// Functions, types and files that a sentence about the title names as code.
pub fn in_documents(wanted: &[(String, f64)], project: &Project, says: &[Passage]) -> Vec<Mention> {
    let mut found = Vec::new();
    for passage in says {
        for sentence in sentences(&passage.text) {
            let spans: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
            let itself = terms(&prose(sentence));
            let about = wanted.iter().any(|(term, _)| itself.contains(term))
                && share(wanted, &format!("{} {}", prose(sentence), passage.heading)) >= LEAST_SHARE;
            if !about || spans.len() > MOST_NAMES {
                continue;
            }
            let why = format!("named in `{}`", passage.place());
            for (file, thing) in spans.iter().flat_map(|span| named(project, span)) {
                found.push(Mention { file, thing, score: OF_A_DOCUMENT, why: why.clone(), said: None });
            }
        }
    }
    found
}

/// `Amount`, `charge()`, `Entry::new`, `src/money.rs`
fn named(project: &Project, span: &str) -> Vec<(usize, Option<Thing>)> {
    if let Some((file, _)) = project.source(span).filter(|(_, file)| !file.is_test) {
        return vec![(file, None)];
    }
    let span = span.split('(').next().unwrap_or(span);
    let mut parts = span.rsplit([':', '.']).filter(|part| !part.is_empty());
    let (name, owner) = (parts.next().unwrap_or(span), parts.next());
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name || (owner.is_none() && is_everyday(name)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, file) in project.products() {
        let types =
            file.types.iter().enumerate().filter(|(_, t)| !t.in_test && t.name == name && owner.is_none());
        found.extend(types.map(|(at, _)| (index, Some(Thing::Type(at)))));
        let functions = file.functions.iter().enumerate().filter(|(_, f)| {
            !f.in_test && f.name == name && owner.is_none_or(|owner| f.owner.as_deref() == Some(owner))
        });
        found.extend(functions.map(|(at, _)| (index, Some(Thing::Function(at)))));
    }
    if found.len() > MOST_NAMESAKES { Vec::new() } else { found }
}
