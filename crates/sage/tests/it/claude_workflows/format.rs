//! What a script may be: "Script" of the format, line by line.

use serde_json::json;

use super::{asked, project, returned, script, value, whole};
use crate::dsl::Sage;

/// Refused before the run, at a place, with words.
#[track_caller]
fn refused(text: &str, place: &str, words: &[&str]) {
    let sage = project();
    sage.write(".claude/workflows/t.js", text);
    for command in ["validate .claude/workflows/t.js", "run x -t t"] {
        let told = sage.sage(command).exit(2).stderr_has(place);
        for word in words {
            assert!(told.stderr.contains(word), "{command}: no {word:?} in {}", told.stderr);
        }
    }
    assert!(sage.engine().latest("x").is_none() && asked(&sage).is_empty());
}

// "First statement: `export const meta = {...}`, a pure object literal"
// covers: R21
#[test]
fn meta_is_a_pure_literal() {
    let rest = "return 1\n";
    refused(
        &format!("const name = 'x'\nexport const meta = {{ name, description: 'd' }}\n{rest}"),
        "t.js",
        &[],
    );
    refused(
        &format!("export const meta = {{ name: NAME, description: 'd' }}\n{rest}"),
        "t.js:1:29",
        &["meta", "^"],
    );
    refused(
        &format!("export const meta = {{ name: 'x', description: `d ${{1}}` }}\n{rest}"),
        "t.js:1:",
        &["meta"],
    );
    refused(
        &format!("export const meta = {{ name: 'x', description: 'd', ...more }}\n{rest}"),
        "t.js:1:",
        &["meta"],
    );
    refused(&format!("export const meta = make()\n{rest}"), "t.js:1:", &["meta"]);
    refused(&format!("export const meta = {{ name: 'x' }}\n{rest}"), "t.js:1:", &["description"]);
}

// "`name`, `description`, optional `phases: [{title, detail?, model?}]`, `whenToUse`"
// covers: R21
#[test]
fn meta_names_the_workflow() {
    let sage = project();
    let text = "// A comment first.\nexport const meta = { name: 'my-own', description: 'told by meta', whenToUse: 'now', phases: [{ title: 'A', detail: 'd', model: 'm' }] }\nreturn 1\n";
    sage.write(".claude/workflows/file-name.js", text);
    sage.sage("templates").exit(0).stdout_has("told by meta");
    sage.sage("run x -t my-own").exit(0);
    assert_eq!(value(&sage), json!(1));
    sage.sage("run x -t file-name").exit(0);
}

// "plain JavaScript (no TypeScript, no import, require, import())"
// covers: R21
#[test]
fn nothing_is_imported() {
    refused(&format!("{}import fs from 'fs'\n", whole("")), "t.js:3:1", &["import"]);
    refused(&whole("const fs = require('fs')"), "t.js:2:12", &["require"]);
    refused(&whole("const fs = await import('fs')"), "t.js:2:", &["import()"]);
}

// "top-level `await` and top-level `return`; the returned value is the result"
// covers: R21
#[test]
fn await_and_return_stand_at_the_top() {
    assert_eq!(
        returned("const a = await agent('say hi')\nif (a) return { a }\nreturn 'never'"),
        json!({"a": "hi"})
    );
    assert_eq!(returned("await agent('say hi')"), json!(null));
    let sage = script("\n\nthrow new Error('my own')");
    sage.sage("run x -t t").exit(1).stdout_has("my own").stdout_has("t.js:4:");
}

// "`Date.now()`, `Math.random()` and `new Date()` without argument throw; `new Date(x)` works."
// covers: R21, R16
#[test]
fn there_is_no_clock_and_no_chance() {
    let value = returned(
        r#"
const tried = [() => Date.now(), () => Math.random(), () => new Date(), () => Date()].map((it) => { try { it(); return 'worked' } catch (error) { return 'threw' } })
return { tried, x: new Date(0).toISOString(), y: new Date('2020-02-02').getUTCDate(), parse: Date.parse('1970-01-01T00:00:01Z'), is: new Date(1) instanceof Date }"#,
    );
    let tried = json!(["threw", "threw", "threw", "threw"]);
    assert_eq!(
        value,
        json!({"tried": tried, "x": "1970-01-01T00:00:00.000Z", "y": 2, "parse": 1000, "is": true})
    );
}

// "No files, shell, network, Node API."
// covers: R21, R16
#[test]
fn there_is_nothing_outside() {
    let value = returned(
        "return ['process', 'require', 'fetch', 'Buffer', 'setTimeout', 'fs', 'Deno', 'sage', 'eval'].filter((name) => typeof globalThis[name] !== 'undefined')",
    );
    assert_eq!(value, json!([]));
}

// "`args` is the caller's value as it is; `undefined` when omitted."
// covers: R21
#[test]
fn args_are_the_callers_value() {
    let body = "return { kind: args === undefined ? 'undefined' : Array.isArray(args) ? 'list' : typeof args, args }";
    for (given, expected) in [
        (&[][..], json!({"kind": "undefined"})),
        (&["-i", "args=[1,2]"], json!({"kind": "list", "args": [1, 2]})),
        (&["-i", "args=word"], json!({"kind": "string", "args": "word"})),
        (&["-i", "args=7"], json!({"kind": "number", "args": 7})),
        (&["-i", "a=1", "-i", "b=two"], json!({"kind": "object", "args": {"a": 1, "b": "two"}})),
    ] {
        let sage = script(body);
        sage.args(["run", "x", "-t", "t"].iter().chain(given)).run().exit(0);
        assert_eq!(value(&sage), expected);
    }
}

// "TypeScript is accepted too."
// covers: R21
#[test]
fn typescript_is_accepted_too() {
    let sage = project();
    sage.write(
        ".claude/workflows/typed.ts",
        whole("type A = { n: number }\nconst a: A = { n: 1 }\nreturn a.n as number"),
    );
    sage.sage("run x -t typed").exit(0);
    assert_eq!(value(&sage), json!(1));
}

// ".claude/workflows/*.js of a project or of the user"
// covers: R21
#[test]
fn scripts_of_the_user_are_found_and_the_projects_come_first() {
    let sage = Sage::new();
    let user = sage.outside().join("claude-home");
    std::fs::create_dir_all(user.join("workflows")).unwrap();
    let text = |name: &str, what: &str| {
        format!("export const meta = {{ name: '{name}', description: 'd' }}\nreturn '{what}'\n")
    };
    std::fs::write(user.join("workflows/mine.js"), text("mine", "of the user")).unwrap();
    std::fs::write(user.join("workflows/both.js"), text("both", "of the user")).unwrap();
    sage.write(".claude/workflows/both.js", text("both", "of the project"));
    for (name, told) in [("mine", "of the user"), ("both", "of the project")] {
        sage.args(["run", "x", "-t", name, "--new"]).env("CLAUDE_CONFIG_DIR", &user).run().exit(0);
        assert_eq!(value(&sage), json!(told));
    }
}
