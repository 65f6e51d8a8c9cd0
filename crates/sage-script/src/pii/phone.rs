//! Telephone numbers: international ones with their `+`, and those of North America in the forms people write.
//!
//! Digits without any sign could be anything and are left alone, unless their field says that they are a number to
//! call (vault.rs).

use super::find::is_closed;

pub fn end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes[at] {
        b'+' => international(bytes, at),
        _ => north_american(bytes, at),
    }
}

/// `+49 30 1234567`, `+1 (555) 123-4567`, `+442071838750`: 8 to 15 digits; 9 where nothing separates them.
fn international(bytes: &[u8], at: usize) -> Option<usize> {
    if !matches!(bytes.get(at + 1), Some(b'1'..=b'9')) {
        return None;
    }
    let most = if bytes[at + 1] == b'1' { 11 } else { 15 };
    let (mut digits, mut separators, mut gap) = (0usize, 0usize, 0usize);
    let mut best = None;
    for (offset, byte) in bytes[at + 1..].iter().enumerate() {
        let next = at + 2 + offset;
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                gap = 0;
                if digits > most {
                    break;
                }
                let least = if separators == 0 { 9 } else { 8 };
                if digits >= least && is_closed(bytes, next) {
                    best = Some(next);
                }
            }
            b' ' | b'-' | b'.' | b'(' | b')' | b'/' if gap < 2 => {
                gap += 1;
                separators += 1;
            }
            _ => break,
        }
    }
    best
}

/// `(555) 123-4567`, `555-123-4567`, `555.123.4567`, and each with `1-` before it.
fn north_american(bytes: &[u8], at: usize) -> Option<usize> {
    let prefixed = bytes[at] == b'1' && matches!(bytes.get(at + 1), Some(b'-' | b'.' | b' '));
    let at = if prefixed { at + 2 } else { at };
    let (mark, next) = match bytes.get(at)? {
        b'(' => {
            area(bytes, at + 1)?;
            bytes.get(at + 4).filter(|byte| **byte == b')')?;
            (b'-', at + 5 + usize::from(bytes.get(at + 5) == Some(&b' ')))
        }
        _ => {
            area(bytes, at)?;
            (*bytes.get(at + 3).filter(|byte| b"-.".contains(byte))?, at + 4)
        }
    };
    let rest = bytes.get(next..next + 8)?;
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let whole = digits(&rest[..3]) && rest[3] == mark && digits(&rest[4..]);
    (whole && is_closed(bytes, next + 8)).then_some(next + 8)
}

/// Three digits, the first of them 2 to 9.
fn area(bytes: &[u8], at: usize) -> Option<()> {
    let part = bytes.get(at..at + 3)?;
    (part[0] >= b'2' && part.iter().all(u8::is_ascii_digit)).then_some(())
}
