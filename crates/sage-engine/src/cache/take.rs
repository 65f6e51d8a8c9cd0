//! Taking a result out of the cache, and putting one in. All of it reads and writes files: not for the loop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sage_core::digest::Digest;
use sage_core::event::{Aside, CacheMiss, Paid, Payload};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Cache, Entry, Found, Ticket};
use crate::blobs::Blobs;
use crate::output::{Content, Outputs, Target, Written};
use crate::perform;
use crate::results::{ResultError, pack_canonical, text_of};

/// A result that is there, ready to be journaled.
#[derive(Debug)]
pub struct Hit {
    pub cache_key: Option<Digest>,
    pub from: String,
    pub age_ms: u64,
    /// `None`: it is too old.
    pub expires_in_ms: Option<u64>,
    pub result: Payload,
    pub full: Option<Payload>,
    pub artifacts: Vec<String>,
    /// Its file is not where the template says.
    pub aside: Option<Aside>,
    pub saved: Paid,
}

impl Hit {
    /// Its result was written for this run.
    pub fn written(self, written: Option<Written>) -> Hit {
        match written {
            Some(Written { path, aside }) => Hit { artifacts: vec![path], aside, ..self },
            None => self,
        }
    }
}

#[derive(Debug)]
pub enum Looked {
    Hit(Box<Hit>),
    Miss(CacheMiss),
}

/// What has to be true of the project for a result to be taken.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// A file that gets the result's text, as the attempt would have written it, and who writes it.
    pub output: Option<(Target, Arc<Outputs>)>,
    /// Files that are expected to be there.
    pub files: Vec<String>,
    /// Nobody waits for the answer any more: by now the step may have written its output itself.
    pub given_up: Arc<AtomicBool>,
}

impl Cache {
    /// An entry that is not too old and whose conditions hold. `read` is false where only the key is wanted.
    pub(crate) fn look_up(
        &self,
        ticket: &Ticket,
        read: bool,
        conditions: &Conditions,
        project: &Path,
        blobs: &Blobs,
        now_ms: u64,
    ) -> Looked {
        let key = ticket.key;
        let miss = |damaged| Looked::Miss(CacheMiss { key, unread: !read, damaged });
        if !read {
            return miss(None);
        }
        let entry = match self.find(&key) {
            Found::Entry(entry) => entry,
            Found::Nothing | Found::Foreign => return miss(None),
            Found::Damaged(why) => return miss(Some(why)),
        };
        // The step's own word of today counts, not the one of the day it was made.
        let left = ticket.ttl_ms.checked_sub(entry.age_ms(now_ms)).filter(|left| *left > 0);
        if left.is_none() {
            return miss(None);
        }
        let Ok(written) = conditions.meet(&entry, project) else { return miss(None) };
        match hit(&entry, left, blobs, now_ms) {
            Ok(hit) => Looked::Hit(Box::new(hit.written(written))),
            Err(error) => miss(Some(error.to_string())),
        }
    }

    /// Whatever there is for a step that cannot be run: its own entry, or the newest of the same step and feature.
    pub(crate) fn stand_in(
        &self,
        key: Option<Digest>,
        step: (&str, &str, &str),
        item: Option<&String>,
        blobs: &Blobs,
        now_ms: u64,
    ) -> Option<Hit> {
        let own = key.and_then(|key| match self.find(&key) {
            Found::Entry(entry) => Some(entry),
            _ => None,
        });
        let (operation, path, feature) = step;
        let newest = || self.newest_of(operation, path, feature, item).map(Box::new);
        let entry = own.or_else(newest)?;
        let left = entry.left_ms(now_ms);
        hit(&entry, left, blobs, now_ms).ok()
    }

    /// Keeps what a step gave, unless its files were changed meanwhile. What is not kept is made again by whoever
    /// needs it.
    pub(crate) fn keep(
        &self,
        ticket: &Ticket,
        output: (&Payload, Option<&Payload>, &[String]),
        paid: Paid,
        blobs: &Blobs,
        now_ms: u64,
    ) -> Result<(), ResultError> {
        if !ticket.holds(self) {
            return Ok(());
        }
        let (result, full, artifacts) = output;
        let raw = |payload: &Payload| Ok::<_, ResultError>(RawValue::from_string(text_of(payload, blobs)?)?);
        let (result, full) = (raw(result)?, full.map(raw).transpose()?);
        let subject = &ticket.subject;
        let entry = Entry {
            v: Entry::VERSION,
            key: ticket.key,
            operation: subject.operation.clone(),
            step: subject.step.clone(),
            feature: subject.feature.clone(),
            run: subject.run.clone(),
            agent: subject.agent.clone(),
            model: subject.model.clone(),
            created_ms: now_ms,
            ttl_ms: ticket.ttl_ms,
            last_used_ms: now_ms,
            uses: 0,
            bytes: (result.get().len() + full.as_ref().map_or(0, |full| full.get().len())) as u64,
            parts: ticket.parts.clone(),
            paid,
            artifacts: artifacts.to_vec(),
            result,
            full,
        };
        self.put(&entry)?;
        self.make_room(now_ms);
        Ok(())
    }
}

/// `left`: until it is too old.
fn hit(entry: &Entry, left: Option<u64>, blobs: &Blobs, now_ms: u64) -> Result<Hit, ResultError> {
    Ok(Hit {
        cache_key: Some(entry.key),
        from: entry.run.clone(),
        age_ms: entry.age_ms(now_ms),
        expires_in_ms: left,
        result: pack_canonical(entry.result.get(), blobs)?,
        full: entry.full.as_ref().map(|full| pack_canonical(full.get(), blobs)).transpose()?,
        artifacts: entry.artifacts.clone(),
        aside: None,
        saved: entry.paid.clone(),
    })
}

impl Conditions {
    /// Makes sure of the files, and writes the output.
    fn meet(&self, entry: &Entry, project: &Path) -> Result<Option<Written>, String> {
        let output =
            self.output.as_ref().map(|(target, _)| perform::inside(project, &target.path)).transpose()?;
        for file in &self.files {
            let path = perform::inside(project, file)?;
            if output.as_ref() != Some(&path) && !path.exists() {
                return Err(format!("`{file}` is not there"));
            }
        }
        if self.given_up.load(Ordering::Relaxed) {
            return Err("it took too long".into());
        }
        let Some((target, outputs)) = &self.output else { return Ok(None) };
        let text = entry.full.as_ref().unwrap_or(&entry.result).get();
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let written = outputs.write(target, &Content::of(&value, None)?);
        written.map(Some).map_err(|refused| refused.to_string())
    }
}
