//! Hostile templates through `validate` and `run`: exit 2, clear, all at once, nothing started (R2, RELIABILITY
//! 42, 43).

use std::fmt::Write as _;

use crate::dsl::Sage;

const SLEEP: &str = "operations: {type: sleep, params: {ms: 0}}";

fn phases(list: &str) -> String {
    let mut text = "name: t\nphases:\n".to_owned();
    for phase in list.split_whitespace() {
        let (id, dependencies) = phase.split_once("<-").unwrap_or((phase, ""));
        let _ = writeln!(text, "  - {{id: {id}, dependencies: [{dependencies}], {SLEEP}}}");
    }
    text
}

/// Refused by both commands, with this text, and without a trace.
#[track_caller]
fn refused(file: &str, text: impl AsRef<[u8]>, told: &[&str]) {
    let sage = Sage::new();
    let path = sage.write(file, text);
    let path = path.to_str().unwrap();
    for args in [vec!["validate", path], vec!["run", "x", "-t", path]] {
        let mut outcome = sage.args(args).run().exit(2);
        for told in told {
            outcome = outcome.stderr_has(told);
        }
        assert!(outcome.stderr.len() < 100_000, "{} bytes of complaint", outcome.stderr.len());
    }
    let json = sage.args(["validate", path, "--json"]).run();
    assert_eq!(json.code, 2);
    if !json.stdout.is_empty() {
        let json = json.json();
        assert_eq!(json["valid"], false, "{json}");
        assert!(!json["errors"].as_array().unwrap().is_empty());
    }
    assert!(!sage.path(".sage/state").exists(), "nothing was started");
}

// covers: R2
#[test]
fn graphs_that_cannot_run_are_refused() {
    refused("t.yaml", "name: t\nphases: []\n", &["empty"]);
    refused("t.yaml", "name: t\nphases:\n  - {id: a, operations: []}\n", &["phase `a` is empty"]);
    refused("t.yaml", phases("a a"), &["duplicate phase id `a`", "t.yaml:4:10", "t.yaml:3:10"]);
    refused(
        "t.yaml",
        phases("research plan<-reserch"),
        &["unknown dependency `reserch`", "did you mean `research`?"],
    );
    refused("t.yaml", phases("a<-b b<-a"), &["a -> b -> a"]);
    refused("t.yaml", phases("a<-a"), &["`a` depends on itself"]);
    refused("t.yaml", phases("x a<-c,x b<-a c<-b y<-c"), &["a -> b -> c -> a"]);
}

// covers: R2
#[test]
fn graphs_that_can_run_do() {
    let wide: String = (0..60).fold("hub".to_owned(), |text, n| text + &format!(" n{n}<-hub"));
    let chain: String = (1..60).fold("n0".to_owned(), |text, n| text + &format!(" n{n}<-n{}", n - 1));
    let graphs = [
        ("a", 1),
        ("a b<-a", 2),
        ("b<-a a", 2),
        ("a b<-a c<-b d<-c", 4),
        ("a b<-a c<-a d<-b,c", 4),
        ("a b<-a c d<-c", 4),
        ("a b c sink<-a,b,c", 4),
        (wide.as_str(), 61),
        (chain.as_str(), 60),
    ];
    let sage = Sage::new();
    for (n, (list, steps)) in graphs.into_iter().enumerate() {
        let file = sage.write(&format!("g{n}.yaml"), phases(list));
        let file = file.to_str().unwrap();
        sage.args(["validate", file]).run().exit(0);
        sage.args(["run", &format!("g{n}"), "-t", file, "--quiet"]).run().exit(0);
        let journal = sage.journal(&format!("g{n}"));
        assert_eq!(journal.succeeded().len(), steps);
        // Every step started after all that it depends on had finished.
        for phase in list.split_whitespace() {
            let (id, before) = phase.split_once("<-").unwrap_or((phase, ""));
            let at = |step: &str, kind: &str| {
                let path = format!("{step}/sleep");
                journal.records.iter().position(|entry| {
                    entry.event.kind() == kind
                        && serde_json::to_value(&entry.event).unwrap()["step"] == path.as_str()
                })
            };
            for before in before.split(',').filter(|name| !name.is_empty()) {
                assert!(at(before, "step.finished") < at(id, "step.started"), "{list}: {id} before {before}");
            }
        }
    }
}

// covers: R2
#[test]
fn ten_thousand_nodes_are_validated() {
    let mut text = "name: t\nphases:\n  - id: p\n    operations:\n".to_owned();
    for n in 0..10_000 {
        let needs = if n == 0 { String::new() } else { format!("s{}", n / 2) };
        let _ = writeln!(text, "      - {{id: s{n}, type: sleep, params: {{ms: 0}}, needs: [{needs}]}}");
    }
    let text = text.replace("needs: [s0]}\n      - {id: s2", "needs: []}\n      - {id: s2");
    let sage = Sage::new().template("t", &text);
    let valid = sage.sage("validate t --json").exit(0).json();
    assert_eq!(valid["graph"]["nodes"], 10_000);
}

// covers: R6; all errors at once, each with its place
#[test]
fn several_errors_are_told_at_once() {
    let text = "name: ''\ntimout: 5s\nphases:\n  - id: Bad Id\n    join: most\n    operations:\n      - {type: shel, params: {run: x}}\n      - {id: x, type: shell, params: {run: \"true\"}, when: \".[\"}\n      - {id: y, type: shell, params: {argv: [echo, \"{{ oops\"]}}\n  - id: b\n    dependencies: [nobody]\n    operations: {type: sleep, params: {ms: -5}}\n";
    let told = [
        "t.yaml:1:7",
        "timout",
        "did you mean `timeout`?",
        "t.yaml:4:9",
        "`bad-id` would do",
        "most",
        "did you mean `shell`?",
        "t.yaml:8:",
        "t.yaml:9:",
        "nobody",
        "negative",
    ];
    refused("t.yaml", text, &told);
}

// covers: RELIABILITY 42
#[test]
fn hostile_json_is_refused() {
    let good = "{\"name\": \"t\", \"phases\": [{\"id\": \"a\", \"operations\": {\"type\": \"sleep\", \"params\": {\"ms\": 0}}}]}";
    refused("t.json", "", &["empty"]);
    refused("t.json", "   \n", &["empty"]);
    refused("t.json", "[".repeat(100_000), &["levels deep"]);
    refused("t.json", "{\"a\":".repeat(100_000), &["levels deep"]);
    refused("t.json", format!("{good} x"), &["after the end"]);
    refused("t.json", good.replace("0", "1e999"), &["too large"]);
    refused("t.json", good.replace("0", "NaN"), &[]);
    refused("t.json", good.replace("0", "99999999999999999999999"), &["64 bits"]);
    refused(
        "t.json",
        good.replace("\"id\": \"a\"", "\"id\": \"a\", \"id\": \"b\""),
        &["duplicate key `id`", "first: "],
    );
    refused("t.json", format!("[{}[]]", "[],".repeat(100_000)), &["expected an object"]);
    refused("t.json", good.replace("sleep", "sl\\ud800eep"), &[]);
    refused("t.json", good.replace("sleep", "sle\0ep"), &[]);
    refused("t.json", [good.as_bytes(), b"\xff\xfe"].concat(), &["t.json"]);
    refused("t.json", good.replace('{', "{ // comment\n"), &["comments"]);
    let sage = Sage::new();
    for (name, text) in [
        ("bom.json", format!("\u{FEFF}{good}")),
        ("crlf.json", good.replace(' ', "\r\n")),
        ("plain.json", good.into()),
    ] {
        sage.write(name, text);
        sage.args(["validate", &sage.path(name).display().to_string()]).run().exit(0);
    }
}

// covers: RELIABILITY 43
#[test]
fn hostile_yaml_is_refused() {
    let good = phases("a");
    refused("t.yaml", "", &["empty"]);
    refused("t.yaml", "# nothing\n", &["empty"]);
    refused("t.yaml", "\u{FEFF}", &["empty"]);
    refused("t.yaml", "- ".repeat(100_000), &[]);
    refused("t.yaml", "[".repeat(100_000), &[]);
    refused("t.yaml", "{a: ".repeat(100_000), &[]);
    let mut laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (name, of) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        let _ = writeln!(
            laughs,
            "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]"
        );
    }
    refused("t.yaml", laughs + &good, &["anchors"]);
    refused("t.yaml", format!("{good}\nx: !!python/object/apply:os.system [\"touch pwned\"]\n"), &["tags"]);
    refused("t.yaml", format!("{good}base:\n  <<: {{a: 1}}\n"), &["merge key"]);
    refused("t.yaml", format!("{good}---\n{good}"), &["several"]);
    refused("t.yaml", good.replace("name: t", "name: t\nname: u"), &["duplicate key `name`", "first: "]);
    refused("t.yaml", good.replace("ms: 0", "ms: 1e999"), &["too large"]);
    refused("t.yaml", good.replace("ms: 0", "ms: .nan"), &[]);
    refused("t.yaml", good.replace("ms: 0", "ms: -1"), &["negative"]);
    refused("t.yaml", good.replace("ms: 0", "ms: no"), &[]);
    refused("t.yaml", good.replace("name: t", "name: on\ntimeout: -3s"), &["negative"]);
    refused("t.yaml", "\t- a\n\t- b", &[]);
    refused("t.yaml", "a: b: c: d", &[]);
    refused("t.yaml", "phases: 7\nname: [1]", &["list of phases", "name"]);
    refused("t.yaml", [good.as_bytes(), b"\xc3\x28"].concat(), &["t.yaml"]);
    let sage = Sage::new();
    sage.write("bom.yaml", format!("\u{FEFF}{good}"));
    sage.args(["validate", &sage.path("bom.yaml").display().to_string()]).run().exit(0);
}

// covers: R6
#[test]
fn expressions_are_checked_before_anything_runs() {
    let step = |fields: &str| {
        format!("name: t\nphases:\n  - id: a\n    operations: {{id: x, type: shell, {fields}}}\n")
    };
    let sage = Sage::new();
    let mut accepted = Vec::new();
    for fields in [
        "when: \"env.HOME\", params: {run: x}",
        "when: \"input\", params: {run: x}",
        "when: \"halt\", params: {run: x}",
        "when: \"now > 0\", params: {run: x}",
        "foreach: \"[\", params: {run: x}",
        "params: {argv: [echo, \"{% include 'x' %}\"]}",
        "params: {argv: [echo, \"{{ steps['a/nobody'].result }}\"]}",
        "params: {argv: [echo, \"{{ nobody }}\"]}",
        "params: {run: x, argv: [y]}",
        "params: {}",
        "schema: {type: nothing}, params: {run: x}",
        "needs: [a/x], params: {run: x}",
        "retry: -1, params: {run: x}",
        "timeout: 0, params: {run: x}",
        "needs: [a/y], params: {run: x}",
    ] {
        let file = sage.write("t.yaml", step(fields)).display().to_string();
        let outcome = sage.args(["validate", &file]).run();
        if outcome.code != 2 || !outcome.stderr.contains("t.yaml:4:") {
            accepted.push(fields);
        }
    }
    assert!(accepted.is_empty(), "no error at line 4 for {accepted:#?}");
}

/// Expressions that never end are ended, and the run stays in hand.
// covers: R14, RELIABILITY 45
#[test]
fn endless_expressions_fail_their_step_only() {
    let text = r#"
name: t
phases:
  - id: a
    join: { atLeast: 1 }
    operations:
      - { id: loops, type: shell, when: "[limit(1; repeat(1) | select(. == 2))] | length == 0", params: { run: "true" } }
      - { id: bomb, type: shell, params: { argv: [echo, "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x{% endfor %}{% endfor %}{% endfor %}"] } }
      - { id: good, type: shell, params: { run: "echo good" } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(3);
    assert_eq!(sage.state_of("x", "a/good"), "succeeded");
    assert_eq!(sage.state_of("x", "a/loops"), "failed");
    assert_eq!(sage.state_of("x", "a/bomb"), "failed");
}
