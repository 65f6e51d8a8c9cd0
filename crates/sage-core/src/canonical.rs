//! The canonical form of a JSON text, for checksums and seals.
//!
//! Works on the text, not on parsed values: a number's digits are kept as they are, so reading and writing it
//! again can't change the checksum, and keys that occur twice are seen before a map would hide them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// serde_json's own bound for parsed values.
const MAX_DEPTH: usize = 128;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    #[error("not a valid document: {0}")]
    Malformed(String),
    #[error("the key `{0}` occurs twice")]
    DuplicateKey(String),
}

impl CanonicalError {
    pub fn malformed(error: impl fmt::Display) -> CanonicalError {
        CanonicalError::Malformed(error.to_string())
    }
}

/// The canonical form of the object in `text`, without its fields `skipped`.
pub fn without(text: &str, skipped: &[&str]) -> Result<String, CanonicalError> {
    let mut out = String::with_capacity(text.len());
    let mut fields = fields(text)?;
    fields.retain(|(key, _)| !skipped.contains(&key.as_str()));
    write_object(&mut out, &fields, MAX_DEPTH)?;
    Ok(out)
}

fn write_value(out: &mut String, value: &RawValue, depth: usize) -> Result<(), CanonicalError> {
    let text = value.get();
    let depth = depth.checked_sub(1).ok_or_else(|| CanonicalError::malformed("nested too deeply"))?;
    match text.as_bytes().first() {
        Some(b'{') => write_object(out, &fields(text)?, depth),
        Some(b'[') => write_array(out, text, depth),
        Some(b'"') => {
            write_string(out, &serde_json::from_str::<String>(text).map_err(CanonicalError::malformed)?)
        }
        _ => {
            out.push_str(text);
            Ok(())
        }
    }
}

fn write_object(
    out: &mut String,
    fields: &[(String, &RawValue)],
    depth: usize,
) -> Result<(), CanonicalError> {
    out.push('{');
    for (index, (key, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, key)?;
        out.push(':');
        write_value(out, value, depth)?;
    }
    out.push('}');
    Ok(())
}

fn write_array(out: &mut String, text: &str, depth: usize) -> Result<(), CanonicalError> {
    out.push('[');
    for (index, item) in
        serde_json::from_str::<Vec<&RawValue>>(text).map_err(CanonicalError::malformed)?.iter().enumerate()
    {
        if index > 0 {
            out.push(',');
        }
        write_value(out, item, depth)?;
    }
    out.push(']');
    Ok(())
}

fn write_string(out: &mut String, text: &str) -> Result<(), CanonicalError> {
    out.push_str(&serde_json::to_string(text).map_err(CanonicalError::malformed)?);
    Ok(())
}

/// The fields of an object, sorted; each key once.
fn fields(text: &str) -> Result<Vec<(String, &RawValue)>, CanonicalError> {
    let mut fields = serde_json::from_str::<Fields<'_>>(text).map_err(CanonicalError::malformed)?.0;
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    match fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(CanonicalError::DuplicateKey(pair[0].0.clone())),
        None => Ok(fields),
    }
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}
