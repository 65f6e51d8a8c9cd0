//! What was said so far, in the protocol's own words: `conversation-<id>.json` in the session's directory.
//!
//! It is saved before each request and after each answer, so that a killed turn goes on from there. A fork
//! begins with a copy of its parent, which lies in another session's directory.

use std::io;
use std::path::{Path, PathBuf};

use sage_core::port::PromptFile;
use sage_core::secret::Redactor;
use sage_fence::private;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reply::{Answered, Call};
use super::wire::Api;
use crate::agent::{Conversation, Order};

/// Raised when an older sage could not read it any more.
const VERSION: u32 = 1;
/// Far more than any model's context.
const MAX_BYTES: u64 = 256 << 20;

/// Why a conversation cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost(pub String);

#[derive(Debug)]
pub struct History {
    api: Api,
    entries: Vec<Value>,
    /// Where there is no session, nothing is kept.
    file: Option<PathBuf>,
    redactor: Redactor,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    v: u32,
    /// Each protocol has its own words.
    api: String,
    entries: Vec<Value>,
}

impl History {
    pub fn open(order: &Order, api: Api, redactor: &Redactor) -> Result<History, Lost> {
        let redactor = redactor.clone();
        let dir = order.session_dir.as_deref();
        let new = |id: &str| dir.map(|dir| dir.join(name(id)));
        match &order.conversation {
            Conversation::New { id } => Ok(History { api, entries: Vec::new(), file: new(id), redactor }),
            Conversation::Resume { id, .. } => {
                let entries = load(dir, id, api)?;
                Ok(History { api, entries, file: new(id), redactor }.mended())
            }
            Conversation::Fork { of, id, .. } => {
                let entries = load(dir, of, api)?;
                Ok(History { api, entries, file: new(id), redactor }.mended())
            }
        }
    }

    pub fn entries(&self) -> &[Value] {
        &self.entries
    }

    /// A prompt that nobody has answered is not said twice.
    pub fn say(&mut self, prompt: &str, files: &[PromptFile]) {
        let unanswered = self.entries.last().and_then(|last| self.api.said_text(last));
        if unanswered.is_some_and(|text| prompt.starts_with(text)) {
            self.entries.pop();
        }
        self.entries.push(self.api.said(prompt, files));
    }

    /// What the endpoint and the tools have said, without the values of keys.
    pub fn add(&mut self, entries: impl IntoIterator<Item = Value>) {
        for mut entry in entries {
            self.redactor.value(&mut entry);
            self.entries.push(entry);
        }
    }

    /// Whole or not at all.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let saved = Saved { v: VERSION, api: self.api.name().into(), entries: self.entries.clone() };
        let text = serde_json::to_vec(&saved).map_err(io::Error::other)?;
        private::write(file, &text)
    }

    /// Every call needs a result, also those of a turn that was killed.
    fn mended(mut self) -> History {
        let open = self.api.open_calls(&self.entries);
        let calls: Vec<Call> = open.iter().map(|id| Call::new(id, "", "")).collect();
        let unknown = || Err("interrupted; nobody knows whether it was done".to_string());
        let answered: Vec<Answered<'_>> =
            calls.iter().map(|call| Answered { call, result: unknown() }).collect();
        if !answered.is_empty() {
            let results = self.api.results(&answered);
            self.add(results);
        }
        self
    }
}

fn name(id: &str) -> String {
    format!("conversation-{id}.json")
}

/// From the session itself, or from the one that it was forked from.
fn load(dir: Option<&Path>, id: &str, api: Api) -> Result<Vec<Value>, Lost> {
    let lost = |why: String| Lost(format!("conversation `{id}` {why}"));
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let dir = dir.filter(|_| plain && !id.is_empty()).ok_or_else(|| lost("is nowhere kept".into()))?;
    let own = dir.join(name(id));
    let beside = || {
        let sessions = dir.parent()?;
        let all = private::list(sessions).ok()?.into_iter();
        all.map(|session| sessions.join(session.name).join(name(id))).find(|path| path.exists())
    };
    let path =
        if own.exists() { own } else { beside().ok_or_else(|| lost("is not there any more".into()))? };
    let text =
        private::read_text(&path, MAX_BYTES).map_err(|error| lost(format!("cannot be read: {error}")))?;
    let saved: Saved = serde_json::from_str(&text).map_err(|error| lost(format!("is damaged: {error}")))?;
    if saved.v > VERSION {
        return Err(lost("was written by a newer sage".into()));
    }
    if saved.api != api.name() {
        return Err(lost(format!("was held with `{}`, not with `{}`", saved.api, api.name())));
    }
    Ok(saved.entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S3, R15
    #[test]
    fn a_device_in_the_place_of_a_conversation_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join(name("talk"))).unwrap();
        let Lost(why) = load(Some(dir.path()), "talk", Api::Anthropic).unwrap_err();
        assert!(why.contains("not a regular file"), "{why}");
    }
}
