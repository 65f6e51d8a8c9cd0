//! One kept result, as it lies on disk: plain JSON whose last field is the checksum of all bytes before it.

use std::collections::BTreeMap;

use sage_core::digest::{Digest, HEX_LEN};
use sage_core::event::Paid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const VERSION: u32 = 1;
const SEAL: &str = ",\"sha256\":\"";
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
    Unsealed,
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

    /// The bytes of the file.
    pub fn seal(&self) -> Result<Vec<u8>, Damage> {
        let mut text = serde_json::to_string(self)?;
        text.pop();
        let sha = Digest::of(text.as_bytes());
        text.push_str(&format!("{SEAL}{sha}{END}"));
        Ok(text.into_bytes())
    }

    /// An entry that is whole, and nothing else.
    pub fn open(bytes: &[u8]) -> Result<Entry, Damage> {
        let tail = SEAL.len() + HEX_LEN + END.len();
        let body = bytes.len().checked_sub(tail).ok_or(Damage::Unsealed)?;
        let (body, seal) = bytes.split_at(body);
        let sha = seal.strip_prefix(SEAL.as_bytes()).and_then(|rest| rest.strip_suffix(END.as_bytes()));
        let sha = sha.and_then(|hex| Digest::from_hex(hex).ok()).ok_or(Damage::Unsealed)?;
        if Digest::of(body) != sha {
            return Err(Damage::Checksum);
        }
        let entry: Entry = serde_json::from_slice(bytes)?;
        if entry.v != VERSION { Err(Damage::Version(entry.v)) } else { Ok(entry) }
    }

    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.created_ms)
    }

    /// What is left of its time by the entry's own word; `None` if it is over.
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        self.ttl_ms.checked_sub(self.age_ms(now_ms)).filter(|left| *left > 0)
    }
}
