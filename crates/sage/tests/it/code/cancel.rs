//! Cancelled and interrupted workflows in code: `catch` and `finally` run, nothing stays alive.

use rustix::process::Signal;
use serde_json::json;

use super::{flow, ran, value};
use crate::calls::count;
use crate::dsl::{DEADLINE, Sage, wait_until};

const CLEAN: &str = r#"
  try {
    await Promise.all([
      sage.shell("echo one >> ran; sleep 300"),
      sage.shell("echo two >> ran; [ -e go ] || sleep 300"),
    ]);
    return "done";
  } catch (error) {
    sage.log(`caught ${error.code}`);
    throw error;
  } finally {
    sage.log("cleaned up");
  }"#;

fn begun(sage: &Sage) {
    wait_until(|| sage.lines("ran").len() >= 2, DEADLINE, "both steps at work");
}

fn notes(sage: &Sage) -> Vec<String> {
    let journal = sage.journal("x");
    let note = |entry: &crate::dsl::Entry| match &entry.event {
        sage_core::event::Event::StepNoted(noted) => Some(noted.text.clone()),
        _ => None,
    };
    journal.records.iter().filter_map(note).collect()
}

// covers: R21, R16
#[test]
fn cancelling_goes_through_catch_and_finally() {
    let sage = flow(CLEAN);
    let running = sage.spawn("run x -t t");
    begun(&sage);
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    assert_eq!(notes(&sage), ["caught cancelled", "cleaned up"]);
    assert_eq!(sage.status("x")["status"], "cancelled");
    sage.assert_nothing_alive();
    sage.sage("verify").exit(0);
}

// covers: R21, R5
#[test]
fn a_cancelled_run_goes_on_with_what_was_left() {
    let sage = flow(
        r#"
  await sage.shell("echo first >> ran");
  await sage.shell("echo second >> ran; [ -e go ] || sleep 300");
  return "done";"#,
    );
    let running = sage.spawn("run x -t t");
    begun(&sage);
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    sage.write("go", "");
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!("done"));
    assert_eq!(ran(&sage), ["first", "second", "second"]);
}

// covers: R21, R5
#[test]
fn an_interrupted_run_is_paused_and_goes_on() {
    let sage = flow(CLEAN);
    let running = sage.spawn("run x -t t");
    begun(&sage);
    running.signal(Signal::INT);
    running.end().exit(130);
    assert_eq!(sage.status("x")["status"], "paused");
    sage.assert_nothing_alive();
    // An interruption is no cancellation: the script is told nothing, and begins again.
    assert_eq!(count(&sage.journal("x"), "step.noted"), 0);
}

// covers: R21, R16
#[test]
fn a_script_that_ignores_cancellation_is_cut() {
    let sage = flow(
        r#"
  for (;;) {
    try { await sage.shell("echo again >> ran; echo again >> ran; sleep 300"); } catch { }
  }"#,
    );
    let running = sage.spawn("run x -t t");
    begun(&sage);
    sage.sage("cancel x").exit(0);
    running.end().exit(130);
    assert_eq!(sage.status("x")["status"], "cancelled");
    assert_eq!(ran(&sage).len(), 2, "nothing was started after the cancellation");
    sage.assert_nothing_alive();
}

// covers: R21
#[test]
fn a_pause_is_kept_and_the_script_goes_on_where_it_was() {
    let sage = flow(
        r#"
  await sage.shell("echo one >> ran; echo one >> ran; while [ ! -e go ]; do sleep 0.01; done");
  await sage.shell("echo two >> ran");
  return 2;"#,
    );
    let running = sage.spawn("run x -t t");
    begun(&sage);
    sage.sage("pause x").exit(0);
    sage.write("go", "");
    running.end().exit(4);
    assert_eq!(ran(&sage), ["one", "one"]);
    sage.sage("resume x").exit(0);
    assert_eq!((value(&sage), ran(&sage)), (json!(2), vec!["one".into(), "one".into(), "two".into()]));
}
