//! E-mail addresses, seen at their `@`.

use std::ops::Range;

const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 253;

pub fn around(bytes: &[u8], at: usize, from: usize) -> Option<Range<usize>> {
    let local = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-'".contains(byte);
    let least = from.max(at.saturating_sub(MAX_LOCAL));
    let mut start = at - bytes[least..at].iter().rev().take_while(|byte| local(byte)).count();
    while start < at && !bytes[start].is_ascii_alphanumeric() {
        start += 1;
    }
    if start == at || bytes[at - 1] == b'.' {
        return None;
    }
    let domain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'.';
    let rest = &bytes[at + 1..];
    let mut length = rest.iter().take(MAX_DOMAIN).take_while(|byte| domain(byte)).count();
    // A sentence may end behind it.
    while length > 0 && !rest[length - 1].is_ascii_alphanumeric() {
        length -= 1;
    }
    let end = at + 1 + length;
    let mut labels = rest[..length].split(|byte| *byte == b'.');
    let last = labels.next_back()?;
    let whole = labels.clone().count() >= 1 && labels.all(|label| !label.is_empty());
    let named = last.len() >= 2 && last.iter().all(u8::is_ascii_alphabetic);
    // `git@host:path` is where a repository lies.
    let repository = &bytes[start..at] == b"git" && bytes.get(end) == Some(&b':');
    (whole && named && !repository).then_some(start..end)
}
