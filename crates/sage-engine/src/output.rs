//! Files that steps write for people: `output`.
//!
//! ```text
//! wanted place -> equal there already?        synced, not written
//!              -> nothing there, or our text?  replaced
//!              -> a person's text?             a neighbour: spec.new.md, spec.new-2.md ...
//! ```
//! What must stay true: a text that Sage did not write is never replaced; what a file will hold is remembered
//! before the file is written, so that a killed run does not take its own text for a person's; a file is on the
//! disk before anybody names it.

mod memory;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use sage_core::digest::Digest;
use sage_core::event::{Aside, AsideReason};
use sage_fence::{Entry, Fence, Folder};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::trouble::{Obstacle, Refused, Trouble};
use memory::Memory;

/// Neighbours that are tried before a step gives up.
const NEIGHBOURS: u32 = 100;
const CHUNK_BYTES: usize = 1 << 16;

/// Where a run's outputs go.
#[derive(Clone, Debug)]
pub struct Outputs {
    project: PathBuf,
    memory: Memory,
    /// The feature of a run that is a fork: it does not write where its source does.
    fork: Option<String>,
}

/// The file that a template names for an output.
#[derive(Clone, Debug)]
pub struct Target {
    pub path: String,
    /// In a fork: the path has another name there than in the run that it was forked from.
    pub of_feature: bool,
}

/// What a file is to hold.
#[derive(Clone, Debug)]
pub enum Content {
    Text(String),
    /// The whole output of a program, longer than what its result keeps.
    File {
        path: PathBuf,
        bytes: u64,
    },
}

/// Where an output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Relative to the project.
    pub path: String,
    pub aside: Option<Aside>,
}

/// A place for the text.
enum Place {
    /// It has the text already.
    Equal,
    Free,
    /// What is there is not ours to replace.
    Taken(AsideReason),
}

impl Content {
    /// Text as it is, a result's own text if it has one, anything else as indented JSON. A result that was cut
    /// is taken from `whole`, where the program's output was kept.
    pub fn of(result: &Value, whole: Option<&Path>) -> Result<Content, String> {
        if let (Some(bytes), Some(path)) = (cut_at(result), whole) {
            return Ok(Content::File { path: path.to_path_buf(), bytes });
        }
        if cut_at(result).is_some() {
            return Err("the output was too long to be kept with the result".into());
        }
        Ok(Content::Text(match result {
            Value::String(text) => text.clone(),
            Value::Object(map) if text_of(map).is_some() => text_of(map).unwrap_or_default().to_string(),
            other => serde_json::to_string_pretty(other).map_err(|e| e.to_string())? + "\n",
        }))
    }

    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Content::Text(text) => Ok(Box::new(text.as_bytes())),
            Content::File { path, bytes } => {
                let file = File::open(path)?;
                let there = file.metadata()?.len();
                if there != *bytes {
                    let message = format!("only {there} of {bytes} bytes of the output were kept");
                    return Err(io::Error::other(message));
                }
                Ok(Box::new(file))
            }
        }
    }
}

/// How long the output was of which a result keeps the beginning.
fn cut_at(result: &Value) -> Option<u64> {
    let map = result.as_object().filter(|map| map.get("document").is_none_or(|text| !text.is_string()))?;
    map.get("stdoutBytes").and_then(Value::as_u64)
}

/// What a program printed, or the document that an answer carries.
fn text_of(result: &Map<String, Value>) -> Option<&str> {
    ["document", "stdout"].into_iter().find_map(|name| result.get(name)?.as_str())
}

impl Outputs {
    /// `state` is `.sage/state`; `fork` the feature of a run that is a fork.
    pub fn new(project: &Path, state: &Path, fork: Option<String>) -> Outputs {
        Outputs { project: project.to_path_buf(), memory: Memory::new(state.join("outputs")), fork }
    }

    /// Whether this path may be written.
    pub fn check(&self, path: &str) -> Result<(), String> {
        self.locate(path).map(drop)
    }

    /// Writes a text where `path` says, or beside it. Blocks: not for the loop.
    pub fn write(&self, target: &Target, content: &Content) -> Result<Written, Refused> {
        let (path, own) = (&target.path, self.own_place(target));
        let (fence, inside) = self.locate(&own)?;
        let refuse = |error: io::Error| refused(&error, format!("cannot write `{own}`: {error}"));
        let (folder, name) = fence.folder_of(&inside).map_err(refuse)?;
        let sha = content.open().and_then(hash).map_err(refuse)?;
        let mut reason = (own != *path).then_some(AsideReason::Fork);
        for number in 0..=NEIGHBOURS {
            let beside = inside.with_file_name(neighbour(&name, number));
            let remembered = beside.to_string_lossy().into_owned();
            match self.put(&folder, beside.file_name().unwrap_or(&name), &remembered, &sha, content) {
                Ok(None) => {}
                Ok(Some(why)) => {
                    reason = if number == 0 { Some(why) } else { reason };
                    continue;
                }
                Err(error) => return Err(refuse(error)),
            }
            if number > 0 {
                // Moved to its real place by a person, it is still ours.
                self.memory.remember(&inside.to_string_lossy(), &sha).map_err(refuse)?;
            }
            let named = if number == 0 { own } else { remembered };
            let aside = reason.map(|why| Aside { wanted: path.clone(), written: named.clone(), why });
            return Ok(Written { path: named, aside });
        }
        Err(format!("cannot write `{own}`: {NEIGHBOURS} neighbours of it were changed by hand").into())
    }

    /// Puts the text into one file, or says why it may not be replaced.
    fn put(
        &self,
        folder: &Folder,
        name: &OsStr,
        path: &str,
        sha: &Digest,
        content: &Content,
    ) -> io::Result<Option<AsideReason>> {
        loop {
            let there = folder.entry(name)?;
            match self.look(folder, name, there, path, sha)? {
                Place::Taken(why) => return Ok(Some(why)),
                Place::Equal => {
                    self.memory.remember(path, sha)?;
                    // It may be as new as the answer: an agent wrote it, or a run that was killed.
                    folder.sync_file(&folder.open_file(name)?)?;
                    folder.sync()?;
                    return Ok(None);
                }
                Place::Free => self.memory.remember(path, sha)?,
            }
            // A person who saves the file in this very moment is not overwritten either: look again.
            if fill(folder, name, there, content)? {
                return Ok(None);
            }
        }
    }

    /// Makes sure that the files of a result that is used again hold it. What a person has changed stays as it
    /// is; `None` if nothing had to be written.
    pub fn restore(
        &self,
        target: &Target,
        files: &[String],
        result: &Value,
    ) -> Result<Option<Written>, Refused> {
        let content = match Content::of(result, None) {
            Ok(content) => content,
            // Only its beginning is known: the file itself must still be what was written.
            Err(why) => {
                let whole = |file: &String| self.is_ours(file) && self.len(file) == cut_at(result);
                return if files.iter().any(whole) { Ok(None) } else { Err(why.into()) };
            }
        };
        let sha = content.open().and_then(hash).map_err(|error| refused(&error, error.to_string()))?;
        let is_kept =
            |file: &String| self.sha_of(file).is_some_and(|there| there == sha || !self.is_ours(file));
        if files.iter().any(is_kept) { Ok(None) } else { self.write(target, &content).map(Some) }
    }

    fn sha_of(&self, path: &str) -> Option<Digest> {
        let (fence, inside) = self.locate(path).ok()?;
        File::open(fence.root().join(inside)).and_then(hash).ok()
    }

    fn len(&self, path: &str) -> Option<u64> {
        let (fence, inside) = self.locate(path).ok()?;
        Some(fence.root().join(inside).metadata().ok()?.len())
    }

    /// Whether a file holds a text that Sage wrote to it.
    fn is_ours(&self, path: &str) -> bool {
        let inside = self.locate(path).map(|(_, inside)| inside.to_string_lossy().into_owned());
        let (Ok(inside), Some(sha)) = (inside, self.sha_of(path)) else { return false };
        self.memory.knows(&inside, &sha) == Some(true)
    }

    fn look(
        &self,
        folder: &Folder,
        name: &OsStr,
        there: Option<Entry>,
        path: &str,
        sha: &Digest,
    ) -> io::Result<Place> {
        let Some(entry) = there else { return Ok(Place::Free) };
        if !entry.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let there = hash(folder.open_file(name)?)?;
        Ok(match self.memory.knows(path, &there) {
            _ if there == *sha => Place::Equal,
            Some(true) => Place::Free,
            Some(false) => Place::Taken(AsideReason::Changed),
            None => Place::Taken(AsideReason::Foreign),
        })
    }

    /// A fork writes beside its source: `hello.second-look.md`, unless the path is made of the feature's name.
    fn own_place(&self, target: &Target) -> String {
        match &self.fork {
            Some(feature) if !target.of_feature => with_mark(&target.path, feature),
            _ => target.path.clone(),
        }
    }

    fn locate(&self, path: &str) -> Result<(Fence, PathBuf), String> {
        plain(path)?;
        let state = self.memory.dir().parent().and_then(Path::parent).map(Path::to_path_buf);
        let closed: Vec<PathBuf> = state.into_iter().collect();
        let fence = Fence::new(&self.project).closing(&closed);
        let inside = fence.writable(Path::new(path)).map_err(|refused| refused.to_string())?;
        Ok((fence, inside))
    }
}

/// A full or read-only disk is not the step's failure.
fn refused(error: &io::Error, why: String) -> Refused {
    match Trouble::of(error, &why) {
        Some(trouble) => Refused::Hindered(Obstacle::Trouble(trouble)),
        None => Refused::Invalid(why),
    }
}

/// Templates name files of the project from its root on.
pub(crate) fn plain(path: &str) -> Result<(), String> {
    let mut parts = Path::new(path).components();
    let plain = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if path.is_empty() || !plain {
        return Err(format!("`{path}` is not a path inside the project"));
    }
    Ok(())
}

/// Whole or not at all, and durable; false if what was there has changed meanwhile.
fn fill(folder: &Folder, name: &OsStr, old: Option<Entry>, content: &Content) -> io::Result<bool> {
    let replaced = folder.replace_by(name, old, |file| {
        let mut from = content.open()?;
        io::copy(&mut from, file)?;
        folder.sync_file(file)
    })?;
    if replaced {
        folder.sync()?;
    }
    Ok(replaced)
}

fn hash(mut from: impl Read) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(Digest(hasher.finalize().into())),
            Ok(read) => hasher.update(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The name of the n-th neighbour: `spec.new.md`, `spec.new-2.md`.
fn neighbour(name: &OsStr, number: u32) -> OsString {
    match number {
        0 => name.to_owned(),
        1 => with_mark(&name.to_string_lossy(), "new").into(),
        number => with_mark(&name.to_string_lossy(), &format!("new-{number}")).into(),
    }
}

/// `docs/spec.md` becomes `docs/spec.mark.md`, `docs/report` `docs/report.mark`, `.rc` `.rc.mark`.
fn with_mark(path: &str, mark: &str) -> String {
    let start = path.rfind('/').map_or(0, |at| at + 1);
    let name = path.get(start..).unwrap_or_default();
    match name.rfind('.').filter(|at| *at > 0) {
        Some(at) => format!("{}.{mark}{}", &path[..start + at], &path[start + at..]),
        None => format!("{path}.{mark}"),
    }
}

#[cfg(test)]
mod tests;
