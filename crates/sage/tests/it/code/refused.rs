//! Code that cannot be a workflow is refused before anything runs, with the line and what to write instead.

use super::{flow, ran, value, whole};
use crate::dsl::Sage;

/// `validate` and `run` both refuse it, with the same words.
#[track_caller]
fn refused(text: &str, place: &str, words: &[&str]) {
    let sage = Sage::new().code("t", text);
    for command in ["validate t", "run x -t t"] {
        let told = sage.sage(command).exit(2).stderr_has(place);
        for word in words {
            assert!(told.stderr.contains(word), "{command}: no {word:?} in {}", told.stderr);
        }
    }
    assert!(ran(&sage).is_empty());
    assert!(sage.engine().latest("x").is_none(), "there is no run");
}

// covers: R21, R3
#[test]
fn what_cannot_be_read_is_shown_with_line_and_caret() {
    refused("export default async (sage) => {\n  const a = ;\n};\n", "t.ts:2:13", &["const a = ;", "^"]);
    refused("export default async (sage) => {\n  await sage.shell('x';\n};\n", "t.ts:2:", &["^"]);
}

// covers: R21, R3
#[test]
fn typescript_that_is_more_than_types_is_refused_with_what_to_write() {
    let around = |line: &str| format!("{line}\nexport default async () => 1;\n");
    refused(&around("enum Color { Red }"), "t.ts:1:1", &["enum"]);
    refused(&around("namespace N { export const a = 1 }"), "t.ts:1:1", &["namespace"]);
    refused(&around("class A { constructor(private x: number) {} }"), "t.ts:1:", &["hint"]);
}

// covers: R21
#[test]
fn a_module_without_a_workflow_is_refused() {
    let sage = Sage::new().code("t", "export const a = 1;\n");
    let told = sage.sage("run x -t t");
    assert!([1, 2].contains(&told.code));
    assert!(
        (told.stdout.clone() + &told.stderr).contains("export default"),
        "{}{}",
        told.stdout,
        told.stderr
    );
}

// covers: R21
#[test]
fn a_file_of_nonsense_is_an_error_and_no_accident() {
    let nested = "[".repeat(100_000);
    for text in
        ["", "\u{0}\u{1}", "}{", "export default 3", "export default async () => { yield }", nested.as_str()]
    {
        let sage = Sage::new().code("t", text);
        let told = sage.sage("run x -t t");
        assert!([1, 2].contains(&told.code), "{:?}: {}", &text[..text.len().min(20)], told.code);
    }
}

// covers: R21
#[test]
fn a_call_that_cannot_be_one_rejects_with_what_is_wrong() {
    let sage = flow(
        r#"
  const wrong = async (call) => { try { await call(); return "done"; } catch (error) { return `${error.code}: ${error.message}`; } };
  return [
    await wrong(() => sage.run("no.such.operation", {})),
    await wrong(() => sage.shell({ argv: "not a list" })),
    await wrong(() => sage.run("shell", { run: "true" }, { timeout: "soon" })),
    await wrong(() => sage.run("shell", { run: "true" }, { foreach: "[1]" })),
    await wrong(() => sage.run("script", { code: "1" })),
  ];"#,
    );
    sage.sage("run x -t t").exit(0);
    let value = value(&sage);
    let words = ["no.such.operation", "argv", "timeout", "foreach", "import it"];
    for (told, word) in value.as_array().unwrap().iter().zip(words) {
        let told = told.as_str().unwrap();
        // What the script's own side refuses is a mistake in an argument, and has no class.
        let refused = told.starts_with("invalid: ") || told.starts_with("undefined: sage.run: ");
        assert!(refused && told.contains(word), "{word}: {told}");
    }
}

// covers: R21
#[test]
fn a_template_with_broken_code_is_refused() {
    let template = "name: t\nphases:\n  - id: p\n    operations: { id: s, type: script, params: { code: 'export default (' } }\n";
    let sage = Sage::new().template("t", template);
    sage.sage("validate t").exit(2);
    sage.sage("run x -t t").exit(2);
    let template = "name: t\nphases:\n  - id: p\n    operations: { id: s, type: script, params: { file: nowhere.ts } }\n";
    let sage = Sage::new().template("t", template);
    sage.sage("run x -t t").exit(2).stderr_has("nowhere.ts");
}

// covers: R21
#[test]
fn valid_code_is_said_to_be_valid() {
    let sage = Sage::new().code("t", &whole("const n: number = 1;\nreturn n satisfies number;"));
    sage.sage("validate t").exit(0);
    sage.sage("validate .sage/templates/t.ts").exit(0);
}
