//! What a run has used and what that costs: one figure, from the events alone, in every life.

use super::*;
use crate::budget::{Amount, RUN};
use crate::roster::RosterRow;
use crate::wire::{StatusView, WorkflowMetrics};

const TWO: &str = "
name: t
budget: 1usd
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: x, prompt: go }
      - { id: b, type: agent, agent: x, prompt: go }
";

fn usage(input: u64, cost_usd: Option<f64>) -> Usage {
    Usage { input: Some(input), cost_usd, ..Usage::default() }
}

fn estimated(input: u64, cost_usd: f64) -> Usage {
    Usage { cost_estimated: true, model: Some("m".into()), ..usage(input, Some(cost_usd)) }
}

fn reserved(story: &mut Story, step: &str, micro_usd: u64) {
    let attempt = story.run.step(story.run.find(step).unwrap()).attempts + 1;
    let started = StepStarted::new(step.into(), attempt, Digest::of(step.as_bytes()), BTreeMap::new());
    story.tell(StepStarted { reserve: Some(Amount { tokens: 0, micro_usd }), ..started });
}

fn used(story: &mut Story, step: &str, attempt: u32, usage: Usage) {
    story.tell(StepUsed { step: step.into(), attempt, usage });
}

fn finished(story: &mut Story, step: &str, usage: Usage, spent: Option<Amount>) {
    let attempt = story.run.step(story.run.find(step).unwrap()).attempts;
    let finished = StepFinished::new(step.into(), attempt, End::succeeded(payload("1")), 5, usage);
    story.tell(StepFinished { spent, ..finished });
}

/// Tokens, millionths of a dollar, whether they are an estimate, attempts that told nothing: the same in all views.
#[track_caller]
fn shown(story: &Story) -> (u64, Option<u64>, bool, u32) {
    let run = &story.run;
    let micros = |cost: Option<f64>| cost.map(|usd| (usd * 1e6).round() as u64);
    let metrics = WorkflowMetrics::of(run);
    let row = RosterRow::of(run, story.now, &|_| Default::default());
    let cost = micros(metrics.cost_usd);
    assert_eq!((micros(row.cost_usd), row.cost_estimated), (cost, metrics.cost_estimated));
    let status = StatusView::of(run, story.now);
    let steps: u64 = status.steps.iter().filter_map(|step| micros(step.cost_usd)).sum();
    assert_eq!(steps, cost.unwrap_or(0), "steps add up");
    let spent = metrics.budget.map(|budget| budget.spent.micro_usd);
    assert_eq!(spent.unwrap_or(0), cost.unwrap_or(0), "the budget counts the same");
    story.refold();
    (metrics.total_tokens, cost, metrics.cost_estimated, run.tally.unattributed)
}

// covers: R18
#[test]
fn what_is_under_way_counts_and_is_replaced_by_what_is_told_at_the_end() {
    let mut story = Story::new(TWO);
    assert_eq!(shown(&story), (0, None, false, 0));
    reserved(&mut story, "p/a", 100_000);
    used(&mut story, "p/a", 1, estimated(50, 0.02));
    assert_eq!(shown(&story), (50, Some(20_000), true, 0));
    used(&mut story, "p/a", 1, estimated(90, 0.04));
    used(&mut story, "p/a", 9, estimated(1, 1.0));
    assert_eq!(shown(&story), (90, Some(40_000), true, 0), "an attempt that is not there counts nothing");
    finished(&mut story, "p/a", usage(95, Some(0.045)), None);
    assert_eq!(shown(&story), (95, Some(45_000), false, 0), "its own figure");
    let node = story.run.ledger.node(RUN).unwrap();
    assert_eq!((node.settled.micro_usd, node.reserved.micro_usd), (45_000, 0));
}

// covers: R18
#[test]
fn an_attempt_that_tells_nothing_costs_what_it_had_reserved_everywhere() {
    let mut story = Story::new(TWO);
    reserved(&mut story, "p/a", 70_000);
    finished(&mut story, "p/a", Usage::default(), None);
    assert_eq!(shown(&story), (0, Some(70_000), true, 1));
    // A journal of before: the price is in what was spent, and not in what was used.
    reserved(&mut story, "p/b", 50_000);
    finished(&mut story, "p/b", usage(10, None), Some(Amount { tokens: 10, micro_usd: 5_000 }));
    assert_eq!(shown(&story), (10, Some(75_000), true, 1));
}

/// What an agent reports may be less than all: that counts, and so does that there was more.
// covers: R18
#[test]
fn an_attempt_that_tells_a_part_is_counted_as_one_that_does_not_tell_all() {
    let mut story = Story::new(TWO);
    reserved(&mut story, "p/a", 70_000);
    finished(&mut story, "p/a", Usage { partial: true, ..usage(10, Some(0.005)) }, None);
    assert_eq!(shown(&story), (10, Some(5_000), false, 1));
}

fn resumed(story: &mut Story) {
    story.tell(RunOpened::new(OpenMode::Resume, 2));
}

// covers: R18, R5
#[test]
fn an_attempt_that_was_cut_off_is_charged_with_what_it_had_told() {
    let mut story = Story::new(TWO);
    reserved(&mut story, "p/a", 500_000);
    used(&mut story, "p/a", 1, estimated(90, 0.04));
    resumed(&mut story);
    assert_eq!(shown(&story), (90, Some(40_000), true, 0));
    assert_eq!(story.run.cut_attempt("p/a", 1).map(|cut| cut.usage.total()), Some(90));
    // Its agent's own records know of one more response.
    story.tell(StepRecovered { step: "p/a".into(), attempt: 1, usage: estimated(180, 0.08) });
    assert_eq!(shown(&story), (180, Some(80_000), true, 0));
    story.tell(StepRecovered { step: "p/a".into(), attempt: 7, usage: estimated(999, 9.0) });
    assert_eq!(shown(&story), (180, Some(80_000), true, 0), "nobody knows that one");
    reserved(&mut story, "p/a", 100_000);
    finished(&mut story, "p/a", estimated(20, 0.01), None);
    assert_eq!(shown(&story), (200, Some(90_000), true, 0));
}

// covers: R18, R5
#[test]
fn an_attempt_that_was_cut_off_without_a_word_is_unknown_until_its_records_tell() {
    let mut story = Story::new(TWO);
    reserved(&mut story, "p/a", 500_000);
    resumed(&mut story);
    assert_eq!(shown(&story), (0, Some(500_000), true, 1));
    story.tell(StepRecovered { step: "p/a".into(), attempt: 1, usage: estimated(90, 0.04) });
    assert_eq!(shown(&story), (90, Some(40_000), true, 0));
    let node = story.run.ledger.node(RUN).unwrap();
    assert_eq!((node.settled.micro_usd, node.reserved.micro_usd, node.settled.tokens), (40_000, 0, 90));
}

// covers: R18
#[test]
fn models_without_a_price_are_a_notice() {
    let mut story = Story::new(TWO);
    reserved(&mut story, "p/a", 100_000);
    let unpriced = BTreeMap::from([("house".to_string(), "gpt-5.5-pro".to_string())]);
    used(&mut story, "p/a", 1, Usage { unpriced, ..estimated(5, 0.01) });
    let notices = StatusView::of(&story.run, story.now).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("`house`") && notices[0].contains("`gpt-5.5-pro`"), "{notices:?}");
}
