//! Runs for tests, told as a story: `Canned::new(yaml).at(100).start("a/b").done("a/b", 250)`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::digest::{Digest, canonical};
use sage_core::event::*;
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::run::Run;
use sage_core::source::Format;
use sage_core::verdict::Verdict;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// When canned runs start; times are told from here.
pub(crate) const START_MS: u64 = 1_800_000_000_000;

pub(crate) struct Canned {
    pub run: Run,
    /// Everything that happened, for writing a journal.
    pub events: Vec<(Event, u64)>,
    now: u64,
}

impl Canned {
    pub fn new(yaml: &str) -> Canned {
        Canned::titled("Payment processing", yaml, &[])
    }

    pub fn titled(title: &str, yaml: &str, others: &[(&str, &str)]) -> Canned {
        let frozen = |name: &str, text: &str| Frozen::new(name, Format::Yaml, text);
        let settings = Settings { parallel: 4, ..Settings::default() };
        let started = RunStarted {
            core: CORE_VERSION,
            run: "run_01JCANNED0000000000000TEST".into(),
            feature: "payment-processing".into(),
            title: title.into(),
            template: frozen("feature", yaml),
            templates: others.iter().map(|(name, text)| frozen(name, text)).collect(),
            inputs: Map::new(),
            settings,
            number: None,
        };
        let run = Run::start(&started, START_MS).expect("the canned template is right");
        let canned = Canned { run, events: vec![(started.into(), START_MS)], now: START_MS };
        canned.event(RunOpened::new(OpenMode::Start, 7))
    }

    /// Milliseconds since the run's start.
    pub fn at(mut self, ms: u64) -> Canned {
        self.now = START_MS + ms;
        self
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn event(mut self, event: impl Into<Event>) -> Canned {
        let event = event.into();
        self.run.apply(&event, self.now).expect("the event fits");
        self.events.push((event, self.now));
        self
    }

    fn key(step: &str) -> Digest {
        Digest::of(step.as_bytes())
    }

    pub fn start(self, step: &str) -> Canned {
        let attempt = self.run.step(self.run.find(step).expect("a step")).attempts + 1;
        self.start_with(step, attempt, None, None)
    }

    fn start_with(self, step: &str, attempt: u32, until: Option<u64>, ask: Option<Ask>) -> Canned {
        let (key, step) = (Canned::key(step), step.into());
        self.event(StepStarted { until, ask, ..StepStarted::new(step, attempt, key, BTreeMap::new()) })
    }

    pub fn sleep(self, step: &str, ms: u64) -> Canned {
        let until = self.now + ms;
        self.start_with(step, 1, Some(until), None)
    }

    pub fn ask(self, step: &str, message: &str) -> Canned {
        let choices = vec!["approve".into(), "reject".into()];
        self.start_with(step, 1, None, Some(Ask { message: message.into(), choices, default: None }))
    }

    pub fn done(self, step: &str, ms: u64) -> Canned {
        self.done_with(step, ms, Usage::default())
    }

    pub fn done_with(self, step: &str, ms: u64, usage: Usage) -> Canned {
        let end = End::succeeded(payload(&json!({"ok": true})));
        let attempt = self.run.step(self.run.find(step).expect("a step")).attempts;
        self.event(StepFinished::new(step.into(), attempt, end, ms, usage))
    }

    pub fn fail(self, step: &str, ms: u64, class: FailureClass, message: &str) -> Canned {
        let end = End::Failed { class, message: message.into(), partial: None };
        let attempt = self.run.step(self.run.find(step).expect("a step")).attempts;
        self.event(StepFinished::new(step.into(), attempt, end, ms, Usage::default()))
    }

    pub fn retry(self, step: &str, ms: u64, wait_ms: u64, message: &str) -> Canned {
        let at = self.now + wait_ms;
        let attempt = self.run.step(self.run.find(step).expect("a step")).attempts;
        self.event(StepRetried {
            step: step.into(),
            attempt,
            class: FailureClass::Transient,
            message: message.into(),
            ms,
            usage: Usage::default(),
            spent: None,
            at,
            level: RetryLevel::Attempt,
            crowded: None,
        })
    }

    pub fn fan(self, step: &str, count: u32) -> Canned {
        let digests = (0..count).map(|n| Digest::of(&n.to_le_bytes())).collect();
        let items = payload(&json!((0..count).collect::<Vec<u32>>()));
        let ordinals = vec![0; count as usize];
        self.event(StepExpanded {
            step: step.into(),
            into: Expansion::Items { count, items, digests, ordinals },
        })
    }

    pub fn open(self, step: &str, template: &str) -> Canned {
        let into = Expansion::Scope { template: template.into(), inputs: payload(&json!({})) };
        self.event(StepExpanded { step: step.into(), into })
    }

    pub fn resume(self) -> Canned {
        self.event(RunOpened::new(OpenMode::Resume, 8))
    }

    pub fn pause(self, reason: PauseReason) -> Canned {
        self.event(RunPaused::new(reason))
    }

    pub fn finish(self, verdict: Verdict) -> Canned {
        self.event(RunFinished::new(verdict))
    }
}

pub(crate) fn payload(value: &Value) -> Payload {
    let text = canonical(value);
    let sha = Digest::of(text.as_bytes());
    Payload { sha, json: Some(Arc::from(RawValue::from_string(text).expect("JSON"))), bytes: None }
}
