//! Seals prove that state was written by this user on this machine and did not arrive with a repository.
//!
//! A seal is an HMAC-SHA-256 truncated to 16 bytes, made with a key that only this user can read. Each purpose has
//! its own key ([`Key::scoped`]), so a seal cannot be moved to another file: a record of one run is not valid in a
//! second run.
//! What must stay true: keys are never printed or serialised; seals are compared in constant time.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::canonical::{self, CanonicalError};
use crate::digest::{Digest, read_hex, write_hex};

/// Bytes of a key.
pub const KEY_LEN: usize = 32;

/// Digits of a seal in text.
pub const SEAL_HEX_LEN: usize = SEAL_LEN * 2;

const SEAL_LEN: usize = 16;

/// The field of a JSON document that holds its seal.
pub const FIELD: &str = "seal";

/// The user's secret key, or a key for one purpose derived from it.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Proof that the holder of a key wrote some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal([u8; SEAL_LEN]);

/// Bytes, by their hash, and the seal that they carry: whether it is valid, a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub content: Digest,
    pub seal: Seal,
}

impl Sealed {
    /// Constant time. Without a key no seal is valid.
    #[must_use]
    pub fn holds(&self, key: Option<&Key>) -> bool {
        key.is_some_and(|key| key.mac(&self.content.0).verify_truncated_left(&self.seal.0).is_ok())
    }
}

impl Key {
    #[must_use]
    pub fn new(bytes: &[u8; KEY_LEN]) -> Key {
        // A shorter key is padded with zeros; a whole block cannot have the wrong length.
        let mut block = [0; 64];
        block[..KEY_LEN].copy_from_slice(bytes);
        Key(Hmac::new(&block.into()))
    }

    /// Derives the key for one purpose. `name` distinguishes files of the same kind: a run id, a server name.
    #[must_use]
    pub fn scoped(&self, purpose: &str, name: &str) -> Key {
        let mut mac = self.0.clone();
        for part in [purpose, name] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        Key::new(&mac.finalize().into_bytes().into())
    }

    /// Seals what has this hash.
    #[must_use]
    pub fn seal(&self, content: &Digest) -> Seal {
        let mut seal = [0; SEAL_LEN];
        seal.copy_from_slice(&self.mac(&content.0).finalize().into_bytes()[..SEAL_LEN]);
        Seal(seal)
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        self.0.clone().chain_update(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Seal {
    /// Strict: exactly 32 lower-case hex digits.
    #[must_use]
    pub fn from_hex(hex: &[u8]) -> Option<Seal> {
        let mut bytes = [0; SEAL_LEN];
        read_hex(hex, &mut bytes).then_some(Seal(bytes))
    }

    #[must_use]
    pub fn hex(&self) -> [u8; SEAL_HEX_LEN] {
        let mut hex = [0; SEAL_HEX_LEN];
        write_hex(&self.0, &mut hex);
        hex
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).map_err(|_| fmt::Error)?)
    }
}

/// Sets the field `seal` of a document. Without a key the field is removed.
pub fn seal_document(document: &mut Map<String, Value>, key: Option<&Key>) -> Result<(), CanonicalError> {
    document.shift_remove(FIELD);
    let Some(key) = key else { return Ok(()) };
    let text = serde_json::to_string(document).map_err(CanonicalError::malformed)?;
    let seal = key.seal(&Digest::of(canonical::without(&text, &[FIELD])?.as_bytes()));
    document.insert(FIELD.to_owned(), seal.to_string().into());
    Ok(())
}

/// The text of a sealed document: pretty-printed JSON with a line break at its end.
pub fn document_text(value: &impl Serialize, key: Option<&Key>) -> Result<String, CanonicalError> {
    let text = match serde_json::to_value(value).map_err(CanonicalError::malformed)? {
        Value::Object(mut document) => {
            seal_document(&mut document, key)?;
            serde_json::to_string_pretty(&document).map_err(CanonicalError::malformed)?
        }
        _ => return Err(CanonicalError::malformed("a sealed document is an object")),
    };
    Ok(text + "\n")
}

/// The seal that the document in `text` carries. Fields in `beside` were added after it was sealed.
#[must_use]
pub fn claimed(text: &str, beside: &[&str]) -> Option<Sealed> {
    #[derive(serde::Deserialize)]
    struct Claim {
        seal: String,
    }
    let claim: Claim = serde_json::from_str(text).ok()?;
    let seal = Seal::from_hex(claim.seal.as_bytes())?;
    let without: Vec<&str> = beside.iter().copied().chain([FIELD]).collect();
    let content = Digest::of(canonical::without(text, &without).ok()?.as_bytes());
    Some(Sealed { content, seal })
}

/// Whether the document in `text` carries a valid seal.
#[must_use]
pub fn is_sealed(text: &str, key: Option<&Key>) -> bool {
    key.is_some() && claimed(text, &[]).is_some_and(|sealed| sealed.holds(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; KEY_LEN])
    }

    // The first test case of RFC 4231.
    #[test]
    fn it_is_hmac_sha_256() {
        let mut bytes = [0; KEY_LEN];
        bytes[..20].copy_from_slice(&[0x0b; 20]);
        let mac = Digest(Key::new(&bytes).mac(b"Hi There").finalize().into_bytes().into());
        assert_eq!(mac.to_string(), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }

    #[test]
    fn a_seal_holds_for_its_content_its_key_and_its_purpose_only() {
        let (content, mine) = (Digest::of(b"text"), key(1).scoped("journal", "run_1"));
        let sealed = Sealed { content, seal: mine.seal(&content) };
        assert!(sealed.holds(Some(&mine)));
        assert!(!Sealed { content: Digest::of(b"texT"), ..sealed }.holds(Some(&mine)));
        for other in [key(1).scoped("journal", "run_2"), key(1).scoped("cache", "run_1"), key(2)] {
            assert!(!sealed.holds(Some(&other)));
        }
        assert!(!sealed.holds(None));
        // No two ways to write one purpose.
        assert_ne!(key(1).scoped("ab", "c").seal(&content), key(1).scoped("a", "bc").seal(&content));
        assert_eq!(format!("{:?}", key(1)), "Key(..)");
    }

    #[test]
    fn hex_round_trips_and_nothing_else_is_a_seal() {
        let seal = key(1).seal(&Digest::of(b"x"));
        assert_eq!(Seal::from_hex(&seal.hex()), Some(seal));
        let text = seal.to_string();
        for wrong in [&text[1..], &text.to_uppercase(), &format!("{text}0"), ""] {
            assert_eq!(Seal::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_document_is_sealed_whatever_its_layout() {
        let document = json!({"b": 0.1, "a": [1, {"y": 1e-7, "x": "\u{e9}"}], "seal": "old"});
        let text = document_text(&document, Some(&key(1))).unwrap();
        assert!(is_sealed(&text, Some(&key(1))));
        assert!(!is_sealed(&text, Some(&key(2))));
        assert!(!is_sealed(&text, None));
        assert!(!is_sealed(&text.replace("0.1", "0.2"), Some(&key(1))));
        assert!(!is_sealed(&text.replacen('{', "{\"c\": 1,", 1), Some(&key(1))));
        let beside = claimed(&text.replacen('{', "{\"c\": 1,", 1), &["c"]);
        assert!(beside.is_some_and(|sealed| sealed.holds(Some(&key(1)))));
        assert!(!is_sealed(&text.replacen('{', "{\"b\": 0.1,", 1), Some(&key(1))), "a key twice");
        for wrong in ["", "[]", "{}", "{\"seal\": 5}", "{\"seal\": \"x\"}"] {
            assert!(!is_sealed(wrong, Some(&key(1))), "{wrong}");
        }
        assert!(!document_text(&document, None).unwrap().contains(FIELD));
        assert!(document_text(&json!([]), None).is_err());
    }
}
