//! How the project was when a run began, kept beside its journal: its tests, its test commands, `[checks]` of sage.toml.
//!
//! ```text
//! begin: taken once -> a check is compared with it
//! left:  the run stands still; changes from here to the next begin are a person's, not the run's
//! ```

use std::path::{Path, PathBuf};

use sage_core::digest::Digest;
use sage_core::run::{Run, State, Status};
use sage_core::verdict::Verdict;
use sage_engine::open::Engine;
use sage_engine::project::Project;
use sage_offline::{Baseline, Before};
use serde::{Deserialize, Serialize};

const FILE: &str = "baseline.json";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// `[checks]` of sage.toml.
    checks: String,
    project: Option<Baseline>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
}

/// The project when the run last stood still.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    checks: String,
    files: Option<Digest>,
}

/// A process begins to drive the run. Without the file, checks are unknown: that it cannot be written is no failure.
pub fn begin(project: &Project, run: &Run) {
    if !run.may_check() {
        return;
    }
    let checks = checks(&project.root);
    let record = match read(project, &run.id) {
        // A person changed them while the run stood still.
        Some(Record { left: Some(left), project, .. }) if left.checks != checks => {
            Record { checks, project, left: None }
        }
        Some(record) => Record { left: None, ..record },
        None if is_new(run) => Record { checks, project: Baseline::take(&project.root), left: None },
        None => return,
    };
    write(project, &run.id, &record);
}

/// Nothing of it has begun, also if its first process died before it could take the baseline.
fn is_new(run: &Run) -> bool {
    let waits = |id| matches!(run.step(id).state, State::Pending | State::Ready);
    run.tally.opened <= 1 || run.forked_from().is_some() || run.step_ids().all(waits)
}

/// The run stands still.
pub fn leave(project: &Project, run: &Run) {
    let complete = matches!(run.status, Status::Finished(Verdict::Succeeded | Verdict::Degraded));
    if complete || !run.may_check() {
        return;
    }
    if let Some(record) = read(project, &run.id) {
        let left = Left { checks: checks(&project.root), files: sage_agents::look(&project.root) };
        write(project, &run.id, &Record { left: Some(left), ..record });
    }
}

/// Whether files of the project changed since the feature's last run stood still.
pub fn changed(engine: &Engine, feature: &str) -> bool {
    let run = engine.latest(feature);
    let left = run.and_then(|run| read(&engine.project, &run)).and_then(|record| record.left);
    let now = || sage_agents::look(&engine.project.root);
    left.and_then(|left| left.files).is_some_and(|files| now() != Some(files))
}

/// The project when the run began, and why `[checks]` cannot be trusted.
pub fn of(project: &Project, run: &str) -> (Before, Option<String>) {
    let Some(record) = read(project, run) else { return (Before::Lost, None) };
    let changed = record.checks != checks(&project.root);
    let doubt = changed.then(|| {
        "The check was not made: [checks] of sage.toml changed while the run was under way. Restore it and resume, or \
         start a new run with the new commands."
            .to_string()
    });
    (record.project.map_or(Before::Lost, |known| Before::Known(Box::new(known))), doubt)
}

fn read(project: &Project, run: &str) -> Option<Record> {
    serde_json::from_slice(&std::fs::read(path(project, run)).ok()?).ok()
}

fn write(project: &Project, run: &str, record: &Record) {
    let _ = serde_json::to_vec(record).map(|text| sage_fence::private::write(&path(project, run), &text));
}

fn path(project: &Project, run: &str) -> PathBuf {
    project.run_dir(run).join(FILE)
}

/// As text that is the same for the same commands.
fn checks(root: &Path) -> String {
    let text = std::fs::read_to_string(root.join("sage.toml")).unwrap_or_default();
    let table = text.parse::<toml::Table>().ok().and_then(|mut table| table.remove("checks"));
    table.and_then(|table| serde_json::to_string(&table).ok()).unwrap_or_default()
}
