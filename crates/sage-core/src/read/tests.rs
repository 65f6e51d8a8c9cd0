//! Every field of a template: what it becomes, and what is said when it is wrong.

mod limits;

use serde_json::{Value, json};

use super::*;
use crate::policy::{Backoff, FailureClass, Jitter, Join, OnFailure, OnJoin, OnUnknown, Retry, Tolerate};
use crate::role::Role;
use crate::source::{Format, SourceText, parse};
use crate::template::{Isolation, Kind, Operation, Phase};

fn library() -> Library {
    let mut library = Library::default();
    let market = "---\nagent: claude\nfilter: { top: 9 }\nschema: { type: object }\n\
        params: { system: be brief }\n---\nResearch {{ title }}\n";
    let files = [
        ("research.market", market),
        ("research.competitive", "b"),
        ("research.practices", "c"),
        ("patterns.extract", "d"),
        ("specify", "e"),
        ("pause.short", "---\nkind: sleep\nparams: { ms: 5 }\n---\n"),
    ];
    for (name, text) in files {
        assert_eq!(library.add(name, text), vec![]);
    }
    library
}

fn read(text: &str) -> (Option<Template>, Vec<Diagnostic>) {
    let (node, problems) = parse(text, Format::Yaml);
    assert!(problems.is_empty(), "{problems:?}");
    read_template(&node.unwrap(), &library())
}

/// A template with one phase of one operation, given as YAML's flow form.
fn wrap(operation: &str) -> String {
    format!("name: t\nphases:\n  - id: p\n    operations:\n      - {operation}\n")
}

fn operation(text: &str) -> Operation {
    let (template, problems) = read(&wrap(text));
    assert!(problems.iter().all(|p| !p.is_error()), "{text}: {problems:?}");
    template.unwrap().phases.remove(0).operations.remove(0)
}

/// `field: message (hint)` of everything said about an operation.
fn said(text: &str) -> Vec<String> {
    let (_, problems) = read(&wrap(text));
    problems
        .iter()
        .map(|p| {
            let field = p.field.strip_prefix("phases[0].operations[0]").unwrap_or(&p.field);
            let hint = p.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}{field}: {}{hint}", if p.is_error() { "" } else { "warning " }, p.message)
        })
        .collect()
}

fn phase(text: &str) -> (Option<Phase>, Vec<String>) {
    let text = format!(
        "name: t\nphases:\n  - {{id: p, operations: [{{type: sleep, params: {{ms: 1}}}}], {text}}}\n"
    );
    let (template, problems) = read(&text);
    let messages = problems.into_iter().map(|p| format!("{}: {}", p.field, p.message)).collect();
    (template.map(|mut template| template.phases.remove(0)), messages)
}

pub const DESIGN_EXAMPLE: &str = r#"
name: feature
description: Research, specify, plan and implement a feature
timeout: 10m
phases:
  - id: research
    name: Research & Context
    join: { atLeast: 0.75 }              # all (default) | any | {atLeast: share < 1, or a count}
    onJoin: pause                        # when the join is not reached: fail (default) | pause
    onFailure: continue                  # continue (default: siblings finish, then the phase is judged) | failFast
    operations:                          # a list runs in parallel; a single object is one step
      - { type: research.market,  filter: { top: 5 },  cache: { ttl: 30d } }
      - { type: research.competitive, filter: { top: 3 } }
      - { type: research.practices,   filter: { top: 5 } }
      - { type: patterns.extract,     filter: { minRelevance: 0.8 } }
  - id: specification
    dependencies: [research]             # phases; an operation may also name single steps with `needs: [research/market]`
    operations: { type: specify, output: "docs/specs/{{ feature }}/spec.md" }
"#;

// covers: R6
#[test]
fn the_example_of_the_design_is_read() {
    let (template, problems) = read(DESIGN_EXAMPLE);
    let template = template.unwrap();
    assert_eq!(problems, vec![]);
    assert_eq!(template.name, "feature");
    assert_eq!(template.timeout_ms, Some(600_000));
    let research = &template.phases[0];
    assert_eq!((research.id.as_str(), research.name.as_str()), ("research", "Research & Context"));
    assert_eq!((research.join, research.on_join), (Join::AtLeastShare(0.75), OnJoin::Pause));
    let ids: Vec<&str> = research.operations.iter().map(|o| o.id.as_str()).collect();
    assert_eq!(ids, ["market", "competitive", "practices", "extract"]);
    let market = &research.operations[0];
    assert_eq!((market.kind, market.agent.as_deref()), (Kind::Agent, Some("claude")));
    assert_eq!(
        Value::Object(market.params.clone()),
        json!({"system": "be brief", "prompt": "Research {{ title }}"})
    );
    assert!(market.dynamic);
    assert_eq!(market.cache.as_ref().unwrap().ttl_ms, Some(30 * 24 * 3_600_000));
    assert_eq!(market.schema, Some(json!({"type": "object"})));
    let specification = &template.phases[1];
    assert_eq!(
        (specification.name.as_str(), specification.operations[0].id.as_str()),
        ("specification", "specify")
    );
    assert_eq!(specification.dependencies[0].name, "research");
    assert_eq!(specification.operations[0].output.as_ref().unwrap().text, "docs/specs/{{ feature }}/spec.md");
}

// covers: R6
#[test]
fn the_plain_form_is_valid_as_it_is() {
    let text = r#"{"name": "custom", "phases": [
        {"id": "a", "name": "A", "operations": [{"type": "shell", "params": {"run": "true"}}], "dependencies": [], "timeout": 5000},
        {"id": "b", "name": "B", "operations": [{"type": "shell", "params": {"argv": ["ls", 1, true]}}], "dependencies": ["a"]}
    ]}"#;
    let (node, problems) = parse(text, Format::Json);
    assert!(problems.is_empty());
    let (template, problems) = read_template(&node.unwrap(), &Library::default());
    assert_eq!(problems, []);
    let template = template.unwrap();
    assert_eq!(template.phases[0].timeout_ms, Some(5_000));
    assert_eq!(template.phases[1].operations[0].params["argv"], json!(["ls", "1", "true"]));
}

#[test]
fn ids_are_given_to_operations_without_one() {
    let text = "name: t\nphases:\n  - id: p\n    operations:\n      - {type: pause.short}\n      - {type: pause.short}\n      - {id: short-3, type: pause.short}\n      - {type: pause.short}\n      - {type: sleep, params: {ms: 1}}\n";
    let (template, _) = read(text);
    let ids: Vec<String> = template.unwrap().phases.remove(0).operations.into_iter().map(|o| o.id).collect();
    assert_eq!(ids, ["short", "short-2", "short-3", "short-4", "sleep"]);
}

// covers: R6
#[test]
fn a_template_says_all_that_is_wrong_at_once() {
    let text = "name: ''\ntimout: 5s\nphases:\n  - id: Bad Id\n    name: \"\"\n    join: most\n    operations:\n      - {type: shel, params: {run: x}}\n      - {id: x, params: {}}\n      - 7\n  - dependencies: 3\n    operations: nothing\n  - 5\n";
    let (_, problems) = read(text);
    let source = SourceText::new("t.yaml", text);
    let shown: String = problems.iter().map(|p| source.show(p).to_string()).collect();
    insta::assert_snapshot!(shown, @r#"
    error: `name` must have 1 to 100 characters
     --> t.yaml:1:7
      |
    1 | name: ''
      |       ^^
    error: unknown field `timout`
     --> t.yaml:2:1
      |
    2 | timout: 5s
      | ^^^^^^
      = hint: did you mean `timeout`?
    error: an id has 1 to 100 small letters, digits and `-`
     --> t.yaml:4:9
      |
    4 |   - id: Bad Id
      |         ^^^^^^
      = hint: `bad-id` would do
    error: `name` must have 1 to 50 characters
     --> t.yaml:5:11
      |
    5 |     name: ""
      |           ^^
    error: `most` is not a value of `join`
     --> t.yaml:6:11
      |
    6 |     join: most
      |           ^^^^
      = hint: one of: all, any
    error: unknown type `shel`
     --> t.yaml:8:16
      |
    8 |       - {type: shel, params: {run: x}}
      |                ^^^^
      = hint: did you mean `shell`?
    error: missing field `type`
     --> t.yaml:9:9
      |
    9 |       - {id: x, params: {}}
      |         ^
    error: expected an object, found the number 7
      --> t.yaml:10:9
       |
    10 |       - 7
       |         ^
    error: missing field `id`
      --> t.yaml:11:5
       |
    11 |   - dependencies: 3
       |     ^
    error: expected a list of names, found the number 3
      --> t.yaml:11:19
       |
    11 |   - dependencies: 3
       |                   ^
    error: expected a list of operations, or one operation, found text
      --> t.yaml:12:17
       |
    12 |     operations: nothing
       |                 ^^^^^^^
    error: expected an object, found the number 5
      --> t.yaml:13:5
       |
    13 |   - 5
       |     ^
    "#);
}

#[test]
fn a_document_that_is_no_template_is_told_so() {
    for (text, expected) in [
        ("[]", ": expected an object, found a list"),
        ("7", ": expected an object, found the number 7"),
        ("{name: x}", "phases: missing field `phases`"),
        ("{phases: []}", "name: missing field `name`"),
        ("{name: x, phases: {}}", "phases: expected a list of phases, found an object"),
        ("{name: 7, phases: []}", "name: expected text, found the number 7"),
        ("{name: x, phases: [], inputs: []}", "inputs: expected an object, found a list"),
        ("{name: x, phases: [], timeout: -5}", "timeout: a duration cannot be negative"),
        ("{name: x, phases: [], timeout: 0}", "timeout: `timeout` must be longer than 0"),
    ] {
        let (_, problems) = read(text);
        let said: Vec<String> = problems.iter().map(|p| format!("{}: {}", p.field, p.message)).collect();
        assert_eq!(said, [expected], "{text}");
    }
    let long = "x".repeat(101);
    let (_, problems) = read(&format!("{{name: {long}, phases: []}}"));
    assert_eq!(problems[0].message, "`name` must have 1 to 100 characters");
    let fits = "\u{e9}".repeat(100);
    assert_eq!(read(&format!("{{name: {fits}, phases: []}}")).1, []);
}

#[test]
fn phases_take_joins_and_policies() {
    for (text, join) in [
        ("join: all", Join::All),
        ("join: any", Join::Any),
        ("join: {atLeast: 2}", Join::AtLeastCount(2)),
        ("join: {atLeast: 0.5}", Join::AtLeastShare(0.5)),
        ("join: {atLeast: 2, cancel: true}", Join::FirstCount(2)),
        ("join: {atLeast: 0.5, cancel: true}", Join::FirstShare(0.5)),
        ("join: {atLeast: 2, cancel: false}", Join::AtLeastCount(2)),
        ("timeout: 5s", Join::All),
    ] {
        let (phase, problems) = phase(text);
        assert_eq!((phase.unwrap().join, problems.len()), (join, 0), "{text}");
    }
    assert_eq!(phase("onFailure: failFast").0.unwrap().on_failure, OnFailure::FailFast);
    for (text, expected) in [
        (
            "join: {atLeast: 0}",
            "phases[0].join.atLeast: expected a share above 0 and below 1, or a count from 1, found the number 0",
        ),
        (
            "join: {atLeast: 1.5}",
            "phases[0].join.atLeast: expected a share above 0 and below 1, or a count from 1, found the number 1.5",
        ),
        (
            "join: {atLeast: -1}",
            "phases[0].join.atLeast: expected a share above 0 and below 1, or a count from 1, found the number -1",
        ),
        ("join: {atleast: 1}", "phases[0].join.atLeast: missing field `atLeast`"),
        ("join: {atLeast: 1, cancel: late}", "phases[0].join.cancel: expected true or false, found text"),
        ("join: {cancel: true}", "phases[0].join.atLeast: missing field `atLeast`"),
        ("join: 3", "phases[0].join: expected `all`, `any` or {atLeast: ...}, found the number 3"),
        ("onJoin: stop", "phases[0].onJoin: `stop` is not a value of `onJoin`"),
        ("onFailure: failfast", "phases[0].onFailure: `failfast` is not a value of `onFailure`"),
        (
            "repeat: {while: 'true', max: 0}",
            "phases[0].repeat.max: expected a whole number from 1 to 1000, found the number 0",
        ),
        ("repeat: {max: 2}", "phases[0].repeat.while: missing field `while`"),
        ("name: ''", "phases[0].name: `name` must have 1 to 50 characters"),
        ("dependencies: [1]", "phases[0].dependencies[0]: expected a name, found the number 1"),
    ] {
        assert!(phase(text).1.contains(&expected.to_owned()), "{text}: {:?}", phase(text).1);
    }
    let repeat = phase("repeat: {from: q, while: '.x', max: 3}").0.unwrap().repeat.unwrap();
    assert_eq!((repeat.from.name.as_str(), repeat.while_.text.as_str(), repeat.max), ("q", ".x", 3));
}

// covers: R7
#[test]
fn retries_are_read_in_both_forms() {
    assert_eq!(operation("{type: pause.short, retry: 3}").retry, Retry { attempts: 3, ..Retry::default() });
    let full = "{type: pause.short, retry: {attempts: 5, backoff: linear, delay: 2s, maxDelay: 1m, jitter: false, on: [timeout, rate-limit], progressive: true}}";
    assert_eq!(
        operation(full).retry,
        Retry {
            attempts: 5,
            backoff: Backoff::Linear,
            delay_ms: 2_000,
            max_delay_ms: 60_000,
            jitter: Jitter::None,
            on: vec![FailureClass::Timeout, FailureClass::RateLimit],
            progressive: true,
        }
    );
    assert_eq!(operation("{type: pause.short}").retry, Retry::default());
    assert_eq!(operation("{type: pause.short, retry: {delay: 5m}}").retry.max_delay_ms, 300_000);
    for (text, expected) in [
        (
            "{type: pause.short, retry: 0}",
            ".retry: expected a whole number from 1 to 100, found the number 0",
        ),
        (
            "{type: pause.short, retry: -1}",
            ".retry: expected a whole number from 1 to 100, found the number -1",
        ),
        (
            "{type: pause.short, retry: 1.5}",
            ".retry: expected a whole number from 1 to 100, found the number 1.5",
        ),
        (
            "{type: pause.short, retry: {attempts: 4294967296}}",
            ".retry.attempts: expected a whole number from 1 to 100, found the number 4294967296",
        ),
        (
            "{type: pause.short, retry: {backof: linear}}",
            ".retry.backof: unknown field `backof` (did you mean `backoff`?)",
        ),
        (
            "{type: pause.short, retry: {on: [timeot]}}",
            ".retry.on[0]: `timeot` is not a class of failures (did you mean `timeout`?)",
        ),
        (
            "{type: pause.short, retry: often}",
            ".retry: expected a number of tries, or an object such as {attempts: 3}, found text (retry: 3)",
        ),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
}

#[test]
fn the_small_policies_are_read() {
    assert_eq!(
        operation("{type: pause.short, foreach: '[1]', tolerate: 2}").tolerate,
        Some(Tolerate::Count(2))
    );
    assert_eq!(
        operation("{type: pause.short, foreach: '[1]', tolerate: 0.25}").tolerate,
        Some(Tolerate::Share(0.25))
    );
    assert_eq!(operation("{type: pause.short, onUnknown: ask}").on_unknown, OnUnknown::Ask);
    let reconcile = operation("{type: pause.short, onUnknown: {reconcile: ./done.sh}}").on_unknown;
    assert_eq!(reconcile, OnUnknown::Reconcile("./done.sh".to_owned()));
    assert_eq!(operation("{type: pause.short, priority: P0}").priority, Some(0));
    assert_eq!(operation("{type: pause.short, when: false}").when.unwrap().text, "false");
    assert_eq!(operation("{type: pause.short, needs: a/b}").needs[0].name, "a/b");
    assert_eq!(operation("{type: pause.short, idleTimeout: 300, pool: cpu}").idle_timeout_ms, Some(300));
    for (text, expected) in [
        (
            "{type: pause.short, priority: P4}",
            ".priority: `P4` is not a value of `priority` (one of: P0, P1, P2, P3)",
        ),
        (
            "{type: pause.short, onUnknown: maybe}",
            ".onUnknown: expected `retry`, `ask` or {reconcile: \"command\"}, found text",
        ),
        (
            "{type: pause.short, onUnknown: {reconcile: ''}}",
            ".onUnknown.reconcile: missing field `reconcile`",
        ),
        (
            "{type: pause.short, foreach: '[1]', tolerate: 1.5}",
            ".tolerate: expected a count of items that may fail, or a share below 1, found the number 1.5",
        ),
        (
            "{type: pause.short, foreach: '[1]', tolerate: -1}",
            ".tolerate: expected a count of items that may fail, or a share below 1, found the number -1",
        ),
        (
            "{type: pause.short, foreach: [1, 2]}",
            ".foreach: expected a jq expression, found a list (foreach: '[1,2]')",
        ),
        (
            "{type: pause.short, foreach: '[1]', maxParallel: 0}",
            ".maxParallel: expected a whole number from 1 to 100000, found the number 0",
        ),
        (
            "{type: pause.short, maxParallel: 2}",
            "warning .maxParallel: `maxParallel` has no effect without `foreach`",
        ),
        (
            "{type: pause.short, timeout: soon}",
            ".timeout: `soon` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"",
        ),
        (
            "{type: pause.short, timeout: 99999999999999999999d}",
            ".timeout: the duration is longer than 100 years",
        ),
        ("{type: pause.short, schema: text}", ".schema: expected a JSON Schema, found text"),
        ("{type: pause.short, needs: [3]}", ".needs[0]: expected a name, found the number 3"),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
}

#[test]
fn types_are_kinds_or_named_operations() {
    assert_eq!(said("{type: shel}"), [".type: unknown type `shel` (did you mean `shell`?)"]);
    assert_eq!(
        said("{type: reserch.market}"),
        [".type: unknown type `reserch.market` (did you mean `research.market`?)"]
    );
    assert_eq!(
        said("{type: zzzzzzz}"),
        [
            ".type: unknown type `zzzzzzz` (kinds: shell, sleep, agent, tool, script, approval, workflow, verify, synthesize)"
        ]
    );
    assert_eq!(said("{type: 3}"), [".type: expected text, found the number 3"]);
    assert_eq!(said("{id: x}"), [".type: missing field `type`"]);
    assert_eq!(operation("{type: pause.short}").params["ms"], json!(5));
    assert_eq!(
        operation("{type: pause.short, params: {for: 1s}}").params,
        *json!({"ms": 1000}).as_object().unwrap()
    );
    let own = operation("{type: research.market, prompt: mine, agent: codex, filter: '.[0]', schema: true}");
    assert_eq!((own.prompt.unwrap().text.as_str(), own.agent.as_deref()), ("mine", Some("codex")));
    assert_eq!((own.filter.unwrap().text.as_str(), own.schema), (".[0]", Some(json!(true))));
}

// covers: S6, R6
#[test]
fn role_session_and_isolation_are_typed() {
    let own =
        operation("{type: agent, prompt: p, role: auditor, session: 's-{{ feature }}', isolation: worktree}");
    assert_eq!((own.role, own.isolation), (Some(Role::Auditor), Isolation::Worktree));
    assert_eq!(own.session.unwrap().text, "s-{{ feature }}");
    let none = operation("{type: agent, prompt: p, role: null, isolation: none}");
    assert_eq!((none.role, none.session, none.isolation), (None, None, Isolation::None));
    assert_eq!(
        said("{type: agent, prompt: p, role: audtor}"),
        [".role: unknown role `audtor` (did you mean `auditor`?)"]
    );
    let boss = said("{type: agent, prompt: p, role: boss}").remove(0);
    assert!(boss.starts_with(".role: unknown role `boss` (roles: planner, implementer, "), "{boss}");
    assert_eq!(said("{type: agent, prompt: p, role: 7}"), [".role: expected text, found the number 7"]);
    assert_eq!(said("{type: agent, prompt: p, session: 7}"), [".session: expected text, found the number 7"]);
    assert_eq!(
        said("{type: agent, prompt: p, isolation: jail}"),
        [".isolation: expected `none` or `worktree`, found text"]
    );
    assert_eq!(
        said("{type: pause.short, isolation: worktree}"),
        ["warning .isolation: `isolation` has no effect on a step of the kind `sleep`"]
    );
    assert_eq!(
        said("{type: agent, prompt: p, hedge: 5s, isolation: worktree}"),
        [".hedge: a step with `isolation: worktree` cannot be hedged \
          (both attempts would write to the same worktree: leave out one of the two)"]
    );
}

// covers: R24, R6
#[test]
fn a_tool_step_names_its_server_and_asks_before_it_repeats_anything() {
    let call = "{type: tool, params: {server: s, tool: '{{ inputs.t }}', arguments: {a: '{{ inputs }}'}}}";
    let own = operation(call);
    assert_eq!((own.on_unknown, own.targets), (OnUnknown::AskUnlessRepeatable, vec!["server:s".to_owned()]));
    assert!(own.dynamic);
    let own = operation(
        "{type: tool, params: {server: s, tool: t}, target: 'server:s', onUnknown: retry, hedge: 5s}",
    );
    assert_eq!((own.on_unknown, own.targets), (OnUnknown::Retry, vec!["server:s".to_owned()]));
    let needs = "a tool step needs a `server` and its `tool` (params: { server: github, tool: search })";
    for (text, expected) in [
        ("{type: tool}", format!(".params: {needs}")),
        ("{type: tool, params: {server: s}}", format!(".params: {needs}")),
        (
            "{type: tool, params: {server: s, tool: t, arguments: [1]}}",
            ".params.arguments: expected an object, found a list".into(),
        ),
        (
            "{type: tool, params: {server: '{{ inputs.s }}', tool: t}}",
            ".params.server: the server of a `tool` step must be a plain name: it is part of the plan".into(),
        ),
        (
            "{type: tool, params: {server: s, tool: t, argumens: {}}}",
            ".params.argumens: unknown parameter `argumens` of `tool` (did you mean `arguments`?)".into(),
        ),
        (
            "{type: tool, params: {server: s, tool: t}, isolation: worktree}",
            "warning .isolation: `isolation` has no effect on a step of the kind `tool`".into(),
        ),
        (
            "{type: tool, params: {server: s, tool: t}, hedge: 5s}",
            "warning .hedge: a hedged step runs twice at once, and nobody has said that this tool does no harm \
             then (onUnknown: retry says so)"
                .into(),
        ),
        (
            "{type: tool, params: {server: s, tool: t}, prompt: p}",
            ".prompt: `prompt` is only for agents, this is a `tool` step".into(),
        ),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
}

#[test]
fn what_this_version_cannot_do_is_never_ignored() {
    assert_eq!(said("{type: verify}"), [".type: the kind `verify` is not available in this version"]);
    assert_eq!(
        said("{type: pause.short, verify: {}}"),
        [".verify: `verify` is not available in this version"]
    );
    assert_eq!(
        said("{type: pause.short, cache: 5}"),
        [".cache: expected an object such as {ttl: 30d}, or true, found the number 5"]
    );
    assert_eq!(
        said("{type: pause.short, affinity: cpu}"),
        [".affinity: unknown field `affinity` (affinity rules are in sage.toml: [[affinity]])"]
    );
}

// covers: S5, R6
#[test]
fn a_synthesis_names_plain_steps_and_a_share() {
    let own = operation("{type: synthesize, params: {from: look/a, threshold: 0.6}}");
    assert_eq!(own.params, *json!({"from": ["look/a"], "threshold": 0.6}).as_object().unwrap());
    for (text, expected) in [
        (
            "{type: synthesize, params: {from: 3}}",
            ".params.from: expected a list of steps, found the number 3",
        ),
        ("{type: synthesize, params: {from: []}}", ".params.from: the list is empty: it must name a step"),
        (
            "{type: synthesize, params: {from: [a, 3]}}",
            ".params.from[1]: expected the name of a step, found the number 3",
        ),
        (
            "{type: synthesize, params: {from: ['{{ feature }}']}}",
            ".params.from[0]: the steps of a synthesis must be plain names: they are part of the plan",
        ),
        (
            "{type: synthesize, params: {threshold: 2}}",
            ".params.threshold: expected a number from 0 to 1, found the number 2",
        ),
        (
            "{type: synthesize, params: {threshold: '{{ inputs.x }}'}}",
            ".params.threshold: expected a number from 0 to 1, found text",
        ),
        (
            "{type: synthesize, prompt: p}",
            ".prompt: `prompt` is only for agents, this is a `synthesize` step",
        ),
        (
            "{type: synthesize, isolation: worktree}",
            "warning .isolation: `isolation` has no effect on a step of the kind `synthesize`",
        ),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
}

#[test]
fn parameters_are_checked_by_kind() {
    for (text, expected) in [
        ("{type: shell}", ".params: a shell step needs `run` or `argv` (params: { run: \"make test\" })"),
        (
            "{type: shell, params: {run: a, argv: [b]}}",
            ".params: a shell step has either `run` or `argv`, not both",
        ),
        ("{type: shell, params: {run: 3}}", ".params.run: expected text, found the number 3"),
        ("{type: shell, params: {argv: []}}", ".params.argv: the list is empty: it must name a program"),
        ("{type: shell, params: {argv: [[a]]}}", ".params.argv[0]: expected text, found a list"),
        ("{type: shell, params: {argv: ls}}", ".params.argv: expected a list of texts, found text"),
        ("{type: shell, params: {run: a, env: {A: [1]}}}", ".params.env.A: expected text, found a list"),
        (
            "{type: shell, params: {run: a, env: {A=B: x}}}",
            ".params.env.A=B: not a name of an environment variable",
        ),
        ("{type: shell, params: {run: a, json: yes}}", ".params.json: expected true or false, found text"),
        (
            "{type: shell, params: {run: a, cmd: b}}",
            ".params.cmd: unknown parameter `cmd` of `shell` (did you mean `cwd`?)",
        ),
        ("{type: shell, params: [a]}", ".params: expected an object, found a list"),
        ("{type: sleep}", ".params: a sleep step needs `ms` or `for` (params: { for: 2s })"),
        ("{type: sleep, params: {ms: -1}}", ".params.ms: a duration cannot be negative"),
        ("{type: agent}", ".params: an agent needs a `prompt`"),
        (
            "{type: agent, agent: claude, params: {script: []}, prompt: x}",
            ".params: `script` is only for the agent `fake`",
        ),
        ("{type: agent, prompt: a, params: {prompt: b}}", ".params.prompt: `prompt` is given twice"),
        (
            "{type: agent, params: {script: 3}}",
            ".params.script: expected a list of turns, or a file, found the number 3",
        ),
        (
            "{type: shell, params: {run: a}, prompt: b}",
            ".prompt: `prompt` is only for agents, this is a `shell` step",
        ),
        ("{type: approval, params: {choices: []}}", ".params.choices: there must be a choice"),
        ("{type: approval, params: {choices: [a, a]}}", ".params.choices[1]: duplicate choice `a`"),
        (
            "{type: approval, params: {choices: [a, b], default: c}}",
            ".params: `default` is not one of the choices (choices: a, b)",
        ),
        (
            "{type: approval, params: {default: maybe}}",
            ".params: `default` is not one of the choices (choices: approve, reject)",
        ),
        (
            "{type: approval, params: {deadline: later}}",
            ".params.deadline: `later` is not a duration; write milliseconds, or text such as \"10m\" or \"1h 30m\"",
        ),
        ("{type: workflow}", ".params: a workflow step needs the name of a `template`"),
        (
            "{type: workflow, params: {template: '{{ inputs.t }}'}}",
            ".params.template: the template of a `workflow` step must be a plain name: it is part of the plan",
        ),
        (
            "{type: workflow, params: {template: x, inputs: [1]}}",
            ".params.inputs: expected an object, found a list",
        ),
        ("{type: shell, run: make}", ".run: unknown field `run` (write it under `params`: { run: ... })"),
    ] {
        assert!(said(text).contains(&expected.to_owned()), "{text}: {:?}", said(text));
    }
}

#[test]
fn parameters_reach_the_executor_in_one_form() {
    for (text, expected) in [
        ("{type: sleep, params: {for: 2s}}", json!({"ms": 2000})),
        ("{type: sleep, params: {ms: '{{ inputs.wait }}'}}", json!({"ms": "{{ inputs.wait }}"})),
        (
            "{type: approval, params: {message: ok?, deadline: 1h, choices: [y, n], default: n}}",
            json!({"message": "ok?", "deadline": 3600000, "choices": ["y", "n"], "default": "n"}),
        ),
        (
            "{type: agent, params: {prompt: p, system: s, agent: fake, model: m}}",
            json!({"system": "s", "prompt": "p"}),
        ),
        ("{type: agent, agent: fake, params: {script: [{say: hi}]}}", json!({"script": [{"say": "hi"}]})),
        (
            "{type: shell, params: {run: x, env: {N: 1, B: true}}}",
            json!({"run": "x", "env": {"N": "1", "B": "true"}}),
        ),
    ] {
        assert_eq!(Value::Object(operation(text).params), expected, "{text}");
    }
    let agent = operation("{type: agent, params: {prompt: p, agent: fake, model: m}}");
    assert_eq!((agent.agent.as_deref(), agent.model.as_deref()), (Some("fake"), Some("m")));
    assert!(!operation("{type: shell, params: {run: 'echo {{ x }}'}}").dynamic);
    assert!(operation("{type: shell, params: {argv: ['{{ x }}']}}").dynamic);
}

// covers: R10
#[test]
fn filters_become_one_jq_program() {
    let list = json!([
        {"t": "a", "relevance": 0.2}, {"t": "b", "relevance": 0.9}, {"t": "c", "relevance": 0.9}, {"t": "d", "relevance": 0.5}
    ]);
    let names = |value: &Value| -> String {
        value.as_array().unwrap().iter().map(|item| item["t"].as_str().unwrap()).collect()
    };
    let run = |filter: &str, value: &Value| {
        let source = operation(&format!("{{type: pause.short, filter: {filter}}}")).filter.unwrap();
        let program = crate::expr::Jq::compile(&source.text).unwrap_or_else(|e| panic!("{filter}: {e}"));
        program.one_or_null(value, &json!({})).unwrap()
    };
    assert_eq!(names(&run("{top: 2}", &list)), "bc", "the best, equal ones in their order");
    assert_eq!(names(&run("{top: 3}", &list)), "bcd");
    assert_eq!(names(&run("{minRelevance: 0.5}", &list)), "bcd");
    assert_eq!(names(&run("{top: 1, minRelevance: 0.5, jq: 'reverse # end'}", &list)), "b");
    assert_eq!(names(&run("{minRelevance: 0.5, jq: reverse}", &list)), "dcb");
    assert_eq!(
        run("{top: 2}", &json!(["x", "y", "z"])),
        json!(["x", "y"]),
        "the first, where nothing is ranked"
    );
    assert_eq!(run("{top: 2}", &json!([{"relevance": "high"}, 2, 3])), json!([{"relevance": "high"}, 2]));
    assert_eq!(
        run("{minRelevance: 0.5}", &json!(["x", {"a": 1}, {"relevance": 0.1}])),
        json!(["x", {"a": 1}])
    );
    assert_eq!(
        run("{top: 1}", &json!({"summary": "s", "findings": list})),
        json!({"summary": "s", "findings": [{"t": "b", "relevance": 0.9}]})
    );
    assert_eq!(run("{top: 1}", &json!({"other": 1})), json!({"other": 1}));
    assert_eq!(run("{top: 1}", &json!("text")), json!("text"));
    assert_eq!(run("{top: 1}", &json!([])), json!([]));
    assert_eq!(run("'.[0].t'", &list), json!("a"));
    assert!(operation("{type: pause.short, filter: {}}").filter.is_none());
    let base = operation("{type: research.market}").filter.unwrap();
    assert!(base.text.contains(".[:9]"), "{}", base.text);
    for (text, expected) in [
        (
            "{type: pause.short, filter: {top: 0}}",
            ".filter.top: expected a whole number from 1 to 4294967295, found the number 0",
        ),
        (
            "{type: pause.short, filter: {minRelevance: 2}}",
            ".filter.minRelevance: expected a number from 0 to 1, found the number 2",
        ),
        ("{type: pause.short, filter: {tpo: 2}}", ".filter.tpo: unknown field `tpo` (did you mean `top`?)"),
        ("{type: pause.short, filter: 3}", ".filter: expected an object, found the number 3"),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
}

// covers: R17
#[test]
fn an_output_stays_in_the_project() {
    assert!(operation("{type: pause.short, output: 'docs/{{ feature }}/spec.md'}").output.is_some());
    for path in ["/etc/passwd", "../x", "a/../../b", "~/x", "", "a\\\\..\\\\b"] {
        let text = format!("{{type: pause.short, output: \"{path}\"}}");
        assert_eq!(said(&text), [".output: `output` must be a path inside the project"], "{path}");
    }
}

#[test]
fn expectations_have_a_shape() {
    let expect = "{files: [a.md], headMoved: true, changes: true, passed: true, command: make test}";
    let good = operation(&format!("{{type: shell, params: {{run: x}}, expect: {expect}}}"));
    let read = json!({"files": ["a.md"], "headMoved": true, "changes": true, "passed": true, "command": "make test"});
    assert_eq!(good.expect, Some(read));
    assert_eq!(
        said("{type: shell, params: {run: x}, expect: {file: a}}"),
        [".expect.file: unknown field `file` (did you mean `files`?)"]
    );
    let refused = "`expect` is not checked on a step of the kind `sleep` (put it on the steps that do the work: shell, agent, tool, synthesize)";
    assert_eq!(said("{type: pause.short, expect: {command: make}}"), [format!(".expect: {refused}")]);
}

#[test]
fn every_field_that_is_listed_is_known_to_the_reader() {
    for name in OPERATION_FIELDS {
        let text = format!("{{type: pause.short, {name}: x}}")
            .replace("type: pause.short, type: x", "type: pause.short");
        assert!(said(&text).iter().all(|line| !line.contains("unknown field")), "{name}: {:?}", said(&text));
    }
}
