//! How the project was when a run began, kept beside its journal and sealed: its tests, its commands with what decides
//! about them, `[checks]` of sage.toml.
//!
//! ```text
//! begin: taken once (a fork takes its source's) -> a check is compared with it
//! left:  the run stands still; changes from here to the next begin are a person's, not the run's
//! ```

use std::path::{Path, PathBuf};

use sage_core::digest::Digest;
use sage_core::run::{Run, State};
use sage_core::seal::{self, Key};
use sage_core::template::Template;
use sage_engine::open::Engine;
use sage_engine::project::Project;
use sage_fence::private;
use sage_offline::{Baseline, Before};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const FILE: &str = "baseline.json";
/// Tests and commands of the largest project are shorter.
const MAX_BYTES: u64 = 64 << 20;

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
    project: Option<Baseline>,
}

/// A process begins to drive the run. Without the file, checks are unknown: that it cannot be written is no failure.
pub fn begin(engine: &Engine, run: &Run) {
    if !run.may_check() {
        return;
    }
    let (project, key) = (&engine.project, engine.key.as_ref());
    let source = || read(project, &run.forked_from()?.run, key);
    let record = match read(project, &run.id, key).or_else(source) {
        Some(record) => record.taken_up(&project.root, run),
        None if is_new(run) => take(&project.root, run),
        None => return,
    };
    write(project, &run.id, &record, key);
}

fn take(root: &Path, run: &Run) -> Record {
    Record { checks: checks(root), project: baseline(root, run), left: None }
}

fn baseline(root: &Path, run: &Run) -> Option<Baseline> {
    let mut named = lines_of_checks(root);
    let plans = run.named_plans();
    let templates = std::iter::once(&run.plan().template).chain(plans.iter().map(|(_, plan)| &plan.template));
    templates.for_each(|template| named.extend(lines_of_template(template)));
    Baseline::take(root, &named)
}

impl Record {
    /// What is different from how the run left it was changed by a person.
    fn taken_up(mut self, root: &Path, run: &Run) -> Record {
        let Some(left) = self.left.take() else { return self };
        if left.files.is_some() && left.files == sage_agents::look(root) {
            return self;
        }
        let now = checks(root);
        if left.checks != now {
            self.checks = now;
        }
        if let (Some(own), Some(left), Some(now)) = (&mut self.project, &left.project, &baseline(root, run)) {
            own.follow(left, now);
        }
        self
    }
}

/// Nothing of it has begun, also if its first process died before it could take the baseline.
fn is_new(run: &Run) -> bool {
    let waits = |id| matches!(run.step(id).state, State::Pending | State::Ready);
    run.forked_from().is_none() && (run.tally.opened <= 1 || run.step_ids().all(waits))
}

/// The run stands still, or has ended: it may still be resumed from a step, or forked.
pub fn leave(engine: &Engine, run: &Run) {
    let (project, key) = (&engine.project, engine.key.as_ref());
    if !run.may_check() {
        return;
    }
    if let Some(record) = read(project, &run.id, key) {
        let root = &project.root;
        let left =
            Left { checks: checks(root), files: sage_agents::look(root), project: baseline(root, run) };
        write(project, &run.id, &Record { left: Some(left), ..record }, key);
    }
}

/// The project when the run began, and why `[checks]` cannot be trusted.
pub fn of(project: &Project, run: &str, key: Option<&Key>) -> (Before, Option<String>) {
    let Some(record) = read(project, run, key) else { return (Before::Lost, None) };
    let changed = record.checks != checks(&project.root);
    let doubt = changed.then(|| {
        "The check was not made: [checks] of sage.toml changed while the run was under way. Restore it and resume, or \
         start a new run with the new commands."
            .to_string()
    });
    (record.project.map_or(Before::Lost, |known| Before::Known(Box::new(known))), doubt)
}

/// Without a key nothing can be sealed, and what the file says is taken as it is.
fn read(project: &Project, run: &str, key: Option<&Key>) -> Option<Record> {
    let path = path(project, run);
    let text = private::read_text(&path, MAX_BYTES).ok()?;
    let is_ours = key.is_none() || seal::is_sealed(&text, scoped(key, run).as_ref());
    serde_json::from_str(&text).ok().filter(|_| is_ours)
}

fn write(project: &Project, run: &str, record: &Record, key: Option<&Key>) {
    let text = seal::document_text(record, scoped(key, run).as_ref());
    let _ = text.map(|text| private::write(&path(project, run), text.as_bytes()));
}

fn scoped(key: Option<&Key>, run: &str) -> Option<Key> {
    key.map(|key| key.scoped("baseline", run))
}

fn path(project: &Project, run: &str) -> PathBuf {
    project.run_dir(run).join(FILE)
}

fn table_of_checks(root: &Path) -> Option<toml::Value> {
    let text = std::fs::read_to_string(root.join("sage.toml")).unwrap_or_default();
    text.parse::<toml::Table>().ok().and_then(|mut table| table.remove("checks"))
}

/// As text that is the same for the same commands.
fn checks(root: &Path) -> String {
    table_of_checks(root).and_then(|table| serde_json::to_string(&table).ok()).unwrap_or_default()
}

/// All commands in the table, of whatever part.
fn lines_of_checks(root: &Path) -> Vec<String> {
    let (mut queue, mut lines) = (Vec::from_iter(table_of_checks(root)), Vec::new());
    while let Some(value) = queue.pop() {
        match value {
            toml::Value::String(line) => lines.push(line),
            toml::Value::Array(values) => queue.extend(values),
            toml::Value::Table(table) => queue.extend(table.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    lines
}

/// Commands that checks of a template name themselves. Those that are only known when they run are not compared.
fn lines_of_template(template: &Template) -> Vec<String> {
    let operations = template.phases.iter().flat_map(|phase| &phase.operations);
    let named = operations.filter(|operation| operation.is_check()).filter_map(|operation| {
        let value = operation.params.get("commands")?;
        Some(match value {
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).map(str::to_string).collect(),
            value => Vec::from_iter(value.as_str().map(str::to_string)),
        })
    });
    named.flatten().collect()
}
