//! Decimal numbers as people write them, read exactly: no float ever touches money.

use std::fmt;

/// Finer than this is a typing mistake, and money is counted in millionths.
const MAX_DECIMALS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalError {
    NotANumber,
    TooManyDecimals,
    /// A part of what cannot be divided, such as half a token.
    Fraction,
    TooLarge,
}

/// `text` times 10^`shift`: `parse("2.5", 6)` is 2,500,000.
pub(crate) fn parse(text: &str, shift: u32) -> Result<u64, DecimalError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // `.5` is read, `5.` is not: it looks cut off.
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.is_empty() || text.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(DecimalError::NotANumber);
    }
    if fraction.len() > MAX_DECIMALS {
        return Err(DecimalError::TooManyDecimals);
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = u32::try_from(fraction.len())
        .ok()
        .and_then(|len| shift.checked_sub(len))
        .ok_or(DecimalError::Fraction)?;
    let mut value: u64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        value = next.ok_or(DecimalError::TooLarge)?;
    }
    let scale = 10_u64.checked_pow(missing).ok_or(DecimalError::TooLarge)?;
    value.checked_mul(scale).ok_or(DecimalError::TooLarge)
}

/// `value` divided by 10^`shift`, exactly; a fraction has at least `least` decimals.
pub(crate) fn write(f: &mut impl fmt::Write, value: u64, shift: u32, least: usize) -> fmt::Result {
    let scale = 10_u64.pow(shift);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}");
    }
    let digits = format!("{rest:0width$}", width = shift as usize);
    let kept = digits.trim_end_matches('0').len().max(least).min(digits.len());
    write!(f, "{whole}.{}", &digits[..kept])
}
