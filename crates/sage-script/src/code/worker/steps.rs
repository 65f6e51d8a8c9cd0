//! Runs loaded code: all that is ready, then the next answer, until there is a value or nothing to wait for.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::value::RawValue;

use super::bridge::{Bridge, INSIDE};
use super::loading::Loaded;
use super::{Link, failed};
use crate::code::answer::FailureKind;
use crate::code::limits::MAX_MESSAGE_BYTES;
use crate::code::wire::{FromWorker, Start, ToWorker, raw};
use crate::isolate::{Fault, Held, Isolate, Limits, Settled, Thrown};

/// The module that begins.
const MAIN: &str = "sage:main";

pub fn run(start: Start, loaded: Loaded, link: &mut Link) -> Result<FromWorker, FromWorker> {
    let limits = Limits {
        memory_bytes: start.limits.memory_bytes as usize,
        stack_bytes: start.limits.stack_bytes as usize,
        cpu_ms: start.limits.cpu_ms,
    };
    let teller = Teller { name: start.name.clone(), shift: loaded.shift, exports: loaded.exports };
    let isolate = Isolate::new(&limits).map_err(|fault| teller.fault(fault))?;
    let bridge = Rc::new(RefCell::new(Bridge::new(&start.limits)));
    let ended = drive(&isolate, &start, loaded, link, &bridge);
    bridge.borrow_mut().flush(link);
    ended.map_err(|fault| teller.fault(fault))
}

fn drive(
    isolate: &Isolate,
    start: &Start,
    loaded: Loaded,
    link: &mut Link,
    bridge: &Rc<RefCell<Bridge>>,
) -> Result<FromWorker, Fault> {
    isolate.set_now(start.now_ms);
    isolate.set_seed(start.seed);
    Bridge::install(bridge, isolate, &start.input)?;
    for (name, code) in loaded.modules {
        isolate.add_module(&name, code);
    }
    isolate.begin();
    let settle = isolate.eval_module(INSIDE)?;
    isolate.add_module(MAIN, main(&start.name));
    let main = isolate.eval_module(MAIN)?;
    let answer = isolate.call(&main, &[&start.input.to_string()])?;
    loop {
        isolate.turn()?;
        bridge.borrow_mut().flush(link);
        match isolate.settled(&answer)? {
            Some(Settled::Value(value)) => return Ok(done(value)),
            Some(Settled::Threw(thrown)) => return Err(Fault::Threw(thrown)),
            None if !bridge.borrow().waits() => return Ok(stuck()),
            None => deliver(isolate, &settle, link, bridge)?,
        }
    }
}

/// Calls the default export of the code; one that is no function is the answer as it is.
fn main(name: &str) -> String {
    let name = serde_json::Value::from(name);
    format!(
        "import * as code from {name};\nexport default async (input) => typeof code.default === 'function' ? code.default(input) : code.default;"
    )
}

/// Takes one answer, and those that are there already.
fn deliver(
    isolate: &Isolate,
    settle: &Held,
    link: &mut Link,
    bridge: &Rc<RefCell<Bridge>>,
) -> Result<(), Fault> {
    let gone = || Fault::Broken("the owner is gone".into());
    let mut next = Some(link.hear().map_err(|_| gone())?);
    while let Some(message) = next {
        if let ToWorker::Answer { id, good, value } = message {
            bridge.borrow_mut().answered();
            isolate.call(settle, &[&id.to_string(), &good.to_string(), value.get()])?;
        }
        next = link.inbox.try_recv().ok();
    }
    Ok(())
}

fn done(value: Option<String>) -> FromWorker {
    let Some(text) = value else { return FromWorker::Done { nothing: true, value: raw(&()) } };
    if text.len() > MAX_MESSAGE_BYTES {
        let message = format!(
            "the returned value has {} bytes of JSON, more than {} MiB",
            text.len(),
            MAX_MESSAGE_BYTES >> 20
        );
        return failed(FailureKind::Memory, message);
    }
    FromWorker::Done { nothing: false, value: RawValue::from_string(text).unwrap_or_else(|_| raw(&())) }
}

fn stuck() -> FromWorker {
    let message = "the code waits for something that nobody will answer: a promise that is never resolved. There are no timers; await the calls of tools";
    failed(FailureKind::Stuck, message)
}

/// Faults in the words and lines of the code that was given.
struct Teller {
    name: String,
    shift: usize,
    exports: bool,
}

impl Teller {
    fn fault(&self, fault: Fault) -> FromWorker {
        match fault {
            // A promise may bring it instead of the engine.
            Fault::Threw(thrown) if thrown.is_out_of_memory() => {
                failed(FailureKind::Memory, "the code needs more memory than it may have")
            }
            Fault::Threw(thrown) => {
                let import =
                    thrown.message.contains("find export") || thrown.message.starts_with("no module");
                failed(if import { FailureKind::Import } else { FailureKind::Threw }, self.thrown(thrown))
            }
            Fault::Cpu(ms) => failed(FailureKind::Cpu, format!("the code computed longer than {ms} ms")),
            Fault::Memory(bytes) => {
                failed(FailureKind::Memory, format!("the code needs more than {} MiB", bytes >> 20))
            }
            Fault::Broken(message) if self.exports && message.contains("waits at top level") => {
                let advice = "code with `export` cannot wait for tools at top level: leave the `export` out and `return` the value, or export a function";
                failed(FailureKind::Stuck, advice)
            }
            Fault::Broken(message) => failed(FailureKind::Broken, message),
            Fault::Stopped => failed(FailureKind::Broken, "it was stopped"),
        }
    }

    fn thrown(&self, mut thrown: Thrown) -> String {
        // The functions of servers are made by us; where they were called is what helps.
        thrown.frames.retain(|frame| !frame.contains("servers/"));
        thrown.frames.iter_mut().for_each(|frame| self.shift_back(frame));
        thrown.to_string()
    }

    /// Only the first line begins further right than in the text.
    fn shift_back(&self, frame: &mut String) {
        let first = format!("{}:1:", self.name);
        let Some((before, rest)) = frame.split_once(&first) else { return };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let column = digits.parse::<usize>().unwrap_or(1).saturating_sub(self.shift).max(1);
        *frame = format!("{before}{first}{column}{}", &rest[digits.len()..]);
    }
}
