//! `cache` on a step whose result is not all that it does: it would never be used.

use super::Document;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::template::Template;

pub fn check(template: &Template, document: &Document<'_, '_>, problems: &mut Diagnostics) {
    for (p, phase) in template.phases.iter().enumerate() {
        for (position, operation) in phase.operations.iter().enumerate() {
            let why = operation.cache.as_ref().and_then(|_| operation.uncacheable());
            let Some(why) = why else { continue };
            let span = document.operation_field(p, position, "cache").map(|node| node.span);
            let field = format!("phases[{p}].operations[{position}].cache");
            let message = format!("`cache` has no effect here: {why}");
            let warning = Diagnostic::warning(field, span.unwrap_or(operation.span), message);
            problems.push(warning.hint("leave `cache` out; it is for steps that only find something out"));
        }
    }
}
