//! One price, exact: dollars per million tokens in files, millionths of a dollar in memory.

use std::fmt;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::budget::decimal::{self, DecimalError};

/// Decimals of a dollar in `micro_usd`.
const SHIFT: u32 = 6;
const MICROS_PER_USD: u64 = 1_000_000;
/// No model costs more than a dollar per token; and a float holds all below exactly enough to be written back.
const MAX_MICRO_USD: u64 = 1_000_000 * MICROS_PER_USD;

/// Millionths of a dollar for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    pub const fn from_micro_usd(micro_usd: u64) -> Rate {
        Rate(micro_usd)
    }

    pub const fn micro_usd(self) -> u64 {
        self.0
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(MICROS_PER_USD) {
            serializer.serialize_u64(self.0 / MICROS_PER_USD)
        } else {
            serializer.serialize_f64(self.0 as f64 / MICROS_PER_USD as f64)
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl Visitor<'_> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a price in dollars per million tokens, such as 3 or 0.25")
    }

    fn visit_u64<E: de::Error>(self, usd: u64) -> Result<Rate, E> {
        let micro_usd = usd.checked_mul(MICROS_PER_USD).filter(|price| *price <= MAX_MICRO_USD);
        micro_usd.map(Rate).ok_or_else(|| E::custom("the price is too high: more than a dollar per token"))
    }

    fn visit_i64<E: de::Error>(self, usd: i64) -> Result<Rate, E> {
        match u64::try_from(usd) {
            Ok(usd) => self.visit_u64(usd),
            Err(_) => Err(E::custom("a price cannot be negative")),
        }
    }

    fn visit_f64<E: de::Error>(self, usd: f64) -> Result<Rate, E> {
        if usd < 0.0 {
            return Err(E::custom("a price cannot be negative"));
        }
        // The shortest text of a float is what the person wrote; multiplying it would not be exact.
        match decimal::parse(&usd.to_string(), SHIFT) {
            Ok(micro_usd) if micro_usd <= MAX_MICRO_USD => Ok(Rate(micro_usd)),
            Ok(_) | Err(DecimalError::TooLarge) => {
                Err(E::custom("the price is too high: more than a dollar per token"))
            }
            Err(DecimalError::TooManyDecimals | DecimalError::Fraction) => {
                Err(E::custom("a price has at most 6 decimals"))
            }
            Err(DecimalError::NotANumber) => Err(E::invalid_value(Unexpected::Float(usd), &self)),
        }
    }
}
