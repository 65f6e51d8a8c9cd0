//! Steps that a script calls. They belong to the script's step as items belong to a fan-out, but each has an
//! operation of its own, and there may always be one more until the script has returned.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::digest::Digest;
use crate::event::{End, Event, FrozenProgram, Payload, StepCalled, StepNoted, StepRecalled, StepReturned};
use crate::port::script::{Dialect, Program};
use crate::read::{Library, read_call};
use crate::run::settle::Queue;
use crate::run::step::{Children, Failure, Output, State};
use crate::run::{FoldError, HashMap, Run, Status, StepId};
use crate::template::Operation;

/// What a script's call does.
#[derive(Debug)]
pub struct Called {
    pub operation: Arc<Operation>,
    pub params: Payload,
    pub identity: Digest,
    pub ordinal: u32,
    pub group: Option<Arc<str>>,
    pub at: Option<Arc<str>>,
    /// The number of ends that the script knew when it made the call.
    pub(super) after: u32,
    /// The serial of its first end: what was made later may follow from it.
    pub(super) first_end: Option<u32>,
    /// Its end is in `Calls::ended`.
    pub(super) ended: bool,
}

#[derive(Debug)]
pub struct Calls {
    pub steps: Vec<StepId>,
    pub input: Payload,
    pub dialect: Dialect,
    /// The ends of calls in the order in which they came.
    pub ended: Vec<CallEnd>,
    /// Ends that ever came, also those of calls that ran again since.
    ends: u32,
    /// Lines that the script has said.
    pub logged: u32,
    pub(super) returned: Option<End>,
    /// Calls that failed or were given up.
    pub dead: u32,
    /// How often each name was used.
    names: HashMap<Box<str>, u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct CallEnd {
    pub number: u32,
    pub at_ms: u64,
    /// Tokens that the run had used by then.
    pub spent: u64,
    /// Its place among all ends that ever came.
    pub serial: u32,
    /// Lines that the script had said by then.
    pub(super) logged: u32,
}

impl Calls {
    pub(super) fn new(input: Payload, dialect: Dialect) -> Calls {
        let (steps, ended, names) = (Vec::new(), Vec::new(), HashMap::default());
        Calls { steps, input, dialect, ended, ends: 0, logged: 0, returned: None, dead: 0, names }
    }

    pub fn has_returned(&self) -> bool {
        self.returned.is_some()
    }

    /// What a script knows that was told all of this.
    pub fn known(&self) -> u32 {
        self.ended.last().map_or(0, |end| end.serial + 1)
    }
}

/// `review/check` of `review/check[3]`; indexes of what is around it stay.
fn base_of(path: &str) -> &str {
    path.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')).map_or(path, |(base, _)| base)
}

/// Operations by their text: calls of a loop share theirs.
pub(super) type Shapes = HashMap<Box<str>, Arc<Operation>>;

impl Run {
    /// The calls of a script's step, once it has begun.
    pub fn calls(&self, id: StepId) -> Option<&Calls> {
        match self.step(id).children.as_deref() {
            Some(Children::Calls(calls)) => Some(calls),
            _ => None,
        }
    }

    pub(super) fn calls_mut(&mut self, id: StepId) -> Option<&mut Calls> {
        match self.step_mut(id).children.as_deref_mut() {
            Some(Children::Calls(calls)) => Some(calls),
            _ => None,
        }
    }

    /// Scripts that have begun and have not ended.
    pub fn open_scripts(&self) -> &BTreeSet<StepId> {
        &self.scripts
    }

    /// The code of a script's step, as it was frozen.
    pub fn program(&self, id: StepId) -> Option<Program> {
        let params = &self.operation(id).params;
        let text = |name: &str| params.get(name).and_then(serde_json::Value::as_str);
        if let Some(code) = text("code") {
            let name = format!("{}.ts", self.operation(id).id);
            let own = self.programs(&name).into_iter().find(|program| program.text == code);
            let modules = own.map_or_else(Vec::new, |program| program.modules.clone());
            return Some(Program { name, dialect: Dialect::of(code), text: code.into(), modules });
        }
        let file = text("file")?;
        let program = *self.programs(file).first()?;
        let name = file.rsplit('/').next().unwrap_or(file).to_string();
        let (text, modules) = (program.text.clone(), program.modules.clone());
        Some(Program { name, dialect: Dialect::of(&text), text, modules })
    }

    /// The named operations that the run's templates came with.
    pub fn library(&self) -> Library {
        let frozen = [&self.template].into_iter().chain(&self.templates);
        Library::frozen(&frozen.flat_map(|frozen| frozen.operations.clone()).collect())
    }

    fn programs(&self, name: &str) -> Vec<&FrozenProgram> {
        let frozen = [&self.template].into_iter().chain(&self.templates);
        frozen.filter_map(|frozen| frozen.programs.get(name)).collect()
    }

    /// Tokens that the run may use in all.
    pub fn token_cap(&self) -> Option<u64> {
        self.ledger.cap(crate::budget::RUN).and_then(|cap| cap.tokens)
    }

    /// The path of a script's next call: `review/check`, then `review/check[1]`.
    pub fn call_path(&self, script: StepId, group: Option<&str>, label: &str) -> String {
        let step = self.step(script);
        let scope = self.scope(step.scope);
        let alone = step.item.is_none() && scope.plan.steps.len() == 1;
        let phase = self.phase(step.phase).label(&scope.plan);
        let group = group.unwrap_or(&phase);
        let base = match alone {
            true => format!("{}{group}/{label}", scope.prefix),
            false => format!("{}/{group}/{label}", step.path),
        };
        let used = self.calls(script).and_then(|calls| calls.names.get(base.as_str()).copied()).unwrap_or(0);
        let name = |n: u32| if n == 0 { base.clone() } else { format!("{base}[{n}]") };
        (used..).map(name).find(|path| self.find(path).is_none()).unwrap_or(base.clone())
    }

    pub(super) fn is_of_scripts(event: &Event) -> bool {
        use Event::{StepCalled, StepNoted, StepRecalled, StepReturned};
        matches!(event, StepCalled(_) | StepRecalled(_) | StepReturned(_) | StepNoted(_))
    }

    pub(super) fn apply_calls(&mut self, event: &Event, now: u64) -> Result<(), FoldError> {
        match event {
            Event::StepCalled(called) => self.called(called, now),
            Event::StepRecalled(recalled) => self.recalled(recalled, now),
            Event::StepReturned(returned) => self.returned(returned, now),
            Event::StepNoted(noted) => self.noted(noted),
            _ => Ok(()),
        }
    }

    fn called(&mut self, event: &StepCalled, now: u64) -> Result<(), FoldError> {
        let script = self.named("step.called", &event.step)?;
        let fits = matches!(self.step(script).state, State::Open { .. })
            && self.calls(script).is_some_and(|c| c.steps.len() == event.number as usize)
            && self.find(&event.path).is_none();
        if !fits {
            return Err(self.misfit("step.called", script));
        }
        let operation = self.shape(event.shape.get())?;
        let call = Called {
            operation,
            params: event.params.clone(),
            identity: event.identity,
            ordinal: event.ordinal,
            group: event.group.clone(),
            at: event.at.clone(),
            after: event.after.unwrap_or(self.calls(script).map_or(0, Calls::known)),
            first_end: None,
            ended: false,
        };
        let step = self.step(script);
        let (scope, plan_step, phase, height) = (step.scope, step.plan_step, step.phase, step.height);
        let item = Some((script, event.number));
        let id = self.push_step(
            event.path.clone(),
            scope,
            plan_step,
            phase,
            item,
            height,
            0,
            Some(Box::new(call)),
        );
        if let Some(calls) = self.calls_mut(script) {
            calls.steps.push(id);
            *calls.names.entry(base_of(&event.path).into()).or_default() += 1;
        }
        if let State::Open { left, .. } = &mut self.step_mut(script).state {
            *left += 1;
        }
        self.step_mut(id).ready_ms = now;
        self.transition(id, State::Ready);
        Ok(())
    }

    /// The operation behind a call's text. It was checked when the call was made.
    fn shape(&mut self, text: &str) -> Result<Arc<Operation>, FoldError> {
        if let Some(known) = self.shapes.get(text) {
            return Ok(known.clone());
        }
        let operation = read_call(text, &self.library()).0.ok_or_else(|| FoldError::Template {
            name: self.template.name.clone(),
            why: "a call is not an operation".into(),
        })?;
        let operation = Arc::new(operation);
        self.shapes.insert(text.into(), operation.clone());
        Ok(operation)
    }

    pub(super) fn call_settled(&mut self, script: StepId, id: StepId, queue: &mut Queue, now: u64) {
        let ok = self.step(id).state.ok();
        let spent = self.tally.usage.total();
        let Some((_, number)) = self.step(id).item else { return };
        let serial = self.calls(script).map_or(0, |calls| calls.ends);
        let new = self.step_mut(id).call.as_mut().is_some_and(|call| {
            call.first_end.get_or_insert(serial);
            !std::mem::replace(&mut call.ended, true)
        });
        if let Some(calls) = self.calls_mut(script) {
            if new {
                calls.ended.push(CallEnd { number, at_ms: now, spent, serial, logged: calls.logged });
                calls.ends += 1;
            }
            calls.dead += u32::from(!ok);
        }
        let State::Open { left, failed, .. } = &mut self.step_mut(script).state else { return };
        *left = left.saturating_sub(1);
        *failed += u32::from(!ok);
        if *left == 0 {
            self.close_script(script, queue, now);
        }
    }

    fn returned(&mut self, event: &StepReturned, now: u64) -> Result<(), FoldError> {
        let script = self.named("step.returned", &event.step)?;
        if !matches!(self.step(script).state, State::Open { .. }) {
            return Err(self.misfit("step.returned", script));
        }
        if self.calls(script).is_none() || self.to_retry.contains(&script) {
            return self.given_up(script, &event.end, now);
        }
        let Some(calls) = self.calls_mut(script) else { return Err(self.misfit("step.returned", script)) };
        calls.returned = Some(event.end.clone());
        // There a dead agent is a `null` that the script may not have looked at.
        let degraded = calls.dialect == Dialect::Claude && calls.dead > 0;
        self.step_mut(script).degraded |= degraded;
        self.to_stop.remove(&script);
        self.give_up(script, now);
        Ok(())
    }

    /// What nobody waits for any more is given up; without it the script is closed.
    fn give_up(&mut self, script: StepId, now: u64) {
        let State::Open { cancelling, .. } = self.step(script).state else { return };
        let mut queue = Vec::new();
        self.cancel_children(script, &mut queue, now);
        if let State::Open { cancelling: being, .. } = &mut self.step_mut(script).state {
            *being = cancelling;
        }
        self.drain(queue, now);
        if matches!(self.step(script).state, State::Open { left: 0, .. }) {
            let mut queue = Vec::new();
            self.close_script(script, &mut queue, now);
            self.drain(queue, now);
        }
    }

    /// Scripts that had returned when their owner died: what they left running is still not wanted.
    pub(super) fn give_up_leftovers(&mut self, now: u64) {
        let returned = |id: &StepId| self.calls(*id).is_some_and(Calls::has_returned);
        let scripts: Vec<StepId> = self.scripts.iter().copied().filter(returned).collect();
        scripts.into_iter().for_each(|script| self.give_up(script, now));
        // As are workflows that took too long.
        let given_up = |&id: &StepId| {
            let step = self.step(id);
            let leaves = matches!(step.state, State::Open { cancelling: true, .. }) && step.failure.is_some();
            leaves && !step.gone && matches!(step.children.as_deref(), Some(Children::Scope(_)))
        };
        let workflows: Vec<StepId> = self.step_ids().filter(given_up).collect();
        for workflow in workflows {
            let mut queue = Vec::new();
            self.cancel_children(workflow, &mut queue, now);
            self.drain(queue, now);
        }
    }

    /// Whether what failed in here was told to a script that is still under way.
    pub(super) fn dealt_with(&self, id: StepId, open: &BTreeSet<StepId>) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            let step = self.step(id);
            let told = step.call.is_some() && step.state.settled();
            if told && step.item.is_some_and(|(script, _)| open.contains(&script)) {
                return true;
            }
            at = self.holder(id);
        }
        false
    }

    fn recalled(&mut self, event: &StepRecalled, now: u64) -> Result<(), FoldError> {
        let id = self.named("step.recalled", &event.step)?;
        let pending = matches!(self.step(id).state, State::Pending) && self.step(id).call.is_some();
        if !pending {
            return Err(self.misfit("step.recalled", id));
        }
        self.step_mut(id).ready_ms = now;
        self.transition(id, State::Ready);
        Ok(())
    }

    fn close_script(&mut self, script: StepId, queue: &mut Queue, now: u64) {
        let Some(end) = self.calls(script).and_then(|calls| calls.returned.clone()) else { return };
        let State::Open { cancelling, .. } = self.step(script).state else { return };
        let state = match end {
            _ if cancelling => State::Cancelled,
            End::Stopped => State::Cancelled,
            End::Skipped { result } => {
                self.step_mut(script).output = Some(Arc::new(Output::leaf(result)));
                State::Skipped
            }
            End::Succeeded { result, full, artifacts, changed } => {
                let unmet = self.children(script).into_iter().any(|call| self.holds_unmet(call));
                let step = self.step_mut(script);
                let output = Output::Leaf { result, full, artifacts, changed, aside: None };
                step.output = Some(Arc::new(output));
                step.failure = None;
                step.degraded |= unmet;
                State::Succeeded
            }
            End::Failed { class, message, partial } => {
                self.step_mut(script).failure =
                    Some(Box::new(Failure { partial, ..Failure::new(class, message) }));
                if self.may_retry(script, class) {
                    return;
                }
                State::Failed
            }
        };
        self.close(script, state, queue, now);
    }

    fn noted(&mut self, event: &StepNoted) -> Result<(), FoldError> {
        let script = self.named("step.noted", &event.step)?;
        // What it says while it is cancelled belongs to no turn: the next one says all of it again.
        if self.status == Status::Running
            && let Some(calls) = self.calls_mut(script)
        {
            calls.logged += 1;
        }
        Ok(())
    }

    /// The call runs again: its end is none any more.
    pub(super) fn call_again(&mut self, id: StepId) {
        if let Some(call) = &mut self.step_mut(id).call {
            call.ended = false;
        }
    }

    /// A script that runs again from its beginning keeps what it has called.
    pub(super) fn script_again(&mut self, id: StepId) {
        if let Some(calls) = self.calls_mut(id) {
            calls.returned = None;
        }
    }

    /// Those that run again wait until the script asks for them: it may come another way.
    pub(super) fn relink_calls(&mut self, script: StepId) {
        let Some(calls) = self.calls(script) else { return };
        if !matches!(self.step(script).state, State::Open { .. }) {
            return;
        }
        let is_over = |end: &&CallEnd| {
            let step = calls.steps.get(end.number as usize);
            step.is_some_and(|&id| self.step(id).call.as_ref().is_some_and(|call| call.ended))
        };
        let (ended, all) = (calls.ended.iter().filter(is_over).copied().collect(), calls.steps.len() as u32);
        if let Some(calls) = self.calls_mut(script) {
            (calls.ended, calls.dead) = (ended, 0);
        }
        if let State::Open { left, failed, .. } = &mut self.step_mut(script).state {
            (*left, *failed) = (all, 0);
        }
    }
}
