//! What stands directly before an item: its documentation and its attributes.

use tree_sitter::Node;

/// Comments and attributes on lines that follow each other.
#[derive(Default)]
pub(super) struct Lead<'t> {
    /// The last line of them, from 0.
    last: Option<usize>,
    comment: Option<&'t str>,
    attributes: Vec<&'t str>,
}

impl<'t> Lead<'t> {
    pub fn extend(&mut self, node: Node<'t>, text: &'t str, comment: bool) {
        let content = text.get(node.byte_range()).unwrap_or_default();
        let (start, end) = (node.start_position().row, last_row(node));
        let before = text.get(..node.start_byte()).unwrap_or_default();
        let trailing = before.rsplit('\n').next().is_some_and(|line| !line.trim().is_empty());
        if self.last.is_none_or(|last| start > last + 1) || (comment && trailing) {
            *self = Lead::default();
        }
        if comment && trailing {
            return;
        }
        self.last = Some(end);
        match comment {
            true if self.comment.is_none() => self.comment = Some(content),
            true => {}
            false => self.attributes.push(content),
        }
    }

    /// What belongs to an item that starts on `row`, from 0.
    pub fn take(&mut self, row: usize) -> Lead<'t> {
        let taken = std::mem::take(self);
        match taken.last {
            Some(last) if row <= last + 1 => taken,
            _ => Lead::default(),
        }
    }

    pub fn attributes(&self) -> &[&'t str] {
        &self.attributes
    }

    /// The first line of the documentation, if the comment is one by the language's rules.
    pub fn doc(&self, any_comment: bool) -> Option<String> {
        let comment = self.comment?;
        let is_doc = any_comment || comment.starts_with("///") || comment.starts_with("/**");
        is_doc.then(|| first_sentence(comment)).flatten()
    }
}

/// A line comment with documentation ends on the next line, before its first column.
fn last_row(node: Node) -> usize {
    let end = node.end_position();
    if end.column == 0 { end.row.saturating_sub(1) } else { end.row }
}

/// The first line with words.
pub(super) fn first_sentence(comment: &str) -> Option<String> {
    let marks = ['/', '*', '!', '#', '"', '\'', ' ', '\t', '\r'];
    let line = comment.lines().map(|line| line.trim_matches(marks)).find(|line| !line.is_empty())?;
    Some(super::super::facts::cut(line, 140))
}
