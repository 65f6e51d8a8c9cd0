//! Amounts and caps of tokens and money, and how people write and read them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decimal::{self, DecimalError};
use crate::port::Usage;

/// Decimals of a dollar in `micro_usd`.
const USD_SHIFT: u32 = 6;

/// So much of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amount {
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub micro_usd: u64,
}

/// At most so much; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cap {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a budget: {why}")]
pub struct CapError {
    pub text: String,
    pub why: &'static str,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Amount {
    /// What an attempt used. A cost that nobody knows counts as nothing here: say so where spend is shown.
    pub fn of(usage: &Usage, cost_micro_usd: Option<u64>) -> Amount {
        Amount { tokens: usage.total(), micro_usd: cost_micro_usd.unwrap_or(0) }
    }

    #[must_use]
    pub fn saturating_add(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_add)
    }

    #[must_use]
    pub fn saturating_sub(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_sub)
    }

    /// The larger of each unit.
    #[must_use]
    pub fn max(self, other: Amount) -> Amount {
        self.each(other, u64::max)
    }

    pub fn is_zero(&self) -> bool {
        *self == Amount::default()
    }

    fn each(self, other: Amount, of: fn(u64, u64) -> u64) -> Amount {
        Amount { tokens: of(self.tokens, other.tokens), micro_usd: of(self.micro_usd, other.micro_usd) }
    }
}

/// For people, rounded: `12.3k tokens and $1.25`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(""))
    }
}

impl Amount {
    /// The same, of money that is an estimate: `12.3k tokens and ~$1.25`.
    pub fn about(&self) -> String {
        self.text("~")
    }

    fn text(&self, about: &str) -> String {
        let noun = if self.tokens == 1 { "token" } else { "tokens" };
        match (self.tokens, self.micro_usd) {
            (0, micro_usd @ 1..) => format!("{about}{}", money_text(micro_usd)),
            (tokens, 0) => format!("{} {noun}", tokens_text(tokens)),
            (tokens, micro_usd) => {
                format!("{} {noun} and {about}{}", tokens_text(tokens), money_text(micro_usd))
            }
        }
    }
}

/// `999`, `12.3k`, `1.5M`: to one decimal.
pub(super) fn tokens_text(tokens: u64) -> String {
    if tokens < 1_000 {
        return tokens.to_string();
    }
    let tenths = |unit: u64| (u128::from(tokens) * 10 + u128::from(unit / 2)) / u128::from(unit);
    let units = [(1_000, "k"), (1_000_000, "M")];
    // 999,960 is `1M`: what rounds up to 1,000 of a unit is written in the next one.
    let fitting = units.into_iter().find(|(unit, _)| tenths(*unit) < 10_000);
    let (unit, suffix) = fitting.unwrap_or((1_000_000_000, "B"));
    match (tenths(unit) / 10, tenths(unit) % 10) {
        (whole, 0) => format!("{whole}{suffix}"),
        (whole, tenth) => format!("{whole}.{tenth}{suffix}"),
    }
}

/// `$5`, `$1.25`: to the cent; below a cent with four decimals.
pub(super) fn money_text(micro_usd: u64) -> String {
    let cents = micro_usd / 10_000 + u64::from(micro_usd % 10_000 >= 5_000);
    match micro_usd {
        0 => "$0".to_owned(),
        1..50 => "<$0.0001".to_owned(),
        50..9_950 => format!("$0.{:04}", (micro_usd + 50) / 100),
        _ if micro_usd.is_multiple_of(1_000_000) => format!("${}", micro_usd / 1_000_000),
        _ => format!("${}.{:02}", cents / 100, cents % 100),
    }
}

const EXAMPLES: &str = "write tokens such as \"200k\" or \"1.5M\", money such as \"5usd\" or \"$2.50\", \
                        or both such as \"5usd+200k\"";

impl Cap {
    /// `5usd`, `$5`, `200k`, `1.5M tokens`, or both joined by `+`, `,` or `and`.
    pub fn parse(text: &str) -> Result<Cap, CapError> {
        read_cap(text).map_err(|why| CapError { text: text.escape_debug().take(80).collect(), why })
    }

    pub fn is_empty(&self) -> bool {
        *self == Cap::default()
    }

    /// Whether it allows more of a unit that the other one limits.
    pub fn exceeds(self, most: Cap) -> bool {
        let more = |own: Option<u64>, most: Option<u64>| own.zip(most).is_some_and(|(own, most)| own > most);
        more(self.tokens, most.tokens) || more(self.micro_usd, most.micro_usd)
    }

    /// The smaller of each unit; one that this cap leaves open is the other's.
    #[must_use]
    pub fn within(self, most: Cap) -> Cap {
        let smaller = |own: Option<u64>, most: Option<u64>| own.into_iter().chain(most).min();
        Cap { tokens: smaller(self.tokens, most.tokens), micro_usd: smaller(self.micro_usd, most.micro_usd) }
    }

    /// Whether `want` fits on top of what is spent and promised already.
    pub fn allows(&self, settled: Amount, reserved: Amount, want: Amount) -> bool {
        unit_allows(self.tokens, settled.tokens, reserved.tokens, want.tokens)
            && unit_allows(self.micro_usd, settled.micro_usd, reserved.micro_usd, want.micro_usd)
    }

    /// What is neither spent nor promised, of the units that are limited.
    #[must_use]
    pub fn left(&self, settled: Amount, reserved: Amount) -> Cap {
        let taken = settled.saturating_add(reserved);
        Cap {
            tokens: self.tokens.map(|cap| cap.saturating_sub(taken.tokens)),
            micro_usd: self.micro_usd.map(|cap| cap.saturating_sub(taken.micro_usd)),
        }
    }
}

pub(super) fn unit_allows(cap: Option<u64>, settled: u64, reserved: u64, want: u64) -> bool {
    let taken = u128::from(settled) + u128::from(reserved) + u128::from(want);
    cap.is_none_or(|cap| taken <= u128::from(cap))
}

fn read_cap(text: &str) -> Result<Cap, &'static str> {
    let lower = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if lower.is_empty() {
        return Err(EXAMPLES);
    }
    // `200,000` could be two budgets or one number; with a space after the comma it is two.
    let bytes = lower.as_bytes();
    if bytes.windows(3).any(|w| w[0].is_ascii_digit() && w[1] == b',' && w[2].is_ascii_digit()) {
        return Err("write numbers without commas, such as \"200000\" or \"200k\"");
    }
    let mut cap = Cap::default();
    for part in lower.split(['+', ',']).flat_map(|part| part.split(" and ")) {
        let twice = match read_part(part.trim())? {
            Part::Tokens(tokens) => cap.tokens.replace(tokens).is_some(),
            Part::MicroUsd(micro_usd) => cap.micro_usd.replace(micro_usd).is_some(),
        };
        if twice {
            return Err("it names tokens twice or money twice");
        }
    }
    Ok(cap)
}

enum Part {
    Tokens(u64),
    MicroUsd(u64),
}

fn read_part(part: &str) -> Result<Part, &'static str> {
    if part.is_empty() {
        return Err("nothing stands before or after a \"+\", a comma or an \"and\"");
    }
    let dollars = part.strip_prefix('$').map(|rest| rest.strip_suffix("usd").unwrap_or(rest));
    if let Some(dollars) = dollars.or_else(|| part.strip_suffix("usd")) {
        return read_number(dollars.trim(), USD_SHIFT).map(Part::MicroUsd);
    }
    let tokens = part.strip_suffix("tokens").or_else(|| part.strip_suffix("token")).unwrap_or(part).trim();
    let (number, shift) = match (tokens.strip_suffix('k'), tokens.strip_suffix('m')) {
        (Some(number), _) => (number, 3),
        (_, Some(number)) => (number, 6),
        _ => (tokens, 0),
    };
    read_number(number.trim(), shift).map(Part::Tokens)
}

fn read_number(text: &str, shift: u32) -> Result<u64, &'static str> {
    if text.starts_with('-') {
        return Err("it is negative");
    }
    match decimal::parse(text, shift) {
        Ok(0) => Err("it is zero, so that nothing could start; leave it out for no limit"),
        Ok(value) => Ok(value),
        Err(DecimalError::NotANumber) => Err(EXAMPLES),
        Err(DecimalError::TooManyDecimals) => Err("it has more than 6 decimals"),
        Err(DecimalError::Fraction) => Err("it has a part of a token; tokens are whole"),
        Err(DecimalError::TooLarge) => Err("the number is too large"),
    }
}

/// Exact, and read back by [`Cap::parse`] unless it is zero or empty (what is left of a cap may be).
impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no limit");
        }
        if let Some(micro_usd) = self.micro_usd {
            decimal::write(f, micro_usd, USD_SHIFT, 2)?;
            f.write_str("usd")?;
        }
        if self.tokens.is_some() && self.micro_usd.is_some() {
            f.write_str("+")?;
        }
        match self.tokens {
            // At most two decimals: `1.25M` is easier to read than 1250000, `1.234567M` is not.
            Some(tokens) if tokens >= 1_000_000 && tokens.is_multiple_of(10_000) => {
                decimal::write(f, tokens, 6, 0)?;
                f.write_str("M")
            }
            Some(tokens) if tokens >= 1_000 && tokens.is_multiple_of(10) => {
                decimal::write(f, tokens, 3, 0)?;
                f.write_str("k")
            }
            Some(tokens) => write!(f, "{tokens}"),
            None => Ok(()),
        }
    }
}
