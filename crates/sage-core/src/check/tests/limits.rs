//! Limits that contradict each other.

use super::*;
use crate::budget::Cap;

/// `field: message (hint)` of each warning about a step of agent `claude`; none of them may be an error.
fn warned(top: &str, phase: &str, step: &str) -> Vec<String> {
    let text = format!(
        "name: t\n{top}\nphases:\n  - id: p\n    {phase}\n    operations:\n      - {{type: agent, agent: claude, prompt: p, {step}}}\n"
    );
    let loaded = load_yaml(&text);
    assert!(loaded.template.is_some(), "{:?}", loaded.diagnostics);
    let line =
        |d: &Diagnostic| format!("{}: {} ({})", d.field, d.message, d.hint.clone().unwrap_or_default());
    loaded.diagnostics.iter().map(line).collect()
}

// covers: R7
#[test]
fn a_budget_larger_than_what_holds_it_is_told_with_both_figures() {
    let tokens = |tokens| Cap { tokens: Some(tokens), micro_usd: None };
    let usd = |usd: u64| Cap { tokens: None, micro_usd: Some(usd * 1_000_000) };
    let told = |field: &str, own: Cap, whose: &str, limit: Cap| {
        [format!(
            "{field}: the budget {own} is larger than {whose}: {limit} (write {limit} or less, or raise {whose})"
        )]
    };
    let step = "phases[0].operations[0].budget";
    assert_eq!(
        warned("", "budget: 200k", "budget: 300k"),
        told(step, tokens(300_000), "its phase's", tokens(200_000))
    );
    assert_eq!(warned("budget: 5usd", "", "budget: 6usd"), told(step, usd(6), "the template's", usd(5)));
    assert_eq!(
        warned("budget: 5usd", "budget: 3usd", "budget: 6usd"),
        told(step, usd(6), "its phase's", usd(3)),
        "the nearest is enough"
    );
    assert_eq!(
        warned("budget: 5usd", "budget: 200k", "budget: 6usd"),
        told(step, usd(6), "the template's", usd(5)),
        "tokens and money are different things"
    );
    assert_eq!(
        warned("budget: 5usd", "budget: 6usd", "id: x"),
        told("phases[0].budget", usd(6), "the template's", usd(5))
    );
    for (top, phase, own) in [
        ("budget: 5usd", "budget: 5usd", "budget: 5usd"),
        ("budget: 5usd", "budget: 200k", "budget: 100k"),
        ("budget: 5usd", "", "budget: 900k"),
        ("", "", "budget: 5usd"),
    ] {
        assert_eq!(warned(top, phase, own), [""; 0], "{top} {phase} {own}");
    }
}

// covers: R7, R14
#[test]
fn a_hedge_that_never_starts_is_told() {
    let told = |after: &str, end: &str| {
        [format!(
            "phases[0].operations[0].hedge: the hedge after {after} never starts: the timeout is {end} (write less than {end}, or a longer `timeout`)"
        )]
    };
    assert_eq!(warned("", "", "hedge: 10m, timeout: 5m"), told("10m", "5m"));
    assert_eq!(warned("", "", "hedge: 5m, timeout: 5m"), told("5m", "5m"));
    assert_eq!(
        warned("", "", "hedge: {after: 10m}, timeout: {attempt: 1h, step: 90s}"),
        told("10m", "1m 30s")
    );
    for fine in ["hedge: 4m, timeout: 5m", "hedge: 10m", "hedge: 10m, timeout: {queue: 1m, idle: 1m}"] {
        assert_eq!(warned("", "", fine), [""; 0], "{fine}");
    }
}

// covers: R7
#[test]
fn a_fallback_to_what_has_failed_is_told() {
    let told = |what: &str| {
        [format!("phases[0].operations[0].fallback: the fallback {what} (name another agent or model)")]
    };
    assert_eq!(warned("", "", "fallback: claude"), told("`claude` is the step's own agent"));
    assert_eq!(warned("", "", "fallback: {to: [codex, claude]}"), told("`claude` is the step's own agent"));
    let own = told("`m` is the step's own agent and model");
    assert_eq!(warned("", "", "model: m, fallback: {model: m}"), own);
    assert_eq!(warned("", "", "model: m, fallback: {agent: claude, model: m}"), own);
    for fine in [
        "fallback: codex",
        "fallback: {model: m}",
        "model: m, fallback: {model: n}",
        "model: m, fallback: claude",
        "model: m, fallback: {agent: codex, model: m}",
        "retry: 5, fallback: [codex, cache]",
    ] {
        assert_eq!(warned("", "", fine), [""; 0], "{fine}");
    }
}

// covers: R7
#[test]
fn warnings_about_limits_point_at_the_field() {
    let text = "name: t\nphases:\n  - id: p\n    operations:\n      - {type: agent, agent: a, prompt: p, timeout: 1s, hedge: 2s, fallback: [a]}\n";
    insta::assert_snapshot!(shown(text), @r"
    warning: the hedge after 2s never starts: the timeout is 1s
     --> t.yaml:5:64
      |
    5 |       - {type: agent, agent: a, prompt: p, timeout: 1s, hedge: 2s, fallback: [a]}
      |                                                                ^^
      = hint: write less than 1s, or a longer `timeout`
    warning: the fallback `a` is the step's own agent
     --> t.yaml:5:78
      |
    5 |       - {type: agent, agent: a, prompt: p, timeout: 1s, hedge: 2s, fallback: [a]}
      |                                                                              ^^^
      = hint: name another agent or model
    ");
}

// covers: R2, R7
#[test]
fn a_race_for_more_places_than_members_is_an_error() {
    assert_eq!(
        said(
            "name: t\nphases:\n  - {id: a, join: {atLeast: 2, cancel: true}, operations: {type: sleep, params: {ms: 1}}}\n"
        ),
        ["phases[0].join: the join asks for 2 successes, but the phase has 1 operations"]
    );
}

// covers: R7, R21
#[test]
fn what_holds_steps_has_no_idle_time() {
    let text = "name: t\nphases:\n  - id: p\n    operations:\n      - {type: script, idleTimeout: 1m, timeout: 5m, retry: 2, params: {code: 'export default () => 1'}}\n";
    let loaded = load_yaml(text);
    let told: Vec<&str> = loaded.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(told, ["a script step is never idle: the steps in it are"]);
}
