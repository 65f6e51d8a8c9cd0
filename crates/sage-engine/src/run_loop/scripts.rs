//! Workflows in code: their scripts run beside the loop, on threads of their own, and only compute.
//!
//! ```text
//!            open, or news, and room
//!  not there ----------------------> running --- ended ---> (its step has returned)
//!      ^                                |
//!      +---- aside: it only waits <-----+ somebody else needs the room
//! ```
//! A script that is open is started, whoever opened it: a new run, a resume, a repeat. It begins at its
//! beginning every time and is given what it called before, so there is nothing of it to save, and one that
//! only waits can be put aside. So a script never waits for room that one waiting for it has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sage_core::event::{End, StepReturned};
use sage_core::policy::FailureClass;
use sage_core::port::script::{Recorded, ScriptHost, ScriptRun, ScriptStart, Settled};
use sage_core::run::{State, StepId};
use serde_json::Value;
use tokio::time::Instant;

use super::{Input, LoopError, RunLoop};
use crate::called::{Reader, Said};
use crate::results::unpack;

/// For a cancelled script to clean up.
const LEAVE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Scripts {
    pub(super) running: HashMap<StepId, Script>,
    /// Put aside, with the number of ends that they had been told.
    aside: HashMap<StepId, usize>,
    /// How many wait for room.
    queued: usize,
    /// When scripts and workflows that failed try again.
    pub(super) delayed: BTreeMap<StepId, Instant>,
    /// Tells messages of an earlier start of the same script apart.
    starts: u64,
}

pub(super) struct Script {
    run: Box<dyn ScriptRun>,
    pub(super) start: u64,
    /// The script's number of each call, by the number in the journal.
    pub(super) numbers: Vec<u32>,
    /// Ends that it has been told, as recorded ones or live.
    told: usize,
    /// What it knows after each live settlement that was sent to it; before them, what it was started with.
    sent: Vec<u32>,
    /// Those that it has taken.
    pub(super) taken: Option<u32>,
    cancelled: bool,
    /// The run is cancelled: it may still clean up after itself.
    leaving: bool,
}

impl Script {
    /// It waits for somebody, and computes nothing.
    fn rests(&self) -> bool {
        self.taken.is_some_and(|taken| taken as usize + 1 == self.sent.len()) && !self.leaving
    }

    /// `known`: what it knows with it, if that is more than before.
    pub(super) fn tell(&mut self, settled: Settled, known: Option<u32>) {
        let before = self.sent.last().copied().unwrap_or(0);
        self.sent.push(known.unwrap_or(before));
        self.run.settled(settled);
    }

    /// What it knew when it had taken so many.
    pub(super) fn known(&self, taken: u32) -> u32 {
        self.sent.get(taken as usize).or(self.sent.last()).copied().unwrap_or(0)
    }
}

impl Scripts {
    /// Nobody computes: all that scripts will ask for without hearing more is known.
    pub(super) fn rest(&self) -> bool {
        self.queued == 0 && self.delayed.is_empty() && self.running.values().all(Script::rests)
    }

    /// It begins anew, with nothing called.
    pub(super) fn forget(&mut self, id: StepId) {
        self.running.remove(&id);
        self.aside.remove(&id);
    }

    pub(super) fn computes(&self, id: StepId) -> bool {
        self.running.get(&id).is_some_and(|script| !script.rests())
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
        let (run, goes_on) = (&self.run, self.running());
        self.scripts.delayed.retain(|id, _| goes_on && run.wants_retry(*id));
        if self.run.open_scripts().is_empty() && self.scripts.running.is_empty() {
            self.scripts.queued = 0;
            self.scripts.aside.clear();
            return Ok(());
        }
        if !self.running() {
            self.scripts.running.retain(|_, script| script.leaving);
            self.scripts.aside.clear();
            self.scripts.queued = 0;
            return Ok(());
        }
        let run = &self.run;
        let goes_on = |id: &StepId| run.calls(*id).is_some_and(|calls| !calls.has_returned());
        let is_open = |id: &StepId| run.open_scripts().contains(id) && goes_on(id);
        self.scripts.running.retain(|id, _| is_open(id));
        self.scripts.aside.retain(|id, _| is_open(id));
        let wanted =
            |id: &StepId| goes_on(id) && !self.scripts.running.contains_key(id) && self.has_news(*id);
        let wanted: Vec<StepId> = self.run.open_scripts().iter().copied().filter(wanted).collect();
        self.scripts.queued = wanted.len();
        for id in wanted {
            // One that computes makes room when it rests.
            if !self.make_room() {
                break;
            }
            self.scripts.queued -= 1;
            self.scripts.aside.remove(&id);
            self.start_script(id)?;
        }
        Ok(())
    }

    /// Whether a script that does not run has something to do.
    fn has_news(&self, id: StepId) -> bool {
        let Some(told) = self.scripts.aside.get(&id) else { return true };
        let cancelling = matches!(self.run.step(id).state, State::Open { cancelling: true, .. });
        cancelling || self.run.calls(id).is_some_and(|calls| calls.ended.len() != *told)
    }

    /// Puts one aside that only waits, if there are too many: the one that is the quickest to run again.
    fn make_room(&mut self) -> bool {
        let most = self.around.script_limits.max_living.max(1) as usize;
        if self.scripts.running.len() < most {
            return true;
        }
        let waits = |(id, script): &(&StepId, &Script)| {
            let told = self.run.calls(**id).is_some_and(|calls| calls.ended.len() == script.told);
            script.rests() && !script.cancelled && told
        };
        let waiting = self.scripts.running.iter().filter(waits);
        let quickest = waiting.min_by_key(|(_, script)| (script.numbers.len(), script.start));
        let Some((id, told)) = quickest.map(|(id, script)| (*id, script.told)) else { return false };
        self.scripts.running.remove(&id);
        self.scripts.aside.insert(id, told);
        true
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
        let known = self.run.calls(id).map_or(0, sage_core::run::Calls::known);
        let script = Script {
            run: host.start(start, Arc::new(say)),
            start: number,
            numbers: (0..calls).collect(),
            told,
            sent: vec![known],
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
            seed: seed(&format!("{} {}", self.run.origin(), self.run.step(id).path)),
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
        let news: Vec<(Settled, u32)> = calls.ended[script.told.min(calls.ended.len())..]
            .iter()
            .filter_map(|end| {
                let number = script.numbers.get(end.number as usize).copied()?;
                Some((self.settled(calls, end, number), end.serial + 1))
            })
            .collect();
        let told = calls.ended.len();
        let Some(script) = self.scripts.running.get_mut(&id) else { return };
        script.told = told;
        if cancelling && !std::mem::replace(&mut script.cancelled, true) {
            script.run.cancel();
        }
        for (settled, known) in news {
            script.tell(settled, Some(known));
        }
    }

    fn script_broke(&mut self, id: StepId, message: String) -> Result<(), LoopError> {
        let step = self.run.step(id).path.clone();
        let end = End::Failed { class: FailureClass::Invalid, message, partial: None };
        self.emit(StepReturned { step, end }).map(drop)
    }
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
