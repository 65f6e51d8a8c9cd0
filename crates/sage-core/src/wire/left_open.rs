//! What steps left to be done although they succeeded. A step that could not do its work says so in `open`; the
//! run succeeded all the same, and whoever reads only its last lines must not take that for done.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::run::{Output, Run, Step, StepId};

/// One step with work left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOpen {
    pub path: Arc<str>,
    /// How many tasks are open.
    pub tasks: usize,
    /// Whether it changed any file.
    pub changed: bool,
}

/// The shape that work gives: only with `filesChanged` is `open` a list of tasks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Work<'a> {
    #[serde(borrow)]
    open: Vec<&'a RawValue>,
    #[serde(borrow)]
    files_changed: Vec<&'a RawValue>,
}

/// Steps that changed files or not, and have tasks left. A result that is too large for the journal is not read.
pub fn left_open(run: &Run) -> Vec<LeftOpen> {
    let last = |&id: &StepId| {
        let step = run.step(id);
        // Of a phase that is repeated only the last round counts.
        let own = step.item.map_or(id, |(fan, _)| fan);
        step.children.is_none() && run.meant(step.scope, step.plan_step) == own
    };
    run.step_ids().filter(last).filter_map(|id| of(run.step(id))).collect()
}

fn of(step: &Step) -> Option<LeftOpen> {
    let Some(Output::Leaf { result, full, .. }) = step.output.as_deref() else { return None };
    let json = full.as_ref().unwrap_or(result).json.as_ref()?;
    let work: Work<'_> = serde_json::from_str(json.get()).ok()?;
    let changed = !work.files_changed.is_empty();
    (!work.open.is_empty()).then(|| LeftOpen { path: step.path.clone(), tasks: work.open.len(), changed })
}
