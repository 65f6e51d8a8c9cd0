use sage_core::event::{
    Ask, CORE_VERSION, End, Event, Frozen, OpenMode, PauseReason, RunCancelled, RunFinished, RunOpened,
    RunPaused, RunStarted, Settings, StepFinished, StepStarted,
};
use sage_core::policy::FailureClass;
use sage_core::run::Run;
use sage_core::source::Format;
use sage_core::verdict::Verdict;

use super::*;

const TEMPLATE: &str = "name: t\nphases:\n  - id: p\n    operations:\n      \
    - { id: a, type: agent, agent: fake, priority: P1, prompt: x }\n      - { id: s, type: shell, params: { run: x } }\n      \
    - { id: q, type: approval, params: { message: 'well?' } }\n";

struct Story {
    run: Run,
    seq: u64,
}

impl Story {
    fn new() -> Story {
        let started = RunStarted {
            core: CORE_VERSION,
            run: "run_X".into(),
            feature: "f".into(),
            title: "F".into(),
            template: Frozen::new("t", Format::Yaml, TEMPLATE),
            templates: Vec::new(),
            inputs: Default::default(),
            settings: Settings { parallel: 2, ..Settings::default() },
            number: None,
        };
        let mut story = Story { run: Run::start(&started, 1_000).unwrap(), seq: 1 };
        assert!(
            story
                .tell(RunOpened { mode: OpenMode::Start, pid: 1, settings: None, unattended: false })
                .is_none()
        );
        story
    }

    fn tell(&mut self, event: impl Into<Event>) -> Option<Wake> {
        let event = event.into();
        self.seq += 1;
        self.run.apply(&event, 2_000).unwrap();
        wake_of(&event, self.seq, &self.run)
    }

    fn finish(&mut self, step: &str, end: End) -> Option<Wake> {
        let started = StepStarted::new(step.into(), 1, sage_core::digest::Digest::ZERO, Default::default());
        assert!(self.tell(started).is_none());
        self.tell(StepFinished::new(step.into(), 1, end, 5, Default::default()))
    }
}

fn succeeded() -> End {
    let result = crate::results::pack_small(&serde_json::Value::Null).unwrap();
    End::Succeeded { result, full: None, artifacts: vec!["a.md".into()], changed: None }
}

fn failed() -> End {
    End::Failed { class: FailureClass::Failed, message: "x".repeat(2_000), partial: None }
}

// covers: S2
#[test]
fn agents_tell_how_they_ended_and_other_steps_do_not() {
    let mut story = Story::new();
    assert_eq!(story.finish("p/s", succeeded()), None);
    let wake = story.finish("p/a", succeeded()).unwrap();
    assert_eq!((wake.kind, wake.status), (WakeType::Complete, WakeStatus::Complete));
    assert_eq!((wake.wake_id.as_str(), wake.session_id.as_str()), ("wake_X_6", "run_X/p/a"));
    assert_eq!((wake.agent_role.as_deref(), wake.priority), (Some("fake"), 1));
    assert_eq!(
        (wake.deliverables.files, wake.summary),
        (vec!["a.md".to_string()], "f: p/a succeeded".into())
    );
    assert_eq!((&wake.other["feature"], &wake.other["run"]), (&"f".into(), &"run_X".into()));
    let mut story = Story::new();
    let wake = story.finish("p/a", failed()).unwrap();
    assert_eq!((wake.kind, wake.status, wake.summary.len()), (WakeType::Error, WakeStatus::Failed, 500));
    assert_eq!(Story::new().finish("p/a", End::Stopped), None);
}

// covers: S2
#[test]
fn a_run_tells_its_end_and_that_it_needs_a_person() {
    for (verdict, kind) in [
        (Verdict::Succeeded, WakeType::Complete),
        (Verdict::Degraded, WakeType::Complete),
        (Verdict::Failed, WakeType::Error),
    ] {
        let wake = Story::new().tell(RunFinished { verdict, loop_time: None }).unwrap();
        assert_eq!((wake.kind, wake.session_id.as_str()), (kind, "run_X"));
        assert!(wake.summary.contains(verdict.name()), "{wake:?}");
    }
    let cancelled = Story::new().tell(RunCancelled { resumable: true, signal: None }).unwrap();
    assert_eq!(cancelled.kind, WakeType::Error);
    let paused = |reason, until| {
        Story::new().tell(RunPaused { reason, needs: None, until, signal: None, loop_time: None })
    };
    for reason in [PauseReason::Approval, PauseReason::Budget, PauseReason::Join, PauseReason::Unknown] {
        assert_eq!(paused(reason, None).unwrap().status, WakeStatus::Blocked);
    }
    assert!(paused(PauseReason::Breaker, None).is_some(), "nobody knows when: a person must act");
    assert!(paused(PauseReason::Quota, Some(9)).is_none(), "it goes on by itself");
    assert!(paused(PauseReason::User, None).is_none() && paused(PauseReason::Interrupted, None).is_none());
}

// covers: S2
#[test]
fn a_question_is_told_when_it_is_asked() {
    let mut story = Story::new();
    let mut asked = StepStarted::new("p/q".into(), 1, sage_core::digest::Digest::ZERO, Default::default());
    asked.ask = Some(Ask { message: "well?".into(), choices: vec!["approve".into()], default: None });
    let wake = story.tell(asked).unwrap();
    assert_eq!((wake.kind, wake.session_id.as_str()), (WakeType::Blocked, "run_X/p/q"));
    assert_eq!(wake.agent_role.as_deref(), Some("orchestrator"));
    assert_eq!(wake.summary, "f: p/q waits for an answer: well?");
}

// covers: S2
#[test]
fn the_same_event_is_the_same_wake() {
    let wakes: Vec<Wake> = (0..2).map(|_| Story::new().finish("p/a", succeeded()).unwrap()).collect();
    assert_eq!(wakes[0], wakes[1]);
}
