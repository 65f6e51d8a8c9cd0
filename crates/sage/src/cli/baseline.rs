//! How the project was when a run began, kept beside its journal and sealed: its tests, its commands with what decides
//! about them, `[checks]` of sage.toml.
//!
//! ```text
//! begin:    taken once (a fork takes its source's) -> a check is compared with it
//! measured: the tests ran once, before the first step that may change files
//! left:     the run stands still; changes from here to the next begin are a person's, but for those of other runs
//! ```

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sage_core::digest::Digest;
use sage_core::run::{Run, State};
use sage_core::seal::{self, Key};
use sage_core::template::{Operation, Template};
use sage_engine::open::Engine;
use sage_engine::project::Project;
use sage_fence::private;
use sage_offline::{Baseline, Before, Stretch};
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod measure;

pub use measure::measure;

const FILE: &str = "baseline.json";
/// Tests and commands of the largest project are shorter.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// `[checks]` of sage.toml.
    checks: String,
    project: Option<Baseline>,
    /// The tests ran, or were begun: after that, files may have changed.
    #[serde(default)]
    measured: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
}

/// The project when the run last stood still.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    #[serde(default)]
    at_ms: u64,
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
        Some(record) => record.taken_up(project, run, key),
        None if is_new(run) => take(&project.root, run),
        None => return,
    };
    write(project, &run.id, &record, key);
}

fn take(root: &Path, run: &Run) -> Record {
    Record { checks: checks(root), project: baseline(root, run), ..Record::default() }
}

fn baseline(root: &Path, run: &Run) -> Option<Baseline> {
    let mut named = lines_of_checks(root);
    let plans = run.named_plans();
    let templates = std::iter::once(&run.plan().template).chain(plans.iter().map(|(_, plan)| &plan.template));
    templates.for_each(|template| named.extend(lines_of_template(template)));
    Baseline::take(root, &named)
}

impl Record {
    /// What is different from how the run left it was changed by a person, or by another run.
    fn taken_up(mut self, project: &Project, run: &Run, key: Option<&Key>) -> Record {
        let root = &project.root;
        let Some(left) = self.left.take() else { return self };
        if left.files.is_some() && left.files == sage_agents::look(root) {
            return self;
        }
        let (now, left_ms) = (checks(root), left.at_ms);
        if left.checks != now {
            self.checks = now;
        }
        if let (Some(own), Some(left), Some(now)) = (&mut self.project, &left.project, &baseline(root, run)) {
            let others = others(project, run, left_ms, key);
            let stretches: Vec<Stretch> = others.iter().filter_map(|other| other.stretch(now)).collect();
            own.follow(left, now, &stretches);
        }
        self
    }

    /// What the run changed so far; `now` is how the project is.
    fn stretch<'a>(&'a self, now: &'a Baseline) -> Option<Stretch<'a>> {
        let left = match &self.left {
            Some(left) => left.project.as_ref()?,
            None => now,
        };
        Some(Stretch { began: self.project.as_ref()?, left })
    }
}

/// Runs that did something since then: what they changed is not a person's change.
fn others(project: &Project, run: &Run, since_ms: u64, key: Option<&Key>) -> Vec<Record> {
    let Ok(runs) = std::fs::read_dir(project.runs()) else { return Vec::new() };
    let names = runs.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let worked = names.filter(|name| *name != run.id && touched_ms(&project.run_dir(name)) >= since_ms);
    worked.filter_map(|name| read(project, &name, key)).collect()
}

/// When a file of a run was last written.
fn touched_ms(run: &Path) -> u64 {
    let files = std::fs::read_dir(run).into_iter().flatten();
    let times = files.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok());
    times.map(ms).max().unwrap_or_default()
}

fn ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
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
        let left = Left {
            at_ms: ms(SystemTime::now()),
            checks: checks(root),
            files: sage_agents::look(root),
            project: baseline(root, run),
        };
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
    operations.filter(|operation| operation.is_check()).flat_map(lines_of_operation).collect()
}

fn lines_of_operation(operation: &Operation) -> Vec<String> {
    match operation.params.get("commands") {
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).map(str::to_string).collect(),
        value => Vec::from_iter(value.and_then(Value::as_str).map(str::to_string)),
    }
}
