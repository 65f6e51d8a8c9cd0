//! SHA-256 values: keys, results, blobs. Lower-case hex, compared strictly.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Digits of a digest in text.
pub const HEX_LEN: usize = 64;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 digest: 64 lower-case hex digits expected")]
pub struct NotADigest;

impl Digest {
    /// What the first record of a journal names as its predecessor.
    pub const ZERO: Self = Self([0; 32]);

    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Of a JSON value in canonical form: keys sorted, no white space.
    pub fn of_json(value: &Value) -> Digest {
        Digest::of(canonical(value).as_bytes())
    }

    /// Of several digests in a given order.
    pub fn of_all<'a>(digests: impl IntoIterator<Item = &'a Digest>) -> Digest {
        let mut hash = Sha256::new();
        digests.into_iter().for_each(|d| hash.update(d.0));
        Digest(hash.finalize().into())
    }

    pub fn short(&self) -> String {
        self.to_string()[..12].to_string()
    }

    /// Strict: exactly 64 lower-case hex digits.
    pub fn from_hex(hex: &[u8]) -> Result<Self, NotADigest> {
        let mut bytes = [0; 32];
        if read_hex(hex, &mut bytes) { Ok(Self(bytes)) } else { Err(NotADigest) }
    }

    /// The text, as bytes: what the journal writes without allocating.
    #[must_use]
    pub fn hex(&self) -> [u8; HEX_LEN] {
        let mut hex = [0; HEX_LEN];
        write_hex(&self.0, &mut hex);
        hex
    }
}

/// Whether `hex` is exactly the lower-case text of as many bytes as `bytes` holds; if so, they are there.
pub(crate) fn read_hex(hex: &[u8], bytes: &mut [u8]) -> bool {
    if hex.len() != bytes.len() * 2 {
        return false;
    }
    // Looked at as a whole at the end: digits are as random as a branch can be.
    let mut wrong = 0;
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
        wrong |= high | low;
        *byte = high << 4 | low & 15;
    }
    wrong & NOT_HEX == 0
}

/// The text of `bytes`, two digits each.
pub(crate) fn write_hex(bytes: &[u8], hex: &mut [u8]) {
    for (pair, byte) in hex.chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
        pair[1] = HEX_DIGITS[usize::from(byte & 15)];
    }
}

/// Set in the value of what is no digit.
const NOT_HEX: u8 = 0x80;

const NIBBLES: [u8; 256] = {
    let mut values = [NOT_HEX; 256];
    let mut value = 0;
    while value < HEX_DIGITS.len() {
        values[HEX_DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// A part is enough: it is a hash already.
impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        Self::from_hex(text.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.hex();
        f.pad(std::str::from_utf8(&hex).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self:.12})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Hex)
    }
}

/// Reads the text where it stands.
struct Hex;

impl serde::de::Visitor<'_> for Hex {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 lower-case hex digits")
    }

    fn visit_str<E: serde::de::Error>(self, hex: &str) -> Result<Digest, E> {
        hex.parse().map_err(E::custom)
    }
}

/// Canonical JSON: keys sorted at every level, no white space.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::String(text) => write_text(text, out),
        leaf => {
            // Numbers and words: a text takes whatever they write.
            let _ = write!(out, "{leaf}");
        }
    }
}

/// Quoted. What needs no escape, as most texts, is copied.
fn write_text(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        let _ = write!(out, "{}", Value::from(text));
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hex_round_trips_and_upper_case_is_refused() {
        let digest = Digest::of(b"sage");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().to_uppercase().parse::<Digest>(), Err(NotADigest));
        assert_eq!("00".parse::<Digest>(), Err(NotADigest));
        for wrong in ['g', '/', ':', '`', '\u{0}', '\u{7f}'] {
            for at in [0, 1, 62, 63] {
                let mut hex: Vec<char> = digest.to_string().chars().collect();
                hex[at] = wrong;
                assert_eq!(
                    hex.iter().collect::<String>().parse::<Digest>(),
                    Err(NotADigest),
                    "{wrong:?} at {at}"
                );
            }
        }
    }

    #[test]
    fn canonical_json_forgets_key_order_only() {
        assert_eq!(
            canonical(&json!({"b": [1, {"d": null, "c": "x"}], "a": 1.5})),
            r#"{"a":1.5,"b":[1,{"c":"x","d":null}]}"#
        );
        assert_eq!(Digest::of_json(&json!({"a": 1, "b": 2})), Digest::of_json(&json!({"b": 2, "a": 1})));
        assert_ne!(Digest::of_json(&json!([1, 2])), Digest::of_json(&json!([2, 1])));
    }

    #[test]
    fn canonical_texts_are_those_of_json() {
        for code in (0..=0x2ff).chain([0x2028, 0xfffd, 0x1f600]) {
            let text = format!("a{}b", char::from_u32(code).unwrap_or('x'));
            assert_eq!(canonical(&json!(text)), serde_json::to_string(&text).unwrap());
        }
    }
}
