//! Whole templates through `load`: graphs of every shape, names, expressions, sub-workflows.

mod limits;

use std::fmt::Write as _;
use std::time::Instant;

use super::*;
use crate::read::Library;

fn load_yaml(text: &str) -> Loaded {
    load(text, Format::Yaml, &Library::default(), &NoTemplates)
}

/// Everything that is said about a template, as people see it.
fn shown(text: &str) -> String {
    load_yaml(text).show("t.yaml", text).iter().map(ToString::to_string).collect()
}

/// `field: message` of each diagnostic.
fn said(text: &str) -> Vec<String> {
    let line = |d: &Diagnostic| format!("{}: {}", d.field, d.message);
    load_yaml(text).diagnostics.iter().map(line).collect()
}

/// A template of phases with one sleep each: `a`, `b<-a`, `c<-a,b`.
fn phases(list: &str) -> String {
    let mut text = "name: t\nphases:\n".to_owned();
    for phase in list.split_whitespace() {
        let (id, dependencies) = phase.split_once("<-").unwrap_or((phase, ""));
        let _ = writeln!(
            text,
            "  - {{id: {id}, dependencies: [{dependencies}], operations: {{type: sleep, params: {{ms: 1}}}}}}"
        );
    }
    text
}

/// One phase of sleeps with `needs`: `a`, `b<-a`.
fn steps(list: &str) -> String {
    let mut text = "name: t\nphases:\n  - id: p\n    operations:\n".to_owned();
    for step in list.split_whitespace() {
        let (id, needs) = step.split_once("<-").unwrap_or((step, ""));
        let _ = writeln!(text, "      - {{id: {id}, type: sleep, params: {{ms: 1}}, needs: [{needs}]}}");
    }
    text
}

/// A template with phase `a` (step `x`) and a phase `b` that depends on it, with the given operation.
fn after_a(operation: &str) -> String {
    format!(
        "name: t\nphases:\n  - id: a\n    operations: {{id: x, type: sleep, params: {{ms: 1}}}}\n  - id: b\n    dependencies: [a]\n    operations:\n      - {operation}\n"
    )
}

/// `field: message (hint)` of each diagnostic about an operation.
fn hinted(operation: &str) -> Vec<String> {
    let text = format!("name: t\nphases:\n  - id: p\n    operations:\n      - {operation}\n");
    let line = |d: &Diagnostic| {
        let field = d.field.strip_prefix("phases[0].operations[0].").unwrap_or(&d.field);
        format!("{field}: {} ({})", d.message, d.hint.as_deref().unwrap_or_default())
    };
    load_yaml(&text).diagnostics.iter().map(line).collect()
}

// covers: R14, R6
#[test]
fn a_small_number_as_a_time_is_refused_where_it_is_new() {
    let table = [
        ("{type: shell, params: {run: x}, timeout: 1}", "timeout: 1 without"),
        ("{type: shell, params: {run: x}, timeout: {attempt: 999}}", "timeout.attempt: 999 without"),
        ("{type: shell, params: {run: x}, idleTimeout: 30}", "idleTimeout: 30 without"),
        ("{type: shell, params: {run: x}, retry: {delay: 10}}", "retry.delay: 10 without"),
        ("{type: shell, params: {run: x}, cache: {ttl: 30}}", "cache.ttl: 30 without"),
        ("{type: shell, params: {run: x}, hedge: 500}", "hedge: 500 without"),
        ("{type: sleep, params: {for: 2}}", "params.for: 2 without"),
        ("{type: approval, params: {message: x, deadline: 5}}", "params.deadline: 5 without"),
    ];
    for (operation, begins) in table {
        let found = hinted(operation);
        assert!(found[0].starts_with(begins), "{operation}: {found:?}");
        assert!(found[0].contains("milliseconds (write \""), "{operation}: {found:?}");
    }
    assert_eq!(
        hinted("{type: sleep, params: {for: 2}}"),
        ["params.for: 2 without a unit means 2 milliseconds (write \"2s\" or \"2ms\")"]
    );
    for operation in [
        "{type: shell, params: {run: x}, timeout: 600000}",
        "{type: shell, params: {run: x}, timeout: 1s, retry: {delay: 0}}",
        "{type: sleep, params: {ms: 5}}",
    ] {
        assert_eq!(hinted(operation), [""; 0], "{operation}");
    }
    // What a journal has frozen stays good.
    let text = "name: t\nphases: [{id: p, operations: {type: shell, params: {run: x}, timeout: 1}}]";
    assert!(load_yaml(text).template.is_none());
    assert!(crate::load::reload(&crate::event::Frozen::new("t", Format::Yaml, text)).is_ok());
}

// covers: R6
#[test]
fn habits_of_other_languages_get_advice() {
    let table = [
        (
            "{type: shell, params: {run: x}, when: '{{ inputs.a }}'}",
            "this is jq, without `{{ }}`: `inputs.a`",
        ),
        (
            "{type: shell, params: {run: x}, when: \"inputs.a == 'y'\"}",
            "text in jq has double quotes: `inputs.a == \"y\"`",
        ),
        ("{type: shell, params: {run: x}, foreach: [a, b]}", "foreach: '[\"a\",\"b\"]'"),
        ("{type: shell, params: {run: x}, retry: '5'}", "retry: 5"),
    ];
    for (operation, hint) in table {
        let found = hinted(operation);
        assert!(found.iter().any(|line| line.ends_with(&format!("({hint})"))), "{operation}: {found:?}");
    }
}

// covers: R2, R6
#[test]
fn good_graphs_have_nothing_to_say() {
    let wide: String = (0..60).map(|n| format!("n{n} ")).collect();
    let chain: String =
        std::iter::once("n0".to_owned()).chain((1..60).map(|n| format!(" n{n}<-n{}", n - 1))).collect();
    for list in [
        "a",
        "a b<-a",
        "b<-a a",
        "a b<-a c<-b d<-c",
        "a b<-a c<-a d<-b,c",
        "hub a<-hub b<-hub c<-hub",
        "a b c sink<-a,b,c",
        "a b<-a c d<-c",
        "a b c",
        &wide,
        &chain,
    ] {
        for text in [phases(list), steps(list)] {
            let loaded = load_yaml(&text);
            assert_eq!(loaded.diagnostics, [], "{list}");
            assert!(loaded.template.is_some(), "{list}");
        }
    }
}

// covers: R2
#[test]
fn an_empty_workflow_is_an_error() {
    assert_eq!(said("name: t\nphases: []\n"), ["phases: the workflow is empty: it has no phases"]);
    assert_eq!(
        said("name: t\nphases:\n  - {id: a, operations: []}\n"),
        ["phases[0].operations: phase `a` is empty: it has no operations"]
    );
    assert_eq!(
        said("name: t\nphases:\n  - {id: a}\n"),
        ["phases[0].operations: phase `a` is empty: it has no operations"]
    );
    assert_eq!(said("name: t\n"), ["phases: missing field `phases`"], "one error, not two");
    assert_eq!(said("name: t\nphases: [{id: a, operations: 3}]\n").len(), 1, "one error, not two");
    assert!(load_yaml("name: t\nphases: []\n").template.is_none());
}

// covers: R2
#[test]
fn duplicate_ids_are_told_with_both_places() {
    insta::assert_snapshot!(shown(&phases("a b a")), @r"
    error: duplicate phase id `a`
     --> t.yaml:5:10
      |
    5 |   - {id: a, dependencies: [], operations: {type: sleep, params: {ms: 1}}}
      |          ^
      = first: t.yaml:3:10
    ");
    insta::assert_snapshot!(shown(&steps("x y x")), @r"
    error: duplicate operation id `x`
     --> t.yaml:7:14
      |
    7 |       - {id: x, type: sleep, params: {ms: 1}, needs: []}
      |              ^
      = first: t.yaml:5:14
    ");
    let twins = "name: t\nphases:\n  - {id: a, operations: {id: x, type: sleep, params: {ms: 1}}}\n  - {id: b, operations: {id: x, type: sleep, params: {ms: 1}}}\n";
    assert_eq!(said(twins), [""; 0], "equal ids in different phases are different steps");
}

// covers: R2, R6
#[test]
fn unknown_names_come_with_the_nearest() {
    insta::assert_snapshot!(shown(&phases("research specification<-reserch")), @r"
    error: unknown dependency `reserch`
     --> t.yaml:4:40
      |
    4 |   - {id: specification, dependencies: [reserch], operations: {type: sleep, params: {ms: 1}}}
      |                                        ^^^^^^^
      = hint: did you mean `research`?
    ");
    insta::assert_snapshot!(shown(&after_a("{type: sleep, params: {ms: 1}, needs: [a/y, b, x]}")), @r"
    error: unknown step `a/y`
     --> t.yaml:8:48
      |
    8 |       - {type: sleep, params: {ms: 1}, needs: [a/y, b, x]}
      |                                                ^^^
      = hint: did you mean `a/x`?
    error: unknown step `b`
     --> t.yaml:8:53
      |
    8 |       - {type: sleep, params: {ms: 1}, needs: [a/y, b, x]}
      |                                                     ^
      = hint: `b` is a phase: list it in `dependencies`, or name its steps such as `b/sleep`
    error: unknown step `x`
     --> t.yaml:8:56
      |
    8 |       - {type: sleep, params: {ms: 1}, needs: [a/y, b, x]}
      |                                                        ^
      = hint: did you mean `a/x`?
    ");
    assert_eq!(
        load_yaml(&phases("a b<-a/sleep")).diagnostics[0].hint.as_deref(),
        Some("`dependencies` are phases; put `needs: [a/sleep]` on an operation")
    );
}

// covers: R2
#[test]
fn a_cycle_is_refused_with_its_path() {
    for (text, path) in [
        (phases("a<-b b<-a"), "a -> b -> a"),
        (phases("a<-c b<-a c<-b"), "a -> b -> c -> a"),
        (phases("x a<-x,c b<-a c<-b y<-c"), "a -> b -> c -> a"),
        (steps("a<-b b<-a"), "p/a -> p/b -> p/a"),
        (steps("a<-c b<-a c<-b d"), "p/a -> p/b -> p/c -> p/a"),
    ] {
        let said = said(&text);
        assert!(said.iter().any(|s| s.ends_with(&format!("dependency cycle: {path}"))), "{path}: {said:?}");
        assert!(load_yaml(&text).template.is_none());
    }
    insta::assert_snapshot!(shown(&phases("a<-b b<-a")), @r"
    error: dependency cycle: a -> b -> a
     --> t.yaml:3:10
      |
    3 |   - {id: a, dependencies: [b], operations: {type: sleep, params: {ms: 1}}}
      |          ^
      = hint: each of these waits for the one before it
    ");
}

// covers: R2
#[test]
fn depending_on_itself_is_an_error_of_its_own() {
    assert_eq!(said(&phases("a<-a")), ["phases[0].dependencies[0]: phase `a` depends on itself"]);
    assert_eq!(said(&steps("a<-a")), ["phases[0].operations[0].needs[0]: operation `a` needs itself"]);
    assert_eq!(said(&steps("a<-p/a")), ["phases[0].operations[0].needs[0]: operation `a` needs itself"]);
}

// covers: R2
#[test]
fn needing_a_step_of_a_later_phase_is_a_cycle() {
    let text = "name: t\nphases:\n  - id: a\n    operations:\n      - {id: x, type: sleep, params: {ms: 1}, needs: [b/y]}\n  - id: b\n    dependencies: [a]\n    operations: {id: y, type: sleep, params: {ms: 1}}\n";
    assert_eq!(said(text), ["phases[0].operations[0].needs: dependency cycle: a/x -> b/y -> a/x"]);
}

// covers: R2
#[test]
fn a_phase_that_stands_alone_is_a_warning() {
    let loaded = load_yaml(&phases("a b<-a alone"));
    assert_eq!(loaded.diagnostics.len(), 1);
    assert_eq!(loaded.diagnostics[0].message, "phase `alone` is not connected to the others");
    assert!(!loaded.diagnostics[0].is_error());
    assert!(loaded.template.is_some(), "a warning stops nothing");
    assert_eq!(said(&phases("a b c")), [""; 0], "all in parallel is meant");
    let linked = "name: t\nphases:\n  - {id: a, operations: {id: x, type: sleep, params: {ms: 1}}}\n  - {id: b, operations: {type: sleep, params: {ms: 1}, needs: [a/x]}}\n";
    assert_eq!(said(linked), [""; 0], "`needs` connects too");
}

// covers: R7
#[test]
fn a_join_that_cannot_be_reached_is_an_error() {
    let text = |join: &str| {
        format!(
            "name: t\nphases:\n  - id: a\n    join: {join}\n    operations: [{{type: sleep, params: {{ms: 1}}}}, {{type: sleep, params: {{ms: 1}}}}]\n"
        )
    };
    assert_eq!(
        said(&text("{atLeast: 3}")),
        ["phases[0].join: the join asks for 3 successes, but the phase has 2 operations"]
    );
    assert_eq!(said(&text("{atLeast: 2}")), [""; 0]);
    assert_eq!(said(&text("{atLeast: 0.99}")), [""; 0]);
    assert_eq!(said(&text("{atLeast: 1.0}")).len(), 1);
}

// covers: R6
#[test]
fn bad_expressions_are_shown_where_they_are_bad() {
    insta::assert_snapshot!(shown(&after_a(r#"{type: sleep, params: {ms: 1}, when: '.inputs.go and (', foreach: "nope(1)", filter: '.[', output: "{{ feature"}"#)), @r#"
    error: invalid jq in `when`: expected closing parenthesis, but the expression ends
     --> t.yaml:8:63
      |
    8 |       - {type: sleep, params: {ms: 1}, when: '.inputs.go and (', foreach: "nope(1)", filter: '.[', output: "{{ feature"}
      |                                                               ^
    error: invalid jq in `foreach`: `nope/1` is not defined
     --> t.yaml:8:76
      |
    8 |       - {type: sleep, params: {ms: 1}, when: '.inputs.go and (', foreach: "nope(1)", filter: '.[', output: "{{ feature"}
      |                                                                            ^^^^
    error: invalid jq in `filter`: expected closing bracket, but the expression ends
     --> t.yaml:8:97
      |
    8 |       - {type: sleep, params: {ms: 1}, when: '.inputs.go and (', foreach: "nope(1)", filter: '.[', output: "{{ feature"}
      |                                                                                                 ^
    error: invalid Jinja in `output`: unexpected end of input, expected end of variable block
     --> t.yaml:8:112
      |
    8 |       - {type: sleep, params: {ms: 1}, when: '.inputs.go and (', foreach: "nope(1)", filter: '.[', output: "{{ feature"}
      |                                                                                                                ^^^^^^^
    "#);
    insta::assert_snapshot!(shown(&after_a(r#"{type: agent, prompt: "Look at {{ title | nofilter }}", schema: {type: strin}}"#)), @r#"
    error: invalid Jinja in `prompt`: there is no filter `nofilter`
     --> t.yaml:8:51
      |
    8 |       - {type: agent, prompt: "Look at {{ title | nofilter }}", schema: {type: strin}}
      |                                                   ^^^^^^^^
    error: not a valid JSON Schema at `/type`: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword
     --> t.yaml:8:73
      |
    8 |       - {type: agent, prompt: "Look at {{ title | nofilter }}", schema: {type: strin}}
      |                                                                         ^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(shown(&after_a(r#"{type: shell, params: {argv: [echo, "{{ a b }}"], env: {X: "{% if %}"}}}"#)), @r#"
    error: invalid Jinja in `argv`: unexpected identifier, expected end of variable block
     --> t.yaml:8:51
      |
    8 |       - {type: shell, params: {argv: [echo, "{{ a b }}"], env: {X: "{% if %}"}}}
      |                                                   ^
    error: invalid Jinja in `env`: unexpected end of block
     --> t.yaml:8:75
      |
    8 |       - {type: shell, params: {argv: [echo, "{{ a b }}"], env: {X: "{% if %}"}}}
      |                                                                           ^^
    "#);
    assert_eq!(
        said(&after_a("{type: shell, params: {run: 'echo {{ not jinja'}}")),
        [""; 0],
        "a script is never rendered"
    );
}

#[test]
fn items_are_only_known_in_a_fan_out() {
    let text = |more: &str| after_a(&format!("{{type: agent, prompt: 'Do {{{{ item }}}}'{more}}}"));
    assert_eq!(said(&text(", foreach: '[1]'")), [""; 0]);
    assert_eq!(
        said(&text("")),
        [
            "phases[1].operations[0].params.prompt: invalid Jinja in `prompt`: `item` is only known in an operation with `foreach`"
        ]
    );
    assert!(said(&after_a("{type: agent, prompt: '{{ featur }}'}"))[0].ends_with("`featur` is not defined"));
}

#[test]
fn a_template_without_its_document_can_be_checked_again() {
    let text = after_a("{type: sleep, params: {ms: 1}, when: 'steps[\"a/x\"].result'}");
    let mut template = load_yaml(&text).template.unwrap();
    assert_eq!(check(&template, &text, &NoTemplates), []);
    template.phases[0].operations.clear();
    let messages: Vec<String> =
        check(&template, &text, &NoTemplates).into_iter().map(|d| d.message).collect();
    assert_eq!(messages, ["phase `a` is empty: it has no operations", "unknown step `a/x`"]);
}

#[test]
fn mentioned_steps_must_exist_and_be_finished() {
    let good = [
        r#"{type: agent, prompt: '{{ steps["a/x"].result }}'}"#,
        r#"{type: sleep, params: {ms: 1}, when: '.steps["a/x"].result.go'}"#,
        r#"{type: sleep, params: {ms: 1}, filter: 'steps["b/sleep"]'}"#,
        r#"{type: sleep, params: {ms: 1}, output: '{{ steps["b/sleep"].result }}.md'}"#,
        r#"{type: workflow, params: {template: t, inputs: {a: '{{ steps["a/x"].full }}'}}}"#,
    ];
    for operation in good {
        let errors = said(&after_a(operation));
        assert!(errors.iter().all(|e| e.contains("unknown template")), "{operation}: {errors:?}");
    }
    insta::assert_snapshot!(shown(&after_a(r#"{type: agent, prompt: 'Use {{ steps["a/y"].result }}'}"#)), @r#"
    error: unknown step `a/y`
     --> t.yaml:8:46
      |
    8 |       - {type: agent, prompt: 'Use {{ steps["a/y"].result }}'}
      |                                              ^^^
      = hint: did you mean `a/x`?
    "#);
    insta::assert_snapshot!(shown(&after_a(r#"{id: one, type: sleep, params: {ms: 1}, when: '.steps["b/two"].result'}
      - {id: two, type: sleep, params: {ms: 1}}"#)), @r#"
    error: `b/two` is used here, but this operation does not depend on it
     --> t.yaml:8:64
      |
    8 |       - {id: one, type: sleep, params: {ms: 1}, when: '.steps["b/two"].result'}
      |                                                                ^^^^^
      = hint: needs: [b/two]
    "#);
    assert_eq!(
        said(&after_a(r#"{id: one, type: sleep, params: {ms: 1}, when: 'steps["b/one"].result'}"#)),
        ["phases[1].operations[0].when: `b/one` has no result before it runs"]
    );
}

#[test]
fn steps_far_before_are_finished_too() {
    let text = r#"
name: t
phases:
  - {id: a, operations: {id: x, type: sleep, params: {ms: 1}}}
  - {id: b, dependencies: [a], operations: {id: y, type: sleep, params: {ms: 1}}}
  - {id: c, operations: [{id: z, type: sleep, params: {ms: 1}, needs: [b/y]}, {id: w, type: sleep, params: {ms: 1}}]}
  - id: d
    operations:
      - {id: v, type: sleep, params: {ms: 1}, needs: [c/z], when: '.steps["a/x"].result and .steps["b/y"].result and .steps["c/z"].result'}
      - {id: u, type: sleep, params: {ms: 1}, needs: [c/z], when: '.steps["c/w"].result'}
"#;
    assert_eq!(
        said(text),
        ["phases[3].operations[1].when: `c/w` is used here, but this operation does not depend on it"]
    );
}

#[test]
fn repeats_go_back_and_may_look_at_the_round_before() {
    let text = |from: &str, prompt: &str| {
        format!(
            "name: t\nphases:\n  - id: other\n    operations: {{id: o, type: sleep, params: {{ms: 1}}}}\n  - id: research\n    dependencies: [other]\n    operations: {{id: r, type: agent, prompt: '{prompt}'}}\n  - id: critique\n    dependencies: [research]\n    operations: {{id: c, type: agent, prompt: judge}}\n    repeat: {{from: {from}, while: '.steps[\"critique/c\"].result.again', max: 3}}\n  - {{id: after, dependencies: [critique], operations: {{type: sleep, params: {{ms: 1}}}}}}\n"
        )
    };
    let learned = r#"{% if steps["critique/c"] is defined %}{{ steps["critique/c"].result }}{% endif %}"#;
    assert_eq!(said(&text("research", learned)), [""; 0]);
    assert_eq!(said(&text("critique", "x")), [""; 0], "a phase may repeat alone");
    assert!(
        said(&text("critique", learned))[0].contains("does not depend on it"),
        "research is not in that loop"
    );
    assert_eq!(
        said(&text("after", "x")),
        [
            "phases[2].repeat.from: `after` does not come before `critique`, so it cannot be repeated from there"
        ]
    );
    assert_eq!(said(&text("reserch", "x")), ["phases[2].repeat.from: unknown phase `reserch`"]);
}

struct Templates(Vec<(&'static str, Vec<&'static str>)>);

impl Catalogue for Templates {
    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn calls(&self, name: &str) -> Option<Vec<String>> {
        let found = self.0.iter().find(|(other, _)| *other == name)?;
        Some(found.1.iter().map(|call| (*call).to_owned()).collect())
    }
}

#[test]
fn templates_of_workflow_steps_are_found_and_never_circular() {
    let text = |name: &str| {
        format!(
            "name: main\nphases:\n  - {{id: a, operations: {{type: workflow, params: {{template: {name}}}}}}}\n"
        )
    };
    let templates = Templates(vec![
        ("main", vec!["leaf"]),
        ("leaf", vec![]),
        ("middle", vec!["leaf", "leaf"]),
        ("back", vec!["leaf", "deeper"]),
        ("deeper", vec!["main"]),
        ("ring", vec!["gnir"]),
        ("gnir", vec!["ring"]),
        ("lost", vec!["nowhere"]),
    ]);
    let said = |name: &str| {
        let loaded = load(&text(name), Format::Yaml, &Library::default(), &templates);
        loaded
            .diagnostics
            .into_iter()
            .map(|d| d.message + &d.hint.map(|h| format!(" ({h})")).unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert_eq!(said("leaf"), [""; 0]);
    assert_eq!(said("middle"), [""; 0]);
    assert_eq!(said("lost"), [""; 0], "that is the other template's error");
    assert_eq!(said("laef"), ["unknown template `laef` (did you mean `leaf`?)"]);
    assert_eq!(said("main"), ["templates use each other in a circle: main -> main"]);
    assert_eq!(said("back"), ["templates use each other in a circle: main -> back -> deeper -> main"]);
    assert_eq!(said("ring"), ["templates use each other in a circle: ring -> gnir -> ring"]);
    let loaded = load(&text("middle"), Format::Yaml, &Library::default(), &templates);
    assert_eq!(workflow_calls(&loaded.template.unwrap()), ["middle"]);
}

// covers: R6
#[test]
fn errors_of_all_stages_come_together_in_the_order_of_the_text() {
    let text = "name: t\nphases:\n  - id: a\n    id: b\n    operations: {type: sleep, params: {ms: -1}}\n  - id: c\n    dependencies: [nope]\n    operations: {type: sleep, params: {ms: 1}, when: '('}\n";
    let loaded = load_yaml(text);
    let lines: Vec<usize> = loaded.show("t", text).iter().map(|s| s.line).collect();
    assert_eq!(lines, [4, 5, 7, 8]);
}

#[test]
fn diagnostics_are_json_for_programs() {
    let text = phases("research specification<-reserch");
    let shown = load_yaml(&text).show("t.yaml", &text);
    assert_eq!(
        serde_json::to_value(&shown).unwrap(),
        serde_json::json!([{
            "severity": "error", "field": "phases[1].dependencies[0]", "message": "unknown dependency `reserch`",
            "file": "t.yaml", "line": 4, "column": 40, "hint": "did you mean `research`?"
        }])
    );
}

/// Operations in chains of ten phases' worth, about 80 bytes each.
fn large_json(operations: usize) -> String {
    let mut text = "{\"name\": \"large\", \"phases\": [\n".to_owned();
    let per_phase = 100;
    for phase in 0..operations / per_phase {
        let dependencies = if phase == 0 { String::new() } else { format!("\"phase-{}\"", phase - 1) };
        let _ = writeln!(
            text,
            "{}{{\"id\": \"phase-{phase}\", \"dependencies\": [{dependencies}], \"operations\": [",
            if phase == 0 { "" } else { "," }
        );
        for n in 0..per_phase {
            let comma = if n == 0 { "" } else { "," };
            let _ = writeln!(
                text,
                "{comma}{{\"id\": \"step-{n}\", \"type\": \"shell\", \"params\": {{\"run\": \"echo {phase} {n}\"}}}}"
            );
        }
        text += "]}\n";
    }
    text + "]}"
}

// covers: R2
#[test]
fn a_hundred_thousand_operations_load_quickly() {
    let text = large_json(100_000);
    let started = Instant::now();
    let loaded = load(&text, Format::Json, &Library::default(), &NoTemplates);
    let elapsed = started.elapsed();
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(loaded.template.unwrap().phases.len(), 1_000);
    eprintln!("{} bytes in {elapsed:?}", text.len());
    assert!(elapsed.as_secs() < 10, "{elapsed:?}, even without optimisation");
}

// covers: R2
#[test]
fn ten_thousand_phases_and_a_cycle_through_all_of_them() {
    let chain = |first: &str| {
        let rest: String = (1..10_000).map(|n| format!(" n{n}<-n{}", n - 1)).collect();
        phases(&format!("n0{first}{rest}"))
    };
    let started = Instant::now();
    assert_eq!(said(&chain("")), [""; 0]);
    let cycle = said(&chain("<-n9999"));
    assert!(cycle[0].contains("dependency cycle: n0 -> n1 -> n2"), "{}", &cycle[0][..60]);
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn twenty_thousand_errors_are_quick_too() {
    let mut text = "name: t\nphases:\n  - id: p\n    operations:\n".to_owned();
    for n in 0..20_000 {
        let _ = writeln!(text, "      - {{id: step-{n}, type: sleep, params: {{ms: 1}}, needs: [setp-{n}]}}");
    }
    let started = Instant::now();
    let loaded = load_yaml(&text);
    assert_eq!(loaded.diagnostics.len(), crate::diagnostic::MAX_DIAGNOSTICS + 1);
    assert!(loaded.diagnostics.last().unwrap().message.starts_with("and 19000 more"));
    let _ = loaded.show("t", &text);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        // covers: R2
        #[test]
        fn a_graph_is_refused_exactly_if_it_has_a_cycle(edges in proptest::collection::vec((0usize..8, 0usize..8), 0..14)) {
            let list: String = (0..8).map(|n| {
                let before: Vec<String> = edges.iter().filter(|(a, b)| *b == n && a != b).map(|(a, _)| format!("n{a}")).collect();
                format!("n{n}<-{} ", before.join(","))
            }).collect();
            // Reference: repeatedly remove what depends on nothing.
            let mut left: Vec<usize> = (0..8).collect();
            loop {
                let free: Vec<usize> = left.iter().copied()
                    .filter(|n| !edges.iter().any(|(a, b)| b == n && a != b && left.contains(a))).collect();
                if free.is_empty() { break }
                left.retain(|n| !free.contains(n));
            }
            for text in [phases(&list), steps(&list)] {
                let loaded = load_yaml(&text);
                prop_assert_eq!(loaded.template.is_none(), !left.is_empty(), "{}", list);
            }
        }

        #[test]
        fn no_template_makes_load_panic(text in "(name|phases|id|operations|type|sleep|needs|when|foreach|join|atLeast|retry|params|a|b|1|0\\.5|[\\[\\]{}:,\"'| \n-]|\n  - |: ){0,60}") {
            for format in [Format::Json, Format::Yaml] {
                let loaded = load(&text, format, &Library::default(), &NoTemplates);
                let _ = loaded.show("t", &text);
            }
        }
    }
}

// covers: S5, R6
#[test]
fn a_synthesis_sees_what_it_depends_on_and_nothing_else() {
    for good in ["", ", params: {from: [a/x]}", ", params: {from: [a/x, other]}, needs: [other]"] {
        let text = after_a(&format!(
            "{{type: synthesize{good}}}\n      - {{id: other, type: sleep, params: {{ms: 1}}}}"
        ));
        assert_eq!(said(&text), [""; 0], "{good}");
    }
    let field = "phases[1].operations[0].params.from[0]";
    for (from, expected) in [
        ("a/y", "unknown step `a/y`"),
        ("a", "unknown step `a`"),
        ("other", "`b/other` is used here, but this operation does not depend on it"),
        ("synthesize", "`b/synthesize` is used here, but this operation does not depend on it"),
    ] {
        let step = format!("{{type: synthesize, params: {{from: [{from}]}}}}");
        let text = after_a(&format!("{step}\n      - {{id: other, type: sleep, params: {{ms: 1}}}}"));
        assert_eq!(said(&text), [format!("{field}: {expected}")], "{from}");
    }
    let far = after_a("{type: synthesize, params: {from: [a/x]}}").replace("    dependencies: [a]\n", "");
    let shown = shown(&far);
    assert!(shown.contains("dependencies: [a] on this phase") && shown.contains("needs: [a/x]"), "{shown}");
    let nothing = "name: t\nphases: [{id: a, operations: {type: synthesize}}]";
    let message = "there is nothing to synthesize: this operation depends on no step";
    assert_eq!(said(nothing), [format!("phases[0].operations[0].params.from: {message}")]);
}

// covers: P4, R6
#[test]
fn steps_that_write_after_the_last_check_are_told() {
    let with = |after: &str| {
        format!(
            "name: t\nphases:\n  - id: p\n    operations: {{id: w, type: agent, role: implementer, prompt: x}}\n  - id: c\n    \
             dependencies: [p]\n    operations: {{id: t, type: shell, expect: {{passed: true}}, params: {{run: x}}}}\n{after}"
        )
    };
    assert_eq!(said(&with("")), Vec::<String>::new());
    let later = |fields: &str| {
        with(&format!(
            "  - id: d\n    dependencies: [c]\n    operations: {{id: w, type: agent, prompt: x, {fields}}}\n"
        ))
    };
    for role in ["implementer", "cleaner"] {
        let told = "phases[2].operations[0]: `d/w` may change files, and no check runs after it";
        assert_eq!(said(&later(&format!("role: {role}"))), [told]);
    }
    for fields in [
        "role: auditor",
        "role: implementer, expect: {changes: false}",
        "role: cleaner, expect: {command: make test}",
    ] {
        assert_eq!(said(&later(fields)), Vec::<String>::new(), "{fields}");
    }
}

// covers: P4
#[test]
fn what_is_expected_has_the_right_shape_and_is_added_to_what_the_operation_expects() {
    let expect = |text: &str| hinted(&format!("{{id: x, type: shell, params: {{run: x}}, expect: {text}}}"));
    assert_eq!(expect("{files: a.md, command: make}"), Vec::<String>::new());
    assert_eq!(
        expect("{command: ' '}"),
        ["expect.command: the command is empty: it would check nothing (command: \"make test\")"]
    );
    assert_eq!(
        expect("{files: 3}"),
        ["expect.files: expected a list of paths, found the number 3 (files: [docs/report.md])"]
    );
    assert_eq!(
        expect("{files: []}"),
        ["expect.files: the list is empty: no file would be checked (files: [docs/report.md])"]
    );
    assert_eq!(expect("{files: [a, '']}"), ["expect.files[1]: the path is empty (files: [docs/report.md])"]);
    let mut library = Library::default();
    assert_eq!(library.add("test.run", "---\nexpect: {files: [b.md]}\n---\np"), vec![]);
    let merged = |expect: &str| {
        let text = format!("name: t\nphases:\n  - id: p\n    operations: {{type: test.run{expect}}}\n");
        let loaded = load(&text, Format::Yaml, &library, &NoTemplates);
        loaded.template.unwrap().phases[0].operations[0].expect.clone().unwrap()
    };
    assert_eq!(merged(""), serde_json::json!({"files": ["b.md"], "passed": true}));
    assert_eq!(merged(", expect: {files: a.md}"), serde_json::json!({"files": ["a.md"], "passed": true}));
    assert_eq!(merged(", expect: {passed: false}")["passed"], false);
}
