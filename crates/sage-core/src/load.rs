//! Templates frozen in journals, read again. Files come in through `check::load`.

use crate::event::Frozen;
use crate::read::{Library, read_template};
use crate::source;
use crate::template::Template;

/// A template that was checked when its run began. Warnings no longer matter; an error means a damaged journal
/// or a core that has become stricter.
pub fn reload(frozen: &Frozen) -> Result<Template, String> {
    let (node, mut problems) = source::parse(&frozen.text, frozen.format);
    let mut template = None;
    if let Some(node) = &node {
        let (read, more) = read_template(node, &Library::frozen(&frozen.operations));
        (template, problems) = (read, problems.into_iter().chain(more).collect());
    }
    match problems.iter().find(|problem| problem.is_error()) {
        Some(error) => Err(error.message.clone()),
        None => template.ok_or_else(|| "it is empty".into()),
    }
}
