//! An engine made for tests: it answers calls, keeps the record, and starts scripts again from any part of it.

mod bench;
mod claude;
mod declarations;
mod ends;
mod replay;
mod sage;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::script::*;
use serde_json::{Value, json};

use super::Scripts;

const PATIENCE: Duration = Duration::from_secs(60);

/// A script and what it is given.
#[derive(Clone)]
struct Script {
    program: Program,
    input: Value,
    limits: ScriptLimits,
    budget: Option<u64>,
}

impl Script {
    fn sage(body: &str) -> Script {
        Script::new(Dialect::Sage, "t.ts", &format!("export default async (sage, input) => {{\n{body}\n}}"))
    }

    fn claude(body: &str) -> Script {
        Script::new(
            Dialect::Claude,
            "t.js",
            &format!("export const meta = {{ name: 't', description: 'd' }}\n{body}\n"),
        )
    }

    fn new(dialect: Dialect, name: &str, text: &str) -> Script {
        let program = Program { name: name.into(), dialect, text: text.into(), modules: Vec::new() };
        let limits = ScriptLimits { cpu_ms: 2_000, memory_bytes: 64 << 20, ..ScriptLimits::default() };
        Script { program, input: Value::Null, limits, budget: None }
    }

    fn input(mut self, input: Value) -> Script {
        self.input = input;
        self
    }

    /// Runs it with answers that are given at once, oldest call first.
    fn run(&self, answer: impl FnMut(&NewCall) -> CallOutcome) -> Run {
        Engine { answer, newest_first: false }.play(self, &Run::default())
    }
}

/// What is known of a run.
#[derive(Clone, Debug, Default)]
struct Run {
    calls: Vec<NewCall>,
    settled: Vec<Settled>,
    log: Vec<String>,
    ended: Option<Result<Value, ScriptFailure>>,
    /// How many of the calls are new.
    asked: usize,
    rests: usize,
    /// How many calls were known when each completion came.
    known: Vec<usize>,
}

impl Run {
    fn value(&self) -> &Value {
        match &self.ended {
            Some(Ok(value)) => value,
            other => panic!("no value: {other:?}"),
        }
    }

    fn threw(&self) -> &str {
        match &self.ended {
            Some(Err(ScriptFailure::Threw { message })) => message,
            other => panic!("it did not throw: {other:?}"),
        }
    }

    fn broken(&self) -> &str {
        match &self.ended {
            Some(Err(ScriptFailure::Broken { message })) => message,
            other => panic!("it is not broken: {other:?}"),
        }
    }

    fn operations(&self) -> Vec<Value> {
        self.calls.iter().map(|call| call.operation.clone()).collect()
    }

    /// Only what was there after `count` completions, as after a crash.
    fn first(&self, count: usize) -> Run {
        let known = self.known.get(count).copied().unwrap_or(self.calls.len());
        Run {
            settled: self.settled[..count].to_vec(),
            calls: self.calls[..known].to_vec(),
            known: self.known[..count].to_vec(),
            ..Run::default()
        }
    }
}

struct Engine<A> {
    answer: A,
    newest_first: bool,
}

impl<A: FnMut(&NewCall) -> CallOutcome> Engine<A> {
    /// Runs a script from the record of `before` to its end.
    fn play(&mut self, script: &Script, before: &Run) -> Run {
        let (handle, said) = start(script, before);
        let mut run = Run { ended: None, asked: 0, log: Vec::new(), ..before.clone() };
        let ended = |call: &NewCall| before.settled.iter().any(|it| it.number == call.number);
        let mut open: Vec<NewCall> = before.calls.iter().filter(|call| !ended(call)).cloned().collect();
        let mut told = 0;
        loop {
            match said.recv_timeout(PATIENCE).expect("the script says something") {
                ScriptSays::Log(line) => run.log.push(line),
                ScriptSays::Ended(end) => {
                    run.ended = Some(end);
                    return run;
                }
                ScriptSays::Rests { taken, calls, .. } => {
                    assert_eq!(taken, told);
                    run.rests += 1;
                    run.asked += calls.len();
                    run.calls.extend(calls.iter().cloned());
                    open.extend(calls);
                    let Some(call) = self.pick(&mut open) else { continue };
                    let settled = self.settle(&call, run.settled.len());
                    told += 1;
                    run.known.push(run.calls.len());
                    run.settled.push(settled.clone());
                    handle.settled(settled);
                }
            }
        }
    }

    fn pick(&self, open: &mut Vec<NewCall>) -> Option<NewCall> {
        let at = if self.newest_first { open.len().checked_sub(1)? } else { 0 };
        (at < open.len()).then(|| open.remove(at))
    }

    fn settle(&mut self, call: &NewCall, position: usize) -> Settled {
        let position = position as u64;
        Settled {
            number: call.number,
            at_ms: 1_000 + position * 10,
            spent: (position + 1) * 100,
            outcome: (self.answer)(call),
        }
    }
}

fn start(script: &Script, before: &Run) -> (Box<dyn ScriptRun>, Receiver<ScriptSays>) {
    let recorded =
        |call: &NewCall| Recorded { number: call.number, identity: call.identity, ordinal: call.ordinal };
    let start = ScriptStart {
        program: Arc::new(script.program.clone()),
        input: script.input.clone(),
        feature: "search".into(),
        title: "Search box".into(),
        seed: 42,
        now_ms: 1_000,
        budget: script.budget,
        limits: script.limits,
        calls: before.calls.iter().map(recorded).collect(),
        settled: before.settled.clone(),
        logged: u32::try_from(before.log.len()).unwrap(),
        check: Arc::new(|_| Ok(())),
        load: Arc::new(|digest| Ok(format!("\"blob {}\"", digest.short()).into())),
    };
    let (tell, said) = channel();
    let tell = std::sync::Mutex::new(tell);
    let say = Arc::new(move |says| drop(tell.lock().unwrap().send(says)));
    (Scripts.start(start, say), said)
}

fn value(value: Value) -> CallOutcome {
    CallOutcome::Value(Text::Here(value.to_string().into()))
}

fn failed(class: FailureClass, message: &str) -> CallOutcome {
    CallOutcome::Failed { class, cause: None, message: message.into() }
}

/// Answers every call with its prompt or parameters.
fn echo(call: &NewCall) -> CallOutcome {
    value(call.operation.get("prompt").or(call.operation.get("params")).cloned().unwrap_or(json!(null)))
}
