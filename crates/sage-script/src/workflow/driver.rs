//! One run of a script, from its first line to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError};

use rquickjs::{Ctx, Function, Object, Persistent, Value as JsValue};
use sage_core::policy::Cause;
use sage_core::port::script::{
    CallOutcome, Dialect, ScriptFailure, ScriptLimits, ScriptSays, ScriptStart, Settled, Text,
};
use serde_json::Value;

use super::host::{Shared, State, host};
use super::identity::well_formed;
use super::{Say, Told, broken, program};
use crate::isolate::{Fault, Held, Isolate, Limits, Stop, own_code};

const CALLS: &str = include_str!("calls.js");
const SAGE: &str = include_str!("sage.js");
const CLAUDE: &str = include_str!("claude.js");

type Ended = Result<Value, ScriptFailure>;

/// Runs a script to its end. `None`: nobody listens any more.
pub(super) fn run(mut start: ScriptStart, say: &Say, ears: Ears) -> Option<Ended> {
    let Ears { hear, stop, cancel } = ears;
    let state = State::new(&mut start, Say::clone(say));
    let isolate = match Isolate::with_stop(&limits(&start.limits), stop) {
        Ok(isolate) => isolate,
        Err(fault) => return Some(Err(broken(fault.to_string()))),
    };
    isolate.set_now(start.now_ms);
    isolate.set_seed(start.seed);
    isolate.begin();
    let meta = match program::load(&isolate, &start.program) {
        Ok(meta) => meta,
        Err(message) => return Some(Err(broken(message))),
    };
    let name = start.program.name.clone();
    let mut driver = match Driver::begin(isolate, start, state, meta.as_ref(), cancel) {
        Ok(driver) => driver,
        Err(Fault::Stopped) => return None,
        // A program that fails before its first line has said nothing of its own.
        Err(Fault::Threw(thrown)) => return Some(Err(ScriptFailure::Threw { message: thrown.to_string() })),
        Err(fault) => return Some(Err(broken(format!("`{name}` was cut off: {fault}")))),
    };
    driver.drive(say, &hear)
}

fn limits(limits: &ScriptLimits) -> Limits {
    Limits {
        memory_bytes: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
        stack_bytes: usize::try_from(limits.stack_bytes).unwrap_or(1 << 20),
        cpu_ms: limits.cpu_ms,
    }
}

/// How the engine reaches a script.
pub(super) struct Ears {
    pub hear: Receiver<Told>,
    pub stop: Stop,
    pub cancel: Arc<AtomicBool>,
}

/// What our JavaScript lets us do to the script's promises.
struct Control {
    resolve: Persistent<Function<'static>>,
    fail: Persistent<Function<'static>>,
    stop: Persistent<Function<'static>>,
    cancel: Persistent<Function<'static>>,
}

struct Driver {
    // Values of the engine go before the engine.
    control: Control,
    state: Shared,
    isolate: Isolate,
    start: ScriptStart,
    /// Whether it shall be cancelled.
    cancel: Arc<AtomicBool>,
    /// Whether it was.
    cancelled: bool,
    /// What the engine said and this has taken.
    taken: u32,
}

impl Driver {
    /// Evaluates the program and calls its main function.
    fn begin(
        isolate: Isolate,
        start: ScriptStart,
        state: Shared,
        meta: Option<&Value>,
        cancel: Arc<AtomicBool>,
    ) -> Result<Driver, Fault> {
        let name = start.program.name.clone();
        let (parts, first) = isolate.run(|ctx| prepare(&ctx, &start, &state, meta))?;
        let main = isolate.eval_module(&name)?;
        let control = isolate.run(|ctx| {
            let control: Object<'_> = parts.restore(&ctx)?;
            begin_main(&ctx, &control, &main, first, &start)?;
            let function = |name: &str| -> rquickjs::Result<Persistent<Function<'static>>> {
                Ok(Persistent::save(&ctx, control.get::<_, Function<'_>>(name)?))
            };
            Ok(Control {
                resolve: function("resolve")?,
                fail: function("fail")?,
                stop: function("stop")?,
                cancel: function("cancel")?,
            })
        })?;
        Ok(Driver { control, state, isolate, start, cancel, cancelled: false, taken: 0 })
    }

    fn drive(&mut self, say: &Say, hear: &Receiver<Told>) -> Option<Ended> {
        loop {
            if let Err(fault) = self.isolate.turn() {
                return self.ended_by(&fault);
            }
            if let Some(ended) = self.ended(say) {
                return Some(ended);
            }
            let step = match self.next(say, hear) {
                Next::Deliver(slot, settled) => self.deliver(slot, settled),
                Next::Cancel => self.cancel(),
                Next::Ended(ended) => return Some(Err(ended)),
                Next::Nobody => return None,
            };
            if let Err(fault) = step {
                return self.ended_by(&fault);
            }
        }
    }

    /// How the script ended, if it did. Calls that it made last are said all the same.
    fn ended(&self, say: &Say) -> Option<Ended> {
        let ended = self.state.borrow_mut().ended.take()?;
        let (calls, again) = self.state.borrow_mut().record.new_calls();
        if !calls.is_empty() {
            say(ScriptSays::Rests { taken: self.taken, calls, again });
        }
        match ended {
            Ok(None) => Some(Ok(Value::Null)),
            Ok(Some(json)) => Some(
                serde_json::from_str(&well_formed(&json))
                    .map_err(|why| broken(format!("its result is not JSON: {why}"))),
            ),
            Err(_) if self.cancelled => Some(Err(ScriptFailure::Cancelled)),
            Err(thrown) => match self.isolate.fault(thrown) {
                Fault::Threw(thrown) => {
                    Some(Err(ScriptFailure::Threw { message: hinted(thrown.to_string()) }))
                }
                fault => Some(Err(self.broken(&fault))),
            },
        }
    }

    /// What comes next: from the record while it has something, then whatever the engine says.
    fn next(&mut self, say: &Say, hear: &Receiver<Told>) -> Next {
        if self.cancelled {
            // All its promises are settled and it has still not ended: nothing more will happen.
            return Next::Ended(ScriptFailure::Cancelled);
        }
        if self.cancel.load(Ordering::Acquire) {
            return Next::Cancel;
        }
        loop {
            if let Some((slot, settled)) = self.state.borrow_mut().record.next() {
                return Next::Deliver(slot, settled);
            }
            if !self.state.borrow().record.is_waiting() {
                return Next::Ended(self.stuck());
            }
            let (calls, again) = self.state.borrow_mut().record.new_calls();
            say(ScriptSays::Rests { taken: self.taken, calls, again });
            match hear.recv() {
                Ok(Told::Settled(settled)) => {
                    self.taken += 1;
                    self.state.borrow_mut().record.settle(settled);
                }
                Ok(Told::Cancel) => return Next::Cancel,
                Err(RecvError) => return Next::Nobody,
            }
        }
    }

    /// One completion, in a slice of its own.
    fn deliver(&self, slot: u32, settled: Settled) -> Result<(), Fault> {
        self.isolate.begin();
        self.isolate.set_now(settled.at_ms);
        self.state.borrow_mut().spent = settled.spent;
        let text = match &settled.outcome {
            CallOutcome::Value(Text::Here(text)) => Some(text.clone()),
            CallOutcome::Value(Text::Blob(digest)) => {
                let unread = |why| {
                    Fault::Broken(format!("the result of call {} cannot be read: {why}", settled.number))
                };
                Some((self.start.load)(digest).map_err(unread)?)
            }
            CallOutcome::Failed { .. } | CallOutcome::Cancelled => None,
        };
        let settle = |ctx: Ctx<'_>| match (text, &settled.outcome) {
            (Some(text), _) => {
                let value = ctx.json_parse(&*text)?;
                self.control.resolve.clone().restore(&ctx)?.call::<_, ()>((slot, value))
            }
            (None, CallOutcome::Failed { class, cause, message }) => {
                let refused = *cause == Some(Cause::Endpoint);
                self.control.fail.clone().restore(&ctx)?.call((slot, class.name(), message.as_str(), refused))
            }
            (None, _) => self.control.stop.clone().restore(&ctx)?.call((slot,)),
        };
        self.isolate.run(settle).map_err(|fault| match fault {
            // Nothing of the script runs in there: what is thrown is a result that is not JSON.
            Fault::Threw(thrown) => {
                Fault::Broken(format!("the result of call {} cannot be read: {thrown}", settled.number))
            }
            other => other,
        })
    }

    fn cancel(&mut self) -> Result<(), Fault> {
        self.cancelled = true;
        self.isolate.begin();
        self.isolate.run(|ctx| self.control.cancel.clone().restore(&ctx)?.call(()))
    }

    fn stuck(&self) -> ScriptFailure {
        let state = self.state.borrow();
        let last = state
            .record
            .last_at
            .as_ref()
            .map(|at| format!("; its last call was made at {at}"))
            .unwrap_or_default();
        let calls = state.record.made();
        let name = &self.start.program.name;
        let calls = if calls == 1 { "1 call".into() } else { format!("{calls} calls") };
        broken(format!("stuck: `{name}` awaits something that nobody will answer, after {calls}{last}"))
    }

    /// A limit, or an engine that cannot go on: never the script's own verdict.
    fn ended_by(&self, fault: &Fault) -> Option<Ended> {
        match fault {
            Fault::Stopped => None,
            _ if self.cancelled => Some(Err(ScriptFailure::Cancelled)),
            fault => Some(Err(self.broken(fault))),
        }
    }

    fn broken(&self, fault: &Fault) -> ScriptFailure {
        let after = match &self.state.borrow().record.last_at {
            Some(at) => format!(" (after the call at {at})"),
            None => String::new(),
        };
        let more = match fault {
            Fault::Memory(_) => "; `[scripts] memory` in sage.toml gives it more",
            Fault::Cpu(_) => "; `[scripts] cpu` in sage.toml gives it more",
            _ => "",
        };
        broken(format!("`{}` was cut off: {fault}{after}{more}", self.start.program.name))
    }
}

/// What other places have and this one has not, with what to use instead.
const INSTEAD: [(&str, &str); 5] = [
    ("fetch", "let a tool or a command fetch it"),
    ("setTimeout", "sleep() waits, also over a restart"),
    ("setInterval", "use a loop with sleep()"),
    ("require", "import files of the same folder: import { x } from \"./lib.ts\""),
    ("process", "give what it needs as input"),
];

fn hinted(message: String) -> String {
    let missing = |(name, _): &&(&str, &str)| message.contains(&format!("{name} is not defined"));
    match INSTEAD.iter().find(missing) {
        Some((name, hint)) => format!("{message}\nworkflows have no `{name}`: {hint}"),
        None => message,
    }
}

enum Next {
    Deliver(u32, Settled),
    Cancel,
    Ended(ScriptFailure),
    Nobody,
}

type First = Option<Persistent<JsValue<'static>>>;

/// Our own JavaScript: what both dialects share, then the words of one. Gives the controls, and `sage` if the
/// main function wants it.
fn prepare<'js>(
    ctx: &Ctx<'js>,
    start: &ScriptStart,
    state: &Shared,
    meta: Option<&Value>,
) -> rquickjs::Result<(Persistent<Object<'static>>, First)> {
    let host = host(ctx, start, state)?;
    let calls: Function<'js> = own_code(ctx, "sage:calls", CALLS)?;
    let parts: Object<'js> = calls.call((host.clone(),))?;
    let control: Object<'js> = parts.get("control")?;
    let first = match start.program.dialect {
        Dialect::Sage => {
            let sage: Function<'js> = own_code(ctx, "sage:sage", SAGE)?;
            let sage: JsValue<'js> = sage.call((host, parts))?;
            Some(Persistent::save(ctx, sage))
        }
        Dialect::Claude => {
            let claude: Function<'js> = own_code(ctx, "sage:claude", CLAUDE)?;
            let meta = ctx.json_parse(meta.unwrap_or(&Value::Null).to_string())?;
            claude.call::<_, ()>((host, parts, meta, input(ctx, start)?))?;
            None
        }
    };
    Ok((Persistent::save(ctx, control), first))
}

/// What was not given is `undefined`.
fn input<'js>(ctx: &Ctx<'js>, start: &ScriptStart) -> rquickjs::Result<JsValue<'js>> {
    match &start.input {
        Value::Null => Ok(JsValue::new_undefined(ctx.clone())),
        input => ctx.json_parse(input.to_string()),
    }
}

fn begin_main<'js>(
    ctx: &Ctx<'js>,
    control: &Object<'js>,
    main: &Held,
    first: First,
    start: &ScriptStart,
) -> rquickjs::Result<()> {
    let main: JsValue<'js> = main.0.clone().restore(ctx)?;
    if !main.is_function() {
        let name = &start.program.name;
        let message =
            format!("`{name}` has no workflow: write `export default async (sage, input) => {{ .. }}`");
        return Err(rquickjs::Exception::throw_type(ctx, &message));
    }
    let begin: Function<'js> = control.get("begin")?;
    match first {
        Some(sage) => begin.call((main, sage.restore(ctx)?, input(ctx, start)?)),
        None => begin.call((main,)),
    }
}
