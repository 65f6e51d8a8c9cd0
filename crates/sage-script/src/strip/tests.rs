//! What is blanked, what is refused, and what is known before the run.

use std::process::Command;

use sage_core::port::script::Dialect;
use serde_json::json;

use super::*;

fn module(text: &str) -> String {
    strip("t.ts", text, Form::Module).unwrap_or_else(|problems| panic!("{}", shown(&problems))).code
}

fn shown(problems: &[Shown]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn problems(text: &str, form: Form) -> String {
    shown(&strip("t.ts", text, form).expect_err("it must be refused"))
}

/// Same length in bytes and UTF-16 units line by line, valid JavaScript, and nothing new but `;` and `()`.
fn check_blanked(text: &str, code: &str) {
    assert_eq!(code.len(), text.len());
    for (was, is) in text.lines().zip(code.lines()) {
        assert_eq!(was.encode_utf16().count(), is.encode_utf16().count(), "{was}\n{is}");
        for (old, new) in was.encode_utf16().zip(is.encode_utf16()) {
            let new = char::from_u32(new.into()).unwrap_or('?');
            let same = u32::from(old) == u32::from(new) || char::from_u32(old.into()).is_none();
            assert!(same || new.is_whitespace() || ";()".contains(new), "{was}\n{is}");
        }
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, code, SourceType::mjs()).with_options(options).parse();
    let wrong: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{code}");
}

// covers: R21
#[test]
fn a_torture_corpus_stays_where_it_was_and_is_javascript() {
    let text = include_str!("torture.ts");
    let code = module(text);
    check_blanked(text, &code);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("torture.mjs");
    std::fs::write(&file, &code).unwrap();
    match Command::new("node").arg("--check").arg(&file).output() {
        Err(why) => eprintln!("skipped node --check: {why}"),
        Ok(output) => assert!(output.status.success(), "{}\n{code}", String::from_utf8_lossy(&output.stderr)),
    }
    // A second pass has nothing left to do.
    assert_eq!(module(&code), code);
}

#[test]
fn plain_javascript_is_unchanged() {
    let text =
        "const a = 1 < 2 && 3 > (2)\nlet b = a ? c : d => e\nclass X { static async *m() {} get = 1 }\n";
    assert_eq!(module(text), text);
}

#[test]
fn lines_that_were_apart_stay_apart() {
    assert_eq!(module("const a = b as any\n(c)()"), "const a = b ;     \n(c)()");
    assert_eq!(module("a\ntype X = 1\n(c)()"), "a\n;         \n(c)()");
    assert_eq!(module("class A { x = 1\npublic ['y']() {} }"), "class A { x = 1\n;      ['y']() {} }");
    assert_eq!(module("class A { get: T\nfoo() {} }"), "class A { get;  \nfoo() {} }");
    assert_eq!(module("f((x):\nT => x)"), "f((x  \n) => x)");
    assert_eq!(module("f(async <\nT>(x) => x)"), "f(async (\n   x) => x)");
}

#[test]
fn what_is_more_than_types_is_refused_with_what_to_write_instead() {
    let text = "enum Level { Low }\nnamespace N { export const x = 1 }\n@d class A { constructor(private x: number) {} }\n\
        import fs = require(\"fs\")\nconst y = <any>x\nclass B { accessor z = 1 }\n";
    let told = problems(text, Form::Module);
    for expected in [
        "error: an `enum` is more than a type\n --> t.ts:1:1\n  |\n1 | enum Level { Low }\n  | ^^^^^^^^^^^\n  = hint: write `const Level",
        "--> t.ts:2:1",
        "--> t.ts:3:1",
        "--> t.ts:3:26",
        "--> t.ts:4:1",
        "--> t.ts:5:11",
        "hint: write `value as Type`",
        "--> t.ts:6:11",
    ] {
        assert!(told.contains(expected), "{expected}\n---\n{told}");
    }
    assert!(problems("export = 1", Form::Module).contains("hint: write `export default`"));
    assert_eq!(module("declare enum X { A }"), ";                   ");
}

#[test]
fn errors_have_a_line_and_a_caret() {
    let told = problems("const a = {\n  b: 1\nfoo()\n", Form::Module);
    assert!(told.starts_with("error: "), "{told}");
    assert!(told.contains("--> t.ts:3:1\n  |\n3 | foo()\n  | ^^^"), "{told}");
}

#[test]
fn absurd_texts_are_refused_or_read_but_never_a_crash() {
    for (head, link, tail) in [
        ("", "(", ""),
        ("", "!", "1"),
        ("", "typeof ", "1"),
        ("", "await ", "1"),
        ("", "new ", "x"),
        ("", "a=>", "0"),
        ("", "if(a)", ";"),
        ("", "if(a);else ", ";"),
        ("", "a?b:", "c"),
        ("", "x=", "1"),
        ("", "x+", "1"),
        ("", "x**", "1"),
        ("x", ".a", ""),
        ("x", "()", ""),
        ("x", " as b", ""),
        ("type T = ", "keyof ", "X"),
        ("type T = ", "A extends B ? C : ", "X"),
        ("type T = ", "()=>", "X"),
        ("", "l:", ";"),
    ] {
        let count = (MAX_BYTES - head.len() - tail.len()) / link.len();
        let text = format!("{head}{}{tail}", link.repeat(count));
        // Read or refused; what must not happen is that the process dies.
        let _ = strip("t.ts", &text, Form::Module);
    }
    let deep = "(".repeat(2_000);
    assert!(problems(&deep, Form::Module).contains("nested more than 1000 levels deep"));
    assert!(problems(&" ".repeat(MAX_BYTES + 1), Form::Module).contains("at most"));
}

#[test]
fn a_sage_workflow_is_known_before_it_runs() {
    let text = "import { rank } from './lib/rank.ts'\nimport type { X } from './x.ts'\n\
        export const meta = { name: 'review', timeout: -1, list: [true, null, `x`] } as const\n\
        export default async (sage, input) => { await sage.workflow('audit', {}); await sage.workflow(name) }\n";
    let scan = strip("t.ts", text, Form::Workflow).unwrap().scan;
    assert_eq!(scan.imports, ["./lib/rank.ts"]);
    assert_eq!((scan.workflows.as_slice(), scan.calls_any), (["audit".to_string()].as_slice(), true));
    let (start, end) = scan.workflow_spans[0];
    assert_eq!(&text[start..end], "'audit'");
    assert_eq!(scan.meta, Some(json!({"name": "review", "timeout": -1, "list": [true, null, "x"]})));
    assert_eq!(scan.dialect, Dialect::Sage);
    assert!(
        problems("return 1\nexport default () => 1", Form::Workflow)
            .contains("`return` outside of a function")
    );
}

// covers: R16
#[test]
fn a_script_of_claude_code_is_known_by_its_meta() {
    let head = "export const meta = { name: 'x', description: 'y' }\n";
    let text = format!("{head}const r = await workflow({{ scriptPath: './other.js' }})\nreturn r\n");
    let stripped = strip("t.js", &text, Form::Workflow).unwrap();
    assert_eq!(stripped.scan.dialect, Dialect::Claude);
    assert_eq!(stripped.scan.workflows, ["./other.js"]);
    assert!(!stripped.scan.calls_any);
    let wrapped = stripped.wrapped("export default async () => {", "}");
    check_blanked(&wrapped, &module(&wrapped));
    assert!(wrapped.contains("\nreturn r\n"), "{wrapped}");
    for (line, expected) in [
        ("import x from './x.js'", "cannot use `import`"),
        ("const x = await import('./x.js')", "cannot use `import()`"),
        ("const fs = require('fs')", "cannot use `require`"),
        ("export const other = 1", "only `meta` can be exported"),
    ] {
        let told = problems(&format!("{head}{line}\n"), Form::Workflow);
        assert!(told.contains(expected) && told.contains("--> t.ts:2:"), "{told}");
    }
    for meta in [
        "{ name: f(), description: 'x' }",
        "{ name: `${a}`, description: 'x' }",
        "{ ...a }",
        "{ a }",
        "[1]",
        "{}",
    ] {
        let told = problems(&format!("export const meta = {meta}\n"), Form::Workflow);
        assert!(told.contains("`meta`") && told.contains("t.ts:1:"), "{meta}: {told}");
    }
}

#[test]
fn a_body_is_wrapped_without_moving_a_line() {
    let text = "import { a } from \"servers/x\"\nconst é = 1; import {\n b } from \"skills/b\"\nreturn a(b)";
    let wrapped = strip("t.ts", text, Form::Body).unwrap().wrapped("export default async () => {", "}");
    let lines: Vec<&str> = wrapped.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(
        lines[0]
            .starts_with("import { a } from \"servers/x\";import {  b } from \"skills/b\";export default")
    );
    assert!(lines[1].starts_with("const é = 1; "));
    assert_eq!(lines[3], "return a(b)");
    check_blanked(&wrapped, &wrapped);
}
