//! What is left of a result when only so many tokens may reach the next prompt. Deterministic, always valid JSON.
//!
//! ```text
//! findings: least relevant first  ->  `detail`s to a sentence  ->  long strings  ->  ends of lists  ->  plain text
//! ```
//! Each stage goes no further than it must, and the next begins only where the one before was not enough. The best
//! finding of each list stays, and what stays keeps its order.

use std::collections::HashSet;

use serde_json::Value;

use crate::tokens::{boundary, text_of};

const ELLIPSIS: &str = "…";
/// Strings are not cut below this before lists are: a few whole entries say more than many stumps.
const STUMP: usize = 80;
/// A detail of one sentence is not cut into at this stage.
const SENTENCE: usize = 120;

/// No token is longer, in bytes.
const LONGEST: usize = 128;

/// How tokens are counted.
pub type Count<'a> = &'a dyn Fn(&Value) -> u64;

pub fn trim(value: Value, most: u64, count: Count<'_>) -> Value {
    let bytes = usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(LONGEST);
    let fits = |value: &Value| text_of(value).len() <= bytes && count(value) <= most;
    if fits(&value) {
        return value;
    }
    let limit = Limit { bytes, fits: &fits };
    let stages: [&dyn Fn(Value) -> Value; 5] = [
        &|value| drop_findings(value, &limit),
        &|value| shorten(value, SENTENCE, &limit, &|value, bytes| details(value, bytes)),
        &|value| shorten(value, STUMP, &limit, &|value, bytes| strings(value, bytes)),
        &|value| shorten(value, 1, &limit, &|value, entries| lists(value, entries)),
        &|value| shorten(value, 1, &limit, &|value, bytes| strings(value, bytes)),
    ];
    let mut value = value;
    for stage in stages {
        value = stage(value);
        if fits(&value) {
            return value;
        }
    }
    as_text(&value, &limit)
}

/// Counting tokens is slow: what is too long for any count is not counted, so that a result of megabytes is
/// trimmed in the time that a filter has.
struct Limit<'a> {
    /// Nothing longer fits.
    bytes: usize,
    fits: &'a dyn Fn(&Value) -> bool,
}

/// The largest limit from `least` on with which it fits; `least` itself if none does.
fn widest(least: usize, most: usize, fits: &dyn Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (least, most.max(least));
    // The next stage goes on from there; nothing to look for.
    if !fits(least) {
        return least;
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

fn shorten(value: Value, least: usize, limit: &Limit<'_>, cut: &dyn Fn(&mut Value, usize)) -> Value {
    let cut_to = |limit: usize| {
        let mut copy = value.clone();
        cut(&mut copy, limit);
        copy
    };
    // Nothing in it is longer than the whole, and nothing in what fits than that.
    let most = value.to_string().len().min(limit.bytes);
    cut_to(widest(least, most, &|most| (limit.fits)(&cut_to(most))))
}

/// Where a finding stands: its list (in the order of `each_list`), its place there and its relevance.
struct Finding {
    list: usize,
    at: usize,
    relevance: f64,
}

fn drop_findings(value: Value, limit: &Limit<'_>) -> Value {
    let doomed = doomed(&value);
    let without = |dropped: usize| {
        let mut copy = value.clone();
        let gone: HashSet<(usize, usize)> = doomed[..dropped].iter().map(|f| (f.list, f.at)).collect();
        let mut number = 0;
        each_list(&mut copy, &mut |list| {
            if is_findings(list) {
                let mut at = 0;
                list.retain(|_| {
                    at += 1;
                    !gone.contains(&(number, at - 1))
                });
                number += 1;
            }
        });
        copy
    };
    let kept = widest(0, doomed.len(), &|kept| (limit.fits)(&without(doomed.len() - kept)));
    without(doomed.len() - kept)
}

/// Findings that may go, in the order in which they go.
fn doomed(value: &Value) -> Vec<Finding> {
    let (mut all, mut number) = (Vec::new(), 0);
    each_list(&mut value.clone(), &mut |list| {
        if !is_findings(list) {
            return;
        }
        let relevance = |entry: &Value| entry.get("relevance").and_then(Value::as_f64).unwrap_or(0.0);
        let mut own: Vec<Finding> = list
            .iter()
            .enumerate()
            .map(|(at, entry)| Finding { list: number, at, relevance: relevance(entry) })
            .collect();
        own.sort_by(worse);
        own.pop();
        all.extend(own);
        number += 1;
    });
    all.sort_by(worse);
    all
}

/// The least relevant first; of equals, the last.
fn worse(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    a.relevance.total_cmp(&b.relevance).then((b.list, b.at).cmp(&(a.list, a.at)))
}

fn is_findings(list: &[Value]) -> bool {
    list.iter().any(|entry| entry.get("relevance").is_some_and(Value::is_number))
}

/// Outermost lists that are findings, or any list on the way to one.
fn each_list(value: &mut Value, visit: &mut dyn FnMut(&mut Vec<Value>)) {
    match value {
        Value::Array(list) => {
            let findings = is_findings(list);
            visit(list);
            if !findings {
                list.iter_mut().for_each(|entry| each_list(entry, visit));
            }
        }
        Value::Object(map) => map.values_mut().for_each(|entry| each_list(entry, visit)),
        _ => {}
    }
}

fn details(value: &mut Value, most: usize) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|entry| details(entry, most)),
        Value::Object(map) => {
            for (name, entry) in map {
                match entry {
                    Value::String(text) if name == "detail" => to_sentence(text, most),
                    other => details(other, most),
                }
            }
        }
        _ => {}
    }
}

/// The sentences that fit; the first one if none does.
fn to_sentence(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let ends = sentence_ends(text);
    let fitting = ends.iter().rev().find(|&&end| end <= most);
    if let Some(&end) = fitting.or(ends.first()) {
        text.truncate(end);
        text.push(' ');
        text.push_str(ELLIPSIS);
    }
}

/// Where a sentence ends and more text follows.
fn sentence_ends(text: &str) -> Vec<usize> {
    let ends = |(at, c): (usize, char)| {
        let end = at + c.len_utf8();
        let spaced = text[end..].starts_with(char::is_whitespace);
        let closes = matches!(c, '.' | '!' | '?') && spaced || matches!(c, '。' | '！' | '？');
        (closes && !text[end..].trim().is_empty()).then_some(end)
    };
    text.char_indices().filter_map(ends).collect()
}

fn strings(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            text.truncate(boundary(text, most));
            text.push_str(ELLIPSIS);
        }
        Value::Array(list) => list.iter_mut().for_each(|entry| strings(entry, most)),
        Value::Object(map) => map.values_mut().for_each(|entry| strings(entry, most)),
        _ => {}
    }
}

fn lists(value: &mut Value, most: usize) {
    match value {
        Value::Array(list) => {
            list.truncate(most);
            list.iter_mut().for_each(|entry| lists(entry, most));
        }
        Value::Object(map) => map.values_mut().for_each(|entry| lists(entry, most)),
        _ => {}
    }
}

/// The last resort: the beginning of its text, which is JSON as a string.
fn as_text(value: &Value, limit: &Limit<'_>) -> Value {
    let text = value.to_string();
    let cut_to = |bytes: usize| Value::String(format!("{}{ELLIPSIS}", &text[..boundary(&text, bytes)]));
    cut_to(widest(0, text.len().min(limit.bytes), &|bytes| (limit.fits)(&cut_to(bytes))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A token a word is enough to see what is taken away.
    fn words(value: &Value) -> u64 {
        value.to_string().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count() as u64
    }

    fn trimmed(value: Value, most: u64) -> Value {
        let left = trim(value.clone(), most, &words);
        assert!(words(&left) <= most, "{} words of {most}: {left}", words(&left));
        assert_eq!(left, trim(value, most, &words), "the same every time");
        left
    }

    fn finding(title: &str, relevance: f64) -> Value {
        json!({"title": title, "detail": "one two three. four five six. seven eight nine.", "relevance": relevance})
    }

    // covers: R10
    #[test]
    fn the_least_relevant_findings_go_first_and_the_rest_keeps_its_order() {
        let all = json!({"summary": "s", "findings": [
            finding("a", 0.5), finding("b", 0.9), finding("c", 0.1), finding("d", 0.9), finding("e", 0.5),
        ]});
        let titles = |value: &Value| -> Vec<String> {
            let list = value["findings"].as_array().unwrap();
            list.iter().map(|f| f["title"].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(trimmed(all.clone(), words(&all)), all, "nothing to do");
        assert_eq!(titles(&trimmed(all.clone(), words(&all) - 1)), ["a", "b", "d", "e"]);
        let one = words(&finding("a", 0.5));
        assert_eq!(
            titles(&trimmed(all.clone(), 4 + 3 * one)),
            ["a", "b", "d"],
            "of equals the last goes first"
        );
        assert_eq!(titles(&trimmed(all.clone(), 4 + one)), ["b"]);
        let least = trimmed(all, 14);
        assert_eq!(
            (titles(&least), &least["findings"][0]["relevance"]),
            (vec!["b".to_string()], &json!(0.9))
        );
    }

    // covers: R10
    #[test]
    fn a_long_detail_ends_with_a_sentence() {
        let mut text = "First one here. Second one, v1.2 of it! Third? Last".to_string();
        to_sentence(&mut text, 40);
        assert_eq!(text, "First one here. Second one, v1.2 of it! …");
        to_sentence(&mut text, 3);
        assert_eq!(text, "First one here. …", "the first sentence stays whole");
        let mut single = "no end in sight".to_string();
        to_sentence(&mut single, 3);
        assert_eq!(single, "no end in sight");
        let mut wide = "一つ目。二つ目。三つ目".to_string();
        to_sentence(&mut wide, 25);
        assert_eq!(wide, "一つ目。二つ目。 …");
        let detail = "A sentence of some words. ".repeat(40);
        let left = trimmed(json!([{"relevance": 1, "title": "t", "detail": detail}]), 60);
        assert!(left[0]["detail"].as_str().unwrap().ends_with("words. …"), "{left}");
        assert_eq!(left[0]["title"], "t");
    }

    /// Tokens are counted slowly, and a filter has its time: what was paid for must not fail by it.
    // covers: R10
    #[test]
    fn of_a_result_of_megabytes_only_little_is_counted() {
        let counted = std::cell::Cell::new(0);
        let slow = |value: &Value| {
            counted.set(counted.get() + value.to_string().len());
            words(value)
        };
        let many: Vec<Value> = (0..4_000).map(|n| finding(&format!("f{n}"), f64::from(n % 100))).collect();
        for value in [json!({"document": "word ".repeat(100_000)}), json!({"findings": many})] {
            counted.set(0);
            let left = trim(value.clone(), 500, &slow);
            assert!((300..=500).contains(&words(&left)), "{}", words(&left));
            assert!(counted.get() < 4 * value.to_string().len(), "{} bytes were counted", counted.get());
        }
    }

    // covers: R10
    #[test]
    fn whatever_it_is_it_fits_and_is_json() {
        let text = "word ".repeat(500);
        assert!(trimmed(json!({"document": text, "n": 1}), 20)["document"].as_str().unwrap().ends_with('…'));
        assert!(trimmed(json!(text), 20).is_string());
        let numbers: Vec<u32> = (0..1000).collect();
        assert_eq!(trimmed(json!({"list": numbers}), 11)["list"].as_array().unwrap().len(), 10);
        let names: serde_json::Map<String, Value> = (0..1000).map(|n| (format!("k{n}"), json!(n))).collect();
        assert!(trimmed(Value::Object(names), 7).as_str().unwrap().starts_with("{\"k0\":0"));
        let odd = trimmed(json!([[{"relevance": 1, "detail": "日本 語. 日本 語"}], "x y z"]), 1);
        assert!(odd.as_str().is_some_and(|text| text.starts_with('[') && text.ends_with('…')), "{odd}");
        assert_eq!(trimmed(json!(null), 1), json!(null));
    }
}
