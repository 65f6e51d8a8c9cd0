//! Limits: retries, timeouts, pools, targets, fallbacks, hedges, stalls, budgets.

use super::*;
use crate::budget::Cap;
use crate::policy::StallPolicy;
use crate::policy::{Alternative, Fallback, FallbackOn, Hedge, OnBudget, RetryBudget, Stall, StallEnd};

const SHELL: &str = "type: shell, params: {run: x}";
const AGENT: &str = "type: agent, prompt: p";

fn shell(field: &str) -> Operation {
    operation(&format!("{{{SHELL}, {field}}}"))
}

fn agent(field: &str) -> Operation {
    operation(&format!("{{{AGENT}, {field}}}"))
}

/// Each field is wrong in one way, and this is said about it.
#[track_caller]
fn wrong(step: &str, table: &[(&str, &str)]) {
    for (field, expected) in table {
        assert_eq!(said(&format!("{{{step}, {field}}}")), [*expected], "{field}");
    }
}

/// `field: message (hint)` of everything said about a template that has `text` at its top.
fn said_of_template(text: &str) -> Vec<String> {
    let text = format!("name: t\n{text}\nphases: [{{id: p, operations: {{type: pause.short}}}}]\n");
    let hint = |hint: Option<String>| hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    read(&text).1.into_iter().map(|p| format!("{}: {}{}", p.field, p.message, hint(p.hint))).collect()
}

fn template(text: &str) -> Template {
    let text = format!("name: t\n{text}\nphases: [{{id: p, operations: {{type: pause.short}}}}]\n");
    let (template, problems) = read(&text);
    assert_eq!(problems, [], "{text}");
    template.unwrap()
}

// covers: R7
#[test]
fn agents_are_started_again_unless_told_otherwise() {
    let by_itself =
        Retry { attempts: 3, on: vec![FailureClass::Transient, FailureClass::Lost], ..Retry::default() };
    assert_eq!(agent("id: x").retry, by_itself);
    assert_eq!(operation("{type: research.market}").retry, by_itself, "by its kind, not by its name");
    assert_eq!(agent("retry: null").retry, by_itself);
    assert_eq!(agent("retry: 1").retry, Retry::default());
    assert_eq!(agent("retry: 5").retry, Retry { attempts: 5, ..Retry::default() });
    assert_eq!(agent("retry: {delay: 5s}").retry, Retry { attempts: 3, delay_ms: 5_000, ..Retry::default() });
    assert_eq!(shell("id: x").retry, Retry::default());
}

// covers: R7
#[test]
fn jitter_is_a_word_or_a_switch() {
    for (field, expected) in [
        ("true", Jitter::Decorrelated),
        ("false", Jitter::None),
        ("none", Jitter::None),
        ("full", Jitter::Full),
        ("equal", Jitter::Equal),
        ("decorrelated", Jitter::Decorrelated),
        ("null", Jitter::Decorrelated),
    ] {
        assert_eq!(shell(&format!("retry: {{jitter: {field}}}")).retry.jitter, expected, "{field}");
    }
    assert_eq!(shell("retry: {on: [lost, lost]}").retry.on, [FailureClass::Lost]);
    assert_eq!(shell("retry: {on: budget}").retry.on, [FailureClass::Budget]);
    wrong(
        SHELL,
        &[
            (
                "retry: {jitter: some}",
                ".retry.jitter: `some` is not a value of `jitter` (one of: none, full, equal, decorrelated)",
            ),
            (
                "retry: {jitter: ful}",
                ".retry.jitter: `ful` is not a value of `jitter` (did you mean `full`?)",
            ),
            (
                "retry: {jitter: 3}",
                ".retry.jitter: expected true, false, `none`, `full`, `equal` or `decorrelated`, found the number 3",
            ),
            ("retry: {on: [3]}", ".retry.on[0]: expected a name, found the number 3"),
            (
                "retry: {on: timeot}",
                ".retry.on: `timeot` is not a class of failures (did you mean `timeout`?)",
            ),
        ],
    );
}

// covers: R14
#[test]
fn timeouts_are_of_an_attempt_or_of_several_kinds() {
    let times = |field: &str| {
        let step = shell(field);
        (step.timeout_ms, step.step_timeout_ms, step.idle_timeout_ms, step.queue_timeout_ms)
    };
    for (field, expected) in [
        ("timeout: 5s", (Some(5_000), None, None, None)),
        ("timeout: 5", (Some(5), None, None, None)),
        ("timeout: null", (None, None, None, None)),
        ("timeout: {attempt: 5s}", (Some(5_000), None, None, None)),
        ("timeout: {step: 1h}", (None, Some(3_600_000), None, None)),
        ("timeout: {idle: 30s}", (None, None, Some(30_000), None)),
        ("timeout: {queue: 1d}", (None, None, None, Some(86_400_000))),
        ("timeout: {attempt: 1, step: 2, idle: 3, queue: 4}", (Some(1), Some(2), Some(3), Some(4))),
        ("timeout: {attempt: 1}, idleTimeout: 2", (Some(1), None, Some(2), None)),
        ("timeout: {idle: null}, idleTimeout: 2", (None, None, Some(2), None)),
        ("timeout: 1, idleTimeout: 2", (Some(1), None, Some(2), None)),
    ] {
        assert_eq!(times(field), expected, "{field}");
    }
    wrong(
        SHELL,
        &[
            (
                "idleTimeout: 5s, timeout: {idle: 5s}",
                ".timeout.idle: the idle timeout is given twice (keep `idleTimeout` or `timeout.idle`)",
            ),
            ("timeout: {step: 0}", ".timeout.step: `step` must be longer than 0"),
            (
                "timeout: {queue: soon}",
                ".timeout.queue: `soon` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"",
            ),
            ("timeout: {atempt: 5s}", ".timeout.atempt: unknown field `atempt` (did you mean `attempt`?)"),
            (
                "timeout: {max: 5s}",
                ".timeout.max: unknown field `max` (fields here: attempt, step, idle, queue)",
            ),
            ("timeout: [5s]", ".timeout: a duration is a number of milliseconds, or text such as \"10m\""),
            (
                "stepTimeout: 5s",
                ".stepTimeout: unknown field `stepTimeout` (write it under `timeout`: { step: ... })",
            ),
            (
                "queueTimeout: 5s",
                ".queueTimeout: unknown field `queueTimeout` (write it under `timeout`: { queue: ... })",
            ),
        ],
    );
    let twice = read(&wrap(&format!("{{{SHELL}, idleTimeout: 5s, timeout: {{idle: 6s}}}}"))).1;
    assert!(twice[0].also.is_some(), "both places are shown");
}

// covers: P6
#[test]
fn pools_are_named_with_their_units() {
    let units = |list: &[(&str, u32)]| -> Vec<(String, u32)> {
        list.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect()
    };
    let longest = "x".repeat(50);
    for (field, expected) in [
        ("id: x", units(&[])),
        ("pool: null", units(&[])),
        ("pool: gpu", units(&[("gpu", 1)])),
        ("pool: A.b_c-9", units(&[("A.b_c-9", 1)])),
        ("pool: {zoo: 2, gpu: 10000, a: 1}", units(&[("zoo", 2), ("gpu", 10_000), ("a", 1)])),
        (&format!("pool: {longest}"), units(&[(&longest, 1)])),
    ] {
        assert_eq!(shell(field).pools, expected, "{field}");
    }
    let names = "(1 to 50 letters, digits, `.`, `_` and `-`, such as `gpu`)";
    wrong(
        SHELL,
        &[
            (
                "pool: {}",
                ".pool: `pool` names no pool (write the units of each pool: {gpu: 2}, or leave `pool` out)",
            ),
            ("pool: ''", &format!(".pool: `` is not the name of a pool {names}")),
            ("pool: 'a b'", &format!(".pool: `a b` is not the name of a pool {names}")),
            ("pool: \"a\\e[31m\"", &format!(".pool: `a\u{FFFD}[31m` is not the name of a pool {names}")),
            (
                &format!("pool: {}", "x".repeat(99)),
                &format!(".pool: `{}` is not the name of a pool {names}", "x".repeat(80)),
            ),
            ("pool: {a/b: 1}", &format!(".pool.a/b: `a/b` is not the name of a pool {names}")),
            (
                "pool: global",
                ".pool: `global` is the pool of all steps: each takes its slot there anyway (leave it out, or name a pool of your own)",
            ),
            ("pool: {gpu: 0}", ".pool.gpu: expected a whole number from 1 to 10000, found the number 0"),
            (
                "pool: {gpu: 10001}",
                ".pool.gpu: expected a whole number from 1 to 10000, found the number 10001",
            ),
            ("pool: {gpu: null}", ".pool.gpu: expected a whole number from 1 to 10000, found null"),
            (
                "pool: [gpu]",
                ".pool: expected the name of a pool, or an object such as {gpu: 2}, found a list",
            ),
        ],
    );
}

// covers: R7, R13, R17
#[test]
fn targets_have_a_kind_and_a_name() {
    for (field, expected) in [
        ("id: x", &[][..]),
        ("target: []", &[]),
        ("target: host:api.example.com", &["host:api.example.com"]),
        ("target: 'host:[::1]:80'", &["host:[::1]:80"]),
        (
            "target: [command:make, server:s, model:m, agent:a, provider:p]",
            &["command:make", "server:s", "model:m", "agent:a", "provider:p"],
        ),
    ] {
        assert_eq!(shell(field).targets, expected, "{field}");
    }
    let bounds =
        ".target: a target has at most 200 characters and no spaces (such as `host:api.example.com`)";
    wrong(
        SHELL,
        &[
            (
                "target: api.example.com",
                ".target: `api.example.com` is not a target (write its kind before it, such as `host:api.example.com`; kinds: host, command, server, model, agent, provider)",
            ),
            (
                "target: [host:x, 'hots:y']",
                ".target[1]: `hots` is not a kind of target (did you mean `host`?)",
            ),
            (
                "target: 'https://x'",
                ".target: `https` is not a kind of target (one of: host, command, server, model, agent, provider)",
            ),
            ("target: 'host:'", ".target: `host:` has no name (write it after the colon: `host:name`)"),
            ("target: 'host:a b'", bounds),
            ("target: \"host:a\\tb\"", bounds),
            ("target: \"host:a\\u202Eb\"", bounds),
            (&format!("target: 'host:{}'", "x".repeat(196)), bounds),
            (
                "target: 'host:{{inputs.host}}'",
                ".target: a target is plain text: it is never rendered (write the name itself, such as `host:api.example.com`)",
            ),
            ("target: [3]", ".target[0]: expected a target, found the number 3"),
            ("target: {host: x}", ".target: expected a list of targets, found an object"),
            (
                "target: [host:x, host:x]",
                "warning .target[1]: `host:x` is named twice (leave one of them out)",
            ),
        ],
    );
    assert_eq!(shell(&format!("target: 'host:{}'", "x".repeat(195))).targets[0].len(), 200);
    assert_eq!(shell("target: [host:x, host:x]").targets, ["host:x"]);
}

fn other(agent: Option<&str>, model: Option<&str>) -> Alternative {
    Alternative::Agent { agent: agent.map(str::to_owned), model: model.map(str::to_owned) }
}

// covers: R7
#[test]
fn fallbacks_are_alternatives_in_order() {
    let usual = Fallback::DEFAULT_ON.to_vec();
    for (field, to, on) in [
        ("cache", vec![Alternative::Cache], usual.clone()),
        ("codex", vec![other(Some("codex"), None)], usual.clone()),
        ("{agent: codex}", vec![other(Some("codex"), None)], usual.clone()),
        ("{model: m}", vec![other(None, Some("m"))], usual.clone()),
        ("{agent: codex, model: m}", vec![other(Some("codex"), Some("m"))], usual.clone()),
        ("{value: null}", vec![Alternative::Value(Value::Null)], usual.clone()),
        ("{value: {to: [1]}}", vec![Alternative::Value(json!({"to": [1]}))], usual.clone()),
        (
            "[cache, codex, {value: 0}]",
            vec![Alternative::Cache, other(Some("codex"), None), Alternative::Value(json!(0))],
            usual.clone(),
        ),
        ("{to: cache}", vec![Alternative::Cache], usual.clone()),
        ("{to: [{model: m}], on: quota}", vec![other(None, Some("m"))], vec![FallbackOn::Quota]),
        (
            "{to: codex, on: [quota, failure, quota]}",
            vec![other(Some("codex"), None)],
            vec![FallbackOn::Quota, FallbackOn::Failure],
        ),
    ] {
        assert_eq!(agent(&format!("fallback: {field}")).fallback, Some(Fallback { to, on }), "{field}");
    }
    assert_eq!(agent("fallback: null").fallback, None);
    let plain = shell("fallback: [cache, {value: 3}]").fallback.unwrap();
    assert_eq!(plain.to, [Alternative::Cache, Alternative::Value(json!(3))]);
}

// covers: R7
#[test]
fn fallbacks_that_are_wrong_are_told() {
    let examples = "(such as cache, another agent's name, {model: ...} or {value: ...})";
    wrong(
        AGENT,
        &[
            ("fallback: []", &format!(".fallback: the list has no alternative {examples}")),
            ("fallback: {to: []}", &format!(".fallback.to: the list has no alternative {examples}")),
            (
                "fallback: {}",
                &format!(
                    ".fallback: this alternative names no `agent`, no `model` and no `value` {examples}"
                ),
            ),
            (
                "fallback: 3",
                &format!(".fallback: expected `cache`, an agent or an object, found the number 3 {examples}"),
            ),
            (
                "fallback: ''",
                &format!(".fallback: expected `cache`, an agent or an object, found text {examples}"),
            ),
            (
                "fallback: [cache, [codex]]",
                &format!(".fallback[1]: expected `cache`, an agent or an object, found a list {examples}"),
            ),
            (
                "fallback: {agent: ''}",
                ".fallback.agent: `agent` is empty (write its name, or leave `agent` out)",
            ),
            ("fallback: {model: 3}", ".fallback.model: expected text, found the number 3"),
            (
                "fallback: {agent: a, value: 1}",
                ".fallback: an alternative is either a `value`, or an `agent` and a `model` (make it two: [{agent: ...}, {value: ...}])",
            ),
            ("fallback: {agent: a, modl: m}", ".fallback.modl: unknown field `modl` (did you mean `model`?)"),
            ("fallback: {on: [quota]}", ".fallback.to: missing field `to`"),
            ("fallback: {to: cache, at: [quota]}", ".fallback.at: unknown field `at` (fields here: to, on)"),
            (
                "fallback: {to: cache, on: []}",
                ".fallback.on: the list is empty: the fallback would never be used (on: [failure, breaker, quota], or leave `on` out)",
            ),
            (
                "fallback: {to: cache, on: [breker]}",
                ".fallback.on[0]: `breker` is not an occasion of a fallback (did you mean `breaker`?)",
            ),
            (
                "fallback: {to: cache, on: timeout}",
                ".fallback.on: `timeout` is not an occasion of a fallback (one of: failure, breaker, quota)",
            ),
            (
                "fallback: [{value: 1}, cache]",
                "warning .fallback[1]: this alternative is never reached: the value before it always helps (put the value last)",
            ),
        ],
    );
    let only = "another agent or model is only for agents, this is a `shell` step (fallback: cache, or fallback: {value: ...})";
    wrong(
        SHELL,
        &[
            ("fallback: codex", &format!(".fallback: {only}")),
            ("fallback: {to: [cache, {model: m}]}", &format!(".fallback.to[1]: {only}")),
        ],
    );
    assert_eq!(said("{type: shel, fallback: codex, hedge: 5s}").len(), 1, "an unknown type is one error");
}

// covers: R7
#[test]
fn hedges_wait_before_they_start() {
    for (field, expected) in [
        ("hedge: 30s", Hedge { after_ms: 30_000, max: 1 }),
        ("hedge: 500", Hedge { after_ms: 500, max: 1 }),
        ("hedge: {after: 2s}", Hedge { after_ms: 2_000, max: 1 }),
        ("hedge: {after: 2s, max: 5}", Hedge { after_ms: 2_000, max: 5 }),
        ("hedge: 30s, onUnknown: {reconcile: ./done.sh}", Hedge { after_ms: 30_000, max: 1 }),
    ] {
        assert_eq!(shell(field).hedge, Some(expected), "{field}");
        assert_eq!(agent(field).hedge, Some(expected), "{field}");
    }
    wrong(
        SHELL,
        &[
            ("hedge: 0", ".hedge: `hedge` must be longer than 0"),
            ("hedge: true", ".hedge: a duration is a number of milliseconds, or text such as \"10m\""),
            (
                "hedge: late",
                ".hedge: `late` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"",
            ),
            ("hedge: {max: 2}", ".hedge.after: missing field `after`"),
            (
                "hedge: {after: 1s, max: 6}",
                ".hedge.max: expected a whole number from 1 to 5, found the number 6",
            ),
            (
                "hedge: {after: 1s, max: 0}",
                ".hedge.max: expected a whole number from 1 to 5, found the number 0",
            ),
            ("hedge: {after: 1s, most: 2}", ".hedge.most: unknown field `most` (fields here: after, max)"),
            (
                "hedge: 5s, onUnknown: ask",
                "warning .hedge: a hedged step runs twice at once, but `onUnknown: ask` says that twice may do harm (leave out one of `hedge` and `onUnknown: ask`)",
            ),
        ],
    );
    let only = |kind: &str| {
        format!(
            ".hedge: `hedge` is only for the kinds shell, agent, tool, script; this is a `{kind}` step (leave `hedge` out)"
        )
    };
    wrong("type: sleep, params: {ms: 1}", &[("hedge: 5s", &only("sleep"))]);
    wrong("type: approval", &[("hedge: 5s", &only("approval"))]);
    wrong("type: workflow, params: {template: x}", &[("hedge: 5s", &only("workflow"))]);
}

// covers: S4
#[test]
fn stalls_are_off_a_time_or_a_ladder() {
    let usual = Stall::default();
    for (field, expected) in [
        ("id: x", StallPolicy::Default),
        ("stall: null", StallPolicy::Default),
        ("stall: false", StallPolicy::Off),
        ("stall: 10m", StallPolicy::Custom(Stall { after_ms: 600_000, ..usual })),
        ("stall: 1500", StallPolicy::Custom(Stall { after_ms: 1_500, ..usual })),
        ("stall: {}", StallPolicy::Custom(usual)),
        ("stall: {nudges: 0}", StallPolicy::Custom(Stall { nudges: 0, ..usual })),
        (
            "stall: {after: 1m, nudges: 10, restarts: 0, then: fail}",
            StallPolicy::Custom(Stall { after_ms: 60_000, nudges: 10, restarts: 0, then: StallEnd::Fail }),
        ),
    ] {
        assert_eq!(agent(field).stall, expected, "{field}");
    }
    let hint = "(such as 10m, or {after: 10m, nudges: 1, restarts: 1, then: ask})";
    wrong(
        AGENT,
        &[
            (
                "stall: true",
                &format!(".stall: expected false, a duration or an object, found true or false {hint}"),
            ),
            (
                "stall: [10m]",
                &format!(".stall: expected false, a duration or an object, found a list {hint}"),
            ),
            ("stall: 0", ".stall: `stall` must be longer than 0"),
            ("stall: {after: 0}", ".stall.after: `after` must be longer than 0"),
            (
                "stall: off",
                ".stall: `off` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"",
            ),
            (
                "stall: {nudges: 11}",
                ".stall.nudges: expected a whole number from 0 to 10, found the number 11",
            ),
            (
                "stall: {restarts: -1}",
                ".stall.restarts: expected a whole number from 0 to 10, found the number -1",
            ),
            ("stall: {then: shrug}", ".stall.then: `shrug` is not a value of `then` (one of: ask, fail)"),
            ("stall: {nudge: 1}", ".stall.nudge: unknown field `nudge` (did you mean `nudges`?)"),
        ],
    );
}

// covers: R7
#[test]
fn budgets_are_tokens_and_money() {
    let cap = |tokens, micro_usd| Some(Cap { tokens, micro_usd });
    for (field, expected) in [
        ("budget: 5usd", cap(None, Some(5_000_000))),
        ("budget: 200k", cap(Some(200_000), None)),
        ("budget: 5usd+200k", cap(Some(200_000), Some(5_000_000))),
        ("budget: 1500", cap(Some(1_500), None)),
        ("budget: {tokens: 7}", cap(Some(7), None)),
        ("budget: {tokens: 200k}", cap(Some(200_000), None)),
        ("budget: {usd: 0.5}", cap(None, Some(500_000))),
        ("budget: {tokens: 7, usd: 2}", cap(Some(7), Some(2_000_000))),
        ("budget: {tokens: 7, usd: null}", cap(Some(7), None)),
        ("budget: null", None),
    ] {
        assert_eq!(shell(field).budget, expected, "{field}");
        assert_eq!(phase(field).0.unwrap().budget, expected, "{field}");
        assert_eq!(template(field).budget, expected, "{field}");
    }
    let kinds = "expected text such as \"5usd\" or \"200k\", a number of tokens, or {tokens, usd}, found";
    wrong(
        SHELL,
        &[
            ("budget: true", &format!(".budget: {kinds} true or false")),
            ("budget: 1.5", &format!(".budget: {kinds} the number 1.5")),
            ("budget: -1", &format!(".budget: {kinds} the number -1")),
            (
                "budget: {}",
                ".budget: `budget` names neither `tokens` nor `usd` (write {usd: 5}, {tokens: 200000} or both)",
            ),
            ("budget: {token: 5, usd: 1}", ".budget.token: unknown field `token` (did you mean `tokens`?)"),
            (
                "budget: {tokens: 1.5}",
                ".budget.tokens: expected a whole number of tokens, or text such as \"200k\", found the number 1.5",
            ),
            ("budget: {tokens: 5usd}", ".budget.tokens: this is money, not tokens (write it as `usd`)"),
            ("budget: {usd: 5usd}", ".budget.usd: expected a number of dollars such as 0.5, found text"),
        ],
    );
    // What is said about the amount itself is the budget's affair.
    for text in ["much", "-5usd", "\"a\\e[31m\"", "0", "{usd: -1}", "{usd: 0}", "{tokens: many}"] {
        let lines = said(&format!("{{{SHELL}, budget: {text}}}"));
        assert_eq!(lines.len(), 1, "{text}: {lines:?}");
        assert!(lines[0].starts_with(".budget") && lines[0].contains("is not a budget"), "{text}: {lines:?}");
        assert!(lines[0].ends_with("(such as 5usd, 200k or 5usd+200k)"), "{text}: {lines:?}");
        assert!(!lines[0].contains('\u{1b}'), "{text}");
    }
}

// covers: R7, P6
#[test]
fn a_template_has_limits_of_its_own() {
    let full = template("onBudget: fail\nretryBudget: 0.5\npriority: P2");
    assert_eq!(full.on_budget, OnBudget::Fail);
    assert_eq!((full.retry_budget, full.priority), (Some(RetryBudget::of(0.5)), Some(2)));
    let none = template("onBudget: pause");
    assert_eq!((none.on_budget, none.retry_budget, none.priority), (OnBudget::Pause, None, None));
    for (text, share) in [("retryBudget: 0", 0.0), ("retryBudget: 1", 1.0)] {
        assert_eq!(template(text).retry_budget, Some(RetryBudget::of(share)), "{text}");
    }
    let share = "retryBudget: expected a share from 0 to 1, found";
    let hint = "(0.2 lets one call in five be a retry)";
    for (text, expected) in [
        ("retryBudget: 1.5", format!("{share} the number 1.5 {hint}")),
        ("retryBudget: -1", format!("{share} the number -1 {hint}")),
        ("retryBudget: 20%", format!("{share} text {hint}")),
        ("onBudget: stop", "onBudget: `stop` is not a value of `onBudget` (one of: pause, fail)".to_owned()),
        ("priority: 1", "priority: expected text, found the number 1".to_owned()),
        (
            "priority: high",
            "priority: `high` is not a value of `priority` (one of: P0, P1, P2, P3)".to_owned(),
        ),
    ] {
        assert_eq!(said_of_template(text), [expected], "{text}");
    }
}
