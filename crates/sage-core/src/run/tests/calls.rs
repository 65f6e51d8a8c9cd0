//! Scripts: their calls are steps, their ends are in order, and nothing that ended is asked for again.

use super::*;
use crate::port::script::Dialect;

const SCRIPT: &str =
    "name: t\nphases:\n  - id: main\n    operations: { id: script, type: script, params: { code: x } }\n";

fn script(dialect: Dialect) -> Story {
    let mut story = Story::new(SCRIPT);
    let into = Expansion::Code { input: payload("{}"), dialect };
    story.tell(StepExpanded { step: "main/script".into(), into });
    story
}

fn call(story: &mut Story, label: &str, what: &str) -> String {
    call_of(story, label, what, r#"{"type":"shell","id":"x"}"#)
}

fn call_of(story: &mut Story, label: &str, what: &str, shape: &str) -> String {
    let script = story.run.find("main/script").unwrap();
    let number = story.run.calls(script).unwrap().steps.len() as u32;
    let path = story.run.call_path(script, Some("work"), label);
    let shape = RawValue::from_string(shape.into()).unwrap();
    story.tell(StepCalled {
        step: "main/script".into(),
        number,
        path: path.as_str().into(),
        identity: Digest::of(what.as_bytes()),
        ordinal: 0,
        shape: Arc::from(shape),
        params: payload(r#"{"run":"true"}"#),
        group: None,
        at: None,
        after: None,
    });
    path
}

fn returned(story: &mut Story, end: End) {
    story.tell(StepReturned { step: "main/script".into(), end });
}

fn good() -> End {
    End::succeeded(payload("1"))
}

fn bad() -> End {
    End::Failed { class: FailureClass::Failed, message: "thrown".into(), partial: None }
}

fn resume(story: &mut Story) {
    story.tell(RunOpened::new(OpenMode::Resume, 1));
}

fn ended(story: &Story) -> Vec<u32> {
    let script = story.run.find("main/script").unwrap();
    story.run.calls(script).unwrap().ended.iter().map(|end| end.number).collect()
}

// covers: R5, R21
#[test]
fn calls_are_steps_with_names_of_their_own_and_end_in_the_order_of_the_journal() {
    let mut story = script(Dialect::Sage);
    let (a, b) = (call(&mut story, "look", "a"), call(&mut story, "look", "b"));
    assert_eq!((a.as_str(), b.as_str()), ("work/look", "work/look[1]"));
    assert_eq!(story.wanted(), ["work/look", "work/look[1]"]);
    story.succeed(&b).fail(&a);
    assert_eq!(ended(&story), [1, 0]);
    assert!(story.run.decide().is_empty(), "the script has not returned");
    returned(&mut story, good());
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
    assert_eq!((story.run.tally.total, story.run.tally.settled), (2, 2));
}

// covers: R5, R21
#[test]
fn after_a_crash_ends_are_kept_also_bad_ones_and_what_ran_runs_again() {
    let mut story = script(Dialect::Sage);
    let (a, b, c) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"), call(&mut story, "c", "c"));
    story.fail(&a).succeed(&b).begin(&c);
    resume(&mut story);
    assert_eq!((story.state(&a), story.state(&b), story.state(&c)), ("failed", "succeeded", "waiting"));
    assert_eq!(ended(&story), [0, 1], "the script has dealt with it, or still will");
    story.succeed(&c);
    assert_eq!(ended(&story), [0, 1, 2]);
}

// covers: R5, R21
#[test]
fn a_script_that_failed_runs_again_and_so_do_its_failed_calls_only() {
    let mut story = script(Dialect::Sage);
    let (a, b) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"));
    story.succeed(&a).fail(&b);
    returned(&mut story, bad());
    story.tell(RunFinished::new(Verdict::Failed));
    resume(&mut story);
    assert_eq!(
        (story.state("main/script"), story.state(&a), story.state(&b)),
        ("running", "succeeded", "pending")
    );
    assert_eq!(ended(&story), [0]);
    story.tell(StepRecalled { step: b.as_str().into() });
    assert_eq!(story.wanted(), ["work/b"], "the script has asked for it");
    story.succeed(&b);
    returned(&mut story, good());
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
}

// covers: R21
#[test]
fn what_a_script_left_running_is_given_up_before_it_ends() {
    let mut story = script(Dialect::Sage);
    let (a, b) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"));
    story.begin(&a);
    returned(&mut story, good());
    assert_eq!((story.state("main/script"), story.state(&b)), ("running", "cancelled"));
    assert_eq!(story.run.decide(), [Action::Stop(story.run.find(&a).unwrap())]);
    story.end(&a, End::Stopped);
    assert_eq!((story.state("main/script"), story.state(&a)), ("succeeded", "cancelled"));
}

// covers: R5, R21
#[test]
fn what_a_returned_script_left_running_is_given_up_by_the_next_owner_too() {
    let mut story = script(Dialect::Sage);
    let (a, b) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"));
    story.succeed(&a).begin(&b);
    returned(&mut story, good());
    resume(&mut story);
    assert_eq!((story.state("main/script"), story.state(&b)), ("succeeded", "cancelled"));
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
}

// covers: R21
#[test]
fn with_dead_agents_a_script_of_claude_code_is_degraded() {
    let mut story = script(Dialect::Claude);
    let a = call(&mut story, "a", "a");
    story.fail(&a);
    returned(&mut story, good());
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Degraded)]);
}

// covers: R5
#[test]
fn events_that_do_not_fit_are_refused() {
    let mut story = script(Dialect::Sage);
    let path = call(&mut story, "a", "a");
    let again = story.events.last().unwrap().0.clone();
    assert!(story.run.apply(&again, 9).is_err(), "the same number and path twice");
    let returned = Event::from(StepReturned { step: path.as_str().into(), end: good() });
    assert!(story.run.apply(&returned, 9).is_err(), "a call does not return");
}

fn retrying(policy: &str) -> Story {
    let mut story = Story::new(&SCRIPT.replace("type: script,", &format!("type: script, {policy},")));
    let into = Expansion::Code { input: payload("{}"), dialect: Dialect::Sage };
    story.tell(StepExpanded { step: "main/script".into(), into });
    story
}

fn retried(story: &mut Story, step: &str) {
    let (class, message, usage) = (FailureClass::Failed, "thrown".to_string(), Default::default());
    let (ms, spent, at, level) = (0, None, story.now, RetryLevel::Step);
    let step = step.into();
    story.tell(StepRetried { step, attempt: 1, class, message, ms, usage, spent, at, level, crowded: None });
}

// covers: R7, R21
#[test]
fn a_script_with_tries_left_waits_for_all_that_it_called_and_goes_on() {
    let mut story = retrying("retry: 2");
    let (a, b, c) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"), call(&mut story, "c", "c"));
    let id = story.run.find("main/script").unwrap();
    story.succeed(&a).begin(&c).fail(&b);
    returned(&mut story, bad());
    assert_eq!(story.run.decide(), [Action::Stop(story.run.find(&c).unwrap())], "the others first");
    story.end(&c, End::Stopped);
    assert_eq!(story.run.decide(), [Action::Retry(id)]);
    // A new owner comes to the same.
    resume(&mut story);
    assert_eq!(story.run.decide(), [Action::Retry(id)]);
    retried(&mut story, "main/script");
    assert_eq!((story.state(&a), story.state(&b), story.state(&c)), ("succeeded", "pending", "pending"));
    assert_eq!((ended(&story), story.state("main/script")), (vec![0], "running"));
    story.tell(StepRecalled { step: b.as_str().into() }).fail(&b);
    returned(&mut story, bad());
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Failed)], "no more tries");
}

// covers: R7, R21
#[test]
fn who_may_not_try_again_after_all_has_failed() {
    let mut story = retrying("retry: 2");
    let a = call(&mut story, "a", "a");
    story.fail(&a);
    returned(&mut story, bad());
    returned(&mut story, bad());
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Failed)]);
    let step = Event::from(StepReturned { step: "main/script".into(), end: bad() });
    assert!(story.run.apply(&step, 99).is_err());
}

/// The journal says which ends a script knew: what is written after an end may have been made before it was told.
// covers: R5, R21
#[test]
fn what_was_made_without_knowing_of_a_call_does_not_follow_from_it() {
    let mut story = script(Dialect::Sage);
    let (a, b) = (call(&mut story, "a", "a"), call(&mut story, "b", "b"));
    story.succeed(&b).succeed(&a);
    let c = call(&mut story, "c", "c");
    let Some((Event::StepCalled(called), _)) = story.events.pop() else { panic!("a call") };
    let mut again = script(Dialect::Sage);
    for (event, _) in story.events.drain(..).skip(1) {
        again.tell(event);
    }
    again.tell(StepCalled { after: Some(1), ..called });
    again.succeed(&c);
    let d = call(&mut again, "d", "d");
    again.succeed(&d);
    returned(&mut again, good());
    again.tell(RunRewound { from: a.clone() });
    let states = [&a, &b, &c, &d].map(|path| again.state(path));
    assert_eq!(states, ["pending", "succeeded", "succeeded", "pending"]);
}

// covers: P4, R21
#[test]
fn a_check_that_code_caught_is_part_of_the_verdict_unless_it_passed_later() {
    let shape = r#"{"type":"shell","id":"x","expect":{"passed":true}}"#;
    let verdict = |story: &Story| (story.run.decide(), story.run.shortfalls());
    let degraded = |why: &str| (vec![Action::Finish(Verdict::Degraded)], vec![why.to_string()]);
    let mut story = script(Dialect::Sage);
    let first = call_of(&mut story, "tests", "t", shape);
    story.fail(&first);
    returned(&mut story, good());
    assert_eq!(verdict(&story), degraded("work/tests failed"));
    // Nobody waited for it.
    let mut story = script(Dialect::Sage);
    call_of(&mut story, "tests", "t", shape);
    returned(&mut story, good());
    assert_eq!(verdict(&story), degraded("work/tests was not checked"));
    // The same check again, after something was mended.
    let mut story = script(Dialect::Sage);
    let first = call_of(&mut story, "tests", "t", shape);
    story.fail(&first);
    let mended = call(&mut story, "mend", "m");
    story.succeed(&mended);
    let second = call_of(&mut story, "tests", "t", shape);
    story.succeed(&second);
    returned(&mut story, good());
    assert_eq!(verdict(&story), (vec![Action::Finish(Verdict::Succeeded)], vec![]));
    story.refold();
}
