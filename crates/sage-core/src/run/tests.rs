//! The fold by itself: events in, states and wishes out.

mod calls;
mod causes;
mod checks;
mod figures;
mod messages;
mod money;
mod rounds;
mod times;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Map;
use serde_json::value::RawValue;

use super::*;
use crate::event::*;
use crate::policy::FailureClass;
use crate::source::Format;

/// A run and the events that made it.
struct Story {
    run: Run,
    first: RunStarted,
    events: Vec<(Event, u64)>,
    now: u64,
}

fn payload(text: &str) -> Payload {
    let json = RawValue::from_string(text.to_string()).unwrap();
    Payload { sha: Digest::of(text.as_bytes()), json: Some(Arc::from(json)), bytes: None }
}

impl Story {
    fn new(template: &str) -> Story {
        Story::with(template, 100, &[])
    }

    fn with(template: &str, parallel: u32, pools: &[(&str, u32)]) -> Story {
        let template = Frozen::new("t", Format::Yaml, template);
        let pools = pools.iter().map(|(name, n)| ((*name).to_string(), *n)).collect();
        let settings = Settings { parallel, sequential: false, pools, ..Settings::default() };
        let first = RunStarted {
            core: CORE_VERSION,
            run: "run_1".into(),
            feature: "f".into(),
            title: "F".into(),
            template,
            templates: Vec::new(),
            inputs: Map::new(),
            settings,
            number: None,
        };
        let run = Run::start(&first, 1).unwrap();
        Story { run, first, events: Vec::new(), now: 1 }
    }

    fn tell(&mut self, event: impl Into<Event>) -> &mut Story {
        self.now += 1;
        let event = event.into();
        self.run.apply(&event, self.now).unwrap();
        self.events.push((event, self.now));
        self
    }

    fn begin(&mut self, step: &str) -> &mut Story {
        let attempt = self.run.step(self.run.find(step).unwrap()).attempts + 1;
        let key = Digest::of(step.as_bytes());
        self.tell(StepStarted::new(step.into(), attempt, key, BTreeMap::new()))
    }

    fn end(&mut self, step: &str, end: End) -> &mut Story {
        let attempt = self.run.step(self.run.find(step).unwrap()).attempts;
        self.tell(StepFinished::new(step.into(), attempt, end, 5, Usage::default()))
    }

    fn succeed(&mut self, step: &str) -> &mut Story {
        self.begin(step).end(step, End::succeeded(payload("1")))
    }

    fn fail(&mut self, step: &str) -> &mut Story {
        self.begin(step)
            .end(step, End::Failed { class: FailureClass::Failed, message: "no".into(), partial: None })
    }

    /// What may start now, in order.
    fn wanted(&self) -> Vec<String> {
        let mut held = Held::default();
        let mut paths = Vec::new();
        while let Some(id) = self.run.next_start(&held, |_| false) {
            held.hold(&self.run, id);
            paths.push(self.run.step(id).path.to_string());
        }
        paths
    }

    fn state(&self, step: &str) -> &'static str {
        self.run.step(self.run.find(step).unwrap()).state.name()
    }

    /// The same events once more give the same run.
    fn refold(&self) {
        let mut again = Run::start(&self.first, 1).unwrap();
        for (event, now) in &self.events {
            let text = serde_json::to_string(event).unwrap();
            let event = Event::parse(event.kind(), &text).unwrap();
            again.apply(&event, *now).unwrap();
        }
        let states = |run: &Run| {
            run.steps.iter().map(|s| (s.path.to_string(), s.state.name(), s.waiting_on)).collect::<Vec<_>>()
        };
        assert_eq!(states(&again), states(&self.run));
        assert_eq!(again.active, self.run.active);
        assert_eq!(again.decide(), self.run.decide());
    }
}

const BRANCHES: &str = "
name: t
phases:
  - id: a
    operations:
      - { id: short, type: shell, params: { run: x } }
      - { id: long, type: shell, params: { run: x } }
      - { id: urgent, type: shell, priority: P0, params: { run: x } }
      - { id: after, type: shell, needs: [long], params: { run: x } }
";

// covers: R1
#[test]
fn order_is_priority_then_longest_path_then_plan_order() {
    let mut story = Story::new(BRANCHES);
    assert_eq!(story.wanted(), ["a/urgent", "a/long", "a/short"]);
    story.succeed("a/long");
    assert_eq!(story.wanted(), ["a/urgent", "a/short", "a/after"]);
    story.refold();
}

// covers: P6
#[test]
fn limits_and_pools_hold_together() {
    let ops: String = (0..4)
        .map(|n| format!("      - {{ id: c{n}, type: shell, pool: cpu, params: {{ run: x }} }}\n"))
        .collect();
    let text = format!(
        "name: t\nphases:\n  - id: p\n    operations:\n{ops}      - {{ id: nap, type: sleep, params: {{ ms: 1 }} }}\n      - {{ id: free, type: shell, params: {{ run: x }} }}\n"
    );
    let mut story = Story::with(&text, 3, &[("cpu", 2)]);
    assert_eq!(
        story.wanted(),
        ["p/c0", "p/c1", "p/nap", "p/free"],
        "two of the pool, three slots, sleeping is free"
    );
    story.begin("p/c0").begin("p/c1");
    assert_eq!(story.run.wait_reason(story.run.find("p/c2").unwrap()), Some(Wait::Slot("cpu".into())));
    story.begin("p/free");
    assert_eq!(story.run.wait_reason(story.run.find("p/c2").unwrap()), Some(Wait::Slot("global".into())));
    assert_eq!(story.wanted(), ["p/nap"]);
    story.refold();
}

// covers: P5
#[test]
fn a_failure_blocks_its_dependants_at_once_and_the_run_fails_when_all_have_settled() {
    let mut story = Story::new(BRANCHES);
    story.fail("a/long");
    assert_eq!(story.state("a/after"), "blocked");
    assert!(story.run.decide().is_empty(), "siblings go on");
    story.succeed("a/short").succeed("a/urgent");
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Failed)]);
    story.refold();
}

#[test]
fn events_that_do_not_fit_are_typed_errors() {
    let mut story = Story::new(BRANCHES);
    story.succeed("a/short");
    let key = Digest::of(b"x");
    let again = StepStarted::new("a/short".into(), 2, key, BTreeMap::new());
    assert!(matches!(story.run.apply(&again.into(), 9), Err(FoldError::Misfit { .. })));
    let nowhere = StepSkipped { step: "a/none".into() };
    assert!(matches!(story.run.apply(&nowhere.into(), 9), Err(FoldError::NoStep { .. })));
    assert!(matches!(story.run.apply(&story.first.clone().into(), 9), Err(FoldError::Twice(_))));
    let mut newer = story.first.clone();
    newer.core = CORE_VERSION + 1;
    assert!(matches!(Run::start(&newer, 1), Err(FoldError::Newer(_))));
}

// covers: R5
#[test]
fn a_crash_makes_running_steps_ready_again_and_keeps_the_rest() {
    let mut story = Story::new(BRANCHES);
    story.succeed("a/short").begin("a/long");
    story.tell(RunOpened::new(OpenMode::Resume, 2));
    assert_eq!(story.wanted(), ["a/urgent", "a/long"]);
    assert!(story.run.step(story.run.find("a/long").unwrap()).unknown);
    assert_eq!(story.state("a/short"), "succeeded");
    story.refold();
}

// covers: P8
#[test]
fn a_run_that_goes_on_by_itself_does_not_try_failed_steps_again() {
    let mut story = Story::new(BRANCHES);
    story.fail("a/long").begin("a/short");
    story.tell(RunOpened { unattended: true, ..RunOpened::new(OpenMode::Resume, 2) });
    assert_eq!(story.state("a/long"), "failed");
    assert_eq!(story.wanted(), ["a/urgent", "a/short"]);
    story.tell(RunOpened::new(OpenMode::Resume, 3));
    assert_eq!(story.state("a/long"), "waiting");
    story.refold();
}

const ASKS: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: ok, type: approval, params: { message: Go on? } }
";

// covers: P8, S1
#[test]
fn what_becomes_of_a_run_that_nobody_owns() {
    let mut story = Story::new(ASKS);
    assert_eq!(story.run.unowned(false), Unowned::GoesOn, "nobody has owned it yet, or its owner died");
    story.begin("p/ok").tell(RunPaused::new(PauseReason::Approval));
    assert_eq!(story.run.unowned(false), Unowned::Waits);
    story.tell(RunPaused { until: Some(9), ..RunPaused::new(PauseReason::Quota) });
    assert_eq!((story.run.unowned(false), story.run.unowned(true)), (Unowned::GoesOn, Unowned::Waits));
    story.tell(RunPaused::new(PauseReason::Approval));
    let answered = StepAnswered {
        step: "p/ok".into(),
        choice: "approve".into(),
        by: "eva".into(),
        message: None,
        result: payload("1"),
        signal: None,
    };
    story.tell(answered);
    assert_eq!(story.run.unowned(false), Unowned::GoesOn, "a person has acted");
    story.tell(RunPaused::new(PauseReason::User));
    assert_eq!(story.run.unowned(false), Unowned::Waits, "and has acted again");
    story.tell(RunFinished::new(Verdict::Failed));
    assert_eq!(story.run.unowned(false), Unowned::Closed);
    story.refold();
}

// covers: S1
#[test]
fn the_loops_of_all_owners_count_together() {
    let mut story = Story::new(BRANCHES);
    let time = |busy_us, total_us| Some(LoopTime { busy_us, total_us });
    let share = |story: &Story| crate::wire::WorkflowMetrics::of(&story.run).orchestrator_blocked_share;
    assert_eq!(share(&story), None);
    // An owner that stays tells the same time again, only more of it.
    story.tell(RunPaused { loop_time: time(10, 1_000), ..RunPaused::new(PauseReason::Quota) });
    story.tell(RunPaused { loop_time: time(20, 2_000), ..RunPaused::new(PauseReason::Quota) });
    assert_eq!(share(&story), Some(0.01));
    story.tell(RunOpened::new(OpenMode::Resume, 2));
    story.tell(RunFinished { loop_time: time(180, 2_000), ..RunFinished::new(Verdict::Succeeded) });
    assert_eq!(share(&story), Some(0.05));
    story.refold();
}

/// A tiny generator: the tests must be the same every time.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn random_template(seed: &mut u64) -> String {
    let phases = 1 + random(seed) % 4;
    let mut text = String::from("name: t\nphases:\n");
    for p in 0..phases {
        let joins = ["all", "any", "{ atLeast: 1 }", "{ atLeast: 0.5 }"];
        let join = joins[(random(seed) % 4) as usize];
        let before: Vec<String> =
            (0..p).filter(|_| random(seed).is_multiple_of(2)).map(|d| format!("p{d}")).collect();
        text.push_str(&format!(
            "  - id: p{p}\n    join: {join}\n    dependencies: [{}]\n    operations:\n",
            before.join(", ")
        ));
        for o in 0..1 + random(seed) % 5 {
            let needs: Vec<String> =
                (0..o).filter(|_| random(seed).is_multiple_of(3)).map(|n| format!("o{n}")).collect();
            text.push_str(&format!(
                "      - {{ id: o{o}, type: shell, needs: [{}], params: {{ run: x }} }}\n",
                needs.join(", ")
            ));
        }
    }
    text
}

/// Plays one random history to its end; crashes and resumes on the way.
fn play(seed: u64) {
    let mut seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let limit = 1 + (random(&mut seed) % 4) as u32;
    let mut story = Story::with(&random_template(&mut seed), limit, &[]);
    let mut crashes = 3;
    for _ in 0..2_000 {
        let actions = story.run.decide();
        for action in &actions {
            if let Action::Stop(id) = action {
                let path = story.run.step(*id).path.to_string();
                story.end(&path, End::Stopped);
            }
        }
        if let Some(Action::Finish(verdict)) = actions.first() {
            assert!(story.run.steps.iter().all(|step| step.state.settled()));
            assert_eq!(
                story.run.active,
                Active { joins_missed: story.run.active.joins_missed, ..Active::default() }
            );
            if *verdict == Verdict::Failed && crashes > 0 {
                crashes -= 1;
                story.tell(RunOpened::new(OpenMode::Resume, 1));
                continue;
            }
            return story.refold();
        }
        if crashes > 0 && random(&mut seed).is_multiple_of(20) {
            crashes -= 1;
            // A person resumes it, or it goes on by itself in the background.
            let unattended = random(&mut seed).is_multiple_of(2);
            let failed =
                |story: &Story| story.run.steps.iter().filter(|s| matches!(s.state, State::Failed)).count();
            let before = failed(&story);
            story.tell(RunOpened { unattended, ..RunOpened::new(OpenMode::Resume, 1) });
            assert!(!unattended || failed(&story) == before, "seed {seed}: what failed stays failed");
        }
        let wanted = story.wanted();
        let running: Vec<String> = story
            .run
            .steps
            .iter()
            .filter(|s| matches!(s.state, State::Running(_)))
            .map(|s| s.path.to_string())
            .collect();
        assert!(running.len() as u32 <= limit && story.run.active.slots == running.len() as u32);
        if !wanted.is_empty() && (running.is_empty() || random(&mut seed).is_multiple_of(2)) {
            story.begin(&wanted[0].clone());
        } else if !running.is_empty() {
            let path = running[(random(&mut seed) % running.len() as u64) as usize].clone();
            let failed = End::Failed { class: FailureClass::Failed, message: "no".into(), partial: None };
            let good = End::succeeded(payload("2"));
            story.end(&path, if random(&mut seed).is_multiple_of(5) { failed } else { good });
        } else {
            assert!(
                !story.run.decide().is_empty(),
                "seed {seed}: nothing runs, nothing may start, nothing is decided"
            );
        }
    }
    panic!("seed {seed}: no end");
}

// covers: R5, R13
#[test]
fn random_histories_come_to_an_end_within_their_limits_and_fold_the_same_again() {
    (1..=1_000).for_each(play);
}

// covers: R5
#[test]
fn an_edit_keeps_what_was_finished_by_key() {
    let mut story = Story::new(BRANCHES);
    story.succeed("a/short");
    let template = Frozen { text: BRANCHES.replace("id: a\n", "id: b\n"), ..story.first.template.clone() };
    story.tell(RunEdited { template, templates: Vec::new(), inputs: Map::new() });
    assert_eq!(story.wanted(), ["b/urgent", "b/long", "b/short"]);
    assert!(story.run.memo.contains_key(&Digest::of(b"a/short")));
    let key = Digest::of(b"a/short");
    story.tell(StepReused::new("b/short".into(), key, BTreeMap::new()));
    assert_eq!(story.state("b/short"), "succeeded");
    assert_eq!(story.run.tally.reused, 1);
    story.refold();
}

/// Who waits is ranked by how long the run lasts; a fork begins to count anew.
// covers: R5, P9
#[test]
fn a_fork_of_an_old_run_starts_each_step_once() {
    let mut story = Story::new(BRANCHES);
    story.succeed("a/short");
    story.now += 10 * crate::run::ready::AGEING_MS;
    let from = ForkedFrom { run: "run_1".into(), feature: "f".into(), step: "a/short".into() };
    story.tell(RunForked { from, sessions: Default::default() });
    story.tell(RunOpened::new(OpenMode::Start, 1));
    let wanted = story.wanted();
    assert_eq!(story.run.ready_count() as usize, wanted.len());
    story.succeed("a/short");
    assert!(!story.wanted().contains(&"a/short".to_string()), "{:?}", story.wanted());
    assert_eq!(story.run.ready_count() as usize, story.wanted().len());
    story.refold();
}
