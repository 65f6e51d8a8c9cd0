//! What a model writes, and what it gets back.

use std::time::{Duration, Instant};

use sage_script::code::{CodeLimits, CodeRun, FailureKind};
use serde_json::json;

use crate::desk::Desk;

// covers: R21, R19
#[test]
fn tools_are_functions_and_only_the_answer_comes_back() {
    let desk = Desk::new();
    let answer = desk
        .run(
            r#"import { listIssues } from "servers/github";
type Issue = { id: number; title: string; open: boolean };

const pages = await Promise.all([0, 1, 2].map((page) => listIssues({ owner: "me", page })));
const open = pages.flatMap((page) => page.issues as Issue[]).filter((issue) => issue.open);
console.log("open:", open.length, { a: [1] });
return open.map(({ id }) => id);
"#,
        )
        .unwrap();
    assert_eq!(
        answer.value,
        json!([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400])
    );
    assert_eq!(answer.console.text, "open: 15 {\"a\":[1]}\n");
    assert_eq!((answer.counts.calls, answer.counts.failed_calls), (3, 0));
    assert!(answer.counts.bytes_in > 300_000 && answer.counts.bytes_out < 200, "{:?}", answer.counts);
    assert_eq!(answer.counts.bytes_kept_out, answer.counts.bytes_in - answer.counts.bytes_out);
}

// covers: R21
#[test]
fn what_belongs_to_people_stays_out_and_comes_back_for_tools() {
    let desk = Desk::new();
    let answer = desk
        .run(
            r#"import { getUser } from "servers/github";
import { send } from "servers/mail";
const user = await getUser();
await send({ to: user.email, text: `call ${user.phone}` });
console.log(user.email);
return user;"#,
        )
        .unwrap();
    assert_eq!(answer.value, json!({"name": "Ann", "email": "[EMAIL_1]", "phone": "[PHONE_1]"}));
    assert_eq!(answer.console.text, "[EMAIL_1]\n");
    let sent = desk.servers.called.lock().unwrap().last().unwrap().1.clone();
    assert_eq!(sent, json!({"to": "ann@example.com", "text": "call +49 30 1234567"}));
    assert_eq!(desk.session.reveal(answer.value)["email"], "ann@example.com");
    // The same person is the same token for the whole session.
    assert_eq!(
        desk.value("import * as github from 'servers/github'; return (await github.getUser()).email"),
        "[EMAIL_1]"
    );
}

// covers: R21
#[test]
fn a_big_value_becomes_a_handle_that_later_code_takes_up() {
    let desk = Desk::new();
    let answer = desk.run("import { listIssues } from \"servers/github\";\nreturn (await listIssues({ owner: 'me' })).issues").unwrap();
    assert_eq!(answer.handle.as_deref(), Some("h1"));
    assert_eq!((&answer.value["type"], &answer.value["length"]), (&json!("array"), &json!(500)));
    assert!(answer.value.to_string().len() < 2_000, "{}", answer.value);
    let later = "import { handles } from \"sage\";\nconst issues = await handles.get(\"h1\");\nreturn issues.at(-1).title";
    assert_eq!(desk.value(later), "issue 499");
    let failure = desk.failure("import { handles } from \"sage\";\nawait handles.get(\"h9\")");
    assert!(failure.message.contains("there is no handle `h9`; there are h1"), "{failure:?}");
}

// covers: R21, R12
#[test]
fn skills_are_modules() {
    let desk = Desk::new();
    assert_eq!(desk.value("import * as rank from \"skills/rank\";\nreturn rank.best([3, 7, 5])"), 7);
    assert_eq!(desk.value("import twice from \"skills/twice\";\nreturn await twice({ list: [4, 9] })"), 18);
}

// covers: R21
#[test]
fn code_finds_tools_by_itself() {
    let desk = Desk::new();
    let found =
        desk.value("import { tools } from \"sage\";\nreturn await tools.search('list issues', 'names', 1)");
    assert_eq!(
        found,
        json!([{"module": "servers/github", "name": "listIssues", "text": "github/listIssues: List issues of a repository"}])
    );
}

#[test]
fn code_may_export_its_value_or_a_function() {
    let desk = Desk::new();
    assert_eq!(desk.value("export default 1 + 1"), 2);
    let run = CodeRun {
        input: json!({"n": 20}),
        ..CodeRun::new("export default async (input: { n: number }) => input.n + 1")
    };
    assert_eq!(desk.run_as(&run).unwrap().value, 21);
    let run = CodeRun {
        input: json!({"n": 20}),
        ..CodeRun::new("import { input as given } from 'sage';\nreturn [input.n, given.n]")
    };
    assert_eq!(desk.run_as(&run).unwrap().value, json!([20, 20]));
    assert!(desk.run("const a = 1").unwrap().nothing);
    assert!(!desk.run("return null").unwrap().nothing);
}

// covers: R21
#[test]
fn calls_run_at_once_but_not_too_many() {
    let desk = Desk::new();
    let begun = Instant::now();
    desk.value("import { wait } from \"servers/mail\";\nawait Promise.all(Array.from({ length: 64 }, () => wait({ ms: 100 })));\nreturn 1");
    // 64 calls in four rounds of 16; one after the other would take 6.4 s.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(desk.servers.most.load(std::sync::atomic::Ordering::SeqCst), 16);
}

// covers: R21
#[test]
fn errors_help_to_mend_the_code() {
    let desk = Desk::new();
    let cases = [
        (
            "import { listIssue } from \"servers/github\";\nreturn 1",
            FailureKind::Import,
            "did you mean `listIssues`?",
        ),
        (
            "import { x } from \"servers/gihub\";\nreturn 1",
            FailureKind::Import,
            "did you mean `servers/github`?",
        ),
        ("import fs from \"fs\";\nreturn 1", FailureKind::Import, "Code has no files, network or packages"),
        (
            "import * as github from \"servers/github\";\n\nreturn github.listIsues({})",
            FailureKind::Threw,
            "code.ts:3:",
        ),
        (
            "import * as github from \"servers/github\";\nreturn github.listIsues({})",
            FailureKind::Threw,
            "did you mean `listIssues`?",
        ),
        ("const a = {};\n  return a.b.c", FailureKind::Threw, "code.ts:2:"),
        ("return nothing.here", FailureKind::Threw, "code.ts:1:8"),
        (
            "import { fail } from \"servers/mail\"; const x = 1;\nawait fail({})",
            FailureKind::Threw,
            "code.ts:2:",
        ),
        (
            "import { fail } from \"servers/mail\";\nawait fail({})",
            FailureKind::Threw,
            "servers/mail: fail(input?:",
        ),
        ("const x: = 1", FailureKind::Syntax, "code.ts:1:10"),
        ("enum A { B }\nreturn A.B", FailureKind::Syntax, "code.ts:1:1"),
        ("await new Promise(() => {})", FailureKind::Stuck, "nobody will answer"),
        ("throw { message: 'odd', code: 3 }", FailureKind::Threw, "odd"),
        ("import { send } from \"servers/mail\";\nawait send({ to: 1n })", FailureKind::Threw, "BigInt"),
    ];
    for (code, kind, told) in cases {
        let failure = desk.failure(code);
        let whole = format!("{} {}", failure.message, failure.hint.clone().unwrap_or_default());
        assert_eq!(failure.kind, kind, "{code}: {failure:?}");
        assert!(whole.contains(told), "{code}\nwants {told}\n{whole}");
    }
    let failure = desk.failure("import { fail } from \"servers/mail\";\nawait fail({})");
    assert!(
        failure.message.starts_with("ToolError: mail/fail: the mailbox of [EMAIL_1] is full"),
        "{failure:?}"
    );
    assert!(failure.message.contains("\n2 | await fail({})"), "{failure:?}");
    assert_eq!(failure.counts.failed_calls, 1);
}

#[test]
fn a_failed_call_can_be_caught() {
    let desk = Desk::new();
    let code = "import { fail } from \"servers/mail\";\ntry { await fail({}) } catch (error) { return [error.name, error instanceof Error] }";
    assert_eq!(desk.value(code), json!(["ToolError", true]));
}

// covers: R21
#[test]
fn what_is_printed_is_cut_and_told() {
    let desk = Desk::with(CodeLimits { console_bytes: 100, ..CodeLimits::default() });
    let answer = desk.run("for (let i = 0; i < 10000; i++) console.log('line', i);\nreturn 1").unwrap();
    assert!(answer.console.text.len() <= 100, "{}", answer.console.text.len());
    assert!(answer.console.cut_bytes > 80_000, "{}", answer.console.cut_bytes);
    assert!(answer.console.told().ends_with(" more bytes were cut]"));
    // Also what was printed before the code failed.
    assert_eq!(desk.failure("console.log('a');\nthrow new Error('x')").console.text, "a\n");
}

// covers: R21
#[test]
fn code_sees_nothing_of_the_machine() {
    let desk = Desk::new();
    let names = "return ['process', 'require', 'fetch', 'setTimeout', 'Deno', 'Bun', 'std', 'os', 'eval', '__tell', '__input', 'WebSocket', 'XMLHttpRequest'].filter((name) => name in globalThis)";
    assert_eq!(desk.value(names), json!([]));
    for makes in [
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
    ] {
        assert_eq!(desk.failure(&format!("return {makes}")).kind, FailureKind::Threw, "{makes}");
    }
    for module in [
        "node:fs",
        "os",
        "std",
        "./x.ts",
        "../../etc/passwd",
        "https://example.com/x.js",
        "servers/../x",
        "file:///etc/passwd",
    ] {
        assert_eq!(
            desk.failure(&format!("import x from \"{module}\";\nreturn x")).kind,
            FailureKind::Import,
            "{module}"
        );
        assert!(desk.run(&format!("return await import(\"{module}\")")).is_err(), "{module}");
    }
    let late = desk.failure("const name = 'ser' + 'vers/mail';\nreturn Object.keys(await import(name))");
    assert!(matches!(late.kind, FailureKind::Import | FailureKind::Threw), "{late:?}");
    // The clock stands still at the session's beginning.
    assert_eq!(desk.value("const a = Date.now();\nfor (let i = 0; i < 1e5; i++);\nreturn Date.now() - a"), 0);
}

// covers: R21
#[test]
fn a_run_may_call_so_often_and_no_more() {
    let desk = Desk::with(CodeLimits { max_calls: 10, ..CodeLimits::default() });
    let failure = desk.failure(
        "import { send } from \"servers/mail\";\nfor (let i = 0; i < 11; i++) await send({ to: 'x' })",
    );
    assert!(failure.message.contains("more than 10 calls"), "{failure:?}");
    assert_eq!(failure.counts.calls, 10);
}

// covers: R21
#[test]
fn a_tool_that_does_not_answer_is_told_by_its_name() {
    let desk = Desk::new();
    let run = CodeRun {
        wall_ms: Some(300),
        ..CodeRun::new("import { wait } from \"servers/mail\";\nawait wait({ ms: 60000 })")
    };
    let begun = Instant::now();
    let failure = desk.run_as(&run).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.message.contains("mail/wait"), "{failure:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// What another program says in its place is not believed and harms nobody.
#[test]
fn a_sandbox_that_is_not_ours_is_an_error() {
    use std::path::PathBuf;
    use std::sync::Arc;

    use sage_script::code::{CodeSession, NoSkills};
    let desk = Desk::new();
    for program in ["/bin/echo", "/bin/false", "/nowhere/sage"] {
        let session = CodeSession::new(
            PathBuf::from(program),
            desk.servers.clone(),
            Arc::new(NoSkills),
            CodeLimits::default(),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let failure = runtime.block_on(session.run(&CodeRun::new("return 1"))).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Broken, "{program}: {failure:?}");
    }
}
