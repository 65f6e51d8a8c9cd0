//! Writing our own skills: a changed content is a new version, and the one before is kept.
//!
//! ```text
//! copy what is there -> .versions/<n>/ -> result.json, skill.ts, SKILL.md -> sage.json (version n + 1)
//! ```
//! Killed anywhere in between, the old content is in place or in `.versions`, and saving again completes it.

use std::path::{Path, PathBuf};

use sage_core::skill::{FILE, is_name};
use sage_core::wire::rfc3339;
use sage_fence::private;
use serde_json::Value;

use super::content::{MAX_BYTES, VERSIONS};
use super::kept::META_FILE;
use super::{Content, Meta, Origin, RESULT_FILE, SCRIPT_FILE, SkillError, Store, io_error, pretty};
use crate::vfs::{self, Vfs};

/// A skill about to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    pub name: String,
    /// The whole `SKILL.md`.
    pub text: String,
    /// What `result.json` will hold.
    pub result: Option<Value>,
    /// What `skill.ts` will hold.
    pub script: Option<String>,
    pub tags: Vec<String>,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub dir: PathBuf,
    pub version: u32,
    /// False if exactly this was saved before.
    pub changed: bool,
    /// Where the version before is.
    pub kept: Option<PathBuf>,
}

impl Store {
    pub fn save(&self, draft: &Draft) -> Result<Saved, SkillError> {
        if !is_name(&draft.name) {
            return Err(SkillError::Name(draft.name.escape_debug().to_string()));
        }
        let _lock = self.lock()?;
        let dir = self.own().join(&draft.name);
        refuse_links(&[self.own(), dir.clone(), dir.join(VERSIONS)])?;
        let before = self.present(&dir)?;
        let version = before.as_ref().map_or(0, |(meta, _)| meta.as_ref().map_or(1, |meta| meta.version));
        let past = dir.join(VERSIONS).join(version.to_string());
        // A version that is kept already is one whose successor was not finished.
        let unfinished = past.exists();
        if let Some((meta, content)) = &before
            && !unfinished
            && self.same(draft, meta.as_ref(), content)
        {
            return Ok(Saved { dir, version, changed: false, kept: None });
        }
        if before.is_some() && !unfinished {
            self.keep(&dir, &past)?;
        }
        let next = version.saturating_add(1);
        self.write(&dir, draft, next)?;
        Ok(Saved { dir, version: next, changed: true, kept: before.map(|_| past) })
    }

    /// What is there now, if anything is.
    fn present(&self, dir: &Path) -> Result<Option<(Option<Meta>, Content)>, SkillError> {
        if !dir.join(FILE).exists() {
            return Ok(None);
        }
        let damaged = |why| SkillError::Damaged { path: dir.join(META_FILE), why };
        let meta = Meta::load(self.vfs.as_ref(), dir).map_err(damaged)?;
        Ok(Some((meta, Content::read(dir)?)))
    }

    fn same(&self, draft: &Draft, meta: Option<&Meta>, content: &Content) -> bool {
        let result = content.result().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        meta.is_some_and(|meta| meta.tags == draft.tags)
            && content.skill_text() == draft.text
            && result == draft.result
            && content.script() == draft.script.as_deref()
    }

    fn keep(&self, dir: &Path, past: &Path) -> Result<(), SkillError> {
        let failed = |source| io_error("write", past, source);
        let temp = vfs::temp_name(past);
        let vfs = self.vfs.as_ref();
        for entry in Content::read(dir)?.files.iter().filter(|entry| entry.link_to.is_none()) {
            let (from, to) = (dir.join(&entry.path), temp.join(&entry.path));
            vfs.create_dir_all(vfs::parent(&to)).map_err(failed)?;
            // Not `fs::copy`, which takes the mode over.
            private::read(&from, MAX_BYTES)
                .and_then(|bytes| private::write_durable(&to, &bytes))
                .map_err(failed)?;
        }
        let moved = vfs.sync_dir(&temp).and_then(|()| vfs.rename(&temp, past));
        moved.and_then(|()| vfs.sync_dir(vfs::parent(past))).map_err(failed)
    }

    fn write(&self, dir: &Path, draft: &Draft, version: u32) -> Result<(), SkillError> {
        let vfs = self.vfs.as_ref();
        vfs::create_dir_durable(vfs, dir).map_err(|source| io_error("create", dir, source))?;
        let put = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            vfs::write_atomic(vfs, &path, bytes).map_err(|source| io_error("write", &path, source))
        };
        let json = |name: &str, text: std::io::Result<Vec<u8>>| {
            text.map_err(|source| io_error("write", &dir.join(name), source))
        };
        match &draft.result {
            Some(result) => put(RESULT_FILE, &json(RESULT_FILE, pretty(result))?)?,
            None => remove(vfs, &dir.join(RESULT_FILE))?,
        }
        match &draft.script {
            Some(script) => put(SCRIPT_FILE, script.as_bytes())?,
            None => remove(vfs, &dir.join(SCRIPT_FILE))?,
        }
        put(FILE, draft.text.as_bytes())?;
        let created = rfc3339(self.clock.now_ms());
        let meta = Meta { version, created, origin: draft.origin.clone(), tags: draft.tags.clone() };
        put(META_FILE, &json(META_FILE, pretty(&meta))?)
    }
}

fn remove(vfs: &dyn Vfs, path: &Path) -> Result<(), SkillError> {
    match vfs.remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", path, error)),
        _ => Ok(()),
    }
}

/// Nothing is written through a link that a clone may have put there.
fn refuse_links(paths: &[PathBuf]) -> Result<(), SkillError> {
    for path in paths {
        if path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            let why = "is a link or no directory; skills are only written to real ones".to_string();
            return Err(SkillError::Content { path: path.clone(), why });
        }
    }
    Ok(())
}
