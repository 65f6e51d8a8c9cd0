//! Events of workflows in code: what a script asked for, said, and came to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{End, Payload};
use crate::digest::Digest;

/// A script made a call: it is a step from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCalled {
    /// The script's step.
    pub step: Arc<str>,
    /// How many calls the script made before.
    pub number: u32,
    /// Path of the call's own step.
    pub path: Arc<str>,
    /// What it asks for, and how many equal ones were before: this is what it is known by.
    pub identity: Digest,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
    /// The operation without its parameters: the same for many calls.
    pub shape: Arc<RawValue>,
    pub params: Payload,
    /// The group of the script that it belongs to, as the script names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
    /// Where it is in the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Arc<str>>,
    /// How many ends of its calls the script had been told when it made this one; all of them if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
}

/// A script asks again for a call that is to run once more: before that it waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecalled {
    /// The call's own step.
    pub step: Arc<str>,
}

/// A script came to its end, or a workflow is given up; what it left running is given up, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepReturned {
    pub step: Arc<str>,
    pub end: End,
}

/// A script said something to whoever watches.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepNoted {
    pub step: Arc<str>,
    pub text: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
