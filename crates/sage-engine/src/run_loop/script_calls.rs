//! What scripts say, and what they are told about their calls.

use std::sync::Arc;

use sage_core::event::{End, StepCalled, StepNoted, StepRecalled, StepReturned};
use sage_core::policy::{Cause, FailureClass};
use sage_core::port::script::{CallOutcome, Program, Settled, Text};
use sage_core::run::{CallEnd, Calls, Output, State, StepId};

use super::{LoopError, RunLoop};
use crate::called::{Accepted, ReadyCall, Said};
use crate::results::{Face, text_of, value_of};

impl RunLoop {
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
                let after = self.scripts.running.get(&id).map_or(0, |script| script.known(taken));
                for call in calls {
                    self.call_made(id, call, after)?;
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

    fn call_made(&mut self, id: StepId, ready: ReadyCall, after: u32) -> Result<(), LoopError> {
        let ReadyCall { number, call } = ready;
        let Accepted { identity, ordinal, shape, params, label, group, at } = match call {
            Ok(accepted) => accepted,
            Err(message) => {
                self.refuse_call(id, number, message);
                return Ok(());
            }
        };
        let path = self.run.call_path(id, group.as_deref(), &label).into();
        let (next, known) =
            self.run.calls(id).map_or((0, 0), |calls| (calls.steps.len() as u32, calls.known()));
        let after = Some(after).filter(|after| *after != known);
        if let Some(script) = self.scripts.running.get_mut(&id) {
            script.numbers.push(number);
        }
        let step = self.run.step(id).path.clone();
        let group = group.map(Arc::from);
        let called =
            StepCalled { step, number: next, path, identity, ordinal, shape, params, group, at, after };
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
        let outcome =
            CallOutcome::Failed { class: FailureClass::Invalid, cause: Some(Cause::Setup), message };
        if let Some(script) = self.scripts.running.get_mut(&id) {
            script.tell(Settled { number, at_ms, spent, outcome }, None);
        }
    }

    pub(super) fn settled(&self, calls: &Calls, end: &CallEnd, number: u32) -> Settled {
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
                CallOutcome::Failed { class: failure.class, cause: failure.cause, message }
            }
            (state, Some(output), _) if state.ok() => match self.text(output) {
                Ok(text) => CallOutcome::Value(text),
                Err(message) => CallOutcome::Failed { class: FailureClass::Lost, cause: None, message },
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
}

/// The results of a template that is one script.
fn is_code(phases: &[sage_core::run::PhaseOutput]) -> bool {
    matches!(phases, [(_, members)] if matches!(members.as_slice(), [(id, _)] if &**id == Program::STEP))
}
