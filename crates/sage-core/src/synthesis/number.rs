//! Numbers as people and models write them: `1,200`, `1.2k`, `250 ms`, `3 MB`, `$5`, `about 40 %`, `12 files`.
//!
//! Amounts of one dimension are brought to one unit, so that `1.5 s` and `1500ms` are the same.

/// Two whole numbers differ if they differ at all; of others, the last digits are rounded off.
const EXACT: f64 = 1e-9;
const ROUNDED: f64 = 1e-3;

const APPROXIMATE: [&str; 6] = ["about", "approximately", "approx.", "approx", "around", "roughly"];
const SPELLED: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
const CURRENCIES: [(&str, &str); 17] = [
    ("$", "usd"),
    ("usd", "usd"),
    ("dollar", "usd"),
    ("dollars", "usd"),
    ("us$", "usd"),
    ("€", "eur"),
    ("eur", "eur"),
    ("euro", "eur"),
    ("euros", "eur"),
    ("£", "gbp"),
    ("gbp", "gbp"),
    ("pound", "gbp"),
    ("pounds", "gbp"),
    ("¥", "jpy"),
    ("jpy", "jpy"),
    ("yen", "jpy"),
    ("chf", "chf"),
];

#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// In the smallest unit of its dimension: ms, bytes.
    pub amount: f64,
    /// `None` for a bare number; else the dimension, or the noun that is counted.
    pub unit: Option<String>,
    /// As written, before any unit: a bare number is compared with this one.
    pub written: f64,
    pub exact: bool,
}

impl Number {
    pub fn bare(value: f64) -> Number {
        Number { amount: value, unit: None, written: value, exact: value.fract() == 0.0 }
    }

    pub fn parse(text: &str) -> Option<Number> {
        let (text, exact) = without_approximation(text.trim());
        compound_time(text)
            .or_else(|| single(text))
            .map(|number| Number { exact: exact && number.exact, ..number })
    }

    /// The same amount, as far as it was written down.
    pub fn near(&self, other: &Number) -> bool {
        let rounded = !(self.exact && other.exact);
        close(self.amount, other.amount, if rounded { ROUNDED } else { EXACT })
    }

    pub fn written_as(&self, bare: &Number) -> bool {
        close(self.written, bare.amount, EXACT)
    }

    /// Equal texts for equal amounts, where a tolerance cannot be asked for.
    pub fn key(&self) -> String {
        format!("{:.6e} {}", self.amount, self.unit.as_deref().unwrap_or_default())
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn without_approximation(text: &str) -> (&str, bool) {
    let lower = text.to_lowercase();
    if let Some(rest) = text.strip_prefix(['~', '≈']) {
        return (rest.trim_start(), false);
    }
    let word =
        APPROXIMATE.iter().find(|word| lower.strip_prefix(**word).is_some_and(|rest| rest.starts_with(' ')));
    // The words are ASCII: as many bytes in either case.
    word.map_or((text, true), |word| (text[word.len()..].trim_start(), false))
}

fn single(text: &str) -> Option<Number> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest.trim_start()),
        None => (1.0, text),
    };
    let (currency, rest) = leading_currency(rest);
    let (written, rest) = literal(rest).or_else(|| spelled(rest))?;
    let (scale, unit) = suffix(rest)?;
    let (factor, unit) = match (currency, unit) {
        (Some(currency), None) => (1.0, Some(currency.to_owned())),
        (Some(_), Some(_)) => return None,
        (None, Some(word)) => dimension(word),
        (None, None) => (1.0, None),
    };
    let written = sign * written * scale;
    Some(Number { amount: written * factor, unit, written, exact: written.fract() == 0.0 })
}

fn leading_currency(text: &str) -> (Option<&'static str>, &str) {
    for (sign, currency) in CURRENCIES {
        if let Some(rest) = text.strip_prefix(sign).filter(|_| !sign.is_ascii() || sign == "$") {
            return (Some(currency), rest.trim_start());
        }
    }
    (None, text)
}

/// Digits, with separators between groups of three, a fraction and an exponent; and what follows them.
fn literal(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ',' | '_' | '.'))).unwrap_or(text.len());
    let exponent = exponent(&text[end..]);
    let digits = text[..end].trim_end_matches([',', '_', '.']);
    let end = if digits.len() < end { digits.len() } else { end + exponent };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let groups: Vec<&str> = whole.split([',', '_']).collect();
    let grouped =
        groups.len() == 1 || groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    let plain = fraction.chars().all(|c| c.is_ascii_digit()) && groups.iter().all(|group| !group.is_empty());
    if !grouped || !plain {
        return None;
    }
    let tail = if digits.len() < end { &text[digits.len()..end] } else { "" };
    let number: f64 = format!("{}.{}0{tail}", groups.concat(), fraction).parse().ok()?;
    number.is_finite().then_some((number, &text[end..]))
}

/// Bytes of `e-3` at the beginning of a text.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let count = digits.chars().take_while(char::is_ascii_digit).count();
    let ends = digits[count..].chars().next().is_none_or(|c| !c.is_alphanumeric());
    if count == 0 || !ends { 0 } else { 1 + (rest.len() - digits.len()) + count }
}

fn spelled(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    let number = SPELLED.iter().position(|word| text[..end].eq_ignore_ascii_case(word))?;
    Some((number as f64, &text[end..]))
}

/// What may follow a number: a scale, a unit or a noun. Anything more is a sentence.
fn suffix(text: &str) -> Option<(f64, Option<&str>)> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if text.is_empty() {
        return Some((1.0, None));
    }
    if !text.starts_with(|c: char| {
        c.is_alphabetic() || c == '%' || CURRENCIES.iter().any(|(sign, _)| sign.starts_with(c))
    }) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [word] => Some(scale(word).map_or((1.0, Some(*word)), |scale| (scale, None))),
        [first, second] => scale(first).map(|scale| (scale, Some(*second))),
        _ => None,
    }
}

/// A small `m` is a minute, as it is everywhere in sage.
fn scale(word: &str) -> Option<f64> {
    match word {
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        "B" => None,
        _ => match word.to_lowercase().as_str() {
            "thousand" => Some(1e3),
            "million" | "mio" | "mn" => Some(1e6),
            "billion" | "bn" => Some(1e9),
            _ => None,
        },
    }
}

/// The factor to the smallest unit, and the dimension; a noun is a dimension of its own.
fn dimension(word: &str) -> (f64, Option<String>) {
    let lower = word.to_lowercase();
    let known =
        time(&lower).map(|factor| (factor, "ms")).or_else(|| size(&lower).map(|factor| (factor, "bytes")));
    if let Some((factor, unit)) = known {
        return (factor, Some(unit.to_owned()));
    }
    if matches!(lower.as_str(), "%" | "percent" | "pct") {
        return (1.0, Some("%".to_owned()));
    }
    let currency =
        CURRENCIES.iter().find(|(name, _)| *name == lower).map(|(_, currency)| (*currency).to_owned());
    (1.0, Some(currency.unwrap_or_else(|| super::words::name(word))))
}

fn time(word: &str) -> Option<f64> {
    Some(match word {
        "ns" | "nanosecond" | "nanoseconds" => 1e-6,
        "us" | "µs" | "μs" | "microsecond" | "microseconds" => 1e-3,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
        "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
        "h" | "hr" | "hrs" | "hour" | "hours" => 36e5,
        "d" | "day" | "days" => 864e5,
        "w" | "week" | "weeks" => 6048e5,
        _ => return None,
    })
}

fn size(word: &str) -> Option<f64> {
    let (base, power) = match word {
        "b" | "byte" | "bytes" => (1, 0),
        "kb" | "kilobyte" | "kilobytes" => (1000, 1),
        "mb" | "megabyte" | "megabytes" => (1000, 2),
        "gb" | "gigabyte" | "gigabytes" => (1000, 3),
        "tb" | "terabyte" | "terabytes" => (1000, 4),
        "kib" => (1024, 1),
        "mib" => (1024, 2),
        "gib" => (1024, 3),
        "tib" => (1024, 4),
        _ => return None,
    };
    Some(f64::from(base).powi(power))
}

/// `1h 30m`, `2m30s`.
fn compound_time(text: &str) -> Option<Number> {
    let (mut rest, mut sum, mut parts) = (text, 0.0, 0);
    while !rest.is_empty() {
        let (number, after) = literal(rest)?;
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        sum += number * time(&after[..end].to_lowercase())?;
        rest = after[end..].trim_start();
        parts += 1;
    }
    let unit = Some("ms".to_owned());
    (parts > 1).then(|| Number { amount: sum, unit, written: sum, exact: sum.fract() == 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S5
    #[test]
    fn one_amount_has_many_forms() {
        for (texts, amount, unit) in [
            (&["1200", "1,200", "1.2k", "1.2 K", "1_200", "1.2e3", "1.2 thousand"][..], 1200.0, None),
            (&["1500 ms", "1.5s", "1.5 seconds", "1s 500ms"], 1500.0, Some("ms")),
            (&["90 min", "1h 30m", "1.5 hours", "90m"], 5_400_000.0, Some("ms")),
            (&["2 MB", "2000kB", "2,000,000 bytes"], 2_000_000.0, Some("bytes")),
            (&["2 KiB", "2048 B"], 2048.0, Some("bytes")),
            (&["40%", "40 percent", "40 pct."], 40.0, Some("%")),
            (&["$5", "5 USD", "5 dollars", "5$"], 5.0, Some("usd")),
            (&["€3M", "3 million euros"], 3e6, Some("eur")),
            (&["12 files", "twelve files", "12 file"], 12.0, Some("file")),
            (&["-5", "- 5"], -5.0, None),
            (&["0.75", ".75"][..1], 0.75, None),
        ] {
            for text in texts {
                let found = Number::parse(text).unwrap_or_else(|| panic!("{text}"));
                assert!(close(found.amount, amount, 1e-12), "{text}: {found:?}");
                assert_eq!(found.unit.as_deref(), unit, "{text}");
            }
        }
        for text in [
            "",
            "1.2.3",
            "1,5",
            "12,34",
            "3/4",
            "10:30",
            "abc",
            "5 big red files",
            "v1",
            "k",
            "<5",
            "..",
            "$",
        ] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    // covers: S5
    #[test]
    fn whole_numbers_are_exact_and_others_are_rounded() {
        let near = |a: &str, b: &str| Number::parse(a).unwrap().near(&Number::parse(b).unwrap());
        assert!(near("33.3%", "33.33 %"));
        assert!(near("about 1001", "1000"));
        assert!(near("0.1", "0.10000000001"));
        assert!(!near("1000", "1001"));
        assert!(!near("33.3%", "34%"));
        assert!(!near("0", "0.0001"));
    }
}
