//! Semantic validation: does the template make sense as a whole? All errors at once, nothing is run.
//!
//! Every check is linear in the template; what would not be (nearest names, ancestors of a step) has a
//! budget. Cycles are found by Kahn's algorithm over steps and phase gates together, so `needs` and
//! `dependencies` count alike.

mod ancestry;
mod cache;
mod expressions;
mod limits;
mod names;
mod phases;
mod synthesis;
mod unchecked;
mod workflows;
mod worktrees;

#[cfg(test)]
mod tests;

use crate::diagnostic::{Diagnostic, Diagnostics, Shown};
use crate::read::{Library, read_into};
use crate::source::{Data, Format, Node, SourceText, parse_into};
use crate::template::{Source, Span, Template};
use ancestry::Ancestry;
use names::Names;

pub use phases::CYCLE;
pub use workflows::{Catalogue, NoTemplates, workflow_calls};

/// A template that may be run, or the reasons why not. Warnings come with either.
#[derive(Debug)]
pub struct Loaded {
    /// `None` if there is any error.
    pub template: Option<Template>,
    pub diagnostics: Vec<Diagnostic>,
    /// What is wrong with code that it names, in files of its own.
    pub shown: Vec<Shown>,
}

impl Loaded {
    /// The diagnostics as people and programs read them; `text` is what was loaded.
    pub fn show(&self, file: &str, text: &str) -> Vec<Shown> {
        let source = SourceText::new(file, text);
        let own = self.diagnostics.iter().map(|diagnostic| source.show(diagnostic));
        self.shown.iter().cloned().chain(own).collect()
    }
}

/// From text to a checked template: parse, read, check.
pub fn load(text: &str, format: Format, library: &Library, catalogue: &dyn Catalogue) -> Loaded {
    let mut problems = Diagnostics::of_new_text();
    let template = parse_into(text, format, &mut problems).and_then(|node| {
        let template = read_into(&node, library, &mut problems)?;
        check_into(&template, &Document { text, root: Some(&node) }, catalogue, &mut problems);
        Some(template)
    });
    let template = template.filter(|_| !problems.has_errors());
    Loaded { template, diagnostics: problems.into_sorted(), shown: Vec::new() }
}

/// Checks a template that was read before. `text` is its source, for exact positions.
pub fn check(template: &Template, text: &str, catalogue: &dyn Catalogue) -> Vec<Diagnostic> {
    let mut problems = Diagnostics::default();
    check_into(template, &Document { text, root: None }, catalogue, &mut problems);
    problems.into_sorted()
}

fn check_into(
    template: &Template,
    document: &Document<'_, '_>,
    catalogue: &dyn Catalogue,
    problems: &mut Diagnostics,
) {
    let names = Names::new(template, problems);
    phases::check(&names, document, problems);
    limits::check(template, document, problems);
    cache::check(template, document, problems);
    let ancestry = (!phases::find_cycle(&names, problems)).then(|| Ancestry::new(&names));
    if let Some(ancestry) = &ancestry {
        phases::check_repeats(&names, ancestry, problems);
    }
    expressions::check(&names, ancestry.as_ref(), document, problems);
    synthesis::check(&names, ancestry.as_ref(), document, problems);
    worktrees::check(&names, ancestry.as_ref(), document, problems);
    unchecked::check(&names, ancestry.as_ref(), problems);
    workflows::check(template, catalogue, problems);
}

/// The text behind a template, to point at exact places in it.
struct Document<'t, 'n> {
    text: &'t str,
    root: Option<&'n Node<'t>>,
}

impl Document<'_, '_> {
    /// A range of an expression's text as bytes of the file; the whole expression if it was written with
    /// escapes or folded, so that the two texts differ.
    fn part(&self, source: &Source, range: Option<std::ops::Range<usize>>) -> Span {
        let written = self.text.get(source.span.start as usize..source.span.end as usize).unwrap_or_default();
        let bare = written.strip_prefix(['"', '\'']).unwrap_or(written);
        match range {
            Some(range) if bare.starts_with(source.text.as_str()) => {
                let start = source.span.start + (written.len() - bare.len() + range.start) as u32;
                Span { start, end: start + range.len().max(1) as u32 }
            }
            _ => source.span,
        }
    }

    /// The place of a top-level list if it is an empty list (or if there is no document to ask).
    fn empty_list(&self, name: &str) -> Option<Span> {
        let Some(root) = self.root else { return Some(Span::default()) };
        let node = root.get(name)?;
        matches!(&node.data, Data::Seq(items) if items.is_empty()).then_some(node.span)
    }

    fn has_no_operations(&self, phase: usize) -> bool {
        let phases = self.root.and_then(|root| root.get("phases"));
        let Some(Data::Seq(phases)) = phases.map(|node| &node.data) else { return true };
        let operations = phases.get(phase).and_then(|phase| phase.get("operations")).map(|node| &node.data);
        match operations {
            None | Some(Data::Null) => true,
            Some(Data::Seq(items)) => items.is_empty(),
            Some(_) => false,
        }
    }

    fn phase_field(&self, phase: usize, field: &str) -> Option<&Node<'_>> {
        let Data::Seq(phases) = &self.root?.get("phases")?.data else { return None };
        phases.get(phase)?.get(field)
    }

    /// The node of an operation's field, if the document still has the shape of the template.
    fn operation_field(&self, phase: usize, position: usize, field: &str) -> Option<&Node<'_>> {
        let operations = self.phase_field(phase, "operations")?;
        match &operations.data {
            Data::Seq(items) => items.get(position)?.get(field),
            _ => operations.get(field),
        }
    }
}
