//! Workflows in code: their scripts run beside the loop, on threads of their own, and only compute.
//!
//! A script that is open is started, whoever opened it: a new run, a resume, a repeat. It begins at its
//! beginning every time and is given what it called before, so there is nothing of it to save.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{End, StepCalled, StepNoted, StepRecalled, StepReturned};
use sage_core::policy::FailureClass;
use sage_core::port::script::{
    CallOutcome, Program, Recorded, ScriptHost, ScriptRun, ScriptStart, Settled, Text,
};
use sage_core::run::{CallEnd, Calls, Output, State, StepId};
use serde_json::Value;

use super::{Input, LoopError, RunLoop};
use crate::called::{Accepted, Reader, ReadyCall, Said};
use crate::results::{Face, text_of, unpack, value_of};

/// For a cancelled script to clean up.
const LEAVE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Scripts {
    running: HashMap<StepId, Script>,
    /// Tells messages of an earlier start of the same script apart.
    starts: u64,
}

struct Script {
    run: Box<dyn ScriptRun>,
    start: u64,
    /// The script's number of each call, by the number in the journal.
    numbers: Vec<u32>,
    /// Ends that it has been told, as recorded ones or live.
    told: usize,
    /// Live settlements sent to it, and those that it has taken.
    sent: u32,
    taken: Option<u32>,
    cancelled: bool,
    /// The run is cancelled: it may still clean up after itself.
    leaving: bool,
}

impl Scripts {
    /// Nobody computes: all that scripts will ask for without hearing more is known.
    pub(super) fn rest(&self) -> bool {
        self.running.values().all(|script| script.taken == Some(script.sent) && !script.leaving)
    }
}

impl RunLoop {
    /// The run is cancelled: `catch` and `finally` of its scripts may run, for a moment.
    pub(super) fn cancel_scripts(&mut self) {
        for (&id, script) in &mut self.scripts.running {
            script.run.cancel();
            script.leaving = true;
            let (sender, start) = (self.sender.clone(), script.start);
            tokio::spawn(async move {
                tokio::time::sleep(LEAVE).await;
                let _ = sender.send(Input::Script(id, start, Box::new(Said::Ended(End::Stopped)))).await;
            });
        }
    }

    /// Starts scripts that are open, lets go of those that are not.
    pub(super) fn follow_scripts(&mut self) -> Result<(), LoopError> {
        if self.run.open_scripts().is_empty() && self.scripts.running.is_empty() {
            return Ok(());
        }
        if !self.running() {
            self.scripts.running.retain(|_, script| script.leaving);
            return Ok(());
        }
        let goes_on = |id: &StepId| self.run.calls(*id).is_some_and(|calls| !calls.has_returned());
        let open: Vec<StepId> = self.run.open_scripts().iter().copied().filter(goes_on).collect();
        self.scripts.running.retain(|id, _| open.contains(id));
        for id in open {
            if !self.scripts.running.contains_key(&id) {
                self.start_script(id)?;
            }
        }
        Ok(())
    }

    fn start_script(&mut self, id: StepId) -> Result<(), LoopError> {
        let started = self.script_start(id);
        let (host, start) = match started {
            Ok(started) => started,
            Err(message) => return self.script_broke(id, message),
        };
        self.scripts.starts += 1;
        let (number, sender, reader) = (self.scripts.starts, self.sender.clone(), self.reader());
        let say = move |says| {
            let input = Input::Script(id, number, Box::new(reader.read(says)));
            // A loop that is gone needs no answer; one that starts a script in vain is told later.
            match tokio::runtime::Handle::try_current() {
                Ok(handle) => {
                    let sender = sender.clone();
                    handle.spawn(async move { drop(sender.send(input).await) });
                }
                Err(_) => drop(sender.blocking_send(input)),
            }
        };
        let calls = start.calls.len() as u32;
        let told = start.settled.len();
        let script = Script {
            run: host.start(start, Arc::new(say)),
            start: number,
            numbers: (0..calls).collect(),
            told,
            sent: 0,
            taken: None,
            cancelled: false,
            leaving: false,
        };
        self.scripts.running.insert(id, script);
        Ok(())
    }

    fn script_start(&self, id: StepId) -> Result<(Arc<dyn ScriptHost>, ScriptStart), String> {
        let host = self.around.scripts.clone().ok_or("this engine runs no code")?;
        let program = self.run.program(id).ok_or("its code is not part of this run")?;
        let Some(calls) = self.run.calls(id) else { return Err("it has not begun".into()) };
        let recorded = |(number, &step): (usize, &StepId)| {
            let call = self.run.step(step).call.as_ref()?;
            Some(Recorded { number: number as u32, identity: call.identity, ordinal: call.ordinal })
        };
        let settled = calls.ended.iter().map(|end| self.settled(calls, end, end.number)).collect();
        let (blobs, reader) = (self.around.blobs.clone(), self.reader());
        let load = move |sha: &sage_core::digest::Digest| {
            let bytes = blobs.get(sha).map_err(|error| error.to_string())?;
            String::from_utf8(bytes.to_vec()).map(Arc::from).map_err(|error| error.to_string())
        };
        let start = ScriptStart {
            program: Arc::new(program),
            input: unpack(&calls.input, &self.around.blobs).map_err(|error| error.to_string())?,
            feature: self.run.feature.clone(),
            title: self.run.title.clone(),
            seed: seed(&format!("{} {}", self.run.id, self.run.step(id).path)),
            now_ms: self.run.step(id).started_ms,
            budget: self.run.token_cap(),
            limits: self.around.script_limits,
            calls: calls.steps.iter().enumerate().filter_map(recorded).collect(),
            settled,
            logged: calls.logged,
            load: Arc::new(load),
            check: Arc::new(move |operation| reader.check(operation)),
        };
        Ok((host, start))
    }

    fn reader(&self) -> Reader {
        let templates = self.run.templates.iter().map(|frozen| frozen.name.clone()).collect();
        let library = Arc::new(self.run.library());
        Reader { blobs: self.around.blobs.clone(), library, templates }
    }

    pub(super) fn tell_scripts(&mut self) {
        let running: Vec<StepId> = self.scripts.running.keys().copied().collect();
        running.into_iter().for_each(|id| self.tell_script(id));
    }

    fn tell_script(&mut self, id: StepId) {
        let cancelling = matches!(self.run.step(id).state, State::Open { cancelling: true, .. });
        let Some(calls) = self.run.calls(id) else { return };
        let Some(script) = self.scripts.running.get(&id) else { return };
        let news: Vec<Settled> = calls.ended[script.told.min(calls.ended.len())..]
            .iter()
            .filter_map(|end| {
                Some(self.settled(calls, end, script.numbers.get(end.number as usize).copied()?))
            })
            .collect();
        let told = calls.ended.len();
        let Some(script) = self.scripts.running.get_mut(&id) else { return };
        script.told = told;
        if cancelling && !std::mem::replace(&mut script.cancelled, true) {
            script.run.cancel();
        }
        for settled in news {
            script.sent += 1;
            script.run.settled(settled);
        }
    }

    fn settled(&self, calls: &Calls, end: &CallEnd, number: u32) -> Settled {
        let outcome = match calls.steps.get(end.number as usize) {
            Some(&step) => self.outcome(step),
            None => CallOutcome::Cancelled,
        };
        Settled { number, at_ms: end.at_ms, spent: end.spent, outcome }
    }

    fn outcome(&self, id: StepId) -> CallOutcome {
        let step = self.run.step(id);
        match (&step.state, &step.output, &step.failure) {
            (State::Failed, _, Some(failure)) => {
                let message = self.inner_failure(id).unwrap_or_else(|| failure.message.clone());
                CallOutcome::Failed { class: failure.class, message }
            }
            (state, Some(output), _) if state.ok() => match self.text(output) {
                Ok(text) => CallOutcome::Value(text),
                Err(message) => CallOutcome::Failed { class: FailureClass::Lost, message },
            },
            _ => CallOutcome::Cancelled,
        }
    }

    /// Why a workflow in there failed: the first of its steps that did, not what this did to the steps around it.
    fn inner_failure(&self, id: StepId) -> Option<String> {
        let failed = |&child: &StepId| matches!(self.run.step(child).state, State::Failed);
        let child = self.run.children(id).into_iter().find(failed)?;
        let step = self.run.step(child);
        // A script has a word of its own about what it called.
        let inner = if self.run.calls(child).is_some() { None } else { self.inner_failure(child) };
        inner.or_else(|| step.failure.as_ref().map(|failure| format!("{}: {}", step.path, failure.message)))
    }

    fn text(&self, output: &Output) -> Result<Text, String> {
        match output {
            Output::Leaf { result, .. } if result.is_blob() => Ok(Text::Blob(result.sha)),
            Output::Leaf { result, .. } => {
                let text = text_of(result, &self.around.blobs).map_err(|error| error.to_string())?;
                Ok(Text::Here(text.into()))
            }
            // What a workflow in code returned is what it gave.
            Output::Phases { phases, .. } if is_code(phases) => self.text(&phases[0].1[0].1),
            other => {
                let value =
                    value_of(other, Face::Filtered, &self.around.blobs).map_err(|error| error.to_string())?;
                Ok(Text::Here(value.to_string().into()))
            }
        }
    }

    pub(super) fn script_said(&mut self, id: StepId, start: u64, said: Said) -> Result<(), LoopError> {
        let known = self.scripts.running.get(&id).is_some_and(|script| script.start == start);
        // The run may have gone back meanwhile.
        let open = matches!(self.run.step(id).state, State::Open { .. })
            && self.run.calls(id).is_some_and(|calls| !calls.has_returned());
        if !known || !open || self.run.step(id).gone {
            return Ok(());
        }
        let step = self.run.step(id).path.clone();
        match said {
            Said::Log(text) => self.emit(StepNoted { step, text }).map(drop),
            Said::Ended(end) => {
                self.scripts.running.remove(&id);
                // Whoever takes the run again runs it from its beginning.
                if !self.running() {
                    return Ok(());
                }
                self.note_unawaited(id, &end)?;
                self.emit(StepReturned { step, end }).map(drop)
            }
            Said::Rests { .. } if !self.running() => Ok(()),
            Said::Rests { taken, calls, again } => {
                for call in calls {
                    self.call_made(id, call)?;
                }
                for number in again {
                    self.call_again(id, number)?;
                }
                if let Some(script) = self.scripts.running.get_mut(&id) {
                    script.taken = Some(taken);
                }
                Ok(())
            }
        }
    }

    /// Whoever forgets an `await` should hear of it. Those that lost a race are told as well.
    fn note_unawaited(&mut self, id: StepId, end: &End) -> Result<(), LoopError> {
        let Some(calls) = self.run.calls(id).filter(|_| matches!(end, End::Succeeded { .. })) else {
            return Ok(());
        };
        let open = |step: &&StepId| !self.run.step(**step).state.settled();
        let mut left = calls.steps.iter().filter(open).copied();
        let Some(first) = left.next() else { return Ok(()) };
        let others = match left.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let call = self.run.step(first);
        let at = call.call.as_ref().and_then(|call| call.at.clone());
        let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
        let text = format!(
            "{}{others} had not ended when the script returned, and is stopped: is an `await` missing{at}?",
            call.path
        );
        let step = self.run.step(id).path.clone();
        self.emit(StepNoted { step, text }).map(drop)
    }

    fn call_made(&mut self, id: StepId, ready: ReadyCall) -> Result<(), LoopError> {
        let ReadyCall { number, call } = ready;
        let Accepted { identity, ordinal, shape, params, label, group, at } = match call {
            Ok(accepted) => accepted,
            Err(message) => {
                self.refuse_call(id, number, message);
                return Ok(());
            }
        };
        let path = self.run.call_path(id, group.as_deref(), &label).into();
        let next = self.run.calls(id).map_or(0, |calls| calls.steps.len() as u32);
        if let Some(script) = self.scripts.running.get_mut(&id) {
            script.numbers.push(number);
        }
        let step = self.run.step(id).path.clone();
        let group = group.map(Arc::from);
        let called = StepCalled { step, number: next, path, identity, ordinal, shape, params, group, at };
        self.emit(called).map(drop)
    }

    /// The script has come to a call that shall run once more.
    fn call_again(&mut self, id: StepId, number: u32) -> Result<(), LoopError> {
        let step = self.run.calls(id).and_then(|calls| calls.steps.get(number as usize).copied());
        let Some(step) = step.filter(|&step| matches!(self.run.step(step).state, State::Pending)) else {
            return Ok(());
        };
        let step = self.run.step(step).path.clone();
        self.emit(StepRecalled { step }).map(drop)
    }

    /// A call that cannot be one never becomes a step: it would be refused again in every turn.
    fn refuse_call(&mut self, id: StepId, number: u32, message: String) {
        let (at_ms, spent) = (self.run.updated_ms, self.run.tally.usage.total());
        let outcome = CallOutcome::Failed { class: FailureClass::Invalid, message };
        if let Some(script) = self.scripts.running.get_mut(&id) {
            script.sent += 1;
            script.run.settled(Settled { number, at_ms, spent, outcome });
        }
    }

    fn script_broke(&mut self, id: StepId, message: String) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        let end = End::Failed { class: FailureClass::Invalid, message, partial: None };
        self.emit(StepReturned { step, end }).map(drop)
    }
}

/// The results of a template that is one script.
fn is_code(phases: &[sage_core::run::PhaseOutput]) -> bool {
    matches!(phases, [(_, members)] if matches!(members.as_slice(), [(id, _)] if &**id == Program::STEP))
}

/// The same in every turn of the run.
fn seed(run: &str) -> u64 {
    let digest = sage_core::digest::Digest::of(run.as_bytes());
    digest.0.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// What a script is given when its step names no `input`.
pub(crate) fn given(inputs: Value, dialect: sage_core::port::script::Dialect) -> Value {
    use sage_core::port::script::Dialect;
    match (dialect, inputs) {
        (Dialect::Claude, Value::Object(map)) if map.is_empty() => Value::Null,
        // Any value may be given there, and inputs have names: one that is called `args` is the value.
        (Dialect::Claude, Value::Object(mut map)) if map.len() == 1 && map.contains_key("args") => {
            map.shift_remove("args").unwrap_or_default()
        }
        (_, inputs) => inputs,
    }
}
