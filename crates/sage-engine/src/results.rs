//! Results on their way between memory, journal and blobs.
//!
//! A result of up to 64 KiB travels in the journal itself; anything larger is a blob that is durable before
//! the event that names it. Lists and phases are put together when somebody looks.

use std::sync::Arc;

use sage_core::digest::{Digest, canonical};
use sage_core::event::Payload;
use sage_core::run::Output;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::blobs::{BlobError, Blobs};

/// The largest payload that is kept in a record.
pub const INLINE_BYTES: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("a result is not readable JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Canonical text, so that its hash is also the blob's name.
pub fn pack(value: &Value, blobs: &Blobs) -> Result<Payload, ResultError> {
    pack_canonical(&canonical(value), blobs)
}

/// Of a text that is canonical already.
pub fn pack_canonical(text: &str, blobs: &Blobs) -> Result<Payload, ResultError> {
    let sha = Digest::of(text.as_bytes());
    if text.len() > INLINE_BYTES {
        blobs.put(text.as_bytes())?;
        return Ok(Payload { sha, json: None, bytes: Some(text.len() as u64) });
    }
    Ok(Payload { sha, json: Some(Arc::from(RawValue::from_string(text.to_string())?)), bytes: None })
}

/// The canonical text of a payload.
pub fn text_of(payload: &Payload, blobs: &Blobs) -> Result<String, ResultError> {
    match &payload.json {
        Some(json) => Ok(json.get().to_string()),
        None if payload.is_blob() => Ok(String::from_utf8_lossy(&blobs.get(&payload.sha)?).into_owned()),
        None => Ok("null".into()),
    }
}

/// A payload small enough for a record by construction (an answer, a null).
pub fn pack_small(value: &Value) -> Result<Payload, ResultError> {
    let text = canonical(value);
    Ok(Payload {
        sha: Digest::of(text.as_bytes()),
        json: Some(Arc::from(RawValue::from_string(text)?)),
        bytes: None,
    })
}

pub fn unpack(payload: &Payload, blobs: &Blobs) -> Result<Value, ResultError> {
    match &payload.json {
        Some(json) => Ok(serde_json::from_str(json.get())?),
        None if payload.is_blob() => Ok(serde_json::from_slice(&blobs.get(&payload.sha)?)?),
        None => Ok(Value::Null),
    }
}

/// Which of its two faces an output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// What reaches the next prompt.
    Filtered,
    Full,
}

pub fn value_of(output: &Output, face: Face, blobs: &Blobs) -> Result<Value, ResultError> {
    match output {
        Output::Null => Ok(Value::Null),
        Output::Leaf { result, full, .. } => {
            let shown = if face == Face::Full { full.as_ref().unwrap_or(result) } else { result };
            unpack(shown, blobs)
        }
        Output::Whole { result, .. } => unpack(result, blobs),
        Output::List { items, .. } => {
            let value = |item: &Option<Arc<Output>>| {
                item.as_ref().map_or(Ok(Value::Null), |o| value_of(o, face, blobs))
            };
            Ok(Value::Array(items.iter().map(value).collect::<Result<_, _>>()?))
        }
        Output::Phases { phases, .. } => {
            let mut all = Map::new();
            for (phase, members) in phases {
                let mut results = Map::new();
                for (operation, output) in members {
                    results.insert(operation.to_string(), value_of(output, face, blobs)?);
                }
                all.insert(phase.to_string(), Value::Object(results));
            }
            Ok(Value::Object(all))
        }
    }
}

/// Whether its two faces differ.
pub fn is_filtered(output: &Output) -> bool {
    match output {
        Output::Null | Output::Whole { .. } => false,
        Output::Leaf { full, .. } => full.is_some(),
        Output::List { items, .. } => items.iter().flatten().any(|item| is_filtered(item)),
        Output::Phases { phases, .. } => {
            phases.iter().flat_map(|(_, members)| members).any(|(_, output)| is_filtered(output))
        }
    }
}

pub fn artifacts_of(output: &Output) -> Vec<String> {
    match output {
        Output::Leaf { artifacts, .. } => artifacts.clone(),
        Output::List { items, .. } => items.iter().flatten().flat_map(|o| artifacts_of(o)).collect(),
        _ => Vec::new(),
    }
}
