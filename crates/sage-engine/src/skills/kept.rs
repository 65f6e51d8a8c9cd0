//! What we know of our own skills, beside their `SKILL.md`: `sage.json`. It goes through git with the skill.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::vfs::Vfs;

pub(super) const META_FILE: &str = "sage.json";
/// What the steps had found when the skill was saved: path of the step -> its result.
pub const RESULT_FILE: &str = "result.json";
/// The TypeScript of a code skill: other code imports it as `skills/<name>`.
pub const SCRIPT_FILE: &str = "skill.ts";
const MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Counts the contents that it has had.
    pub version: u32,
    /// RFC 3339; of this version.
    pub created: String,
    pub origin: Origin,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// The run that a skill came out of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    pub run: String,
    pub feature: String,
    pub template: String,
    pub steps: Vec<String>,
}

impl Meta {
    /// `None` where there is none; what is wrong with one that cannot be read.
    pub(super) fn load(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Meta>, String> {
        let bytes = match vfs.read(&dir.join(META_FILE), MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string())
    }
}
