//! jq, Jinja and result schemas, honest and hostile.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::*;
use crate::template::Kind;

fn context() -> Value {
    json!({
        "feature": "payment-processing",
        "title": "Payment processing",
        "inputs": {"depth": 3, "names": ["a", "b"]},
        "run": "run_1",
        "steps": {
            "research/market": {"result": {"findings": [{"t": "x", "relevance": 0.9}]}, "state": "succeeded"},
            "research/none": {"result": null, "state": "skipped"},
        },
        "item": "one",
        "index": 0,
    })
}

fn jq(text: &str) -> Result<Value, ExprError> {
    Jq::compile(text)?.one(&context(), &context())
}

fn jq_message(text: &str) -> String {
    jq(text).map_or_else(|error| error.message, |value| format!("no error: {value}"))
}

#[test]
fn compiled_expressions_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Jq>();
    shared::<Jinja>();
    shared::<ResultSchema>();
}

#[test]
fn jq_sees_the_context_with_and_without_a_dot() {
    let table = [
        (".feature", json!("payment-processing")),
        ("feature", json!("payment-processing")),
        (r#".steps["research/market"].result.findings | length"#, json!(1)),
        (r#"steps["research/market"].state"#, json!("succeeded")),
        (r#".inputs | steps["research/none"].result"#, json!(null)),
        ("inputs.depth + 1", json!(4)),
        ("[inputs.names[] | . + item]", json!(["aone", "bone"])),
        ("[range(index; 3)]", json!([0, 1, 2])),
        ("10 / 4", json!(2.5)),
        ("8 / 4", json!(2)),
        ("[.inputs.names[] | ascii_upcase] | join(\"-\")", json!("A-B")),
        ("if .inputs.depth > 2 then \"deep\" else \"flat\" end", json!("deep")),
        ("[3, 1, 2] | sort | map(. * 2) | add", json!(12)),
        ("{a: 1} * {b: 2} | to_entries | map(.key)", json!(["a", "b"])),
        ("reduce range(5) as $i (0; . + $i)", json!(10)),
        ("[limit(3; repeat(1))]", json!([1, 1, 1])),
        ("\"\\(.title): \\(.inputs.depth)\"", json!("Payment processing: 3")),
        ("[1, [2, [3]]] | flatten", json!([1, 2, 3])),
        ("\"a,b\" | split(\",\")", json!(["a", "b"])),
        ("[{r: 1}, {r: 3}] | max_by(.r).r", json!(3)),
        ("18446744073709551615", json!(18446744073709551615u64)),
        ("0.5", json!(0.5)),
        ("def twice(f): f | f; 3 | twice(. + 1)", json!(5)),
        ("try error(\"x\") catch .", json!("x")),
        ("1 # a comment", json!(1)),
    ];
    for (text, expected) in table {
        assert_eq!(jq(text), Ok(expected), "{text}");
    }
}

#[test]
fn jq_says_what_is_wrong_and_where() {
    let table = [
        ("", "expected term, but the expression ends", Some(0..0)),
        (".a |", "expected term, but the expression ends", Some(4..4)),
        (".a )", "expected token, found `)`", Some(3..4)),
        ("(1", "expected closing parenthesis, but the expression ends", Some(2..2)),
        (".a ++ 1", "unexpected `++`", Some(3..5)),
        ("nope", "`nope` is not defined", Some(0..4)),
        ("1 + map_value(.)", "`map_value/1` is not defined", Some(4..13)),
        ("$x", "the variable `$x` is not defined", Some(0..2)),
        ("empty", "the expression has no value", None),
        ("1, 2", "the expression has several values, expected one; wrap it in [ ]", None),
        (".feature.x", "cannot index \"payment-processing\" with \"x\"", None),
        ("error(\"boom\")", "boom", None),
    ];
    for (text, message, range) in table {
        let error = jq(text).unwrap_err();
        assert_eq!(error.message, message, "{text}");
        if range.is_some() {
            assert_eq!(error.range, range, "{text}");
        }
    }
    assert_eq!(jq("1 + map_value(.)").unwrap_err().hint.unwrap(), "did you mean `map_values`?");
    assert_eq!(jq("feture").unwrap_err().hint.unwrap(), "did you mean `feature`?");
    assert_eq!(jq("foo").unwrap_err().hint.unwrap(), "did you mean `.foo`?");
}

// covers: R17
#[test]
fn jq_cannot_reach_outside() {
    for text in [
        "env",
        "env.HOME",
        "$ENV",
        "$ENV.HOME",
        "input",
        "[inputs] | input",
        "halt",
        "halt_error",
        "1 | halt(0)",
        "now",
        "localtime",
        "gmtime",
        "debug",
        "debug(1)",
        "stderr",
        "input_filename",
        "import \"a\" as a; 1",
        "include \"a\"; 1",
        "import \"a\" as $a; 1",
        "get_search_list",
        "$__loc__",
        "input_line_number",
        "def f: env; f",
        "[.[] | env]",
        "{a: now}",
        "\"\\(env)\"",
        "a::b",
        "@nope",
        "stderr_empty",
        "debug_empty",
    ] {
        let error = Jq::compile(text).map(|_| ()).unwrap_err();
        assert!(!error.message.is_empty(), "{text}");
    }
    assert_eq!(
        jq_message("env.HOME"),
        "`env` is not available: an expression cannot read the environment; pass the value with `inputs`"
    );
    assert!(jq_message("import \"a\" as a; 1").contains("cannot load files"));
    // `$__context` is ours, but it is nothing more than the context.
    assert_eq!(jq("$__context.feature"), Ok(json!("payment-processing")));
}

// covers: RELIABILITY 45
#[test]
fn hostile_jq_ends_with_an_error_and_never_overflows_the_stack() {
    let started = Instant::now();
    let hostile = [
        "[".repeat(100_000),
        "(".repeat(49) + "1" + &")".repeat(49),
        "-".repeat(60_000) + "1",
        "1".to_owned() + &"+1".repeat(30_000),
        "1".to_owned() + &"|1".repeat(30_000),
        "1".to_owned() + &",1".repeat(30_000),
        "1 as $x|".repeat(5_000) + "1",
        "def f: ".repeat(5_000) + "1",
        "if ".repeat(10_000),
        "try ".repeat(10_000) + "1",
        "\"\\(".repeat(10_000),
        "reduce ".repeat(8_000),
        ".a".repeat(30_000),
        "x".repeat(70_000),
        "label $x | ".repeat(5_000) + "1",
        "def f: f + 1; f".to_owned(),
        "def f(g): def h: f(g); h; f(1)".to_owned(),
        "\0".to_owned(),
        "\u{1f4a3}".to_owned(),
    ];
    // Threads of the engine have 2 MiB; so has this one.
    std::thread::spawn(move || {
        for text in hostile {
            let shown: String = text.chars().take(20).collect();
            let _ = Jq::compile(&text).map_err(|error| assert!(!error.message.is_empty(), "{shown}"));
        }
    })
    .join()
    .unwrap();
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    assert!(jq_message("def f: f + 1; f").contains("calls itself"));
}

// covers: RELIABILITY 45
#[test]
fn the_largest_programs_that_are_allowed_fit_the_stack() {
    std::thread::spawn(|| {
        for (head, unit, tail, times) in [
            ("1", "+1", "", 200),
            ("1", "|1", "", 200),
            ("1", ",1", "", 200),
            ("1", " and 1", "", 200),
            ("1", " // 1", "", 200),
            ("", "-", "1", 100),
            ("", "1 as $x|", "$x", 100),
            ("", "try ", "1", 100),
            ("", "label $x|", "1", 60),
            ("", "(", "1", 48),
            ("", "[", "1", 48),
            ("", "{a:", "1", 48),
            ("", "if 1 then ", "1", 100),
        ] {
            let closing: String = match unit {
                "(" => ")".repeat(times),
                "[" => "]".repeat(times),
                "{a:" => "}".repeat(times),
                "if 1 then " => " end".repeat(times),
                _ => String::new(),
            };
            let text = format!("{head}{}{tail}{closing}", unit.repeat(times));
            let program = Jq::compile(&text).unwrap_or_else(|error| panic!("{unit}: {error}"));
            let outputs = program.outputs(&json!(null), &json!({}), 1_000).unwrap();
            assert!(!outputs.is_empty(), "{unit}");
        }
    })
    .join()
    .unwrap();
}

#[test]
fn outputs_without_end_are_cut() {
    let endless = Jq::compile("repeat(1)").unwrap();
    assert_eq!(endless.outputs(&json!(null), &json!({}), 3).unwrap(), [json!(1), json!(1), json!(1)]);
    assert!(endless.one(&json!(null), &json!({})).is_err());
    let nothing = Jq::compile("empty").unwrap();
    assert_eq!(nothing.one_or_null(&json!(1), &json!({})), Ok(Value::Null));
    let deep = Jq::compile("reduce range(1000) as $i (0; [.])").unwrap();
    assert!(deep.one(&json!(null), &json!({})).unwrap_err().message.contains("levels deep"));
}

#[test]
fn jq_is_quick_to_compile() {
    Jq::compile("1").unwrap();
    let started = Instant::now();
    for n in 0..200 {
        Jq::compile(&format!(".inputs.depth > {n} and (.steps[\"a/b\"].result | length) > 0")).unwrap();
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn only_null_and_false_are_false() {
    for (value, expected) in
        [(json!(null), false), (json!(false), false), (json!(0), true), (json!(""), true)]
    {
        assert_eq!(is_true(&value), expected);
    }
}

fn jinja(text: &str) -> Result<String, ExprError> {
    render(text, &context())
}

#[test]
fn jinja_renders_prose_and_prints_data_as_json() {
    let table = [
        ("plain", "plain"),
        ("docs/{{ feature }}.md\n", "docs/payment-processing.md\n"),
        ("{{ steps[\"research/market\"].result }}", "{\"findings\":[{\"t\":\"x\",\"relevance\":0.9}]}"),
        ("{{ inputs.names }}", "[\"a\",\"b\"]"),
        ("{{ steps['research/none'].result }}", "null"),
        ("{{ inputs.names | join(', ') }}", "a, b"),
        ("{{ inputs | tojson }}", "{\"depth\": 3, \"names\": [\"a\", \"b\"]}"),
        ("{% for n in inputs.names %}[{{ n }}]{% endfor %}", "[a][b]"),
        ("{{ title | upper }} <b>&", "PAYMENT PROCESSING <b>&"),
        ("{{ '<&>' }}", "<&>"),
        ("{{ inputs.depth + 1 }} {{ true }}", "4 true"),
        ("{% if inputs.missing is defined %}x{% else %}y{% endif %}", "y"),
        ("{{ inputs.missing | default('z') }}", "z"),
        ("{# a comment #}x", "x"),
    ];
    for (text, expected) in table {
        assert_eq!(jinja(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn names_and_filters_are_checked_before_anything_is_rendered() {
    for good in [
        "{{ feature }} {{ inputs.x }} {{ steps['a/b'].result }} {{ item }} {{ index }} {{ run }} {{ title }}",
        "{% for x in inputs.list %}{{ loop.index }} {{ x }}{% endfor %}",
        "{% set y = 1 %}{{ y }} {{ range(3) | list }} {{ dict(a=1) | tojson }}",
        "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) }}",
        "{{ 'a | nofilter' }} {{ inputs | tojson }} {% if inputs.a is defined %}x{% endif %}",
        "{% filter upper %}x{% endfilter %} {{ inputs['a'] or 'b' }} {{ true }} {{ none }}",
        "nofilter | {{ feature | upper | lower }}",
    ] {
        assert!(Jinja::compile(good).is_ok(), "{good}: {:?}", Jinja::compile(good));
    }
    let error = Jinja::compile("see {{ featur }}").unwrap_err();
    assert_eq!((error.message.as_str(), error.range), ("`featur` is not defined", Some(7..13)));
    assert_eq!(error.hint.unwrap(), "did you mean `feature`?");
    let error = Jinja::compile("{{ feature | uper }}").unwrap_err();
    assert_eq!((error.message.as_str(), error.range), ("there is no filter `uper`", Some(13..17)));
    let error = Jinja::compile("{{ env.HOME }}").unwrap_err();
    assert_eq!(error.hint.unwrap(), "there are: feature, title, inputs, run, steps, item, index");
}

#[test]
fn jinja_says_what_is_wrong_and_where() {
    let error = jinja("see {{ missing }}").unwrap_err();
    assert_eq!(error.message, "`missing` is not defined");
    assert_eq!(error.range, Some(7..14));
    assert_eq!(jinja("{{ inputs.nope.deeper }}").unwrap_err().message, "`inputs.nope.deeper` is not defined");
    assert_eq!(
        jinja("{{ steps['no/no'].result }}").unwrap_err().message,
        "`steps['no/no'].result` is not defined"
    );
    for bad in
        ["{{", "{{ a", "{% if %}", "{% endfor %}", "{{ a b }}", "{{ 'x }}", "{% include 'x' %}", "{% nope %}"]
    {
        let result = Jinja::compile(bad).and_then(|template| template.render(&context()).map(|_| ()));
        assert!(!result.unwrap_err().message.is_empty(), "{bad}");
    }
}

// covers: R17
#[test]
fn jinja_cannot_load_files_and_always_ends() {
    let started = Instant::now();
    for bad in [
        "{% include '/etc/passwd' %}",
        "{% extends 'x' %}",
        "{% import 'x' as x %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'x' * 999999999999 }}",
        "{{ range(999999999) }}",
    ] {
        assert!(jinja(bad).is_err(), "{bad}");
    }
    for bad in [
        "{{ (".repeat(50_000),
        "{% if 1 %}".repeat(20_000),
        "{{ -".to_owned() + &"-".repeat(100_000) + "1 }}",
    ] {
        assert!(jinja(&bad).is_err());
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn what_has_braces_is_dynamic() {
    for (text, expected) in [
        ("a", false),
        ("{a}", false),
        ("{{ a }}", true),
        ("{% if %}", true),
        ("{# c #}", true),
        ("{", false),
        ("${X}", false),
    ] {
        assert_eq!(is_dynamic(text), expected, "{text}");
    }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

#[test]
fn parameters_keep_their_types() {
    let params = map(json!({
        "template": "sub",
        "inputs": {"n": "{{ inputs.depth }}", "list": "{{ inputs.names }}", "text": "n={{ inputs.depth }}",
                   "two": "{{ item }}{{ index }}", "plain": 7, "null": "{{ steps['research/none'].result }}"},
    }));
    let rendered = render_params(Kind::Workflow, &params, &context()).unwrap();
    assert_eq!(
        rendered["inputs"],
        json!({"n": 3, "list": ["a", "b"], "text": "n=3", "two": "one0", "plain": 7, "null": null})
    );
    let agent = map(json!({"prompt": "{{ inputs.depth }}", "tools": ["{{ inputs.depth }}"]}));
    let rendered = render_params(Kind::Agent, &agent, &context()).unwrap();
    assert_eq!(Value::Object(rendered), json!({"prompt": "3", "tools": [3]}), "prose stays text");
    let error = render_params(Kind::Agent, &map(json!({"prompt": "{{ nope }}"})), &context()).unwrap_err();
    assert_eq!(error.message, "`prompt`: `nope` is not defined");
    let error =
        render_params(Kind::Workflow, &map(json!({"inputs": {"a": "{{ nope }}"}})), &context()).unwrap_err();
    assert_eq!(error.message, "`inputs`: `nope` is not defined");
}

// covers: R17
#[test]
fn programs_are_never_rendered() {
    let shell = map(
        json!({"run": "echo {{ item }}", "argv": ["{{ item }}", "{{ index }}"], "env": {"A": "{{ index }}"}}),
    );
    let rendered = render_params(Kind::Shell, &shell, &context()).unwrap();
    assert_eq!(
        Value::Object(rendered),
        json!({"run": "echo {{ item }}", "argv": ["one", "0"], "env": {"A": "0"}})
    );
    let only_run = map(json!({"run": "echo ${#X} {{ nope }}"}));
    assert!(!is_rendered_dynamic(Kind::Shell, &only_run));
    assert_eq!(render_params(Kind::Shell, &only_run, &context()).unwrap(), only_run);
    let code = map(json!({"code": "`{{ nope }}`", "input": "{{ index }}"}));
    let rendered = render_params(Kind::Script, &code, &context()).unwrap();
    assert_eq!(Value::Object(rendered), json!({"code": "`{{ nope }}`", "input": 0}));
    let fake = map(json!({"script": [{"say": "{{ item }}", "run": "echo {{ item }}"}]}));
    let rendered = render_params(Kind::Agent, &fake, &context()).unwrap();
    assert_eq!(rendered["script"], json!([{"say": "one", "run": "echo {{ item }}"}]));
}

#[test]
fn results_are_checked_against_their_schema() {
    let schema = ResultSchema::compile(&json!({
        "type": "object", "required": ["score"], "properties": {"score": {"type": "number", "maximum": 1}}
    }))
    .unwrap();
    assert_eq!(schema.check(&json!({"score": 0.5})), Ok(()));
    assert_eq!(
        schema.check(&json!({"score": 2})).unwrap_err(),
        ["`/score`: 2 is greater than the maximum of 1"]
    );
    assert_eq!(schema.check(&json!({})).unwrap_err(), ["the result: \"score\" is a required property"]);
    for bad in [
        json!({"type": "strin"}),
        json!({"required": 1}),
        json!({"pattern": "("}),
        json!({"$ref": "#/$defs/x"}),
    ] {
        let error = ResultSchema::compile(&bad).unwrap_err();
        assert!(error.message.starts_with("not a valid JSON Schema"), "{error}");
    }
    // Nothing is fetched: core does no I/O.
    for far in [json!({"$ref": "https://example.com/x.json"}), json!({"$ref": "file:///etc/passwd"})] {
        assert!(ResultSchema::compile(&far).is_err(), "{far}");
    }
}

// covers: RELIABILITY 45
#[test]
fn a_pattern_cannot_take_exponential_time() {
    let started = Instant::now();
    let evil = "a".repeat(50_000) + "!";
    for pattern in ["^(a+)+$", "^(a|aa)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let schema = ResultSchema::compile(&json!({"type": "string", "pattern": pattern})).unwrap();
        assert!(schema.check(&json!(evil)).is_err(), "{pattern}");
    }
    // A pattern that compiles to gigabytes, and one that only a backtracking engine knows.
    for pattern in ["(((a{100}){100}){100}){100}", "(?=a)b", "(a)\\1"] {
        assert!(ResultSchema::compile(&json!({"pattern": pattern})).is_err(), "{pattern}");
    }
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_makes_jq_panic(text in "[\\[\\]{}().|,:;\"\\\\$@#?/+*<>=! a-c0-9\u{e9}-]{0,40}") {
            if let Ok(program) = Jq::compile(&text) {
                let _ = program.outputs(&json!({"a": [1, {"b": null}], "b": "x"}), &context(), 50);
            }
        }

        #[test]
        fn no_text_makes_jinja_panic(text in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}|if|for|in|end|[a-c0-9 .|,'\"\\[\\]()\u{e9}~-]){0,30}") {
            let _ = render(&text, &context());
            let _ = render_params(Kind::Workflow, &map(json!({"inputs": {"a": text}})), &context());
        }
    }
}
