//! Where handoffs are kept: `.sage/handoffs`.
//!
//! ```text
//! <date>/<handoffId>.json    the truth: one file each, whole or not at all, 0600
//! chain-<taskId>.json        the handoffs of one taskId in order; in archive/ when it has come to its end
//! index.json                 all of them
//! ```
//! Chains and index are views: a change makes them anew from the handoffs where they do not match, and that is
//! told. What must stay true: writers take turns by an OS lock, the handoff is written before its views.

mod forget;
mod scan;
#[cfg(test)]
mod tests;
mod views;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sage_core::handoff::{Chain, Entry, Handoff, Index, Problem, Refusal, Status, Transition, check_parties};
use sage_core::wire::rfc3339;
use sage_fence::{Fence, Refused};
use serde_json::Value;

use crate::clock::Clock;
use crate::lock::lock_within;
use crate::project::{Project, ProjectError};
use crate::vfs::{self, Vfs};

/// An update takes milliseconds; who waits longer waits for a stopped process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// More is no handoff but a document, which belongs into its artifacts.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Store {
    project: Project,
    dir: PathBuf,
    vfs: Arc<dyn Vfs>,
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
pub enum HandoffError {
    #[error("the handoff is incomplete: {} problem{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Incomplete(Vec<Problem>),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("no handoff `{id}`")]
    Unknown { id: String, near: Option<String> },
    #[error("`{0}` exists already")]
    Exists(String),
    #[error("{0}")]
    Project(#[from] ProjectError),
    #[error("cannot {op} `{}`: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
}

/// What was done, and what had to be put right on the way.
#[derive(Debug)]
pub struct Done<T> {
    pub value: T,
    pub notes: Vec<String>,
}

impl Store {
    pub fn new(project: &Project, vfs: Arc<dyn Vfs>, clock: Clock) -> Store {
        Store { project: project.clone(), dir: project.dir.join("handoffs"), vfs, clock }
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// A fresh id.
    pub fn new_id() -> String {
        format!("handoff_{}", ulid::Ulid::generate())
    }

    /// Creates a handoff that somebody wrote. An incomplete one is refused with everything that it lacks.
    pub fn create(&self, draft: &Value) -> Result<Done<Handoff>, HandoffError> {
        let read = sage_core::handoff::read(draft);
        let mut problems = read.as_ref().err().cloned().unwrap_or_default();
        problems.extend(self.missing_files(draft));
        match read {
            Ok(handoff) if problems.is_empty() => self.keep(handoff),
            _ => Err(HandoffError::Incomplete(problems)),
        }
    }

    /// Creates a handoff that is known to be complete. It gets an id, unless it has one, and the time.
    pub fn keep(&self, mut handoff: Handoff) -> Result<Done<Handoff>, HandoffError> {
        // Nothing is set up for one that is refused anyway.
        check_parties(handoff.handoff.from, handoff.handoff.to, &handoff.handoff.kind)?;
        if !self.has_any()? {
            self.project.prepare(self.vfs.as_ref())?;
            self.vfs.create_dir_all(&self.dir).map_err(|source| io_error("create", &self.dir, source))?;
        }
        let _lock = self.lock()?;
        let mut notes = Vec::new();
        let all = self.whole_list(&mut notes)?;
        let task_id = &handoff.context.task_id;
        let none = || Chain {
            version: Index::VERSION,
            task_id: task_id.clone(),
            archived: false,
            handoffs: Vec::new(),
        };
        Index::of(&all).chain(task_id).unwrap_or_else(none).check_next(&handoff)?;
        let header = &mut handoff.handoff;
        if header.handoff_id.is_empty() {
            header.handoff_id = Store::new_id();
        } else if all.iter().any(|other| other.handoff.handoff_id == header.handoff_id) {
            return Err(HandoffError::Exists(header.handoff_id.clone()));
        }
        let at = rfc3339(self.clock.now_ms());
        (header.timestamp, header.status) = (at.clone(), Status::Pending);
        handoff.transitions = vec![Transition { status: Status::Pending, at, reason: None }];
        self.save(all, handoff, notes)
    }

    /// `accept`, `reject` and `complete`.
    pub fn advance(&self, id: &str, to: Status, reason: Option<&str>) -> Result<Done<Handoff>, HandoffError> {
        if !self.has_any()? {
            return Err(HandoffError::Unknown { id: id.into(), near: None });
        }
        let _lock = self.lock()?;
        let mut notes = Vec::new();
        let mut all = self.whole_list(&mut notes)?;
        let place = find(&all, id)?;
        let mut handoff = all.remove(place);
        handoff.advance(to, &rfc3339(self.clock.now_ms()), reason)?;
        self.save(all, handoff, notes)
    }

    /// One handoff, by its id or an end of it that no other has.
    pub fn show(&self, id: &str) -> Result<Done<Handoff>, HandoffError> {
        let (mut all, notes) = self.look()?;
        let place = find(&all, id)?;
        Ok(Done { value: all.swap_remove(place), notes })
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Result<Done<Vec<Entry>>, HandoffError> {
        let (all, notes) = self.look()?;
        Ok(Done { value: Index::of(&all).handoffs, notes })
    }

    /// Looking writes nothing: views that do not match are told, and the next change makes them anew.
    fn look(&self) -> Result<(Vec<Handoff>, Vec<String>), HandoffError> {
        let mut notes = Vec::new();
        if !self.has_any()? {
            return Ok((Vec::new(), notes));
        }
        let scanned = self.scan()?;
        notes.extend(scanned.notes());
        let mismatch = self.mismatch(&Index::of(&scanned.handoffs));
        notes.extend(mismatch.map(|why| format!("{why}: the next change writes it anew")));
        Ok((scanned.handoffs, notes))
    }

    fn has_any(&self) -> Result<bool, HandoffError> {
        self.vfs.exists(&self.dir).map_err(|source| io_error("read", &self.dir, source))
    }

    fn lock(&self) -> Result<std::fs::File, HandoffError> {
        let path = self.dir.join("handoffs.lock");
        lock_within(&path, LOCK_TIMEOUT).map_err(|source| io_error("lock", &path, source))
    }

    /// All handoffs, with views that match them. Under the lock.
    fn whole_list(&self, notes: &mut Vec<String>) -> Result<Vec<Handoff>, HandoffError> {
        let scanned = self.scan()?;
        notes.extend(scanned.notes());
        let index = Index::of(&scanned.handoffs);
        if let Some(why) = self.mismatch(&index) {
            self.write_views(&index, None)?;
            notes.push(format!("{why}: made anew from the handoffs"));
        }
        Ok(scanned.handoffs)
    }

    fn save(
        &self,
        mut all: Vec<Handoff>,
        handoff: Handoff,
        notes: Vec<String>,
    ) -> Result<Done<Handoff>, HandoffError> {
        let path = self.dir.join(handoff.file());
        let text = pretty(&handoff).map_err(|source| io_error("write", &path, source))?;
        if text.len() > MAX_BYTES {
            let what = format!("are {} KiB together, more than {} KiB", text.len() >> 10, MAX_BYTES >> 10);
            return Err(HandoffError::Incomplete(vec![Problem::new("all fields", what)]));
        }
        let dir = vfs::parent(&path);
        let written = vfs::create_dir_durable(self.vfs.as_ref(), dir)
            .and_then(|()| vfs::write_atomic(self.vfs.as_ref(), &path, &text));
        written.map_err(|source| io_error("write", &path, source))?;
        all.push(handoff.clone());
        self.write_views(&Index::of(&all), Some(&handoff.context.task_id))?;
        Ok(Done { value: handoff, notes })
    }

    /// Locations and artifacts that are not files of the project. Fields that are not text are reported elsewhere.
    fn missing_files(&self, draft: &Value) -> Vec<Problem> {
        let deliverable = &draft["deliverable"];
        let fence = Fence::new(&self.project.root);
        let problem = |path: &str| match fence.locate(Path::new(path)) {
            _ if path.contains("://") => None,
            Ok(inside) if fence.root().join(&inside).exists() => None,
            Err(Refused::Outside(_)) => Some("is outside the project"),
            _ => Some("does not exist"),
        };
        let mut problems = Vec::new();
        let mut check = |field: String, value: &Value| {
            let path = value.as_str().map(str::trim).filter(|path| !path.is_empty());
            if let Some((path, what)) = path.and_then(|path| Some((path, problem(path)?))) {
                problems.push(Problem::new(field, format!("{what}: {}", path.escape_debug())));
            }
        };
        check("deliverable.location".into(), &deliverable["location"]);
        match &deliverable["artifacts"] {
            Value::Array(list) => {
                let numbered = list.iter().enumerate();
                numbered.for_each(|(n, item)| check(format!("deliverable.artifacts[{n}]"), item));
            }
            single => check("deliverable.artifacts".into(), single),
        }
        problems
    }
}

/// The one that is meant.
fn find(all: &[Handoff], id: &str) -> Result<usize, HandoffError> {
    const ENOUGH: usize = 4;
    let id_of = |handoff: &Handoff| handoff.handoff.handoff_id.clone();
    if let Some(place) = all.iter().position(|handoff| id_of(handoff) == id) {
        return Ok(place);
    }
    let ending = |handoff: &&Handoff| id.len() >= ENOUGH && id_of(handoff).ends_with(id);
    if all.iter().filter(ending).count() == 1
        && let Some(place) = all.iter().position(|handoff| ending(&handoff))
    {
        return Ok(place);
    }
    let ids: Vec<String> = all.iter().map(id_of).collect();
    let near = sage_core::diagnostic::did_you_mean(id, ids.iter().map(String::as_str));
    Err(HandoffError::Unknown { id: id.escape_debug().to_string(), near })
}

fn pretty(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

fn io_error(op: &'static str, path: &Path, source: io::Error) -> HandoffError {
    HandoffError::Io { op, path: path.to_owned(), source }
}
