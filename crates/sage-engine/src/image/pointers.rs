//! Results that a checkpoint keeps outside of itself.

use sage_core::digest::Digest;
use serde_json::{Map, Value};

use crate::blobs::{BlobError, Blobs};

/// The first of them that cannot be had, and whose it is.
pub(crate) fn missing(doc: &Map<String, Value>, blobs: &Blobs) -> Option<(String, BlobError)> {
    let phases = doc.get("checkpoints").and_then(Value::as_object).into_iter().flatten();
    let phases =
        phases.filter_map(|(id, phase)| Some((format!("results of phase `{id}`"), phase.get("results")?)));
    let chunks = doc.get("calls").and_then(|calls| calls.get("chunks")?.as_array());
    let chunks = chunks.into_iter().flatten().map(|chunk| ("results of calls".to_string(), chunk));
    let pointed = phases.chain(chunks).filter_map(|(of, value)| Some((of, pointer(value)?)));
    pointed.into_iter().find_map(|(of, sha)| Some((of, blobs.get(&sha).err()?)))
}

/// The blob that stands for a value: `{"blob": sha256, "bytes": n}`.
pub(crate) fn pointer(value: &Value) -> Option<Digest> {
    let sha = value.get("blob").and_then(Value::as_str).filter(|_| value.get("bytes").is_some())?;
    sha.parse().ok()
}
