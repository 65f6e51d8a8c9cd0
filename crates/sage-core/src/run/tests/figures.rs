//! What is counted along the way: breakers, time that attempts cost each other.

use super::*;
use crate::target::HoldReason;
use crate::wire::{Progress, WorkflowMetrics};

const THREE: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: b, type: shell, params: { run: 'true' } }
      - { id: c, type: shell, params: { run: 'true' } }
";

fn parked(until: Option<u64>) -> TargetParked {
    let (target, message) = ("host:a".to_string(), "no".to_string());
    TargetParked { target, reason: HoldReason::Breaker, until, message }
}

fn released() -> TargetReleased {
    TargetReleased { target: "host:a".into() }
}

// covers: R18, R7
#[test]
fn one_opening_is_counted_once_however_often_it_is_noticed() {
    let mut story = Story::new(THREE);
    let openings = |story: &Story| WorkflowMetrics::of(&story.run).breaker_openings;
    story.tell(parked(Some(2_000))).tell(released());
    assert_eq!(openings(&story), 1);
    // Half-open: the others wait for the probe. Then another owner finds it as it was.
    story.tell(parked(None)).tell(released()).tell(parked(None)).tell(released());
    story.tell(parked(Some(2_000)));
    assert_eq!(openings(&story), 1);
    story.tell(released()).tell(parked(Some(5_000)));
    assert_eq!(openings(&story), 2, "the probe failed: it opened again");
}

fn ended(story: &mut Story, step: &str, ms: u64, crowded: Option<Crowded>) {
    let end = End::Succeeded { result: payload("1"), full: None, artifacts: Vec::new(), changed: None };
    let finished = StepFinished::new(step.into(), 1, end, ms, Usage::default());
    story.tell(StepFinished { crowded, ..finished });
}

// covers: R18, R1
#[test]
fn time_if_sequential_leaves_out_what_attempts_cost_each_other() {
    let mut story = Story::new(THREE);
    for step in ["p/a", "p/b", "p/c"] {
        story.begin(step);
    }
    story.now += 3_000;
    ended(&mut story, "p/a", 3_000, Some(Crowded::LostMs(2_000)));
    ended(&mut story, "p/b", 3_000, Some(Crowded::LostMs(2_000)));
    ended(&mut story, "p/c", 3_000, None);
    let metrics = WorkflowMetrics::of(&story.run);
    assert!(metrics.sequential_time.abs_diff(5_000) < 20, "{}", metrics.sequential_time);
    assert!(!metrics.sequential_at_most);
    assert_eq!(metrics.time_saved, metrics.sequential_time - metrics.parallel_time);
    assert!((1.5..1.8).contains(&metrics.speedup), "{}", metrics.speedup);
    let phase = crate::wire::PhaseMetrics::of(&story.run, PhaseId(0));
    assert_eq!((phase.sequential_time, phase.completed_operations), (5_000, 3));
    assert_eq!(Progress::of(&story.run).completed, 3);
}

// covers: R18
#[test]
fn what_could_not_be_measured_is_an_upper_bound_and_only_where_it_matters() {
    let unknown = |ms: u64, one_at_a_time: bool| {
        let mut story = Story::new(THREE);
        story.begin("p/a");
        if one_at_a_time {
            story.now += 1_000;
            ended(&mut story, "p/a", 1_000, None);
        }
        story.begin("p/b");
        story.now += 1_000;
        if !one_at_a_time {
            ended(&mut story, "p/a", 1_000, None);
        }
        ended(&mut story, "p/b", ms, Some(Crowded::Unknown));
        WorkflowMetrics::of(&story.run)
    };
    assert!(unknown(1_000, false).sequential_at_most);
    assert!(!unknown(10, false).sequential_at_most, "a hundredth of the time");
    assert!(!unknown(1_000, true).sequential_at_most, "nobody was beside it");
}

// covers: R18
#[test]
fn one_step_after_the_other_saves_nothing_and_costs_nothing() {
    let mut story = Story::new(THREE);
    for step in ["p/a", "p/b", "p/c"] {
        story.begin(step);
        story.now += 100;
        // Starting it and writing it down took some of the time.
        ended(&mut story, step, 80, None);
    }
    let metrics = WorkflowMetrics::of(&story.run);
    assert_eq!(metrics.sequential_time, metrics.parallel_time);
    assert_eq!((metrics.time_saved, metrics.percentage_saved, metrics.speedup), (0, 0.0, 1.0));
}

// covers: S7
#[test]
fn an_agent_that_waits_for_a_permission_is_asking_and_not_at_work() {
    let agents =
        THREE.replace("type: shell, params: { run: 'true' }", "type: agent, agent: fake, prompt: hi");
    let mut story = Story::new(&agents);
    story.begin("p/a").begin("p/b");
    let (id, tool, kind) = ("q1".to_string(), "Bash".to_string(), crate::port::AskKind::Run);
    let ask = AskedFor {
        id,
        tool,
        kind,
        paths: Vec::new(),
        command: None,
        input: payload("{}"),
        inquiry: None,
        why: None,
        rule: None,
    };
    story.tell(StepAsked { step: "p/a".into(), attempt: 1, ask, until: None });
    let row = crate::roster::RosterRow::of(&story.run, story.now, &|_| Default::default());
    assert_eq!(row.asking, ["p/a"]);
    assert_eq!(row.working.iter().map(|step| step.path.as_str()).collect::<Vec<_>>(), ["p/b"]);
}

// covers: R18
#[test]
fn figures_of_a_finished_run_do_not_change_when_it_is_adopted() {
    let mut story = Story::new(THREE);
    for step in ["p/a", "p/b", "p/c"] {
        story.begin(step);
        ended(&mut story, step, 10, None);
    }
    story.tell(RunFinished::new(Verdict::Succeeded));
    let figures = |story: &Story| {
        let metrics = WorkflowMetrics::of(&story.run);
        (metrics.sequential_time, metrics.parallel_time, metrics.total_time)
    };
    let before = figures(&story);
    story.now += 60_000;
    story.tell(RunAdopted { by: "me".into() });
    assert_eq!(figures(&story), before);
}

// covers: R18
#[test]
fn a_nap_is_no_attempt_of_its_phase_and_none_of_the_run() {
    let mut story = Story::new(
        "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: nap, type: sleep, params: { ms: 5 } }
",
    );
    story.begin("p/a");
    ended(&mut story, "p/a", 10, None);
    story.begin("p/nap");
    let phase = crate::wire::PhaseMetrics::of(&story.run, PhaseId(0));
    assert_eq!((phase.attempts, WorkflowMetrics::of(&story.run).attempts), (1, 1));
}
