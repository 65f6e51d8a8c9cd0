//! What a run may spend: it stops before it spends more, loses nothing, and goes on when it may.

use crate::calls::count;
use crate::dsl::Sage;

/// Six agents of four responses with a thousand tokens each.
fn template(budget: &str) -> String {
    let usage = "usage: { input: 900, output: 100 }";
    let response = format!("{{ say: hm, {usage}, delayMs: 150 }}");
    format!(
        r#"
name: t
budget: {budget}
phases:
  - id: p
    operations:
      - id: each
        type: agent
        agent: fake
        prompt: go
        foreach: "[range(6)]"
        params:
          script: [{{ responses: [{response}, {response}, {response}, {response}], result: 1 }}]
"#
    )
}

const CAP: u64 = 10_000;
const RESPONSE: u64 = 1_000;

/// Paused for its budget with at most one response of each running step above it; gives what was spent.
#[track_caller]
fn run_into_it(sage: &Sage, parallel: u64) -> u64 {
    sage.sage(&format!("run x -t t --parallel {parallel}")).exit(4).stdout_has("budget");
    let status = sage.status("x");
    assert_eq!((&status["status"], &status["pauseReason"]), (&"paused".into(), &"budget".into()), "{status}");
    let waits = status["steps"].as_array().unwrap().iter().filter(|step| step["waitReason"] == "budget");
    assert_eq!(waits.count(), 7 - sage.journal("x").succeeded().len(), "items and their fan-out: {status}");
    let spent = status["metrics"]["totalTokens"].as_u64().unwrap();
    assert!(spent <= CAP + parallel * RESPONSE, "{spent} tokens of {CAP}");
    sage.assert_nothing_alive();
    spent
}

/// Without more it stands still again at once; with more it finishes, and nothing finished ran again.
#[track_caller]
fn go_on_with_more(sage: &Sage) {
    let starts = sage.journal("x").started().len();
    sage.sage("resume x").exit(4);
    assert_eq!(sage.journal("x").started().len(), starts, "nothing more was spent");
    sage.write(".sage/templates/t.yaml", template("100k"));
    sage.sage("resume x -t t").exit(0);
    let journal = sage.journal("x");
    journal.assert_nothing_repeated();
    assert_eq!(journal.succeeded().len(), 6);
    assert_eq!(sage.status("x")["status"], "completed");
}

// covers: R18
#[test]
fn a_run_pauses_before_it_spends_more() {
    let sage = Sage::new().template("t", &template("10k"));
    let spent = run_into_it(&sage, 2);
    let done = sage.journal("x").succeeded();
    assert!(!done.is_empty(), "what fits is finished");
    go_on_with_more(&sage);
    let total = sage.status("x")["metrics"]["totalTokens"].as_u64().unwrap();
    println!("budget at 2: {spent} of {CAP} tokens, {} of 6 finished; {total} in the end", done.len());
}

// covers: R18
#[test]
fn steps_at_work_are_stopped_after_one_response_too_much() {
    let sage = Sage::new().template("t", &template("10k"));
    let spent = run_into_it(&sage, 6);
    let journal = sage.journal("x");
    let parked = count(&journal, "step.parked");
    assert!(parked > 0, "somebody was stopped");
    assert_eq!(count(&journal, "step.retried"), 0);
    go_on_with_more(&sage);
    println!("budget at 6: {spent} of {CAP} tokens, {parked} stopped at work");
}

// covers: R18
#[test]
fn a_budget_that_may_fail_the_run_does() {
    let text = template("10k").replace("budget: 10k", "budget: 10k\nonBudget: fail");
    let sage = Sage::new().template("t", &text);
    sage.sage("run x -t t --parallel 6").exit(1);
    let status = sage.status("x");
    assert_eq!(status["status"], "failed", "{status}");
    let failed = status["steps"].as_array().unwrap().iter().filter(|step| step["state"] == "failed");
    let errors: Vec<&str> = failed.filter_map(|step| step["error"].as_str()).collect();
    assert!(errors.iter().any(|error| error.starts_with("budget: ")), "{errors:?}");
    sage.assert_nothing_alive();
}
