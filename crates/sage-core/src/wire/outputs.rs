//! Files that a run's steps wrote.

use std::collections::BTreeSet;

use crate::run::{Output, Run};

/// By `output`, in the order of the steps, each once.
pub fn outputs(run: &Run) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let leaves = run.live_steps().filter(|step| step.children.is_none());
    let files = leaves.flat_map(|step| match step.output.as_deref() {
        Some(Output::Leaf { artifacts, .. }) => artifacts.as_slice(),
        _ => &[],
    });
    files.filter(|file| seen.insert(file.as_str())).cloned().collect()
}
