//! Values that must not be kept or shown: keys that this process sends, wherever an answer repeats them.
//!
//! A value is found as it is, percent-encoded and in base64 at any offset, whole or a part of it that is long
//! enough to be no accident; `[REDACTED:NAME]` takes its place. Streams are searched as they come: what may be
//! the beginning of a value is held back until it is known, never longer than to the end of its line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

pub use crate::skill::scan::{Known, looks_secret};

/// Shorter values are found in any text.
const LEAST_BYTES: usize = 8;
/// A part of a value that is no accident. Values that are not much longer must be whole.
const PART_BYTES: usize = 12;
const WHOLE_BELOW_BYTES: usize = 16;

/// Headers whose values are secret whatever they look like.
const SECRET_HEADERS: &[&str] = &["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"];

/// Finds known values in text. Cheap to clone; without values it does nothing.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Forms>);

#[derive(Default)]
struct Forms {
    known: Vec<Known>,
    /// All spellings, with the number of the value.
    all: Vec<(usize, Vec<u8>)>,
    /// The first bytes of every possible match -> spelling and where in it.
    starts: HashMap<[u8; LEAST_BYTES], Vec<(usize, usize)>>,
}

/// Values are never shown.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("known", &self.0.known).finish_non_exhaustive()
    }
}

/// The secret part of a header that is sent, if it has one: without the scheme in front of it.
pub fn of_header(name: &str, value: &str) -> Option<Known> {
    let is_secret = SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) || looks_secret(name);
    let value = value.trim();
    let bare = value.split_once(' ').map_or(value, |(_scheme, rest)| rest.trim());
    is_secret.then(|| Known { name: name.to_string(), value: bare.to_string() })
}

/// A variable whose name says that its value is secret. Paths and numbers are none.
pub fn of_variable(name: &str, value: &str) -> Option<Known> {
    let plain = value.starts_with(['/', '~', '.']) || value.bytes().all(|byte| byte.is_ascii_digit());
    let own = name.starts_with("SAGE_") && name != "SAGE_STATE_KEY";
    let is_secret = looks_secret(name) && !plain && !own;
    is_secret.then(|| Known { name: name.to_string(), value: value.to_string() })
}

impl Redactor {
    pub fn new(known: impl IntoIterator<Item = Known>) -> Redactor {
        let mut forms = Forms::default();
        known.into_iter().for_each(|known| forms.add(known));
        Redactor(Arc::new(forms))
    }

    /// Those of this one, and more.
    #[must_use]
    pub fn with(&self, more: Vec<Known>) -> Redactor {
        if more.is_empty() {
            return self.clone();
        }
        Redactor::new(self.0.known.iter().cloned().chain(more))
    }

    pub fn is_empty(&self) -> bool {
        self.0.all.is_empty()
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut kept = 0;
        for (start, end, known) in self.0.matches(text.as_bytes(), true).found {
            // Values are whole letters, but a part of one may begin inside of a letter.
            let (start, end) = (floor(text, start), ceil(text, end));
            if start >= kept {
                out.push_str(&text[kept..start]);
                out.push_str(&self.0.mark(known));
                kept = end;
            }
        }
        if kept == 0 && out.is_empty() {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[kept..]);
        Cow::Owned(out)
    }

    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// All texts in it, names of fields included.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.value(item));
                if map.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    let all = std::mem::take(map).into_iter();
                    *map = all.map(|(key, item)| (self.text(&key).into_owned(), item)).collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub fn stream(&self) -> Stream {
        Stream { redactor: self.clone(), held: Vec::new() }
    }
}

/// Bytes as they come.
#[derive(Debug)]
pub struct Stream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl Stream {
    /// What is known to be clean by now.
    pub fn push<'a>(&mut self, chunk: &'a [u8]) -> Cow<'a, [u8]> {
        if self.redactor.is_empty() {
            return Cow::Borrowed(chunk);
        }
        self.held.extend_from_slice(chunk);
        Cow::Owned(self.take(false))
    }

    /// The rest; nothing comes any more.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take(true)
    }

    fn take(&mut self, last: bool) -> Vec<u8> {
        let forms = &self.redactor.0;
        let Matches { found, decided } = forms.matches(&self.held, last);
        let mut out = Vec::with_capacity(decided);
        let mut kept = 0;
        for (start, end, known) in found {
            out.extend_from_slice(&self.held[kept..start]);
            out.extend_from_slice(forms.mark(known).as_bytes());
            kept = end;
        }
        out.extend_from_slice(&self.held[kept..decided.max(kept)]);
        self.held.drain(..decided.max(kept));
        out
    }
}

struct Matches {
    /// From, to, and the number of the value.
    found: Vec<(usize, usize, usize)>,
    /// Up to here nothing that follows changes anything.
    decided: usize,
}

impl Forms {
    fn add(&mut self, known: Known) {
        let value = known.value.trim();
        if value.len() < LEAST_BYTES || self.all.iter().any(|(_, form)| form == value.as_bytes()) {
            return;
        }
        let plain = value.as_bytes().to_vec();
        let escaped = serde_json::to_string(value).unwrap_or_default();
        let escaped = escaped.trim_matches('"').as_bytes().to_vec();
        let mut spellings = vec![plain, percent(value, true), percent(value, false), escaped];
        spellings.extend((0..3).flat_map(|offset| base64(value.as_bytes(), offset)));
        let number = self.known.len();
        self.known.push(known);
        for form in spellings.into_iter().filter(|form| form.len() >= LEAST_BYTES) {
            self.learn(number, form);
        }
    }

    fn learn(&mut self, known: usize, form: Vec<u8>) {
        if self.all.iter().any(|(_, other)| *other == form) {
            return;
        }
        let number = self.all.len();
        let parts = if form.len() < WHOLE_BELOW_BYTES { 1 } else { form.len() - PART_BYTES + 1 };
        for (at, start) in form.windows(LEAST_BYTES).take(parts).enumerate() {
            // Windows have exactly this length.
            if let Ok(start) = start.try_into() {
                self.starts.entry(start).or_default().push((number, at));
            }
        }
        self.all.push((known, form));
    }

    fn mark(&self, known: usize) -> String {
        format!("[REDACTED:{}]", self.known[known].name)
    }

    /// `last`: nothing follows the text.
    fn matches(&self, text: &[u8], last: bool) -> Matches {
        let mut found = Vec::new();
        if self.all.is_empty() {
            return Matches { found, decided: text.len() };
        }
        let line = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut at = 0;
        while at + LEAST_BYTES <= text.len() {
            let here = self.at(text, at);
            if here.open && !last && at >= line {
                return Matches { found, decided: at };
            }
            match here.end {
                Some((end, known)) => {
                    found.push((at, end, known));
                    at = end;
                }
                None => at += 1,
            }
        }
        // What is left is too short to be anything yet; no value goes over the end of a line.
        Matches { found, decided: if last { text.len() } else { at.max(line) } }
    }

    fn at(&self, text: &[u8], at: usize) -> Here {
        let start =
            text.get(at..at + LEAST_BYTES).and_then(|start| <[u8; LEAST_BYTES]>::try_from(start).ok());
        let mut here = Here { end: None, open: false };
        for (number, from) in start.and_then(|start| self.starts.get(&start)).into_iter().flatten() {
            let (known, form) = &self.all[*number];
            let same = form[*from..].iter().zip(&text[at..]).take_while(|(a, b)| a == b).count();
            let enough = if form.len() < WHOLE_BELOW_BYTES { form.len() } else { PART_BYTES };
            here.open |= at + same == text.len() && from + same < form.len();
            if same >= enough && here.end.is_none_or(|(end, _)| end < at + same) {
                here.end = Some((at + same, *known));
            }
        }
        here
    }
}

/// What is at a place in a text.
struct Here {
    /// Where the longest match ends, and whose it is.
    end: Option<(usize, usize)>,
    /// The text ends in the middle of a spelling.
    open: bool,
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn percent(value: &str, upper: bool) -> Vec<u8> {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte if upper => out.push_str(&format!("%{byte:02X}")),
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out.into_bytes()
}

/// The digits of base64, in both alphabets, that follow from `value` alone if `offset` bytes come before it.
fn base64(value: &[u8], offset: usize) -> [Vec<u8>; 2] {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (first, bits) = (offset * 8, (offset + value.len()) * 8);
    let bit = |at: usize| match at.checked_sub(first) {
        Some(own) => value.get(own / 8).map_or(0, |byte| byte >> (7 - own % 8) & 1),
        None => 0,
    };
    let digits = (first.div_ceil(6)..bits / 6).map(|digit| {
        let index = (0..6).fold(0, |sum, n| sum << 1 | usize::from(bit(digit * 6 + n)));
        DIGITS[index]
    });
    let plain: Vec<u8> = digits.collect();
    let safe = |digit: &u8| match digit {
        b'+' => b'-',
        b'/' => b'_',
        other => *other,
    };
    let url = plain.iter().map(safe).collect();
    [plain, url]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-ant-Ab3/xY+9=canary-7Q2w";

    fn redactor() -> Redactor {
        let known = [("MY_KEY", KEY), ("SHORT", "abc"), ("TEN", "0123456789")];
        Redactor::new(known.map(|(name, value)| Known { name: name.into(), value: value.into() }))
    }

    // covers: R17
    #[test]
    fn a_value_is_found_in_every_spelling_and_in_parts() {
        let redactor = redactor();
        let clean = |text: &str| redactor.text(text).into_owned();
        assert_eq!(
            clean(&format!("invalid api key: Bearer {KEY}.")),
            "invalid api key: Bearer [REDACTED:MY_KEY]."
        );
        assert_eq!(clean(&format!("{KEY}{KEY}")), "[REDACTED:MY_KEY][REDACTED:MY_KEY]");
        assert_eq!(clean(&format!("begins {}…", &KEY[..16])), "begins [REDACTED:MY_KEY]…");
        assert_eq!(clean(&format!("ends ***{}", &KEY[10..])), "ends ***[REDACTED:MY_KEY]");
        assert_eq!(clean("?key=sk-ant-Ab3%2FxY%2B9%3Dcanary-7Q2w&x"), "?key=[REDACTED:MY_KEY]&x");
        assert_eq!(clean("?key=sk-ant-Ab3%2fxY%2b9%3dcanary-7Q2w&x"), "?key=[REDACTED:MY_KEY]&x");
        for (before, encoded) in [
            ("", "c2stYW50LUFiMy94WSs5PWNhbmFyeS03UTJ3"),
            ("u:", "dTpzay1hbnQtQWIzL3hZKzk9Y2FuYXJ5LTdRMnc="),
            ("user", "dXNlcnNrLWFudC1BYjMveFkrOT1jYW5hcnktN1Eydw=="),
        ] {
            let told = clean(&format!("Basic {encoded}"));
            assert!(told.contains("[REDACTED:MY_KEY]") && told.len() < 40, "{before}: {told}");
        }
        // Too short to be known, or whole only.
        assert_eq!(clean("abc 012345678 sk-ant-Ab3"), "abc 012345678 sk-ant-Ab3");
        assert_eq!(clean("x0123456789x"), "x[REDACTED:TEN]x");
        assert!(!format!("{redactor:?}").contains("canary"));
    }

    // covers: R17
    #[test]
    fn values_and_names_of_fields_are_cleaned() {
        let mut value = json!({"a": [format!("x {KEY}"), 1, null], KEY: {"b": KEY}});
        redactor().value(&mut value);
        assert!(!value.to_string().contains("canary"), "{value}");
        assert_eq!(value["a"][0], "x [REDACTED:MY_KEY]");
        assert_eq!(value["[REDACTED:MY_KEY]"]["b"], "[REDACTED:MY_KEY]");
    }

    // covers: R17
    #[test]
    fn a_stream_is_cleaned_wherever_it_is_cut_and_lines_are_not_held_back() {
        let redactor =
            redactor().with(vec![Known { name: "MORE".into(), value: "another-secret-value".into() }]);
        let text = format!("one {KEY} two\nthree another-secret-value {} four\nfive", &KEY[..20]);
        let expected =
            "one [REDACTED:MY_KEY] two\nthree [REDACTED:MORE] [REDACTED:MY_KEY] four\nfive".to_string();
        assert_eq!(redactor.text(&text), expected);
        for size in 1..text.len() {
            let mut stream = redactor.stream();
            let mut out = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                out.extend_from_slice(&stream.push(chunk));
            }
            out.extend(stream.finish());
            assert_eq!(String::from_utf8(out).unwrap(), expected, "pieces of {size}");
        }
        let mut stream = redactor.stream();
        assert_eq!(&*stream.push(b"a whole line\n"), b"a whole line\n");
        assert_eq!(&*stream.push(b"sk-ant-Ab3"), b"");
        assert_eq!(&*stream.push(b"\n"), b"sk-ant-Ab3\n");
        let mut nothing = Redactor::default().stream();
        assert!(matches!(nothing.push(b"x"), Cow::Borrowed(b"x")));
    }

    // covers: R17
    #[test]
    fn what_is_sent_says_what_is_secret() {
        let header = |name: &str, value: &str| of_header(name, value).map(|known| known.value);
        assert_eq!(header("Authorization", "Bearer abc"), Some("abc".into()));
        assert_eq!(header("X-Auth-Token", "abc"), Some("abc".into()));
        assert_eq!(header("Accept", "application/json"), None);
        assert!(of_variable("GITHUB_TOKEN", "ghp_x").is_some());
        for (name, value) in
            [("SAGE_KEY", "c0ffee"), ("PASSWORD_STORE_DIR", "/h/x"), ("MAX_TOKENS", "4"), ("PATH", "x")]
        {
            assert!(of_variable(name, value).is_none(), "{name}");
        }
    }
}
