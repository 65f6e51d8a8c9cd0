//! Checks that could not be made, and work that changed nothing.

use super::*;
use crate::verdict::Verdict;

const CHECKED: &str = "
name: t
phases:
  - id: check
    operations:
      - { id: tests, type: shell, expect: { passed: true }, params: { run: x } }
      - { id: other, type: shell, params: { run: x } }
  - id: ship
    dependencies: [check]
    operations: { id: it, type: shell, params: { run: x } }
";

fn unmade() -> End {
    let partial = Some(payload(r#"{"passed":null}"#));
    End::Failed { class: FailureClass::Unchecked, message: "no command".into(), partial }
}

fn answered(choice: &str) -> StepAnswered {
    let (by, message, signal) = ("person".into(), None, None);
    let (step, choice, result) = ("check/tests".into(), choice.into(), payload("{}"));
    StepAnswered { step, choice, by, message, result, signal }
}

fn opened(unattended: bool) -> RunOpened {
    RunOpened { unattended, ..RunOpened::new(OpenMode::Resume, 1) }
}

fn waiting() -> Story {
    let mut story = Story::new(CHECKED);
    story.succeed("check/other").begin("check/tests").end("check/tests", unmade());
    story
}

// covers: P4
#[test]
fn a_check_that_was_not_made_holds_the_run_until_a_person_acts() {
    let mut story = waiting();
    assert_eq!((story.state("check/tests"), story.state("ship/it")), ("unknown", "pending"));
    assert_eq!(story.run.decide(), [Action::Pause(PauseReason::Unknown)]);
    story.tell(RunPaused::new(PauseReason::Unknown)).refold();
    // Nobody who could have done something about it.
    story.tell(opened(true));
    assert_eq!(story.state("check/tests"), "unknown");
    story.tell(RunPaused::new(PauseReason::Unknown)).tell(opened(false));
    assert_eq!(story.wanted(), ["check/tests"], "a resume makes it again");
    story.succeed("check/tests").succeed("ship/it");
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
    story.refold();
}

// covers: P4
#[test]
fn who_goes_on_without_a_check_has_a_degraded_run() {
    let mut story = waiting();
    story.tell(answered("approve"));
    let step = story.run.step(story.run.find("check/tests").unwrap());
    let Some(Output::Leaf { result, .. }) = step.output.as_deref() else { panic!("no result") };
    assert_eq!(result.json.as_ref().unwrap().get(), r#"{"passed":null}"#, "it does not say that it passed");
    story.succeed("ship/it");
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Degraded)]);
    assert_eq!(story.run.shortfalls(), ["check/tests was not checked"]);
    story.refold();
    let mut story = waiting();
    story.tell(answered("reject"));
    assert_eq!((story.state("check/tests"), story.state("ship/it")), ("failed", "blocked"));
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Failed)]);
}

// covers: P4
#[test]
fn a_check_with_nothing_to_check_is_skipped() {
    let mut story = Story::new(CHECKED);
    let result = payload(r#"{"applies":false}"#);
    story.succeed("check/other").begin("check/tests").end("check/tests", End::Skipped { result });
    assert_eq!(story.state("check/tests"), "skipped");
    story.succeed("ship/it");
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
    story.refold();
}

const WORK: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: a, type: agent, agent: fake, role: implementer, prompt: x }
      - { id: b, type: agent, agent: fake, role: implementer, prompt: x }
";

fn worked(changed: Option<bool>, result: &str) -> End {
    End::Succeeded { result: payload(result), full: None, artifacts: Vec::new(), changed }
}

// covers: R6
#[test]
fn a_run_that_changed_nothing_is_no_plain_success() {
    let verdict = |a: End, b: End| {
        let mut story = Story::new(WORK);
        story.begin("p/a").end("p/a", a).begin("p/b").end("p/b", b);
        story.refold();
        (story.run.verdict(), story.run.shortfalls())
    };
    let nothing = vec!["no file was changed".to_string()];
    let said = r#"{"filesChanged": ["a.rs"]}"#;
    assert_eq!(
        verdict(worked(Some(false), said), worked(Some(false), "1")),
        (Verdict::Degraded, nothing.clone())
    );
    // What was seen counts, then what was said; one who did something is enough.
    assert_eq!(verdict(worked(Some(false), "1"), worked(Some(true), "1")).0, Verdict::Succeeded);
    assert_eq!(verdict(worked(Some(false), "1"), worked(None, said)).0, Verdict::Succeeded);
    let empty = r#"{"filesChanged": []}"#;
    assert_eq!(verdict(worked(None, empty), worked(None, empty)), (Verdict::Degraded, nothing));
    assert_eq!(verdict(worked(None, "1"), worked(None, empty)).0, Verdict::Succeeded, "nobody knows");
    let red = r#"{"filesChanged": ["a.rs"], "tests": {"ran": true, "passed": false}}"#;
    let (verdict, why) = verdict(worked(Some(true), red), worked(Some(true), "1"));
    assert_eq!((verdict, why), (Verdict::Degraded, vec!["p/a says that tests fail".to_string()]));
}

/// A check that passed, and has seen these files.
fn seen(story: &mut Story, step: &str, files: &str) {
    let attempt = story.run.step(story.run.find(step).unwrap()).attempts + 1;
    story.begin(step);
    let end = End::succeeded(payload(&format!(r#"{{"passed":true,"ms":{attempt}}}"#)));
    let finished = StepFinished::new(step.into(), attempt, end, 5, Usage::default());
    story.tell(StepFinished { looked: Some(Digest::of(files.as_bytes())), ..finished });
}

fn stale(story: &Story, files: &str) -> Vec<String> {
    let stale = story.run.stale_checks(Digest::of(files.as_bytes()));
    stale.into_iter().map(|id| story.run.step(id).path.to_string()).collect()
}

const ASKED: &str = "
name: t
phases:
  - id: check
    operations: { id: tests, type: shell, expect: { passed: true }, params: { run: x } }
  - id: ask
    dependencies: [check]
    operations: { id: it, type: shell, params: { run: x } }
  - id: ship
    dependencies: [ask]
    operations: { id: it, type: shell, params: { run: x } }
";

// covers: R4, P4
#[test]
fn a_check_holds_for_the_files_that_it_has_seen() {
    let mut story = Story::new(ASKED);
    seen(&mut story, "check/tests", "a");
    story.succeed("ask/it").fail("ship/it");
    assert_eq!((stale(&story, "a"), stale(&story, "b")), (vec![], vec!["check/tests".to_string()]));
    story.tell(StepRechecked { step: "check/tests".into() }).tell(opened(false)).refold();
    assert_eq!(story.wanted(), ["check/tests"], "nothing after it begins before it has ended");
    seen(&mut story, "check/tests", "b");
    assert_eq!(story.state("ask/it"), "succeeded", "another result of a check that passed is no news");
    assert_eq!(story.wanted(), ["ship/it"]);
    story.succeed("ship/it").refold();
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Succeeded)]);
    // One that does not pass any more fails the run, whatever came after it.
    story.tell(RunFinished::new(Verdict::Succeeded));
    story.tell(StepRechecked { step: "check/tests".into() }).tell(opened(false));
    story.fail("check/tests").refold();
    assert_eq!(story.run.decide(), [Action::Finish(Verdict::Failed)]);
}

// covers: R4, P4
#[test]
fn a_check_that_was_built_upon_is_not_made_again() {
    let text = ASKED.replace(
        "{ id: it, type: shell, params: { run: x } }",
        "{ id: it, type: agent, agent: fake, role: implementer, prompt: x }",
    );
    let mut story = Story::new(&text);
    seen(&mut story, "check/tests", "a");
    assert_eq!(stale(&story, "b"), ["check/tests"]);
    story.succeed("ask/it");
    assert_eq!(stale(&story, "b"), Vec::<String>::new());
}

const RACE: &str = "
name: t
phases:
  - id: c
    join: any
    operations:
      - { id: tests, type: shell, expect: { passed: true }, params: { run: x } }
      - { id: other, type: shell, params: { run: x } }
";

// covers: P4
#[test]
fn a_race_is_not_won_against_what_a_check_found() {
    let verdict = |story: &Story| {
        story.refold();
        (story.run.decide(), story.run.shortfalls())
    };
    let degraded = |why: &str| (vec![Action::Finish(Verdict::Degraded)], vec![why.to_string()]);
    let mut story = Story::new(RACE);
    story.fail("c/tests").succeed("c/other");
    assert_eq!(verdict(&story), degraded("c/tests failed"));
    let mut story = Story::new(RACE);
    story.begin("c/tests").end("c/tests", unmade()).succeed("c/other");
    assert_eq!(verdict(&story), degraded("c/tests was not checked"));
    let mut story = Story::new(RACE);
    story.begin("c/tests").succeed("c/other").end("c/tests", End::Stopped);
    assert_eq!(verdict(&story), degraded("c/tests was not checked"));
    // Two checks of a kind may race each other, and anything else that is none.
    let mut story = Story::new(
        &RACE.replace("{ id: other, type: shell,", "{ id: other, type: shell, expect: { passed: true },"),
    );
    story.begin("c/tests").succeed("c/other").end("c/tests", End::Stopped);
    assert_eq!(verdict(&story), (vec![Action::Finish(Verdict::Succeeded)], vec![]));
    let mut story = Story::new(&RACE.replace(" expect: { passed: true },", ""));
    story.fail("c/tests").succeed("c/other");
    assert_eq!(verdict(&story), (vec![Action::Finish(Verdict::Succeeded)], vec![]));
}

const NOTHING: &str = "
name: t
phases:
  - id: p
    operations:
      - { id: work, type: agent, agent: fake, role: implementer, prompt: x }
      - { id: tests, type: shell, expect: { passed: true }, params: { run: x } }
";

// covers: P4, R6
#[test]
fn a_run_that_changed_something_and_checked_nothing_is_no_plain_success() {
    let verdict = |result: &str| {
        let mut story = Story::new(NOTHING);
        story.begin("p/work").end("p/work", worked(Some(true), "1"));
        story.begin("p/tests").end("p/tests", End::Skipped { result: payload(result) });
        story.refold();
        (story.run.verdict(), story.run.shortfalls())
    };
    assert_eq!(verdict(r#"{"applies":false}"#), (Verdict::Degraded, vec!["no check ran".to_string()]));
    assert_eq!(verdict(r#"{"applies":false,"declined":true}"#), (Verdict::Succeeded, vec![]));
    // Nothing was to be done at all.
    let text = "name: t\nphases:\n  - id: p\n    operations: { id: work, type: agent, agent: fake, role: implementer, foreach: '[]', prompt: x }\n";
    let mut story = Story::new(text);
    let into = Expansion::Items { count: 0, items: payload("[]"), digests: vec![], ordinals: vec![] };
    story.tell(StepExpanded { step: "p/work".into(), into });
    assert_eq!(
        (story.run.verdict(), story.run.shortfalls()),
        (Verdict::Degraded, vec!["no file was changed".to_string()])
    );
}
