//! What people should know about a run although nothing failed.

use crate::event::Aside;
use crate::run::{Output, Run};

/// Outputs that are not where the template says, in the order of the steps.
pub fn asides(run: &Run) -> impl Iterator<Item = &Aside> {
    let leaves = run.live_steps().filter(|step| step.children.is_none());
    leaves.filter_map(|step| match step.output.as_deref() {
        Some(Output::Leaf { aside, .. }) => aside.as_deref(),
        _ => None,
    })
}

pub fn notices(run: &Run) -> Vec<String> {
    asides(run).map(Aside::to_string).collect()
}
