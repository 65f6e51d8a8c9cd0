//! Numbers with a check in them: cards (issuer, length, Luhn), IBANs (country, length, modulo 97), and US social
//! security numbers, which have none but a form of their own.

use super::find::is_closed;

/// Countries and the length of their IBANs.
const IBANS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AT", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BR", 29),
    (b"CH", 21),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"EE", 20),
    (b"ES", 24),
    (b"FI", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GI", 23),
    (b"GR", 27),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"MC", 27),
    (b"MT", 31),
    (b"NL", 18),
    (b"NO", 15),
    (b"PL", 28),
    (b"PT", 25),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"TR", 26),
    (b"UA", 29),
];

/// `4111 1111 1111 1111`, with spaces, dashes or nothing between its groups.
pub fn card_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut digits, mut groups) = (Vec::with_capacity(19), vec![0usize]);
    let mut mark = None;
    let mut end = at;
    for (offset, byte) in bytes[at..].iter().take(24).enumerate() {
        match byte {
            b'0'..=b'9' if digits.len() < 20 => {
                digits.push(byte - b'0');
                if let Some(group) = groups.last_mut() {
                    *group += 1;
                }
                end = at + offset + 1;
            }
            b' ' | b'-' if mark.is_none_or(|mark| mark == *byte) && groups.last() != Some(&0) => {
                mark = Some(*byte);
                groups.push(0);
            }
            _ => break,
        }
    }
    groups.retain(|group| *group > 0);
    let shape: &[usize] = &groups;
    let grouped = matches!(shape, [_] | [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 4, 3]);
    (grouped && issued(&digits) && luhn(&digits) && is_closed(bytes, end)).then_some(end)
}

/// Whether somebody issues cards of this beginning and length.
pub fn issued(digits: &[u8]) -> bool {
    let head = |count: usize| digits.iter().take(count).fold(0u32, |sum, digit| sum * 10 + u32::from(*digit));
    match digits.len() {
        14 => matches!(head(3), 300..=305) || matches!(head(2), 36 | 38),
        15 => matches!(head(2), 34 | 37),
        16 => {
            head(1) == 4
                || matches!(head(2), 51..=55 | 62 | 65)
                || matches!(head(4), 2221..=2720 | 6011 | 3528..=3589)
                || matches!(head(3), 644..=649)
        }
        19 => head(2) == 62,
        _ => false,
    }
}

pub fn luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| u32::from(if at % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[0])
}

/// `DE89 3704 0044 0532 0130 00`
pub fn iban_end(bytes: &[u8], at: usize) -> Option<usize> {
    let country: &[u8] = bytes.get(at..at + 2)?;
    let (_, length) = IBANS.iter().find(|(code, _)| &code[..] == country)?;
    let mut taken = Vec::with_capacity(*length);
    let mut end = at;
    for (offset, byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'A'..=b'Z' | b'0'..=b'9' => taken.push(*byte),
            b' ' if taken.len() % 4 == 0 && !taken.is_empty() => continue,
            _ => break,
        }
        end = at + offset + 1;
        if taken.len() == *length {
            break;
        }
    }
    let numbered = taken.get(2..4).is_some_and(|check| check.iter().all(u8::is_ascii_digit));
    (taken.len() == *length && numbered && remainder(&taken) == 1 && is_closed(bytes, end)).then_some(end)
}

fn remainder(iban: &[u8]) -> u32 {
    iban[4..].iter().chain(&iban[..4]).fold(0u32, |sum, byte| match byte {
        b'0'..=b'9' => (sum * 10 + u32::from(byte - b'0')) % 97,
        _ => (sum * 100 + u32::from(byte - b'A') + 10) % 97,
    })
}

/// `078-05-1120`; some numbers were never given out.
pub fn ssn_end(bytes: &[u8], at: usize) -> Option<usize> {
    let text = bytes.get(at..at + 11)?;
    let shaped = text.iter().enumerate().all(|(place, byte)| match place {
        3 | 6 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let given = &text[..3] != b"000"
        && &text[..3] != b"666"
        && text[0] != b'9'
        && &text[4..6] != b"00"
        && &text[7..] != b"0000";
    (shaped && given && is_closed(bytes, at + 11)).then_some(at + 11)
}
