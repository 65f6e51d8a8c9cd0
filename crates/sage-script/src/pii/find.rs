//! One pass over a text: at each place where one could begin, whether one does.

use std::ops::Range;

use super::{account, email, phone, secret};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Email,
    Phone,
    Card,
    Iban,
    Ssn,
    Secret,
    /// Text that looks like one of our tokens.
    Text,
}

impl Kind {
    pub const ALL: [Kind; 7] =
        [Kind::Email, Kind::Phone, Kind::Card, Kind::Iban, Kind::Ssn, Kind::Secret, Kind::Text];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Email => "EMAIL",
            Kind::Phone => "PHONE",
            Kind::Card => "CARD",
            Kind::Iban => "IBAN",
            Kind::Ssn => "SSN",
            Kind::Secret => "SECRET",
            Kind::Text => "TEXT",
        }
    }
}

/// Everything that is to be hidden, in order, without overlaps.
pub fn find(text: &str) -> Vec<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let mut found: Vec<(Range<usize>, Kind)> = Vec::new();
    let (mut at, mut from) = (0, 0);
    while at < bytes.len() {
        match begins(text, at, from) {
            Some((range, kind)) if range.end > at => {
                at = range.end;
                from = range.end;
                found.push((range, kind));
            }
            _ => at += 1,
        }
    }
    found
}

/// What begins at a byte; an e-mail address is seen at its `@` and begins before, but not before `from`.
fn begins(text: &str, at: usize, from: usize) -> Option<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let ranged = |end: usize, kind: Kind| (at..end, kind);
    match bytes[at] {
        b'@' => email::around(bytes, at, from).map(|range| (range, Kind::Email)),
        b'[' => token_end(text, at).map(|end| ranged(end, Kind::Text)),
        b':' => secret::in_address(text, at).map(|range| (range, Kind::Secret)),
        b'-' => secret::key_block(text, at).map(|end| ranged(end, Kind::Secret)),
        b'+' | b'(' if is_open(bytes, at) => phone::end(bytes, at).map(|end| ranged(end, Kind::Phone)),
        b'0'..=b'9' if is_open(bytes, at) => {
            let card = account::card_end(bytes, at).map(|end| ranged(end, Kind::Card));
            let ssn = || account::ssn_end(bytes, at).map(|end| ranged(end, Kind::Ssn));
            let phone = || phone::end(bytes, at).map(|end| ranged(end, Kind::Phone));
            card.or_else(ssn).or_else(phone)
        }
        b'a'..=b'z' | b'A'..=b'Z' if is_open(bytes, at) => {
            let iban = account::iban_end(bytes, at).map(|end| ranged(end, Kind::Iban));
            iban.or_else(|| secret::at(text, at).map(|range| (range, Kind::Secret)))
        }
        _ => None,
    }
}

/// Not inside of a word, a longer number or a path.
fn is_open(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|before| bytes[before]) {
        None => true,
        // A key may be the last part of an address; digits there are an id.
        Some(b'/') => bytes[at].is_ascii_alphabetic(),
        // Bytes of other scripts are letters: good enough for a border.
        Some(before) => !(before.is_ascii_alphanumeric() || before >= 0x80 || b"_-.+#\\&%".contains(&before)),
    }
}

/// Nothing follows that would make it a part of something longer.
pub(super) fn is_closed(bytes: &[u8], end: usize) -> bool {
    match bytes.get(end) {
        None => true,
        Some(next) if next.is_ascii_alphanumeric() || *next >= 0x80 || *next == b'_' => false,
        Some(b'-' | b'.' | b'/' | b':') => !bytes.get(end + 1).is_some_and(u8::is_ascii_digit),
        Some(_) => true,
    }
}

/// `[EMAIL_12]`
pub(super) fn token_end(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix('[')?;
    let kind = Kind::ALL.iter().find(|kind| rest.starts_with(kind.name()))?;
    let number = rest[kind.name().len()..].strip_prefix('_')?;
    let digits = number.bytes().take(12).take_while(u8::is_ascii_digit).count();
    (digits > 0 && number[digits..].starts_with(']')).then(|| at + 1 + kind.name().len() + 1 + digits + 1)
}
