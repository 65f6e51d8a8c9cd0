//! `sage explain` names the value that changed, with what it was and what it is.

use crate::dsl::Sage;

const TEXT: &str = "
name: t
phases:
  - id: a
    operations: { id: first, type: shell, params: { run: 'cat number' } }
  - id: b
    dependencies: [a]
    operations:
      - { id: said, type: shell, params: { env: { N: '{{ inputs.name }}' }, run: 'echo one; echo $N' } }
      - { id: asked, type: agent, agent: fake, prompt: 'tell me about cats', params: { script: [ { result: x } ] } }
      - { id: each, type: shell, foreach: '[\"red\", \"blue\"]', params: { run: 'echo' } }
";

fn project() -> Sage {
    let sage = Sage::new().template("t", TEXT);
    sage.write("number", "7\n");
    sage.sage("run x -t t -i name=Ada --quiet").exit(0);
    sage
}

fn explain(sage: &Sage, step: &str) -> String {
    sage.args(["explain", "x", step]).run().exit(0).stdout
}

// covers: R5
#[test]
fn an_edited_parameter_is_named_with_both_texts() {
    let sage = project();
    sage.write(".sage/templates/t.yaml", TEXT.replace("echo one; echo $N", "echo two; echo $N"));
    sage.sage("resume x -t t --quiet").exit(0);
    let told = explain(&sage, "b/said");
    let expected =
        "ran again, because this changed: params.run: \"echo one; echo $N\" -> \"echo two; echo $N\"";
    assert!(told.contains(expected), "{told}");
    let json = sage.args(["explain", "x", "b/said", "--json"]).run().exit(0).json();
    assert_eq!((&json["changed"][0], &json["changes"][0]["path"]), (&"params".into(), &"params.run".into()));
    // Back again: the value of the edit before the last one is what it is compared with.
    sage.write(".sage/templates/t.yaml", TEXT.replace("echo one; echo $N", "echo three; echo $N"));
    sage.sage("resume x -t t --quiet").exit(0);
    assert!(explain(&sage, "b/said").contains("\"echo two; echo $N\" -> \"echo three; echo $N\""));
}

// covers: R5
#[test]
fn prompts_inputs_items_and_results_are_named() {
    let sage = project();
    let edited = TEXT.replace("about cats", "about dogs").replace("\\\"blue\\\"", "\\\"green\\\"");
    sage.write(".sage/templates/t.yaml", edited.replace("\"blue\"", "\"green\""));
    sage.sage("resume x -t t --quiet").exit(0);
    let told = explain(&sage, "b/asked");
    assert!(told.contains("prompt: \"tell me about cats\" -> \"tell me about dogs\""), "{told}");
    let told = explain(&sage, "b/each[1]");
    assert!(told.contains("item: \"blue\" -> \"green\""), "{told}");
    sage.sage("resume x -i name=Grace --quiet").exit(0);
    let told = explain(&sage, "b/said");
    assert!(told.contains("inputs.name: \"Ada\" -> \"Grace\""), "{told}");
    assert!(told.contains("params.env.N: \"Ada\" -> \"Grace\""), "{told}");
    sage.write("number", "8\n");
    sage.sage("resume x --from a/first --quiet").exit(0);
    let told = explain(&sage, "b/said");
    assert!(told.contains("steps[\"a/first\"].result.stdout: "), "{told}");
    assert!(told.contains("\"7") && told.contains("-> \"8"), "{told}");
}
