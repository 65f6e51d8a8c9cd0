//! What the JavaScript side of a workflow asks of the Rust side.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::{Ctx, Exception, Function, Object, Value};
use sage_core::diagnostic::nearest;
use sage_core::port::script::{CheckCall, Dialect, ScriptSays, ScriptStart};
use sage_core::read::{OPERATION_FIELDS, param_names};
use sage_core::template::Kind;

use super::Say;
use super::identity::{identity, well_formed};
use super::record::Record;
use super::schema::contradiction;
use crate::isolate::{Thrown, frames};

/// What both sides know.
pub(super) struct State {
    pub record: Record,
    /// How the script ended: JSON, or what it threw.
    pub ended: Option<Result<Option<String>, Thrown>>,
    pub spent: u64,
    max_calls: u32,
    lines: u32,
    logged: u32,
    say: Say,
    check: Arc<CheckCall>,
}

/// Lines of one script: more are somebody's data.
const MAX_LINES: u32 = 10_000;

pub(super) type Shared = Rc<RefCell<State>>;

impl State {
    pub fn new(start: &mut ScriptStart, say: Say) -> Shared {
        let record = Record::new(std::mem::take(&mut start.calls), std::mem::take(&mut start.settled));
        Rc::new(RefCell::new(State {
            record,
            ended: None,
            spent: 0,
            max_calls: match start.program.dialect {
                Dialect::Sage => start.limits.max_calls,
                Dialect::Claude => start.limits.max_calls.min(start.limits.max_agents),
            },
            lines: 0,
            logged: start.logged,
            say,
            check: Arc::clone(&start.check),
        }))
    }

    /// The slot of a call; below zero for one whose place must be told.
    fn call(&mut self, operation: &str, label: String, group: String, key: &str) -> Result<i32, String> {
        if self.record.made() >= self.max_calls {
            return Err(format!("a script can make at most {} calls", self.max_calls));
        }
        let operation: serde_json::Value = serde_json::from_str(&well_formed(operation))
            .map_err(|why| format!("not an operation: {why}"))?;
        // What was called before was good enough then; what never was is refused at once, in every turn alike.
        let coming = self.record.coming(identity(&operation, key));
        if !coming.is_known() {
            (self.check)(&operation)?;
        }
        let made = self.record.call(coming, operation, label, group);
        let slot = i32::try_from(made.slot).map_err(|_| "too many calls".to_owned())?;
        Ok(if made.answered { slot } else { -1 - slot })
    }

    /// Lines of an earlier turn are not said again.
    fn log(&mut self, line: String) {
        self.lines += 1;
        if self.lines == MAX_LINES && self.lines > self.logged {
            (self.say)(ScriptSays::Log(format!("{MAX_LINES} lines were logged; more are not kept")));
        } else if self.lines < MAX_LINES && self.lines > self.logged {
            (self.say)(ScriptSays::Log(line));
        }
    }
}

/// The object that our JavaScript gets.
pub(super) fn host<'js>(
    ctx: &Ctx<'js>,
    start: &ScriptStart,
    state: &Shared,
) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set("feature", start.feature.as_str())?;
    host.set("title", start.title.as_str())?;
    host.set("maxItems", start.limits.max_items)?;
    host.set("total", start.budget.map_or(-1.0, |total| total as f64))?;
    // `steps` is not a field of templates: there the engine knows what came before.
    host.set("fields", [OPERATION_FIELDS, &["steps"]].concat())?;
    let beside = |name: &&str| !matches!(*name, "prompt" | "agent" | "model");
    let params: Vec<&str> = param_names(Kind::Agent).iter().copied().filter(beside).collect();
    host.set("agentParams", params)?;
    calls(ctx, &host, state)?;
    endings(ctx, &host, state)?;
    Ok(host)
}

fn calls<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Shared) -> rquickjs::Result<()> {
    let shared = Rc::clone(state);
    let call = move |ctx: Ctx<'js>, operation: String, label: String, group: String, key: String| {
        let made = shared.borrow_mut().call(&operation, label, group, &key);
        made.map_err(|why| Exception::throw_type(&ctx, &why))
    };
    host.set("call", Function::new(ctx.clone(), call)?)?;
    let shared = Rc::clone(state);
    let at = move |stack: String| shared.borrow_mut().record.at(frames(&stack).into_iter().next().map(place));
    host.set("at", Function::new(ctx.clone(), at)?)?;
    let shared = Rc::clone(state);
    host.set("log", Function::new(ctx.clone(), move |line: String| shared.borrow_mut().log(line))?)?;
    let shared = Rc::clone(state);
    host.set("spent", Function::new(ctx.clone(), move || shared.borrow().spent as f64)?)?;
    let checked = |schema: String| {
        let schema = serde_json::from_str(&schema).unwrap_or(serde_json::Value::Null);
        contradiction(&schema).unwrap_or_default()
    };
    host.set("contradiction", Function::new(ctx.clone(), checked)?)?;
    let near = |wrong: String, names: Vec<String>| near(&wrong, &names).unwrap_or_default();
    host.set("near", Function::new(ctx.clone(), near)?)
}

/// Letters at the beginning that two names share when one is another form of the other: `retries`, `retry`.
const SAME_STEM: usize = 3;

/// The name that was meant, if one is near.
fn near(wrong: &str, names: &[String]) -> Option<String> {
    let wrong: String = wrong.chars().take(100).collect();
    let shared = |name: &String| name.chars().zip(wrong.chars()).take_while(|(a, b)| a == b).count();
    let stem = || names.iter().filter(|name| shared(name) >= SAME_STEM).max_by_key(|name| shared(name));
    let found = nearest(&wrong, names.iter().map(String::as_str)).map(str::to_owned);
    found.or_else(|| stem().cloned())
}

fn endings<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Shared) -> rquickjs::Result<()> {
    let shared = Rc::clone(state);
    let done = move |value: Value<'js>| {
        let json = value.as_string().and_then(|text| text.to_string().ok());
        shared.borrow_mut().ended = Some(Ok(json));
    };
    host.set("done", Function::new(ctx.clone(), done)?)?;
    let shared = Rc::clone(state);
    let threw = move |error: Value<'js>| {
        // Reading may run a getter of the script, which may call: nothing is borrowed meanwhile.
        let thrown = Thrown::read(&error);
        shared.borrow_mut().ended = Some(Err(thrown));
    };
    host.set("threw", Function::new(ctx.clone(), threw)?)
}

/// `review.ts:12:9` of `inner (review.ts:12:9)`.
fn place(frame: String) -> String {
    match frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" (")) {
        Some((_, place)) => place.to_owned(),
        None => frame,
    }
}
