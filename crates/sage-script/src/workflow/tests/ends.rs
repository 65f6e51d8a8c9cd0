//! How scripts end that do not simply return.

use std::time::Instant;

use super::*;

#[test]
fn what_it_throws_names_its_own_lines() {
    let run = Script::sage(
        "const inner = () => { throw new TypeError('bad') }\nawait sage.agent('a', 'x')\ninner()",
    )
    .run(echo);
    assert_eq!(run.threw(), "TypeError: bad\n    at inner (t.ts:2:33)\n    at t.ts:4:1");
    assert!(Script::sage("const a = {}; a.a = a; return a").run(echo).threw().contains("circular"));
    let run = Script::new(Dialect::Sage, "t.ts", "export const x = 1").run(echo);
    assert!(run.threw().contains("`t.ts` has no workflow: write `export default"), "{}", run.threw());
    let run =
        Script::new(Dialect::Sage, "t.ts", "import x from './gone.ts'\nexport default () => x").run(echo);
    assert!(run.threw().contains("no module `./gone.ts`"), "{}", run.threw());
}

#[test]
fn a_program_that_cannot_be_read_is_broken_not_failed() {
    let run = Script::new(Dialect::Sage, "t.ts", "enum X { A }\nexport default () => 1").run(echo);
    assert!(run.broken().contains("an `enum` is more than a type\n --> t.ts:1:1"), "{}", run.broken());
    let run = Script::new(Dialect::Sage, "t.ts", "export default () => {").run(echo);
    assert!(run.broken().contains("--> t.ts:1:"), "{}", run.broken());
    let run = Script::new(Dialect::Claude, "t.js", "const x = 1").run(echo);
    assert!(run.broken().contains("does not begin with `export const meta"), "{}", run.broken());
}

// covers: R21
#[test]
fn limits_are_never_the_scripts_verdict() {
    for body in [
        "while (true) {}",
        "try { while (true) {} } catch {}",
        "await sage.agent('a', 'x'); const f = () => Promise.resolve().then(f); await f()",
        "const f = async () => { while (true) await null }; await f()",
        "const a = []; while (true) a.push(new Array(1000).fill(1))",
    ] {
        let mut script = Script::sage(body);
        script.limits.cpu_ms = 300;
        let run = script.run(echo);
        assert!(run.broken().contains("`t.ts` was cut off: it used more than"), "{body}: {}", run.broken());
    }
    let mut script = Script::sage("for (let i = 0; ; i++) await sage.agent('a', `${i}`)");
    script.limits.max_calls = 10;
    assert!(script.run(echo).threw().contains("a script can make at most 10 calls"));
}

#[test]
fn what_nobody_will_answer_is_told() {
    let run = Script::sage("await sage.agent('a', 'x')\nawait new Promise(() => {})").run(echo);
    assert_eq!(
        run.broken(),
        "stuck: `t.ts` awaits something that nobody will answer, after 1 call; its last call was made at t.ts:2:12"
    );
}

#[test]
fn a_result_that_is_not_json_is_the_engines_fault() {
    let run = Script::sage("return await sage.agent('a', 'x')")
        .run(|_| CallOutcome::Value(Text::Here("{nope".into())));
    assert!(run.broken().contains("the result of call 0 cannot be read"), "{}", run.broken());
}

/// Starts, waits for the calls, cancels, and gives how it ended.
fn cancelled(script: &Script) -> (Result<Value, ScriptFailure>, Vec<String>) {
    let (handle, said) = start(script, &Run::default());
    let mut lines = Vec::new();
    loop {
        match said.recv_timeout(PATIENCE).expect("the script says something") {
            ScriptSays::Rests { .. } => handle.cancel(),
            ScriptSays::Log(line) => lines.push(line),
            ScriptSays::Ended(ended) => return (ended, lines),
        }
    }
}

#[test]
fn cancellation_goes_through_catch_and_finally() {
    let body = "try { await sage.agent('a', 'x') } catch (e) { sage.log(e.code); await sage.agent('b', 'y') } finally { sage.log('finally') }";
    let (ended, lines) = cancelled(&Script::sage(body));
    assert_eq!((ended, lines), (Err(ScriptFailure::Cancelled), vec!["cancelled".into(), "finally".into()]));
    let (ended, _) = cancelled(&Script::sage("try { await sage.agent('a', 'x') } catch {} return 'saved'"));
    assert_eq!(ended, Ok(json!("saved")));
    let (ended, _) = cancelled(&Script::sage(
        "await Promise.all([sage.agent('a', 'x'), new Promise(() => {})].map((p) => p.catch(() => new Promise(() => {}))))",
    ));
    assert_eq!(ended, Err(ScriptFailure::Cancelled));
    let mut stubborn = Script::sage("while (true) { try { await sage.agent('a', 'x') } catch {} }");
    stubborn.limits.cpu_ms = 200;
    assert_eq!(cancelled(&stubborn).0, Err(ScriptFailure::Cancelled));
    let (ended, _) = cancelled(&Script::claude(
        "const r = await parallel([() => agent('x'), () => agent('y')]); return [r, await agent('z')]",
    ));
    assert_eq!(ended, Ok(json!([[null, null], null])));
}

#[test]
fn a_script_that_nobody_holds_ends() {
    for body in ["await sage.agent('a', 'x')", "while (true) {}"] {
        let mut script = Script::sage(body);
        script.limits.cpu_ms = 600_000;
        let (handle, said) = start(&script, &Run::default());
        if body.starts_with("await") {
            said.recv_timeout(PATIENCE).expect("it rests");
        }
        drop(handle);
        let began = Instant::now();
        // Its thread holds the sender: it has ended when the channel has.
        while said.recv_timeout(PATIENCE).is_ok() {}
        assert!(began.elapsed() < PATIENCE, "{body}");
    }
}
