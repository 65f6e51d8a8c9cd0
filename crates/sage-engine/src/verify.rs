//! Every journal, blob and checkpoint of a project, checked without changing anything.
//!
//! What must stay true: damage is told whatever it looks like, also where everything of a run is gone but its
//! checkpoint; a run that is just starting, was just killed, or is being collected is not damaged. So a checkpoint is
//! read before its journal, which can only be ahead of it, and what is found wrong is looked at once more.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sage_core::event::Payload;
use sage_core::run::{Children, Output, Run};
use serde_json::Value;

use crate::checkpoint::{self, CheckpointError, Loaded};
use crate::journal::{self, JournalError};
use crate::open::{Engine, Fold, OpenError, watermark};
use crate::registry;

/// What is wrong, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Records are damaged, gone, or not what was acknowledged.
    Journal(String),
    /// A newer Sage wrote it.
    Newer(String),
    /// The system does not let it be read: nobody knows whether it is damaged.
    Unreadable(String),
    /// The result of a step is gone or damaged.
    Result {
        step: String,
        what: String,
    },
    Checkpoint(String),
    /// The run that a checkpoint names is gone with its directory.
    RunGone(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Journal(what)
            | Problem::Newer(what)
            | Problem::Unreadable(what)
            | Problem::RunGone(what) => f.write_str(what),
            Problem::Result { step, what } => write!(f, "result of `{step}`: {what}"),
            Problem::Checkpoint(what) => write!(f, "checkpoint: {what}"),
        }
    }
}

/// One run, or a checkpoint without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The run's id, or the checkpoint's file name where there is no run.
    pub name: String,
    pub feature: Option<String>,
    /// The run that commands mean by the feature's name.
    pub latest: bool,
    pub records: u64,
    /// Bytes after the last record: a write that was cut off, or one under way.
    pub tail_bytes: u64,
    pub problems: Vec<Problem>,
    /// None of its records can be read, and nothing tells whose run it was.
    pub is_worthless: bool,
}

/// What is known of a run before its journal is read.
struct Known {
    feature: Option<String>,
    latest: bool,
}

impl Engine {
    /// Checks everything, or the last run of one feature.
    pub fn verify(&self, feature: Option<&str>) -> Result<Vec<Verified>, OpenError> {
        self.refuse_unreadable()?;
        let Some(feature) = feature else { return self.verify_all() };
        match self.find_latest(feature)? {
            Some(run) if self.is_there(&run) => {
                let known = Known { feature: Some(feature.to_string()), latest: true };
                Ok(self.verify_run(&run, known).into_iter().collect())
            }
            _ => match self.verify_checkpoint(feature) {
                Some(verified) => Ok(vec![verified]),
                None => Err(self.unknown(feature)),
            },
        }
    }

    fn verify_all(&self) -> Result<Vec<Verified>, OpenError> {
        let by_checkpoint = self.features_by_checkpoint();
        let runs = self.run_ids()?;
        // A journal whose first record is damaged does not say whose it is; the registry, or a checkpoint, may.
        let entries = registry::read(&self.project.state()).0.into_iter();
        let mut of_run: BTreeMap<String, String> =
            entries.map(|entry| (entry.run_id, entry.feature)).collect();
        let named = by_checkpoint.iter().filter_map(|(feature, run)| Some((run.clone()?, feature.clone())));
        of_run.extend(named);
        let feature_of = |run: &String| self.feature_of(run).or_else(|| of_run.get(run).cloned());
        let features: Vec<Option<String>> = runs.iter().map(feature_of).collect();
        let mut of_feature: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (feature, run) in features.iter().zip(&runs) {
            feature.iter().for_each(|feature| of_feature.entry(feature).or_default().push(run.clone()));
        }
        let mut newest: BTreeMap<&String, Option<String>> = BTreeMap::new();
        for (feature, runs) in of_feature {
            let named = by_checkpoint.get(feature).cloned().flatten();
            newest.insert(feature, self.newest(feature, named, runs)?);
        }
        let known = |(feature, run): (&Option<String>, &String)| {
            let newest = feature.as_ref().and_then(|feature| newest.get(feature)?.as_ref());
            self.verify_run(run, Known { feature: feature.clone(), latest: newest == Some(run) })
        };
        let mut all: Vec<Verified> = features.iter().zip(&runs).filter_map(known).collect();
        let is_alone = |feature: &&String| match newest.get(feature) {
            Some(Some(run)) => !self.is_there(run),
            _ => true,
        };
        let alone = by_checkpoint.keys().filter(is_alone);
        all.extend(alone.filter_map(|feature| self.verify_checkpoint(feature)));
        Ok(all)
    }

    /// Features that have a checkpoint, each with the run that it names.
    fn features_by_checkpoint(&self) -> BTreeMap<String, Option<String>> {
        let names = self.vfs.list(&self.project.state()).unwrap_or_default();
        let feature = |name: &String| {
            let name = name.strip_suffix(".bak").unwrap_or(name);
            Some(name.strip_prefix("workflow-")?.strip_suffix(".json")?.to_string())
        };
        let run = |feature: String| {
            let loaded = checkpoint::load(self.vfs.as_ref(), &self.project.checkpoint(&feature)).ok();
            let run = loaded.and_then(|loaded| text(&loaded, "runId"));
            (feature, run)
        };
        names.iter().filter_map(feature).collect::<BTreeSet<_>>().into_iter().map(run).collect()
    }

    fn is_there(&self, run: &str) -> bool {
        self.vfs.exists(&self.project.run_dir(run)).unwrap_or(true)
    }

    /// A checkpoint that no run answers for. `None` if it is well, or gone by now.
    fn verify_checkpoint(&self, feature: &str) -> Option<Verified> {
        let path = self.project.checkpoint(feature);
        let problem = match checkpoint::load(self.vfs.as_ref(), &path) {
            Err(CheckpointError::Missing { .. }) => return None,
            Err(error) => Problem::Checkpoint(error.to_string()),
            Ok(loaded) => {
                let run = text(&loaded, "runId").unwrap_or_default();
                if self.is_there(&run) {
                    return None;
                }
                Problem::RunGone(format!("its run `{run}` is gone"))
            }
        };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (feature, problems) = (Some(feature.to_string()), vec![problem]);
        Some(Verified { name, feature, latest: true, problems, ..Verified::default() })
    }

    /// `None` for a run that is gone by now.
    fn verify_run(&self, run: &str, known: Known) -> Option<Verified> {
        let mut verified = self.look_at(run, &known);
        // Its owner, or a clean-up, may have been at work in between.
        if !verified.problems.is_empty() {
            verified = self.look_at(run, &known);
        }
        verified.is_worthless =
            !verified.problems.is_empty() && known.feature.is_none() && self.holds_nothing(run);
        self.is_there(run).then_some(verified)
    }

    fn holds_nothing(&self, run: &str) -> bool {
        let salvage =
            journal::salvage(self.vfs.as_ref(), &self.project.run_dir(run), None, &self.sealing(run));
        salvage.is_ok_and(|salvage| {
            salvage.good.is_empty() && salvage.chained.is_empty() && salvage.loose.is_empty()
        })
    }

    fn look_at(&self, id: &str, known: &Known) -> Verified {
        let feature = known.feature.clone();
        // Before the journal, which can only be ahead of it.
        let loaded = feature.as_ref().map(|feature| {
            let path = self.project.checkpoint(feature);
            checkpoint::load(self.vfs.as_ref(), &path)
        });
        let own = loaded.as_ref().and_then(|loaded| loaded.as_ref().ok());
        let own = own.filter(|own| text(own, "runId").as_deref() == Some(id));
        let (name, latest) = (id.to_string(), known.latest);
        let mut verified = Verified { name, feature, latest, ..Verified::default() };
        let mut fold = Fold::default();
        let (dir, watermark) = (self.project.run_dir(id), watermark(own, id));
        let checked =
            journal::check(self.vfs.as_ref(), &dir, watermark, |record| fold.take::<OpenError>(record));
        match checked {
            Ok(checked) => {
                verified.records = checked.head.seq;
                verified.tail_bytes = checked.tail_bytes;
                // Our checkpoint names this run: a journal that we did not write is not the one that it had.
                let vouched = own.zip(known.feature.as_deref());
                let vouched = vouched.is_some_and(|(own, feature)| own.is_sealed(self.key.as_ref(), feature));
                if vouched && !self.sealing(id).admits(checked.sealed.as_ref()) {
                    let foreign = JournalError::Foreign { path: dir.join(journal::FILE_NAME) };
                    verified.problems.push(Problem::Journal(foreign.to_string()));
                }
                if let Ok(run) = fold.finish() {
                    verified.problems.extend(self.check_results(&run));
                    verified.problems.extend(check_image(own, &run, checked.head.seq));
                    let damaged = own.and_then(|own| self.damaged_image(own, id));
                    verified.problems.extend(damaged.map(Problem::Checkpoint));
                }
            }
            Err(error) => {
                let error = match known.feature.as_deref() {
                    Some(feature) => self.blame(feature, id, error),
                    None => error,
                };
                verified.problems.extend(self.judge(id, error, own.is_some()));
            }
        }
        if let Some(Err(error)) = loaded
            && !matches!(error, CheckpointError::Missing { .. })
        {
            verified.problems.push(Problem::Checkpoint(error.to_string()));
        }
        verified
    }

    /// Whether an error of the journal is damage.
    fn judge(&self, id: &str, error: OpenError, named: bool) -> Option<Problem> {
        match error {
            // Nothing was acknowledged, so nothing is lost: it is starting, or was killed when it did.
            OpenError::Journal(JournalError::Missing { .. }) if !named && self.never_began(id) => None,
            OpenError::Journal(error) if error.is_damage() => Some(Problem::Journal(error.to_string())),
            OpenError::Journal(error @ JournalError::Io { .. }) => {
                Some(Problem::Unreadable(error.to_string()))
            }
            other => Some(Problem::Newer(other.to_string())),
        }
    }

    /// Only what is made before the first record is in its directory: nothing, or blobs that it was to name.
    fn never_began(&self, id: &str) -> bool {
        match self.vfs.list(&self.project.run_dir(id)) {
            Ok(names) => names.iter().all(|name| name == "blobs" || name.ends_with(".tmp")),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Results and expansions that the run still needs. What another result has replaced is nobody's loss.
    fn check_results(&self, run: &Run) -> Vec<Problem> {
        let blobs = self.blobs(&run.id);
        let mut problems = Vec::new();
        let mut check = |step: &str, payload: &Payload| {
            if !payload.is_blob() {
                return;
            }
            match blobs.get(&payload.sha) {
                Ok(_) => {}
                Err(error) if error.is_loss() => {
                    problems.push(Problem::Result { step: step.to_string(), what: error.to_string() });
                }
                Err(error) => {
                    let source = OpenError::Result { step: step.to_string(), source: error };
                    problems.push(Problem::Unreadable(source.to_string()));
                }
            }
        };
        for step in run.live_steps() {
            match (&step.children, step.output.as_deref()) {
                (None, Some(Output::Leaf { result, full, .. })) => {
                    check(&step.path, result);
                    full.iter().for_each(|full| check(&step.path, full));
                }
                (None, Some(Output::Whole { result, .. })) => check(&step.path, result),
                _ => {}
            }
            match step.children.as_deref() {
                Some(Children::Items { items, .. }) => check(&step.path, items),
                Some(Children::Scope(scope)) => {
                    run.scope(*scope).inputs.iter().for_each(|inputs| check(&step.path, inputs));
                }
                Some(Children::Calls(_)) | None => {}
            }
            step.call.iter().for_each(|call| check(&step.path, &call.params));
        }
        problems
    }
}

/// The checkpoint must be the fold: equal where they meet, and whole.
fn check_image(own: Option<&Loaded>, run: &Run, records: u64) -> Option<Problem> {
    let own = own?;
    let seq = own.doc.get("journal").and_then(|head| head.get("seq")?.as_u64());
    let status = own.doc.get("status").and_then(Value::as_str);
    if seq == Some(records) && status != Some(run.status.name()) {
        return Some(Problem::Checkpoint("it says another status than the journal".into()));
    }
    let problem = own.problem.as_ref()?;
    Some(Problem::Checkpoint(format!("{problem} (its backup is good)")))
}

fn text(loaded: &Loaded, field: &str) -> Option<String> {
    loaded.doc.get(field)?.as_str().map(str::to_string)
}
