//! Events about results that an earlier run has paid for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::digest::Digest;
use crate::port::Usage;

/// What a start knows of the cache: under which key its result will be kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheMiss {
    pub key: Digest,
    /// Nobody looked: the run does not read the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// What was there could not be used: it was damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

/// What making a result took; a hit does not take it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Paid {
    /// Active time.
    pub ms: u64,
    #[serde(skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
}

/// The step needs no attempt: an earlier run has its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCached {
    pub step: Arc<str>,
    pub key: Digest,
    pub parts: BTreeMap<String, String>,
    /// Of the cache; a result that was found in an earlier run's journal has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<Digest>,
    /// The run that made it.
    pub from: String,
    pub age_ms: u64,
    /// Until it is too old; `None` if it is already, and only stands in for a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    pub result: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Payload>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<super::Aside>,
    #[serde(default)]
    pub saved: Paid,
}
