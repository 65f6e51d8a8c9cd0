//! The small languages of a template: joins, retries, tolerance, unknown outcomes, priority.

use super::fields::{Fields, expected, whole};
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::policy::{
    Backoff, FailureClass, Jitter, Join, OnBudget, OnFailure, OnJoin, OnUnknown, Retry, Tolerate,
};
use crate::source::{Data, Node};
use crate::template::Kind;

pub const JOIN_FIELDS: &[&str] = &["atLeast", "cancel"];
pub const ON_UNKNOWN_FIELDS: &[&str] = &["reconcile"];
pub const RETRY_FIELDS: &[&str] =
    &["attempts", "backoff", "delay", "maxDelay", "jitter", "on", "progressive"];

/// More tries than this are a loop that forgot to end.
const MAX_ATTEMPTS: u32 = 100;

/// One of a few words; anything else is reported with the nearest.
pub fn word<T: Copy>(
    fields: &Fields<'_, '_>,
    name: &str,
    words: &[(&str, T)],
    problems: &mut Diagnostics,
) -> Option<T> {
    let text = fields.text(name, problems)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let span = fields.get(name).map_or(fields.span, |node| node.span);
        let message = format!("`{}` is not a value of `{name}`", printable(text));
        let problem = Diagnostic::error(fields.place.field(name), span, message);
        problems.push(problem.hint(one_of(text, words)));
    }
    found
}

/// A list of such words, each kept once; `what` each of them is.
pub fn words<T: Copy + PartialEq>(
    fields: &Fields<'_, '_>,
    name: &str,
    what: &str,
    words: &[(&str, T)],
    problems: &mut Diagnostics,
) -> Vec<T> {
    let mut found = Vec::new();
    fields.each_text(name, "name", problems, |text, span, place, problems| {
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) if found.contains(value) => {}
            Some((_, value)) => found.push(*value),
            None => {
                let message = format!("`{}` is not {what}", printable(text));
                problems.push(Diagnostic::error(place, span, message).hint(one_of(text, words)));
            }
        }
    });
    found
}

fn one_of<T>(wrong: &str, words: &[(&str, T)]) -> String {
    let names = words.iter().map(|(word, _)| *word);
    let list: Vec<&str> = names.clone().collect();
    did_you_mean(wrong, names).unwrap_or_else(|| format!("one of: {}", list.join(", ")))
}

pub fn on_join(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> OnJoin {
    word(fields, "onJoin", &[("fail", OnJoin::Fail), ("pause", OnJoin::Pause)], problems).unwrap_or_default()
}

pub fn on_budget(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> OnBudget {
    let words = [("pause", OnBudget::Pause), ("fail", OnBudget::Fail)];
    word(fields, "onBudget", &words, problems).unwrap_or_default()
}

pub fn on_failure(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> OnFailure {
    let words = [("continue", OnFailure::Continue), ("failFast", OnFailure::FailFast)];
    word(fields, "onFailure", &words, problems).unwrap_or_default()
}

pub fn join(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Join {
    let Some(node) = fields.get("join") else {
        return Join::All;
    };
    let place = fields.place.field("join");
    match &node.data {
        Data::Str(_) => {
            word(fields, "join", &[("all", Join::All), ("any", Join::Any)], problems).unwrap_or_default()
        }
        Data::Map(_) => {
            let Some(join) = Fields::new(node, &place, JOIN_FIELDS, problems) else {
                return Join::All;
            };
            let Some(value) = join.get("atLeast") else {
                join.missing("atLeast", problems);
                return Join::All;
            };
            let cancel = join.flag("cancel", problems).unwrap_or(false);
            match amount(value) {
                Some(Amount::Count(count)) if count > 0 && cancel => Join::FirstCount(count),
                Some(Amount::Count(count)) if count > 0 => Join::AtLeastCount(count),
                Some(Amount::Share(share)) if cancel => Join::FirstShare(share),
                Some(Amount::Share(share)) => Join::AtLeastShare(share),
                _ => {
                    let what = "a share above 0 and below 1, or a count from 1";
                    let problem = expected(what, value, &place.field("atLeast"));
                    problems.push(problem.hint("`join: all` asks for every member"));
                    Join::All
                }
            }
        }
        _ => {
            problems.push(expected("`all`, `any` or {atLeast: ...}", node, &place));
            Join::All
        }
    }
}

enum Amount {
    Count(u32),
    Share(f64),
}

/// A whole number is a count, a fraction between 0 and 1 a share.
fn amount(node: &Node<'_>) -> Option<Amount> {
    if let Some(count) = whole(node) {
        return Some(Amount::Count(count));
    }
    match &node.data {
        Data::Number(number) => {
            number.as_f64().filter(|share| *share > 0.0 && *share < 1.0).map(Amount::Share)
        }
        _ => None,
    }
}

pub fn tolerate(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Tolerate> {
    let node = fields.get("tolerate")?;
    match amount(node) {
        Some(Amount::Count(count)) => Some(Tolerate::Count(count)),
        Some(Amount::Share(share)) => Some(Tolerate::Share(share)),
        None => {
            let what = "a count of items that may fail, or a share below 1";
            problems.push(expected(what, node, &fields.place.field("tolerate")));
            None
        }
    }
}

pub fn retry(fields: &Fields<'_, '_>, kind: Kind, problems: &mut Diagnostics) -> Retry {
    let Some(node) = fields.get("retry") else {
        return retry_of_kind(kind);
    };
    let default = Retry::default();
    if let Data::Number(_) = node.data {
        let attempts = fields.count("retry", 1, MAX_ATTEMPTS, problems).unwrap_or(1);
        return Retry { attempts, ..default };
    }
    let place = fields.place.field("retry");
    if node.as_map().is_none() {
        let example = node.as_str().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(3);
        let what = "a number of tries, or an object such as {attempts: 3}";
        problems.push(expected(what, node, &place).hint(format!("retry: {example}")));
        return default;
    }
    let Some(retry) = Fields::new(node, &place, RETRY_FIELDS, problems) else {
        return default;
    };
    let backoffs =
        [("constant", Backoff::Constant), ("linear", Backoff::Linear), ("exponential", Backoff::Exponential)];
    let delay_ms = retry.duration_ms("delay", problems).unwrap_or(default.delay_ms);
    Retry {
        // Who writes a retry policy wants a retry.
        attempts: retry.count("attempts", 1, MAX_ATTEMPTS, problems).unwrap_or(3),
        backoff: word(&retry, "backoff", &backoffs, problems).unwrap_or_default(),
        delay_ms,
        max_delay_ms: retry.duration_ms("maxDelay", problems).unwrap_or(default.max_delay_ms).max(delay_ms),
        jitter: jitter(&retry, problems).unwrap_or(default.jitter),
        on: classes(&retry, problems),
        progressive: retry.flag("progressive", problems).unwrap_or(default.progressive),
    }
}

/// Agents crash and are overloaded; whoever writes nothing wants them started again.
fn retry_of_kind(kind: Kind) -> Retry {
    let on = vec![FailureClass::Transient, FailureClass::Lost];
    match kind {
        Kind::Agent => Retry { attempts: 3, on, ..Retry::default() },
        _ => Retry::default(),
    }
}

fn classes(retry: &Fields<'_, '_>, problems: &mut Diagnostics) -> Vec<FailureClass> {
    let classes = FailureClass::ALL.map(|class| (class.name(), class));
    words(retry, "on", "a class of failures", &classes, problems)
}

/// `true` and `false` are the default and none at all.
fn jitter(retry: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Jitter> {
    let node = retry.get("jitter")?;
    match &node.data {
        Data::Bool(true) => Some(Jitter::Decorrelated),
        Data::Bool(false) => Some(Jitter::None),
        Data::Str(_) => {
            let words = [
                ("none", Jitter::None),
                ("full", Jitter::Full),
                ("equal", Jitter::Equal),
                ("decorrelated", Jitter::Decorrelated),
            ];
            word(retry, "jitter", &words, problems)
        }
        _ => {
            let what = "true, false, `none`, `full`, `equal` or `decorrelated`";
            problems.push(expected(what, node, &retry.place.field("jitter")));
            None
        }
    }
}

/// What a tool does in the world nobody knows: twice may do harm, unless somebody says that it does not.
pub fn on_unknown(fields: &Fields<'_, '_>, kind: Kind, problems: &mut Diagnostics) -> OnUnknown {
    let Some(node) = fields.get("onUnknown") else {
        return if kind == Kind::Tool { OnUnknown::AskUnlessRepeatable } else { OnUnknown::Retry };
    };
    let place = fields.place.field("onUnknown");
    if let Data::Str(text) = &node.data {
        match &**text {
            "retry" => return OnUnknown::Retry,
            "ask" => return OnUnknown::Ask,
            _ => {
                problems.push(expected("`retry`, `ask` or {reconcile: \"command\"}", node, &place));
                return OnUnknown::Retry;
            }
        }
    }
    let Some(unknown) = Fields::new(node, &place, ON_UNKNOWN_FIELDS, problems) else {
        return OnUnknown::Retry;
    };
    match unknown.text("reconcile", problems).map(str::trim) {
        Some("") | None => {
            unknown.missing("reconcile", problems);
            OnUnknown::Retry
        }
        Some(command) => OnUnknown::Reconcile(command.to_owned()),
    }
}

pub fn priority(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<u8> {
    word(fields, "priority", &[("P0", 0u8), ("P1", 1), ("P2", 2), ("P3", 3)], problems)
}
