//! Amounts of money, in cents: sums are exact, and an overflow is an error.

use std::fmt;
use std::str::FromStr;

use crate::Error;

// TODO: multi currency. An amount has no currency, so books in EUR and USD cannot be one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(i64);

impl Amount {
    pub const ZERO: Amount = Amount(0);

    pub fn from_cents(cents: i64) -> Self {
        Amount(cents)
    }

    pub fn cents(self) -> i64 {
        self.0
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn plus(self, other: Amount) -> Result<Amount, Error> {
        self.0.checked_add(other.0).map(Amount).ok_or(Error::Overflow)
    }

    pub fn negated(self) -> Result<Amount, Error> {
        self.0.checked_neg().map(Amount).ok_or(Error::Overflow)
    }

    pub fn sum(amounts: impl IntoIterator<Item = Amount>) -> Result<Amount, Error> {
        amounts.into_iter().try_fold(Amount::ZERO, Amount::plus)
    }
}

impl FromStr for Amount {
    type Err = Error;

    /// `12`, `12.5`, `12.50`, `-0.50`; no exponent, no thousands separator.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadAmount(text.to_owned());
        // The sign is kept apart: the whole part of -0.50 is -0, which has none.
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let only_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !only_digits(whole) || !only_digits(part) || part.len() > 2 {
            return Err(bad());
        }
        let whole: i64 = whole.parse().map_err(|_| bad())?;
        let cents: i64 = format!("{part:0<2}").parse().map_err(|_| bad())?;
        let total = whole.checked_mul(100).and_then(|w| w.checked_add(cents));
        total.map(|t| Amount(t * sign)).ok_or(Error::Overflow)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        // `pad` makes widths such as {:>12} work.
        f.pad(&format!("{sign}{}.{:02}", cents / 100, cents % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for (text, cents) in [("12", 1200), ("12.5", 1250), ("-0.50", -50), ("0.07", 7)] {
            assert_eq!(text.parse(), Ok(Amount(cents)), "{text}");
        }
        assert_eq!(Amount(-50).to_string(), "-0.50");
        assert_eq!(format!("{:>8}", Amount(123_456)), " 1234.56");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "-", ".5", "1.", "1.234", "1,50", "1e3", "--1", "+1"] {
            assert_eq!(text.parse::<Amount>(), Err(Error::BadAmount(text.to_owned())));
        }
    }

    #[test]
    fn sums_do_not_wrap() {
        assert_eq!(Amount(i64::MAX).plus(Amount(1)), Err(Error::Overflow));
        assert_eq!("92233720368547758.08".parse::<Amount>(), Err(Error::Overflow));
    }
}
