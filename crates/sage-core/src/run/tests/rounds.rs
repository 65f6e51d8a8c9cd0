//! Rounds of a `repeat` in what readers count.

use super::*;
use crate::wire::{Progress, StepView, errors};

const ROUNDS: &str = "
name: t
phases:
  - id: b
    join: { atLeast: 1 }
    repeat: { from: b, while: 'true', max: 2 }
    operations:
      - { id: good, type: shell, params: { run: 'true' } }
      - { id: bad, type: shell, params: { run: 'true' } }
";

fn round(story: &mut Story, phase: &str, good: bool) {
    story.succeed(&format!("{phase}/good"));
    let bad = format!("{phase}/bad");
    if good {
        story.succeed(&bad)
    } else {
        story.fail(&bad)
    };
}

fn goes_round(good_at_last: bool) -> Story {
    let mut story = Story::new(ROUNDS);
    round(&mut story, "b", false);
    story.tell(PhaseRepeated { phase: "b".into(), again: true });
    round(&mut story, "b@2", good_at_last);
    story
}

fn told(story: &Story) -> (u32, u32, usize) {
    let Progress { completed, total, .. } = Progress::of(&story.run);
    (completed, total, errors(&story.run).len())
}

// covers: R8, P3
#[test]
fn what_failed_in_every_round_is_counted_in_every_round() {
    let story = goes_round(false);
    assert_eq!(told(&story), (2, 4, 2));
    assert_eq!(story.run.verdict(), Verdict::Degraded);
    assert_eq!(story.run.phase(PhaseId(0)).judged, Some(Judgement::Degraded));
    story.refold();
}

// covers: R8, P3
#[test]
fn a_last_round_that_lacks_nothing_replaces_what_failed_before() {
    let story = goes_round(true);
    assert_eq!(told(&story), (3, 3, 0));
    assert_eq!(story.run.verdict(), Verdict::Succeeded);
    let failed = StepView::of(&story.run, story.run.find("b/bad").unwrap(), story.now);
    assert_eq!((failed.state.as_str(), failed.replaced), ("failed", true));
}

// covers: R8, P3
#[test]
fn who_loses_a_race_is_missed_in_no_round() {
    let race = ROUNDS.replace("join: { atLeast: 1 }", "join: any").replace("max: 2", "max: 3");
    let mut story = Story::new(&race);
    story.begin("b/bad").succeed("b/good").end("b/bad", End::Stopped);
    story.tell(PhaseRepeated { phase: "b".into(), again: false });
    assert_eq!(story.run.verdict(), Verdict::Succeeded);
    assert_eq!(told(&story), (1, 1, 0));
}
