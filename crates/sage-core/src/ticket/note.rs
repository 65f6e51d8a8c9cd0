//! What was found out about a ticket: by a run, by a person, by another tool.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Note {
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub text: String,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A note is an object, or just its text.
impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Note, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Note {
                #[serde(default)]
                at: Option<String>,
                #[serde(default)]
                run: Option<String>,
                #[serde(default)]
                text: String,
                #[serde(flatten)]
                other: Map<String, Value>,
            },
        }
        Ok(match Written::deserialize(from)? {
            Written::Text(text) => Note { text, ..Note::default() },
            Written::Note { at, run, text, other } => Note { at, run, text, other },
        })
    }
}
