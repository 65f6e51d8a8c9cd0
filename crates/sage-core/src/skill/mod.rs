//! Skills in the Agent Skills format: a folder `<name>/SKILL.md`, front matter and instructions.
//!
//! Here is what needs no disk: reading a `SKILL.md` (`read`), how near a skill is to what is asked
//! (`similarity`), and what must not be in one (`scan`). Where skills lie and who approved them is the
//! engine's affair.

mod frontmatter;
pub mod scan;
mod similarity;
mod terms;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics, printable};
use crate::source::{Data, Node};
use crate::template::Span;

pub use frontmatter::split;
pub use similarity::{BY_ITSELF, SHOWN, similarity};

/// The file that makes a folder a skill.
pub const FILE: &str = "SKILL.md";
pub const MAX_NAME: usize = 64;
pub const MAX_DESCRIPTION: usize = 1_024;
/// More is a book, and nobody would read it before approving it.
pub const MAX_BYTES: usize = 1 << 20;

/// What a `SKILL.md` says. Fields of other tools are kept by name and mean nothing here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub license: Option<String>,
    /// From `metadata.tags`, or `tags` as some tools write it.
    pub tags: Vec<String>,
    pub allowed_tools: Vec<String>,
    pub metadata: Map<String, Value>,
    /// The instructions: everything after the front matter.
    pub body: String,
}

/// Small letters, digits and `-`, 1 to 64 of them, no `-` at either end.
pub fn is_name(text: &str) -> bool {
    let letters = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (1..=MAX_NAME).contains(&text.len()) && letters && !text.starts_with('-') && !text.ends_with('-')
}

/// Reads a `SKILL.md` that lies in `folder`. All problems at once; with an error there is no skill.
pub fn read(text: &str, folder: &str) -> (Option<Skill>, Vec<Diagnostic>) {
    let mut problems = Diagnostics::default();
    let skill = read_into(text, folder, &mut problems);
    let skill = skill.filter(|_| !problems.has_errors());
    (skill, problems.into_sorted())
}

fn read_into(text: &str, folder: &str, problems: &mut Diagnostics) -> Option<Skill> {
    if text.len() > MAX_BYTES {
        let message = format!("a `{FILE}` of {} bytes is more than {} KiB", text.len(), MAX_BYTES >> 10);
        problems.push(Diagnostic::error("", Span::default(), message));
        return None;
    }
    let Some((front, body)) = split(text) else {
        let problem = Diagnostic::error("", first_line(text), "no front matter between two lines of `---`");
        problems.push(problem.hint("begin with ---, name: <folder>, description: <text>, ---"));
        return None;
    };
    let front = frontmatter::read(front, text, problems)?;
    let metadata = match front.get("metadata").map(|node| &node.data) {
        Some(Data::Map(_)) => front.get("metadata").map(Node::to_json),
        _ => None,
    };
    let metadata = metadata.and_then(|value| value.as_object().cloned()).unwrap_or_default();
    let tags = front.get("tags").or_else(|| front.get("metadata")?.get("tags"));
    Some(Skill {
        name: name(&front, folder, problems).unwrap_or_default(),
        description: description(&front, problems).unwrap_or_default(),
        license: front.get("license").and_then(Node::as_str).map(str::to_string),
        tags: tags.map(words).unwrap_or_default(),
        allowed_tools: front.get("allowed-tools").map(words).unwrap_or_default(),
        metadata,
        body: body.to_string(),
    })
}

fn first_line(text: &str) -> Span {
    Span { start: 0, end: text.lines().next().map_or(0, |line| line.len() as u32) }
}

/// A text field that must be there.
fn required<'n>(front: &'n Node<'_>, field: &str, problems: &mut Diagnostics) -> Option<(&'n str, Span)> {
    let Some(node) = front.get(field) else {
        problems.push(Diagnostic::error(field, front.span, format!("`{field}` is missing")));
        return None;
    };
    let text = node.as_str();
    if text.is_none() {
        let message = format!("`{field}` must be text, not {}", node.kind());
        problems.push(Diagnostic::error(field, node.span, message).hint("put it between quotes"));
    }
    text.map(|text| (text, node.span))
}

fn name(front: &Node<'_>, folder: &str, problems: &mut Diagnostics) -> Option<String> {
    let (name, span) = required(front, "name", problems)?;
    if !is_name(name) {
        let message = format!("`{}` cannot be a skill's name", printable(name));
        let hint = "1 to 64 small letters a-z, digits and -, no - at its ends";
        problems.push(Diagnostic::error("name", span, message).hint(hint));
    } else if name != folder {
        let message = format!("the name `{name}` is not that of its folder, `{}`", printable(folder));
        problems.push(Diagnostic::error("name", span, message).hint("rename one of the two"));
    }
    Some(name.to_string())
}

fn description(front: &Node<'_>, problems: &mut Diagnostics) -> Option<String> {
    let (text, span) = required(front, "description", problems)?;
    let length = text.trim().chars().count();
    if length == 0 {
        let hint = "say what it does and when to use it";
        problems.push(Diagnostic::error("description", span, "the description is empty").hint(hint));
    } else if length > MAX_DESCRIPTION {
        let message = format!("the description has {length} characters, more than {MAX_DESCRIPTION}");
        let hint = "what does not fit belongs into the text below the front matter";
        problems.push(Diagnostic::error("description", span, message).hint(hint));
    }
    Some(text.trim().to_string())
}

/// A list of texts, or one text with commas or spaces: tools write both.
fn words(node: &Node<'_>) -> Vec<String> {
    match &node.data {
        Data::Seq(items) => items.iter().filter_map(Node::as_str).map(str::to_string).collect(),
        Data::Str(text) => {
            let separator = if text.contains(',') { "," } else { " " };
            let parts = text.split(separator).map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_string).collect()
        }
        _ => Vec::new(),
    }
}
