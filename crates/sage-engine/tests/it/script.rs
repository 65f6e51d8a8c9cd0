//! Steps without programs: a tiny language in `run` (shell) or `prompt` (agent), and what became of each call.
//!
//! `ms=30` per response (`ms2=5` in attempt 2), `usage=10,20` tokens per response, `fail`, `fail<3`, `fail@2`,
//! `class=transient`, `retry=2000`, `refuse<3`, `refuse@2` (at once), `down=agent`, `hang`, `hang<2`,
//! `nudgeable`, `alive=50`, `grace=500` (time to stop), `silent-bill` (usage only at the end), `lacks<3` (the machine
//! has nothing left), `big=70000` (bytes of the result), `dice` (another result each time), `flood` (of progress).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_core::policy::FailureClass;
use sage_core::port::{
    BoxFuture, Progress, Refusal, Stage, StepCall, StepCx, StepExecutor, StepOutcome, Stop, Usage,
};
use sage_core::role::Role;
use sage_core::template::Isolation;
use sage_engine::clock::Clock;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_secs(86_400);

/// What all calls of a world share.
#[derive(Debug, Default)]
pub struct Steps {
    /// Path -> attempts that were begun and that came to an end.
    pub begun: Mutex<BTreeMap<String, u32>>,
    pub ended: Mutex<BTreeMap<String, u32>>,
    pub calls: Mutex<Vec<Call>>,
    /// Path -> role, session and isolation of its last call.
    pub given: Mutex<BTreeMap<String, Given>>,
    /// Agents whose provider refuses everything until then, and how it says so.
    pub closed: Mutex<BTreeMap<String, Closed>>,
    pub clock: Mutex<Option<Clock>>,
    /// Which version its agents are.
    pub version: Mutex<u32>,
}

pub type Given = (Option<Role>, Option<String>, Isolation);

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub path: String,
    pub attempt: u32,
    pub agent: Option<String>,
    pub from_ms: u64,
    /// `None`: it was cut off with its world.
    pub to_ms: Option<u64>,
    /// Tokens that it used, reported or not.
    pub used: u64,
    pub nudges: u32,
    pub how: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct Closed {
    pub until_ms: u64,
    pub class: FailureClass,
    pub refusal: Refusal,
}

impl Steps {
    pub fn now_ms(&self) -> u64 {
        self.clock.lock().unwrap().as_ref().map_or(0, Clock::now_ms)
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub fn calls_of(&self, path: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.path == path).collect()
    }

    /// Most calls under way at once.
    pub fn widest(&self) -> usize {
        let calls = self.calls();
        let at =
            |ms: u64| calls.iter().filter(|c| c.from_ms <= ms && c.to_ms.is_none_or(|to| ms < to)).count();
        calls.iter().map(|call| at(call.from_ms)).max().unwrap_or(0)
    }

    fn refuses(&self, call: &StepCall, now: u64) -> Option<Closed> {
        let closed = self.closed.lock().unwrap();
        call.agent.as_ref().and_then(|agent| closed.get(agent)).filter(|c| now < c.until_ms).copied()
    }
}

struct Script(String);

impl Script {
    fn of(call: &StepCall) -> Script {
        let text = |name: &str| call.params.get(name).and_then(Value::as_str);
        Script(text("run").or(text("prompt")).unwrap_or_default().to_string())
    }

    fn has(&self, word: &str) -> bool {
        self.0.split_whitespace().any(|w| w == word)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.split_whitespace().find_map(|word| word.strip_prefix(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn below(&self, word: &str, attempt: u32) -> bool {
        self.number(&format!("{word}<")).is_some_and(|limit| u64::from(attempt) < limit)
    }

    /// Of each response.
    fn wait(&self, attempt: u32) -> Duration {
        if self.has("hang") || self.below("hang", attempt) {
            return DAY;
        }
        let own = self.number(&format!("ms{attempt}="));
        Duration::from_millis(own.or(self.number("ms=")).unwrap_or(0))
    }

    fn usages(&self) -> Vec<u64> {
        let list = self.text("usage=").unwrap_or_default();
        list.split(',').filter_map(|tokens| tokens.parse().ok()).collect()
    }

    fn fails(&self, call: &StepCall) -> bool {
        let down = call.agent.as_deref().is_some_and(|agent| self.text("down=") == Some(agent));
        let here = self.has("fail") || self.has(&format!("fail@{}", call.attempt));
        here || down || self.below("fail", call.attempt)
    }

    fn class(&self) -> FailureClass {
        let named = |class: &FailureClass| self.text("class=") == Some(class.name());
        FailureClass::ALL.into_iter().find(named).unwrap_or(FailureClass::Failed)
    }
}

fn failed(class: FailureClass, message: String, usage: Usage, refusal: Option<Refusal>) -> StepOutcome {
    StepOutcome::Failed { class, cause: None, message, partial: None, usage, refusal }
}

/// The executor over shared counters.
pub struct Scripted(pub Arc<Steps>);

/// One call under way.
struct Performance {
    steps: Arc<Steps>,
    script: Script,
    cx: StepCx,
    call: StepCall,
    number: usize,
}

impl StepExecutor for Scripted {
    fn execute(&self, cx: StepCx, call: StepCall) -> BoxFuture<'static, StepOutcome> {
        let steps = self.0.clone();
        Box::pin(async move {
            *steps.begun.lock().unwrap().entry(call.path.clone()).or_default() += 1;
            let given = (call.role, call.session.clone(), call.isolation);
            steps.given.lock().unwrap().insert(call.path.clone(), given);
            let number = steps.calls.lock().unwrap().len();
            let (path, attempt, agent) = (call.path.clone(), call.attempt, call.agent.clone());
            let from_ms = steps.now_ms();
            let begun =
                Call { path, attempt, agent, from_ms, to_ms: None, used: 0, nudges: 0, how: "cut off" };
            steps.calls.lock().unwrap().push(begun);
            let script = Script::of(&call);
            let performance = Performance { steps, script, cx, call, number };
            let outcome = performance.limited().await;
            performance.record(&outcome);
            outcome
        })
    }

    /// Only this agent has sessions.
    fn resumes(&self, agent: &str) -> bool {
        agent == "steady"
    }

    fn shows_progress(&self, agent: &str) -> bool {
        agent != "mute"
    }

    fn fingerprint(&self, agent: &str, _: &std::path::Path) -> String {
        format!("{agent} {}", self.0.version.lock().unwrap())
    }
}

impl Performance {
    fn record(&self, outcome: &StepOutcome) {
        let mut calls = self.steps.calls.lock().unwrap();
        let call = &mut calls[self.number];
        call.to_ms = Some(self.steps.now_ms());
        call.nudges = self.cx.nudge.count();
        call.how = match outcome {
            StepOutcome::Succeeded { .. } => "succeeded",
            StepOutcome::Failed { class, .. } => class.name(),
            StepOutcome::Stopped { .. } => "stopped",
        };
        drop(calls);
        if !matches!(outcome, StepOutcome::Stopped { .. }) {
            *self.steps.ended.lock().unwrap().entry(self.call.path.clone()).or_default() += 1;
        }
    }

    async fn limited(&self) -> StepOutcome {
        let limit = self.call.timeout_ms.map_or(DAY * 365, Duration::from_millis);
        tokio::select! {
            biased;
            outcome = self.perform() => outcome,
            () = tokio::time::sleep(limit) => {
                failed(FailureClass::Timeout, "took too long".into(), self.bill(), None)
            }
        }
    }

    /// What the agent says that it has used.
    fn bill(&self) -> Usage {
        let used = self.steps.calls.lock().unwrap()[self.number].used;
        Usage { input: (used > 0).then_some(used), ..Usage::default() }
    }

    async fn perform(&self) -> StepOutcome {
        let (script, attempt) = (&self.script, self.call.attempt);
        if let Some(closed) = self.steps.refuses(&self.call, self.steps.now_ms()) {
            return failed(closed.class, "not now".into(), Usage::default(), Some(closed.refusal));
        }
        if script.below("lacks", attempt) {
            let message = "cannot start: Resource temporarily unavailable".to_string();
            return failed(FailureClass::System, message, Usage::default(), None);
        }
        if script.has("flood") {
            (0..5_000).for_each(|_| (self.cx.progress)(Progress::Alive));
            let continuity = sage_core::port::Continuity::New;
            (self.cx.progress)(Progress::Session { id: "talk".into(), continuity });
        }
        if script.has(&format!("refuse@{attempt}")) {
            return failed(FailureClass::RateLimit, "not now".into(), Usage::default(), None);
        }
        let usages = script.usages();
        for response in 0..usages.len().max(1) {
            if self.pause(script.wait(attempt)).await {
                let grace = Duration::from_millis(script.number("grace=").unwrap_or(0));
                tokio::time::sleep(grace).await;
                return StepOutcome::Stopped { usage: self.bill() };
            }
            let Some(tokens) = usages.get(response) else { continue };
            self.steps.calls.lock().unwrap()[self.number].used += tokens;
            if !script.has("silent-bill") {
                let stage = if response + 1 < usages.len() { Stage::GoesOn } else { Stage::Answered };
                (self.cx.progress)(Progress::Usage(self.bill(), stage));
            }
        }
        if script.below("refuse", attempt) {
            let refusal = Refusal { retry_after_ms: script.number("retry="), reset_at_ms: None };
            return failed(FailureClass::RateLimit, "too many".into(), self.bill(), Some(refusal));
        }
        if script.fails(&self.call) {
            let refusal = script.number("retry=");
            let refusal = refusal.map(|ms| Refusal { retry_after_ms: Some(ms), reset_at_ms: None });
            return failed(script.class(), format!("attempt {attempt} failed"), self.bill(), refusal);
        }
        let item = self.call.input.get("item").cloned().unwrap_or(Value::Null);
        let env = self.call.params.get("env").cloned().unwrap_or(Value::Null);
        let mut stdout = script.0.clone();
        stdout.extend(std::iter::repeat_n('x', script.number("big=").unwrap_or(0) as usize));
        if script.has("dice") {
            stdout += &self.steps.begun.lock().unwrap()[&self.call.path].to_string();
        }
        let result = json!({"stdout": stdout, "item": item, "env": env});
        StepOutcome::Succeeded { result, usage: self.bill() }
    }

    /// Works for so long. True if it was told to stop.
    async fn pause(&self, wait: Duration) -> bool {
        let end = tokio::time::Instant::now() + wait;
        let alive = Duration::from_millis(self.script.number("alive=").unwrap_or(u64::from(u32::MAX)));
        let nudgeable = self.script.has("nudgeable");
        loop {
            tokio::select! {
                biased;
                () = self.cx.stop.reached(Stop::Graceful) => return true,
                () = self.cx.nudge.after(0), if nudgeable => {
                    (self.cx.progress)(Progress::Alive);
                    return false;
                }
                () = tokio::time::sleep_until(end) => return false,
                () = tokio::time::sleep(alive) => (self.cx.progress)(Progress::Alive),
            }
        }
    }
}
