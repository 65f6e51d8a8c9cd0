//! One kept result, as it lies on disk: plain JSON whose last field is the checksum of all bytes before it.
//!
//! The field before that is its seal: an entry that came with a repository is not a result of ours.

use std::collections::BTreeMap;

use sage_core::digest::{Digest, HEX_LEN};
use sage_core::event::Paid;
use sage_core::seal::{Key, SEAL_HEX_LEN, Seal, Sealed};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const VERSION: u32 = 1;
const SEAL: &str = ",\"seal\":\"";
const SEAL_END: &str = "\"";
const SHA: &str = ",\"sha256\":\"";
const END: &str = "\"}\n";

/// Field order is the order on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub v: u32,
    pub key: Digest,
    pub operation: String,
    pub step: String,
    pub feature: String,
    /// The run that made it.
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub created_ms: u64,
    pub ttl_ms: u64,
    pub last_used_ms: u64,
    /// Times that a later run took it.
    #[serde(default)]
    pub uses: u32,
    /// Of the result, filtered and whole.
    pub bytes: u64,
    /// What the key is made of, each part shortened.
    pub parts: BTreeMap<String, String>,
    pub paid: Paid,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// In canonical form: its hash is the result's.
    pub result: Box<RawValue>,
    /// The whole result where `result` is a filtered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Box<RawValue>>,
}

/// Why an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("it has no checksum")]
    Unchecked,
    #[error("it was not written by this user on this machine")]
    Foreign,
    #[error("its checksum is another one")]
    Checksum,
    #[error("it is not readable: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it was written by another version ({0})")]
    Version(u32),
    #[error("it is the entry of another key")]
    Misplaced,
}

impl Entry {
    pub const VERSION: u32 = VERSION;

    fn scoped(user: &Key, key: &Digest) -> Key {
        user.scoped("cache", &key.to_string())
    }

    /// The bytes of the file.
    pub fn seal(&self, user: &Key) -> Result<Vec<u8>, Damage> {
        let mut text = serde_json::to_string(self)?;
        text.pop();
        let seal = Entry::scoped(user, &self.key).seal(&Digest::of(text.as_bytes()));
        text.push_str(&format!("{SEAL}{seal}{SEAL_END}"));
        let sha = Digest::of(text.as_bytes());
        text.push_str(&format!("{SHA}{sha}{END}"));
        Ok(text.into_bytes())
    }

    /// An entry that is whole and this user's, and nothing else.
    pub fn open(bytes: &[u8], user: &Key) -> Result<Entry, Damage> {
        let (body, sha) = split(bytes, SHA, HEX_LEN, END).ok_or(Damage::Unchecked)?;
        let sha = Digest::from_hex(sha).map_err(|_| Damage::Unchecked)?;
        if Digest::of(body) != sha {
            return Err(Damage::Checksum);
        }
        let entry: Entry = serde_json::from_slice(bytes)?;
        if entry.v != VERSION {
            return Err(Damage::Version(entry.v));
        }
        let sealed = split(body, SEAL, SEAL_HEX_LEN, SEAL_END)
            .and_then(|(body, hex)| Some(Sealed { content: Digest::of(body), seal: Seal::from_hex(hex)? }));
        match sealed.filter(|sealed| sealed.holds(Some(&Entry::scoped(user, &entry.key)))) {
            Some(_) => Ok(entry),
            None => Err(Damage::Foreign),
        }
    }

    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.created_ms)
    }

    /// What is left of its time by the entry's own word; `None` if it is over.
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        self.ttl_ms.checked_sub(self.age_ms(now_ms)).filter(|left| *left > 0)
    }
}

/// What is before the last field, and the hex digits in it.
fn split<'a>(bytes: &'a [u8], name: &str, digits: usize, end: &str) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.len().checked_sub(name.len() + digits + end.len())?;
    let (body, field) = bytes.split_at(at);
    Some((body, field.strip_prefix(name.as_bytes())?.strip_suffix(end.as_bytes())?))
}
