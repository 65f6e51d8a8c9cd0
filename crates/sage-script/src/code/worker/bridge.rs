//! What code can do beside computing: ask the owner (tools, search, handles), and print.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use super::Link;
use crate::code::limits::{CodeLimits, MAX_MESSAGE_BYTES};
use crate::code::wire::{Ask, FromWorker};
use crate::isolate::{Fault, Isolate};

/// The module with all of it; `sage` is what of it code may import.
pub const INSIDE: &str = "sage:inside";
const CODE: &str = include_str!("bridge.js");
const SAGE: &str = "export { callTool, tools, handles, input } from \"sage:inside\";";

/// Messages of one turn, and what is left of the limits.
#[derive(Debug)]
pub struct Bridge {
    outbox: Vec<FromWorker>,
    calls_left: u32,
    max_calls: u32,
    /// Calls without an answer.
    open: u32,
    console_left: usize,
    console_cut: usize,
}

#[derive(serde::Deserialize)]
struct Asked {
    id: u32,
    ask: Ask,
}

impl Bridge {
    pub fn new(limits: &CodeLimits) -> Bridge {
        Bridge {
            outbox: Vec::new(),
            calls_left: limits.max_calls,
            max_calls: limits.max_calls,
            open: 0,
            // The owner cuts exactly; here only what nobody would see is kept back.
            console_left: limits.console_bytes.saturating_mul(2),
            console_cut: 0,
        }
    }

    pub fn install(bridge: &Rc<RefCell<Bridge>>, isolate: &Isolate, input: &Value) -> Result<(), Fault> {
        let told = Rc::clone(bridge);
        isolate.function("__tell", move |args| {
            let [what, text] = args.as_slice() else { return Err("two texts are needed".into()) };
            told.borrow_mut().told(what, text).map(|()| String::new())
        })?;
        isolate.global("__input", &input.to_string())?;
        isolate.add_module(INSIDE, CODE);
        isolate.add_module("sage", SAGE);
        Ok(())
    }

    fn told(&mut self, what: &str, text: &str) -> Result<(), String> {
        if what == "console" {
            self.print(text);
            return Ok(());
        }
        if self.calls_left == 0 {
            return Err(format!(
                "more than {} calls in one run; filter before you call, or use fewer",
                self.max_calls
            ));
        }
        if text.len() > MAX_MESSAGE_BYTES {
            let most = MAX_MESSAGE_BYTES >> 20;
            return Err(format!(
                "the arguments of this call have {} bytes, more than {most} MiB",
                text.len()
            ));
        }
        let Asked { id, ask } = serde_json::from_str(text).map_err(|_| {
            "the arguments of this call cannot be told as JSON: pass plain objects".to_string()
        })?;
        self.calls_left -= 1;
        self.open += 1;
        self.outbox.push(FromWorker::Call { id, ask });
        Ok(())
    }

    fn print(&mut self, text: &str) {
        let end = text.floor_char_boundary(self.console_left.min(text.len()));
        self.console_left -= end;
        self.console_cut += text.len() - end;
        if end > 0 || text.is_empty() && self.console_left > 0 {
            self.console_left = self.console_left.saturating_sub(1);
            self.outbox.push(FromWorker::Console(text[..end].to_string()));
        }
    }

    pub fn waits(&self) -> bool {
        self.open > 0
    }

    pub fn answered(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Sends what the code has said since the last time.
    pub fn flush(&mut self, link: &mut Link) {
        if self.console_cut > 0 {
            self.outbox.push(FromWorker::Cut(std::mem::take(&mut self.console_cut)));
        }
        self.outbox.drain(..).for_each(|message| link.say(&message));
    }
}
