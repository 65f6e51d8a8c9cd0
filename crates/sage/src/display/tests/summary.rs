use sage_core::event::{End, Estimate, Filtered, PauseReason, RunCancelled, StepFinished};
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::verdict::Verdict;
use serde_json::{Value, json};

use super::Canned;
use super::canned::payload;
use crate::display::{Style, summary, summary_json};

const WORK: &str = "
name: work
phases:
  - id: research
    join: { atLeast: 0.5 }
    operations:
      - { id: market, type: agent, prompt: look, agent: fake }
      - { id: rivals, type: agent, prompt: look, agent: fake }
      - { id: notes, type: shell, params: { run: 'true' } }
  - id: gate
    dependencies: [research]
    operations: { id: ok, type: approval, params: { message: Ship it? } }
  - id: build
    dependencies: [gate]
    operations: { id: code, type: shell, params: { run: 'true' } }
";

fn shown(canned: &Canned) -> String {
    summary(&canned.run, Style { color: false, width: 100 })
}

fn usage() -> Usage {
    Usage {
        input: Some(12_000),
        cache_read: Some(120_000),
        output: Some(2_150),
        cost_usd: Some(0.42),
        ..Usage::default()
    }
}

fn researched() -> Canned {
    Canned::new(WORK)
        .start("research/market")
        .start("research/rivals")
        .start("research/notes")
        .at(45_000)
        .done_with("research/market", 45_000, usage())
        .done("research/rivals", 30_000)
        .done("research/notes", 40_000)
}

// covers: R2, R8, R18
#[test]
fn a_good_run_is_short() {
    let canned = researched().ask("gate/ok", "Ship it?").at(50_000);
    let answer = sage_core::event::StepAnswered {
        step: "gate/ok".into(),
        choice: "approve".into(),
        by: "eva".into(),
        message: None,
        result: payload(&json!({"choice": "approve"})),
        signal: None,
    };
    let canned = canned
        .event(answer)
        .start("build/code")
        .at(52_000)
        .done("build/code", 2_000)
        .finish(Verdict::Succeeded);
    insta::assert_snapshot!(shown(&canned), @"
    ✓ succeeded in 52.0s · 5.0s waiting · 1m 57s if sequential · 2.5x faster
      5 steps done
      134.2k tokens: 12.0k input, 120.0k cache read, 2.1k output
      $0.42 · unattributed: 1 attempt told no usage · 0 context reloads
      ! 134.2k tokens, more than 100.0k
    ");
}

// covers: R8
#[test]
fn a_failed_run_says_what_failed_and_what_to_type() {
    let canned = Canned::new(WORK)
        .start("research/market")
        .start("research/rivals")
        .start("research/notes")
        .at(9_000)
        .fail(
            "research/market",
            9_000,
            FailureClass::RateLimit,
            "429 from the model\n\nretry later\nthird\nfourth",
        )
        .fail("research/notes", 9_000, FailureClass::Failed, "exit code 1: \x1b[31mboom\x1b[0m")
        .done("research/rivals", 9_000)
        .finish(Verdict::Failed);
    insta::assert_snapshot!(shown(&canned), @"
    ✗ failed after 9.0s
      1 of 5 steps done · 2 failed · 2 blocked
      unattributed: 2 attempts told no usage · 0 context reloads
      3 attempts · 1 refusal
      ! 33.3 % of attempts failed, more than 5 %
      ✗ research/market  rate-limit: 429 from the model
        retry later
        third
        fourth
        its provider wants fewer calls at once (`sage limits`)
      ✗ research/notes   exit code 1: boom
      next: sage resume payment-processing                tries again; finished steps are kept
            sage logs payment-processing research/market  shows what it said
    ");
}

// covers: R8
#[test]
fn a_paused_run_says_why_and_what_to_type() {
    let canned = researched().ask("gate/ok", "Ship it?\nIt costs").at(46_000).pause(PauseReason::Approval);
    insta::assert_snapshot!(shown(&canned), @"
    ◌ paused after 46.0s: it waits for an answer
      3 of 5 steps done · 1 waiting for a person · 1 not finished
      134.2k tokens: 12.0k input, 120.0k cache read, 2.1k output
      $0.42 · unattributed: 1 attempt told no usage · 0 context reloads
      ! 134.2k tokens, more than 100.0k
      ? gate/ok  approval: Ship it? It costs
      next: sage approve payment-processing gate/ok  or reject it
            sage resume payment-processing           goes on once it is answered
    ");
}

// covers: R8
#[test]
fn a_long_question_is_told_in_full() {
    let message =
        "Ship the draft to 日本語 customers 🚀? It costs real money and cannot be undone, so read it first";
    let canned = researched().ask("gate/ok", message).pause(PauseReason::Approval);
    let shown = summary(&canned.run, Style { color: false, width: 60 });
    let question: Vec<&str> = shown.lines().skip_while(|line| !line.contains('?')).take(3).collect();
    insta::assert_snapshot!(question.join("\n"), @"
    ? gate/ok
      approval: Ship the draft to 日本語 customers 🚀? It
      costs real money and cannot be undone, so read it first
    ");
}

// covers: R3, R8
#[test]
fn a_resumed_run_says_what_was_reused() {
    let yaml = "
name: work
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: 'true' } }
      - { id: b, type: shell, params: { run: 'true' } }
      - { id: c, type: shell, params: { run: 'true' } }
";
    let canned = Canned::new(yaml)
        .start("p/a")
        .start("p/b")
        .start("p/c")
        .at(3_000)
        .done("p/a", 3_000)
        .done("p/b", 3_000)
        .pause(PauseReason::Interrupted)
        .at(100_000)
        .resume()
        .start("p/c")
        .at(104_000)
        .done("p/c", 4_000)
        .finish(Verdict::Succeeded);
    insta::assert_snapshot!(shown(&canned), @"
    ✓ succeeded in 7.0s · 10.0s if sequential · 1.4x faster
      2 of 3 steps reused, 1 run
    ");
}

// covers: R8
#[test]
fn one_step_has_no_speed_up_and_a_cancelled_run_says_how_to_go_on() {
    let yaml = "{name: one, phases: [{id: p, operations: {id: a, type: shell, params: {run: 'true'}}}]}";
    let one = Canned::new(yaml).start("p/a").at(900).done("p/a", 900).finish(Verdict::Succeeded);
    assert_eq!(shown(&one), "✓ succeeded in 0.9s\n  1 step done\n");
    let cancelled =
        Canned::new(yaml).start("p/a").at(900).event(RunCancelled { resumable: false, signal: None });
    insta::assert_snapshot!(shown(&cancelled), @"
    - cancelled after 0.9s
      0 of 1 step done · 1 cancelled
      next: sage run 'Payment processing' -t feature  starts anew
    ");
}

// covers: R16
#[test]
fn the_summary_as_json_is_one_line() {
    let line = summary_json(&researched().run, &|_| json!("value"));
    assert!(!line.contains('\n'));
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["type"], "summary");
    assert_eq!(value["feature"], "payment-processing");
    assert_eq!(value["results"]["phases"][0]["results"]["market"], "value");
    assert_eq!(value["results"]["metrics"]["sequentialTime"], 115_000);
}

const AGENTS: &str = "
name: agents
phases:
  - id: look
    operations:
      - { id: wide, type: agent, prompt: look, agent: fake }
      - { id: quiet, type: agent, prompt: look, agent: fake }
";

// covers: R10, R18, R19
#[test]
fn what_was_saved_and_what_is_only_estimated_is_told_apart() {
    let end = || End::Succeeded {
        result: payload(&json!(1)),
        full: Some(payload(&json!([1]))),
        artifacts: vec![],
        changed: None,
    };
    let filtered = Filtered {
        bytes_before: 180_400,
        bytes_after: 7_912,
        tokens_before: Some(42_000),
        tokens_after: Some(1_900),
    };
    let estimate = Some(Estimate { input: 11_000, output: 1_000 });
    let wide = StepFinished::new("look/wide".into(), 1, end(), 3_000, usage());
    let quiet = StepFinished::new("look/quiet".into(), 1, end(), 2_000, Usage::default());
    let canned = Canned::new(AGENTS).start("look/wide").start("look/quiet").at(3_000);
    let canned = canned
        .event(StepFinished { filtered: Some(filtered), ..wide })
        .event(StepFinished { estimate, ..quiet })
        .finish(Verdict::Succeeded);
    insta::assert_snapshot!(shown(&canned), @"
    ✓ succeeded in 3.0s · 5.0s if sequential · 1.7x faster
      2 steps done
      134.2k tokens: 12.0k input, 120.0k cache read, 2.1k output
      $0.42 · 40.1k tokens saved by filter · 0 context reloads
      ≈ 12.0k tokens estimated for 1 attempt that told no usage
      ! 134.2k tokens, more than 100.0k
    ");
    let metrics = sage_core::wire::WorkflowMetrics::of(&canned.run);
    assert_eq!((metrics.total_tokens, metrics.tokens_by_class.unattributed), (134_150, 1));
}
