//! Inputs: declared, checked before anything runs, and refused where nothing reads them.

use serde_json::json;

use crate::dsl::Sage;

const RELEASE: &str = r#"
name: release
inputs:
  channel: beta
  dry: false
  version: { type: string, required: true, description: What to release }
  level: { type: integer, default: 1, enum: [1, 2, 3] }
  notes: { default: { type: short, lines: 3 } }
  tags: { type: array }
phases:
  - id: p
    operations:
      id: say
      type: shell
      params:
        env: { ALL: "{{ inputs | tojson }}", V: "{{ inputs.version }}" }
        run: printf '%s' "$ALL" > all.json; echo "$V"
"#;

/// As above, but nothing reads all of them.
fn strict() -> String {
    RELEASE.replace("ALL: \"{{ inputs | tojson }}\", ", "").replace("printf '%s' \"$ALL\" > all.json; ", "")
}

// covers: R6
#[test]
fn declared_inputs_have_types_defaults_and_choices() {
    let sage = Sage::new().template("release", RELEASE);
    sage.args(["run", "x", "-t", "release", "-i", "version=1.10", "-i", "tags=[\"a\"]", "--quiet"])
        .run()
        .exit(0);
    let all: serde_json::Value = serde_json::from_str(&sage.lines("all.json").join("")).unwrap();
    let expected = json!({
        "channel": "beta", "dry": false, "version": "1.10", "level": 1, "notes": {"type": "short", "lines": 3},
        "tags": ["a"],
    });
    assert_eq!(all, expected);
}

// covers: R6
#[test]
fn wrong_inputs_are_refused_before_anything_runs() {
    let sage = Sage::new().template("release", &strict());
    let before = sage.listing();
    let table = [
        ("", "missing input `version` (string: What to release)", "-i version=TEXT"),
        ("-i version=1 -i level=9", "input `level` must be one of 1, 2, 3, not 9", "-i level=1"),
        ("-i version=1 -i level=high", "input `level` must be a whole number, not \"high\"", "-i level=1"),
        ("-i version=1 -i dry=maybe", "input `dry` must be true or false, not \"maybe\"", "-i dry=true"),
        ("-i version=1 -i tags=a", "input `tags` must be a list, not \"a\"", "-i tags="),
        ("-i verison=1", "unknown input `verison`", "did you mean `version`?"),
    ];
    for (given, error, hint) in table {
        for dry in ["", "--dry-run"] {
            let command = format!("run x -t release {given} {dry}");
            sage.sage(&command).exit(2).stderr_has(error).stderr_has(&format!("hint: {hint}"));
        }
    }
    let both = sage.sage("run x -t release -i level=9").exit(2);
    both.stderr_has("2 wrong inputs").stderr_has("missing input `version`").stderr_has("must be one of");
    assert_eq!(sage.listing(), before, "nothing was written");
}

// covers: R6
#[test]
fn inputs_are_shown_by_a_dry_run_and_by_the_templates() {
    let sage = Sage::new().template("release", &strict());
    let told = sage.sage("run x -t release -i version=2 --dry-run").exit(0);
    let row =
        |name: &str| told.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    assert!(
        row("version").contains("\"2\"") && row("version").contains("given: What to release"),
        "{}",
        told.stdout
    );
    assert!(row("level").contains("default"), "{}", told.stdout);
    let told = sage.sage("run x -t release -i version=2 --dry-run --json").exit(0).json();
    assert_eq!(told["inputs"]["version"], "2");
    let shown = sage.sage("templates show release").exit(0);
    assert_eq!(shown.stdout, strict(), "the text is as it was written");
    shown
        .stderr_has("input: version (string, required): What to release")
        .stderr_has("input: level (integer, one of 1, 2, 3, default 1)");
    let shown = sage.sage("templates show release --json").exit(0).json();
    assert_eq!(shown["inputs"][2]["name"], "version");
    assert_eq!(
        (&shown["inputs"][2]["type"], &shown["inputs"][2]["required"]),
        (&json!("string"), &json!(true))
    );
}

// covers: R6
#[test]
fn a_wrong_declaration_is_told_with_its_place() {
    let bad = strict()
        .replace("type: string, required", "type: strnig, required")
        .replace("default: 1, enum: [1, 2, 3]", "defualt: 1, enum: []")
        .replace("tags: { type: array }", "tags: { type: array, default: x }");
    let sage = Sage::new().template("release", &bad);
    let told = sage.sage("validate release").exit(2);
    let told = told.stderr_has("`strnig` is not a value of `type`").stderr_has("did you mean `string`?");
    let told = told.stderr_has("unknown field `defualt`").stderr_has("did you mean `default`?");
    let told =
        told.stderr_has("expected a list of values").stderr_has("input `tags` must be a list, not \"x\"");
    told.stderr_has("release.yaml:6:").stderr_has("default: {...}");
    // An object that declares nothing is a value.
    let plain = strict().replace("tags: { type: array }", "tags: { type: user, name: x }");
    sage.write(".sage/templates/release.yaml", plain);
    sage.sage("validate release").exit(0);
}

fn shell(extra: &str, run: &str) -> String {
    format!(
        "name: t\n{extra}phases:\n  - id: p\n    operations: {{ id: x, type: shell, params: {{ {run} }} }}\n"
    )
}

// covers: R6
#[test]
fn an_input_that_nothing_reads_is_an_error() {
    let run = |text: &str, given: &str| {
        let sage = Sage::new().template("t", text);
        sage.args(["run", "x", "-t", "t", "-i", given, "--quiet"]).run()
    };
    // Nothing is declared and nothing is read.
    run(&shell("", "run: echo"), "a=1")
        .exit(2)
        .stderr_has("the template takes no inputs")
        .stderr_has("inputs: { a: null }");
    // Nothing is declared, but expressions name it.
    let env = "env: { A: \"{{ inputs.alpha }}\" }, run: echo";
    run(&shell("", env), "alpha=1").exit(0);
    run(&shell("", env), "alhpa=1").exit(2).stderr_has("did you mean `alpha`?");
    // A script reads the file.
    run(&shell("", "run: 'cat \"$SAGE_INPUT\"'"), "a=1").exit(0);
    run(&shell("", "run: 'jq .inputs.beta \"$SAGE_INPUT\" || true'"), "beta=1").exit(0);
    run(&shell("inputs: { a: 1 }\n", "run: echo"), "b=1")
        .exit(2)
        .stderr_has("unknown input `b`")
        .stderr_has("inputs: a");
    // Code takes any.
    let sage = Sage::new().code("w", "export default async (sage, input) => input.any;\n");
    sage.args(["run", "x", "-t", "w", "-i", "any=1", "--quiet"]).run().exit(0);
    assert_eq!(sage.args(["result", "x", "main/script"]).run().exit(0).json(), json!(1));
}

// covers: R6
#[test]
fn a_run_that_goes_on_takes_known_inputs_only() {
    let sage = Sage::new().template("release", &strict());
    sage.sage("run x -t release -i version=1 --quiet").exit(0);
    sage.sage("resume x -i verison=2").exit(2).stderr_has("did you mean `version`?");
    sage.sage("resume x -i level=9").exit(2).stderr_has("must be one of");
    sage.sage("resume x -i version=2 --quiet").exit(0);
    assert_eq!(sage.args(["result", "x", "p/say"]).run().exit(0).json()["stdout"], "2\n");
}

// covers: R6
#[test]
fn a_workflow_that_another_calls_gets_checked_inputs() {
    let outer = "
name: outer
phases:
  - id: p
    operations:
      - { id: good, type: workflow, params: { template: release, inputs: { version: '3' } } }
      - { id: none, type: workflow, params: { template: release } }
";
    let sage = Sage::new().template("release", &strict()).template("outer", outer);
    sage.sage("run x -t outer --quiet").exit(1).stdout_has("workflow `release`: missing input `version`");
    assert_eq!(sage.state_of("x", "p/good"), "succeeded");
    assert_eq!(sage.state_of("x", "p/none"), "failed");
}
