//! Claims out of results: `claims`, or the titles of `findings` where an agent gave only those.
//!
//! Whatever cannot be read is told in `gaps`; what is read although something is wrong with it, in `notes`.

use serde_json::{Map, Value};

use super::output::Remark;
use super::source::Source;
use super::value::{Meaning, meaning};
use super::words::{self, Phrase};

/// What an agent is taken to mean that does not say how sure it is.
pub const ASSUMED: f64 = 0.5;

/// One statement of one source.
#[derive(Clone, Debug)]
pub struct Claim {
    pub source: usize,
    pub subject: String,
    pub predicate: Phrase,
    /// As it was written, unless it denied.
    pub shown_predicate: String,
    /// As it was written; `not` before it where the predicate denied it.
    pub value: Value,
    pub meaning: Meaning,
    pub evidence: Vec<String>,
    pub confidence: f64,
    pub critical: bool,
}

#[derive(Debug, Default)]
pub struct Reading {
    pub claims: Vec<Claim>,
    pub gaps: Vec<Remark>,
    pub clear: Vec<Remark>,
    pub notes: Vec<Remark>,
}

impl Reading {
    pub fn of(sources: &[Source]) -> Reading {
        let mut reading = Reading::default();
        for (index, source) in sources.iter().enumerate() {
            match source.missing() {
                Some(why) => reading.gap(source, why),
                None => reading.read(index, source),
            }
        }
        reading
    }

    fn gap(&mut self, source: &Source, why: String) {
        self.gaps.push(Remark { source: source.name.clone(), why });
    }

    fn read(&mut self, index: usize, source: &Source) {
        let Some(result) = &source.result else { return };
        // An agent without a schema may give its JSON as text.
        let parsed = result.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let result = parsed.as_ref().unwrap_or(result);
        let (before, gaps) = (self.claims.len(), self.gaps.len());
        let mut unsure = 0;
        for (place, item) in self.items(source, result) {
            match claim(index, item, &mut unsure) {
                Ok(claim) => self.claims.push(claim),
                Err(why) => self.gap(source, format!("{place}: {why}")),
            }
        }
        if self.claims.len() == before && self.gaps.len() == gaps {
            match found_nothing(result) {
                Some(why) => self.clear.push(Remark { source: source.name.clone(), why }),
                None => self.gap(source, "its result has no claims and no findings".to_owned()),
            }
        }
        if unsure > 0 {
            let claims = if unsure == 1 { "1 claim has".to_owned() } else { format!("{unsure} claims have") };
            let why = format!("{claims} no confidence from 0 to 1; {ASSUMED} is assumed");
            self.notes.push(Remark { source: source.name.clone(), why });
        }
    }

    /// The claims with their places; the findings if there are none.
    fn items<'r>(&mut self, source: &Source, result: &'r Value) -> Vec<(String, &'r Value)> {
        let lists: Vec<(&str, &Value)> = match result {
            Value::Array(_) => vec![("", result)],
            _ => ["claims", "findings"]
                .into_iter()
                .filter_map(|name| Some((name, result.get(name)?)))
                .collect(),
        };
        for (name, list) in lists {
            match list {
                Value::Array(items) if items.is_empty() => {}
                Value::Null => {}
                Value::Array(items) => {
                    return items
                        .iter()
                        .enumerate()
                        .map(|(at, item)| (format!("{name}[{at}]"), item))
                        .collect();
                }
                other => self.gap(source, format!("`{name}` is not a list but {}", type_name(other))),
            }
        }
        Vec::new()
    }
}

/// What a source says that looked and found nothing: that is an answer, not a gap.
fn found_nothing(result: &Value) -> Option<String> {
    let listed = ["claims", "findings"].iter().any(|name| result.get(*name).is_some_and(Value::is_array));
    let summary = result.get("summary")?.as_str()?.trim();
    (listed && !summary.is_empty()).then(|| summary.to_owned())
}

fn claim(source: usize, item: &Value, unsure: &mut usize) -> Result<Claim, String> {
    let Value::Object(item) = item else {
        return Err(format!("not an object but {}", type_name(item)));
    };
    let found = Value::Bool(true);
    let (subject, predicate, value) = match (item.get("subject"), item.get("title")) {
        (Some(subject), _) => (subject, text(item, "predicate")?, item.get("value").unwrap_or(&Value::Null)),
        (None, Some(title)) => (title, "found", &found),
        (None, None) => return Err("no `subject`".to_owned()),
    };
    let Some(subject) = subject.as_str().filter(|subject| !words::name(subject).is_empty()) else {
        return Err("its subject is not a text".to_owned());
    };
    let phrase = words::phrase(predicate);
    let version =
        predicate.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("version"));
    let Some(said) = meaning(value, version) else {
        return Err(format!("no answer to `{}`", format_args!("{}: {}", subject.trim(), predicate.trim())));
    };
    let confidence =
        item.get("confidence").and_then(Value::as_f64).filter(|share| (0.0..=1.0).contains(share));
    *unsure += usize::from(confidence.is_none());
    Ok(Claim {
        source,
        subject: subject.trim().to_owned(),
        shown_predicate: if phrase.negated { phrase.shown.clone() } else { predicate.trim().to_owned() },
        value: if phrase.negated { denied(value, &said) } else { value.clone() },
        meaning: if phrase.negated { said.denied() } else { said },
        predicate: phrase,
        evidence: evidence(item.get("evidence")),
        confidence: confidence.unwrap_or(ASSUMED),
        critical: is_critical(item),
    })
}

fn text<'i>(item: &'i Map<String, Value>, name: &str) -> Result<&'i str, String> {
    let value = item.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    value.ok_or_else(|| format!("no `{name}`"))
}

/// What people read where a predicate denied a value.
fn denied(value: &Value, said: &Meaning) -> Value {
    match (&said.body, value) {
        (super::value::Body::Bool(yes), _) => Value::Bool(!yes),
        (_, Value::String(text)) => Value::String(format!("not {text}")),
        (_, other) => Value::String(format!("not {other}")),
    }
}

/// Texts as they are; `{file, line}` as `file:line`; anything else as JSON.
fn evidence(value: Option<&Value>) -> Vec<String> {
    let mut found: Vec<String> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().filter_map(piece).collect(),
        Some(other) => piece(other).into_iter().collect(),
    };
    found.sort();
    found.dedup();
    found
}

fn piece(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().trim_start_matches("./").to_owned(),
        Value::Object(map) => {
            let file = ["file", "path", "url"].iter().find_map(|name| map.get(*name)?.as_str());
            match (file, map.get("line")) {
                (Some(file), Some(line)) => format!("{}:{line}", file.trim_start_matches("./")),
                (Some(file), None) => file.trim_start_matches("./").to_owned(),
                (None, _) => value.to_string(),
            }
        }
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

fn is_critical(item: &Map<String, Value>) -> bool {
    let said = |name: &str| item.get(name).and_then(Value::as_str);
    item.get("critical").and_then(Value::as_bool) == Some(true)
        || said("severity").is_some_and(|severity| severity.eq_ignore_ascii_case("critical"))
        || said("priority") == Some("P0")
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
