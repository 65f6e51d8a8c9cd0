//! How long things took, as every reader tells it (`active_time`).

use super::*;
use crate::wire::{PhaseMetrics, StatusView, WorkflowMetrics};

const TWO: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: b, type: shell, params: { run: 'true' } }
";
const ASKING: &str = "
name: t
phases:
  - { id: gate, operations: { id: ok, type: approval, params: { message: '?' } } }
  - { id: after, dependencies: [gate], operations: { id: b, type: shell, params: { run: 'true' } } }
";

/// Events are a millisecond apart.
const SLACK_MS: u64 = 20;

#[track_caller]
fn about(ms: u64, expected: u64) {
    assert!(ms.abs_diff(expected) < SLACK_MS, "{ms} is not about {expected}");
}

impl Story {
    fn after(&mut self, ms: u64) -> &mut Story {
        self.now += ms;
        self
    }

    fn resume(&mut self) -> &mut Story {
        self.tell(RunOpened::new(OpenMode::Resume, 8))
    }

    fn step_ms(&self, step: &str) -> u64 {
        self.run.step_ms(self.run.find(step).unwrap(), self.run.clock_ms(self.now, true))
    }

    fn phase_ms(&self, phase: &str) -> u64 {
        self.run.phase_ms(self.run.find_phase(phase).unwrap(), self.run.clock_ms(self.now, true))
    }

    /// A step takes no longer than its phase, and that no longer than the run.
    #[track_caller]
    fn assert_ordered(&self) {
        let clock_ms = self.run.clock_ms(self.now, true);
        let metrics = WorkflowMetrics::at(&self.run, clock_ms);
        assert!(metrics.parallel_time <= metrics.total_time, "{metrics:?}");
        for id in self.run.step_ids() {
            let phase_ms = self.run.phase_ms(self.run.step(id).phase, clock_ms);
            assert!(self.run.step_ms(id, clock_ms) <= phase_ms, "{}", self.run.step(id).path);
            assert!(phase_ms <= metrics.parallel_time, "{}", self.run.step(id).path);
        }
    }
}

// covers: R18, R8
#[test]
fn what_runs_takes_longer_from_look_to_look_and_all_figures_of_one_look_agree() {
    let mut story = Story::new(TWO);
    story.tell(RunOpened::new(OpenMode::Start, 7)).begin("p/a").succeed("p/b").after(4_000);
    let now = story.run.clock_ms(story.now, true);
    let view = StatusView::of(&story.run, now);
    about(view.metrics.total_time, 4_000);
    about(view.metrics.sequential_time, 4_000);
    about(view.steps[0].elapsed_ms, 4_000);
    assert_eq!(view.metrics.as_of, crate::wire::rfc3339(now));
    let row = crate::roster::RosterRow::of(&story.run, now, &|_| Default::default());
    assert_eq!(
        (row.elapsed_ms, row.working[0].elapsed_ms),
        (view.metrics.total_time, view.steps[0].elapsed_ms)
    );
    // No process drives it: its last record is all that is known.
    let dead = StatusView::of(&story.run, story.run.clock_ms(story.now, false));
    about(dead.metrics.total_time, 0);
    assert_eq!(dead.metrics.as_of, dead.last_updated_at);
    assert_eq!(
        WorkflowMetrics::of(&story.run).total_time,
        dead.metrics.total_time,
        "as the checkpoint has it"
    );
    story.assert_ordered();
}

// covers: R18, R5
#[test]
fn what_was_killed_and_resumed_counts_the_time_in_which_somebody_owned_it() {
    let mut story = Story::new(&TWO.replace("id: b,", "id: b, foreach: '[1, 2]',"));
    story.tell(RunOpened::new(OpenMode::Start, 7)).begin("p/a");
    let digests = [1u8, 2].map(|n| Digest::of(&[n])).to_vec();
    let into = Expansion::Items { count: 2, items: payload("[1,2]"), digests, ordinals: vec![0, 0] };
    story.tell(StepExpanded { step: "p/b".into(), into });
    story.succeed("p/b[0]").begin("p/b[1]").after(2_000);
    story.end("p/a", End::succeeded(payload("1")));
    // Killed: the last record says how long it lived for sure. A day later somebody goes on.
    story.after(86_400_000).resume();
    about(story.step_ms("p/b[1]"), 2_000);
    story.begin("p/b[1]").after(3_000);
    about(story.step_ms("p/b"), 5_000);
    story.end("p/b[1]", End::succeeded(payload("1")));
    assert_eq!(story.run.phase(PhaseId(0)).judged, Some(Judgement::Reached));
    story.after(1_000);
    about(story.phase_ms("p"), 5_000);
    about(story.step_ms("p/b"), 5_000);
    about(story.step_ms("p/b[1]"), 5_000);
    about(story.step_ms("p/a"), 2_000);
    assert_eq!(PhaseMetrics::of(&story.run, PhaseId(0)).duration, story.phase_ms("p"));
    story.assert_ordered();
    story.refold();
}

// covers: R18
#[test]
fn waiting_for_a_person_takes_no_time() {
    let mut story = Story::new(ASKING);
    story.tell(RunOpened::new(OpenMode::Start, 7));
    let ask = Ask { message: "?".into(), choices: vec!["approve".into()], default: None };
    let started = StepStarted::new("gate/ok".into(), 1, Digest::of(b"k"), BTreeMap::new());
    story.tell(StepStarted { ask: Some(ask), ..started }).after(3_000);
    // An owner that stays, and one that comes back.
    about(story.step_ms("gate/ok"), 0);
    about(story.phase_ms("gate"), 0);
    story.tell(RunPaused::new(PauseReason::Approval)).after(3_000).resume().after(3_000);
    let (choice, by) = ("approve".to_string(), "me".to_string());
    let answered = StepAnswered {
        step: "gate/ok".into(),
        choice,
        by,
        message: None,
        result: payload("1"),
        signal: None,
    };
    story.tell(answered).succeed("after/b");
    about(story.phase_ms("gate"), 0);
    story.assert_ordered();
    let metrics = WorkflowMetrics::of(&story.run);
    assert!(metrics.total_time >= 6_000 && metrics.parallel_time < SLACK_MS, "{metrics:?}");
}

// covers: R18, S4
#[test]
fn an_agent_that_waits_for_a_permission_takes_no_time_although_others_work() {
    let agents = TWO.replace("type: shell, params: { run: 'true' }", "type: agent, agent: fake, prompt: hi");
    let mut story = Story::new(&agents);
    story.tell(RunOpened::new(OpenMode::Start, 7)).begin("p/a").begin("p/b").after(1_000);
    let (id, tool, kind) = ("q1".to_string(), "Bash".to_string(), crate::port::AskKind::Run);
    let ask = AskedFor {
        id: id.clone(),
        tool,
        kind,
        paths: Vec::new(),
        command: None,
        input: payload("{}"),
        inquiry: None,
        why: None,
        rule: None,
    };
    story.tell(StepAsked { step: "p/a".into(), attempt: 1, ask, until: None }).after(5_000);
    about(story.step_ms("p/a"), 1_000);
    about(story.step_ms("p/b"), 6_000);
    let (step, by) = ("p/a".into(), "me".to_string());
    let (asked, message, input, signal) = (None, None, None, None);
    story.tell(StepPermitted { step, attempt: 1, ask: id, asked, allow: true, by, message, input, signal });
    story.after(500);
    about(story.step_ms("p/a"), 1_500);
    story.assert_ordered();
}

// covers: R18, R7
#[test]
fn attempts_side_by_side_count_once() {
    let mut story = Story::new(TWO);
    story.tell(RunOpened::new(OpenMode::Start, 7)).succeed("p/b").begin("p/a").after(500);
    story.tell(StepHedged { step: "p/a".into(), attempt: 2, reserve: None }).after(2_000);
    let end = End::succeeded(payload("1"));
    story.tell(StepFinished::new("p/a".into(), 2, end, 2_000, Usage::default())).after(10);
    let (step, usage) = ("p/a".into(), Usage::default());
    story.tell(StepCharged { step, attempt: 1, ms: 2_510, usage, class: None, spent: None, crowded: None });
    about(story.step_ms("p/a"), 2_500);
    assert_eq!(story.run.step(story.run.find("p/a").unwrap()).active_ms, 2_000);
    let phase = PhaseMetrics::of(&story.run, PhaseId(0));
    assert_eq!((phase.sequential_time, phase.speedup), (phase.duration, 1.0));
    story.assert_ordered();
}

// covers: R18
#[test]
fn pauses_between_tries_take_no_time() {
    let mut story = Story::new(TWO);
    story.tell(RunOpened::new(OpenMode::Start, 7)).begin("p/b").begin("p/a").after(1_000);
    let at = story.now + 60_000;
    let (step, message, usage) = ("p/a".into(), "no".to_string(), Usage::default());
    let (class, level) = (FailureClass::Transient, RetryLevel::Attempt);
    story.tell(StepRetried {
        step,
        attempt: 1,
        class,
        message,
        ms: 1_000,
        usage,
        spent: None,
        at,
        level,
        crowded: None,
    });
    story.after(60_000).begin("p/a").after(2_000);
    about(story.step_ms("p/a"), 3_000);
    story.end("p/a", End::succeeded(payload("1")));
    about(story.step_ms("p/a"), 3_000);
    story.assert_ordered();
}
