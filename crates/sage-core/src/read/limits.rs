//! The limits of a template: timeouts, pools, targets, budgets, hedges, stalls.
//!
//! Most have a short form for what is usually meant and an object for the rest.

use serde_json::Value;

use super::fields::{Fields, expected, whole};
use super::params::Given;
use super::place::Place;
use super::policies::word;
use crate::budget::Cap;
use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, printable};
use crate::expr;
use crate::policy::{Hedge, OnUnknown, RetryBudget, Stall, StallEnd, StallPolicy};
use crate::slug::is_invisible;
use crate::source::{Data, Node};
use crate::template::{Kind, Span};

pub const TIMEOUT_FIELDS: &[&str] = &["attempt", "step", "idle", "queue"];
pub const BUDGET_FIELDS: &[&str] = &["tokens", "usd"];
pub const HEDGE_FIELDS: &[&str] = &["after", "max"];
pub const STALL_FIELDS: &[&str] = &["after", "nudges", "restarts", "then"];

/// What a target may be.
pub const TARGET_KINDS: [&str; 6] = ["host", "command", "server", "model", "agent", "provider"];

const MAX_UNITS: u32 = 10_000;
const MAX_POOL_NAME: usize = 50;
const MAX_TARGET: usize = 200;
/// More attempts beside one that is slow are a way to pay for the same thing many times.
const MAX_HEDGES: u32 = 5;
const MAX_RUNGS: u32 = 10;

/// Where an agent or a program does the work, so that a second one can do it too.
const HEDGED: [Kind; 4] = [Kind::Shell, Kind::Agent, Kind::Tool, Kind::Script];

#[derive(Debug, Default, PartialEq)]
pub struct Timeouts {
    pub attempt: Option<u64>,
    pub step: Option<u64>,
    pub idle: Option<u64>,
    pub queue: Option<u64>,
}

/// `timeout` and `idleTimeout`.
pub fn timeouts(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Timeouts {
    let outer_idle = fields.timeout_ms("idleTimeout", problems);
    let Some(node) = fields.get("timeout").filter(|node| node.as_map().is_some()) else {
        let attempt = fields.timeout_ms("timeout", problems);
        return Timeouts { attempt, idle: outer_idle, ..Timeouts::default() };
    };
    let place = fields.place.field("timeout");
    let Some(timeout) = Fields::new(node, &place, TIMEOUT_FIELDS, problems) else {
        return Timeouts::default();
    };
    let inner_idle = timeout.timeout_ms("idle", problems);
    if let (Some(outer), Some(inner)) = (fields.get("idleTimeout"), timeout.get("idle")) {
        let message = "the idle timeout is given twice";
        let problem = Diagnostic::error(place.field("idle"), inner.span, message);
        problems.push(problem.also(outer.span, "first").hint("keep `idleTimeout` or `timeout.idle`"));
    }
    Timeouts {
        attempt: timeout.timeout_ms("attempt", problems),
        step: timeout.timeout_ms("step", problems),
        idle: outer_idle.or(inner_idle),
        queue: timeout.timeout_ms("queue", problems),
    }
}

/// `pool`: one unit of one pool, or an object of names and units.
pub fn pools(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Vec<(String, u32)> {
    let Some(node) = fields.get("pool") else {
        return Vec::new();
    };
    let place = fields.place.field("pool");
    let entries = match &node.data {
        Data::Str(name) => {
            check_pool_name(name, node.span, &place, problems);
            return vec![(name.clone().into_owned(), 1)];
        }
        Data::Map(entries) => entries,
        _ => {
            let what = "the name of a pool, or an object such as {gpu: 2}";
            problems.push(expected(what, node, &place));
            return Vec::new();
        }
    };
    if entries.is_empty() {
        let problem = Diagnostic::error(place, node.span, "`pool` names no pool");
        problems.push(problem.hint("write the units of each pool: {gpu: 2}, or leave `pool` out"));
    }
    let mut pools = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let place = place.field(&key.name);
        check_pool_name(&key.name, key.span, &place, problems);
        match whole(value).filter(|units| (1..=MAX_UNITS).contains(units)) {
            Some(units) => pools.push((key.name.clone().into_owned(), units)),
            None => {
                problems.push(expected(&format!("a whole number from 1 to {MAX_UNITS}"), value, &place));
            }
        }
    }
    pools
}

fn check_pool_name(name: &str, span: Span, place: &Place<'_>, problems: &mut Diagnostics) {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if name == "global" {
        let message = "`global` is the pool of all steps: each takes its slot there anyway";
        let problem = Diagnostic::error(place, span, message);
        problems.push(problem.hint("leave it out, or name a pool of your own"));
    } else if name.is_empty() || name.len() > MAX_POOL_NAME || !name.bytes().all(letter) {
        let message = format!("`{}` is not the name of a pool", shortened(name));
        let hint = format!("1 to {MAX_POOL_NAME} letters, digits, `.`, `_` and `-`, such as `gpu`");
        problems.push(Diagnostic::error(place, span, message).hint(hint));
    }
}

/// `target`: what a step depends on besides its agent and model; a tool depends on its server. One that is wrong
/// is left out.
pub fn targets(
    fields: &Fields<'_, '_>,
    given: &Given,
    kind: Kind,
    problems: &mut Diagnostics,
) -> Vec<String> {
    let mut targets: Vec<String> = Vec::new();
    fields.each_text("target", "target", problems, |text, span, place, problems| {
        if let Err((message, hint)) = check_target(text) {
            problems.push(Diagnostic::error(place, span, message).hint(hint));
        } else if targets.iter().any(|target| target == text) {
            let message = format!("`{}` is named twice", printable(text));
            problems.push(Diagnostic::warning(place, span, message).hint("leave one of them out"));
        } else {
            targets.push(text.to_owned());
        }
    });
    let server = given.params.get("server").and_then(Value::as_str).filter(|_| kind == Kind::Tool);
    let server = server.map(|name| format!("server:{name}")).filter(|target| check_target(target).is_ok());
    targets.extend(server.filter(|target| !targets.contains(target)));
    targets
}

/// What is wrong with a target, and what to write.
fn check_target(text: &str) -> Result<(), (String, String)> {
    if expr::is_dynamic(text) {
        let hint = "write the name itself, such as `host:api.example.com`";
        return Err(("a target is plain text: it is never rendered".to_owned(), hint.to_owned()));
    }
    let unfit = |c: char| c.is_whitespace() || c.is_control() || is_invisible(c);
    if text.chars().nth(MAX_TARGET).is_some() || text.contains(unfit) {
        let message = format!("a target has at most {MAX_TARGET} characters and no spaces");
        return Err((message, "such as `host:api.example.com`".to_owned()));
    }
    let kinds = TARGET_KINDS.join(", ");
    match text.split_once(':') {
        Some((kind, name)) if TARGET_KINDS.contains(&kind) => match name {
            "" => Err((format!("`{text}` has no name"), format!("write it after the colon: `{kind}:name`"))),
            _ => Ok(()),
        },
        Some((kind, _)) => {
            let hint = did_you_mean(kind, TARGET_KINDS).unwrap_or_else(|| format!("one of: {kinds}"));
            Err((format!("`{kind}` is not a kind of target"), hint))
        }
        None => {
            let hint = format!("write its kind before it, such as `host:{text}`; kinds: {kinds}");
            Err((format!("`{text}` is not a target"), hint))
        }
    }
}

/// `budget`: `5usd`, `200k`, both with a `+`, a number of tokens, or {tokens, usd}.
pub fn budget(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<Cap> {
    let node = fields.get("budget")?;
    let place = fields.place.field("budget");
    match &node.data {
        Data::Str(text) => cap(text, node, &place, problems),
        Data::Number(number) if number.is_u64() => cap(&number.to_string(), node, &place, problems),
        Data::Map(_) => {
            let budget = Fields::new(node, &place, BUDGET_FIELDS, problems)?;
            if BUDGET_FIELDS.iter().all(|name| budget.get(name).is_none()) {
                let problem =
                    Diagnostic::error(place, node.span, "`budget` names neither `tokens` nor `usd`");
                problems.push(problem.hint("write {usd: 5}, {tokens: 200000} or both"));
                return None;
            }
            let tokens =
                part(&budget, "tokens", "a whole number of tokens, or text such as \"200k\"", problems);
            let usd = part(&budget, "usd", "a number of dollars such as 0.5", problems);
            Some(Cap {
                tokens: tokens.and_then(|cap| cap.tokens),
                micro_usd: usd.and_then(|cap| cap.micro_usd),
            })
        }
        _ => {
            let what = "text such as \"5usd\" or \"200k\", a number of tokens, or {tokens, usd}";
            problems.push(expected(what, node, &place));
            None
        }
    }
}

/// One half of a budget. `Cap` knows the bounds, so each is given to it as the text that means the same.
fn part(budget: &Fields<'_, '_>, name: &str, what: &str, problems: &mut Diagnostics) -> Option<Cap> {
    let node = budget.get(name)?;
    let place = budget.place.field(name);
    let text = match &node.data {
        Data::Number(number) if name == "usd" => format!("{number}usd"),
        Data::Number(number) if number.is_u64() => number.to_string(),
        Data::Str(text) if name == "tokens" => text.clone().into_owned(),
        _ => {
            problems.push(expected(what, node, &place));
            return None;
        }
    };
    let cap = cap(&text, node, &place, problems)?;
    if name == "tokens" && cap.micro_usd.is_some() {
        problems
            .push(Diagnostic::error(place, node.span, "this is money, not tokens").hint("write it as `usd`"));
        return None;
    }
    Some(cap)
}

fn cap(text: &str, node: &Node<'_>, place: &Place<'_>, problems: &mut Diagnostics) -> Option<Cap> {
    match Cap::parse(text) {
        Ok(cap) => Some(cap),
        Err(error) => {
            let problem = Diagnostic::error(place, node.span, printable(&error.to_string()));
            problems.push(problem.hint("such as 5usd, 200k or 5usd+200k"));
            None
        }
    }
}

/// `retryBudget`: how many of a run's calls may be retries, as a share.
pub fn retry_budget(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> Option<RetryBudget> {
    let node = fields.get("retryBudget")?;
    let share = match &node.data {
        Data::Number(number) => number.as_f64().filter(|share| (0.0..=1.0).contains(share)),
        _ => None,
    };
    if share.is_none() {
        let problem = expected("a share from 0 to 1", node, &fields.place.field("retryBudget"));
        problems.push(problem.hint("0.2 lets one call in five be a retry"));
    }
    share.map(RetryBudget::of)
}

/// `hedge`: how long to wait for the first attempt, or {after, max}.
pub fn hedge(
    fields: &Fields<'_, '_>,
    kind: Option<Kind>,
    on_unknown: &OnUnknown,
    problems: &mut Diagnostics,
) -> Option<Hedge> {
    let node = fields.get("hedge")?;
    let place = fields.place.field("hedge");
    if let Some(kind) = kind.filter(|kind| !HEDGED.contains(kind)) {
        let kinds = HEDGED.map(Kind::name).join(", ");
        let message = format!("`hedge` is only for the kinds {kinds}; this is a `{}` step", kind.name());
        problems.push(Diagnostic::error(place, node.span, message).hint("leave `hedge` out"));
        return None;
    }
    if on_unknown.asks(false) {
        let (message, hint) = match fields.get("onUnknown") {
            Some(_) => (
                "a hedged step runs twice at once, but `onUnknown: ask` says that twice may do harm",
                "leave out one of `hedge` and `onUnknown: ask`",
            ),
            None => (
                "a hedged step runs twice at once, and nobody has said that this tool does no harm then",
                "onUnknown: retry says so",
            ),
        };
        problems.push(Diagnostic::warning(place, node.span, message).hint(hint));
    }
    if node.as_map().is_none() {
        return fields.timeout_ms("hedge", problems).map(|after_ms| Hedge { after_ms, max: 1 });
    }
    let hedge = Fields::new(node, &place, HEDGE_FIELDS, problems)?;
    if hedge.get("after").is_none() {
        hedge.missing("after", problems);
    }
    let max = hedge.count("max", 1, MAX_HEDGES, problems).unwrap_or(1);
    hedge.timeout_ms("after", problems).map(|after_ms| Hedge { after_ms, max })
}

/// `stall`: `false`, how long silence may last, or the whole ladder.
pub fn stall(fields: &Fields<'_, '_>, problems: &mut Diagnostics) -> StallPolicy {
    let Some(node) = fields.get("stall") else {
        return StallPolicy::Default;
    };
    let default = Stall::default();
    let place = fields.place.field("stall");
    match &node.data {
        Data::Bool(false) => StallPolicy::Off,
        Data::Str(_) | Data::Number(_) => match fields.timeout_ms("stall", problems) {
            Some(after_ms) => StallPolicy::Custom(Stall { after_ms, ..default }),
            None => StallPolicy::Default,
        },
        Data::Map(_) => {
            let Some(stall) = Fields::new(node, &place, STALL_FIELDS, problems) else {
                return StallPolicy::Default;
            };
            let ends = [("ask", StallEnd::Ask), ("fail", StallEnd::Fail)];
            StallPolicy::Custom(Stall {
                after_ms: stall.timeout_ms("after", problems).unwrap_or(default.after_ms),
                nudges: stall.count("nudges", 0, MAX_RUNGS, problems).unwrap_or(default.nudges),
                restarts: stall.count("restarts", 0, MAX_RUNGS, problems).unwrap_or(default.restarts),
                then: word(&stall, "then", &ends, problems).unwrap_or(default.then),
            })
        }
        _ => {
            let problem = expected("false, a duration or an object", node, &place);
            problems.push(problem.hint("such as 10m, or {after: 10m, nudges: 1, restarts: 1, then: ask}"));
            StallPolicy::Default
        }
    }
}

/// Enough of a name to find it, safe to print.
fn shortened(name: &str) -> String {
    printable(&name.chars().take(80).collect::<String>())
}
