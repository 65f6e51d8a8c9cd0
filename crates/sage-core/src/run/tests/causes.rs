//! What a failure is about, and what follows from it for the next attempt.

use super::*;
use crate::policy::Cause;
use crate::port::Allowance;

const AGENT: &str =
    "name: t\nphases:\n  - id: p\n    operations:\n      - { id: a, type: agent, agent: x, prompt: go }\n";

fn failed(cause: Option<Cause>) -> Story {
    let mut story = Story::new(AGENT);
    story.begin("p/a");
    let end = End::Failed { class: FailureClass::Invalid, message: "why".into(), partial: None };
    let finished = StepFinished::new("p/a".into(), 1, end, 5, Usage::default());
    story.tell(StepFinished { cause, ..finished });
    story.refold();
    story
}

// covers: R7
#[test]
fn only_what_is_wrong_with_an_answer_is_told_to_the_agent() {
    let told = |cause| {
        let story = failed(cause);
        story.run.step(story.run.find("p/a").unwrap()).verdict.as_deref().map(str::to_string)
    };
    assert_eq!(told(Some(Cause::Answer)).as_deref(), Some("why"));
    // Journals of before know no causes.
    assert_eq!(told(None).as_deref(), Some("why"));
    assert_eq!(told(Some(Cause::Endpoint)), None);
    assert_eq!(told(Some(Cause::Setup)), None);
}

// covers: R8
#[test]
fn a_hint_says_what_to_change_and_that_it_was_not_retried() {
    let hint = |cause| {
        let story = failed(cause);
        crate::wire::hint(&story.run, story.run.find("p/a").unwrap()).unwrap()
    };
    assert!(hint(Some(Cause::Endpoint)).contains("`model`"));
    assert!(hint(Some(Cause::Setup)).contains("settings"));
    assert_eq!(hint(Some(Cause::Answer)), hint(None));
}

// covers: R18
#[test]
fn the_last_word_about_an_account_counts_until_its_window_is_over() {
    let mut story = Story::new(AGENT);
    let used = |used_percent, reset_at_ms| AccountUsed {
        agent: "x".into(),
        allowance: Allowance { window: "5-hour".into(), used_percent, reset_at_ms, warning: false },
    };
    story.tell(used(40, None)).tell(used(80, Some(10)));
    let told =
        |story: &Story| -> Vec<u32> { story.run.allowances().map(|(_, it)| it.used_percent).collect() };
    assert_eq!(told(&story), [80]);
    let notices = crate::wire::notices(&story.run);
    assert_eq!(notices, ["x has used 80% of its 5-hour limit, which resets at 1970-01-01T00:00:00.010Z"]);
    story.now = 20;
    story.begin("p/a");
    assert!(told(&story).is_empty() && crate::wire::notices(&story.run).is_empty());
    story.refold();
}
