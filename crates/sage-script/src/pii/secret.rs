//! Keys of providers, signed tokens, private keys, passwords in addresses.

use std::ops::Range;

use sage_core::skill::scan::key_at;

/// Of one secret that is looked for; a private key has a few thousand.
const MAX_BYTES: usize = 16 << 10;

/// A provider's key, a signed token, or what follows `Bearer`.
pub fn at(text: &str, at: usize) -> Option<Range<usize>> {
    if let Some(length) = key_at(text, at) {
        return Some(at..at + length);
    }
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(b"eyJ") {
        return signed(rest).map(|length| at..at + length);
    }
    let named = rest.len() > 27 && rest[..7].eq_ignore_ascii_case(b"bearer ");
    let length = if named { word(&rest[7..]) } else { 0 };
    (length >= 20).then(|| at + 7..at + 7 + length)
}

fn word(bytes: &[u8]) -> usize {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(byte);
    bytes.iter().take(MAX_BYTES).take_while(part).count()
}

/// Three parts with dots, the first of which begins a JSON object.
fn signed(bytes: &[u8]) -> Option<usize> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let length = bytes.iter().take(MAX_BYTES).take_while(part).count();
    let mut parts = bytes[..length].split(|byte| *byte == b'.');
    let long = |part: Option<&[u8]>, least: usize| part.is_some_and(|part| part.len() >= least);
    (long(parts.next(), 10) && long(parts.next(), 10) && long(parts.next(), 20)).then_some(length)
}

/// `-----BEGIN PRIVATE KEY----- ... -----END PRIVATE KEY-----`
pub fn key_block(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix("-----BEGIN ")?;
    let head = &rest[..rest.floor_char_boundary(64)];
    if !head.split("-----").next().is_some_and(|title| title.contains("PRIVATE KEY")) {
        return None;
    }
    let block = &text[at..at + text[at..].floor_char_boundary(MAX_BYTES)];
    let end = block.find("-----END ").and_then(|end| Some(end + 9 + block[end + 9..].find("-----")? + 5));
    // One that was cut is a key, too.
    Some(at + end.unwrap_or(block.len()))
}

/// The password of `scheme://user:password@host`, seen at the colon of the scheme.
pub fn in_address(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix("://")?;
    let rest = &rest[..rest.floor_char_boundary(512)];
    let end = rest.find(|c: char| c.is_whitespace() || "/\"'`<>".contains(c)).unwrap_or(rest.len());
    let (user, _) = rest[..end].rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let from = at + 3 + name.len() + 1;
    (password.len() >= 3 && !password.starts_with(['$', '<', '{', '['])).then(|| from..from + password.len())
}
