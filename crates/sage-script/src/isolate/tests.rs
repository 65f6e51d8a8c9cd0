//! Limits hold, the machine is out of sight, errors name the script's own lines.

use std::time::Instant;

use super::*;

const LIMITS: Limits = Limits { memory_bytes: 64 << 20, stack_bytes: 512 << 10, cpu_ms: 300 };

/// The value of an expression, as JSON, in a fresh isolate.
fn value(expression: &str) -> Result<String, Fault> {
    let isolate = Isolate::new(&LIMITS)?;
    isolate.set_now(1_700_000_000_000);
    isolate.set_seed(7);
    run(&isolate, &format!("export default async () => {{\nreturn {expression}\n}}"))
}

fn run(isolate: &Isolate, code: &str) -> Result<String, Fault> {
    isolate.add_module("./t.ts", code);
    isolate.begin();
    let main = isolate.eval_module("./t.ts")?;
    let answer = isolate.call(&main, &[])?;
    isolate.turn()?;
    match isolate.settled(&answer)? {
        None => Err(Fault::Broken("open".to_owned())),
        Some(Settled::Value(value)) => Ok(value.unwrap_or_else(|| "undefined".to_owned())),
        Some(Settled::Threw(thrown)) => Err(isolate.fault(thrown)),
    }
}

fn thrown(expression: &str) -> String {
    value(expression).expect_err("it must throw").to_string()
}

// covers: R21
#[test]
fn endless_code_ends_at_the_limit() {
    for attack in [
        "(() => { while (true) {} })()",
        "(() => { function* g() { while (true) yield 1 } for (const x of g()) {} })()",
        "(async () => { while (true) await null })()",
        "(() => { const f = () => Promise.resolve().then(f); return f() })()",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "(() => { while (true) { try { while (true) {} } catch {} } })()",
        "(() => { try { while (true) {} } finally { while (true) {} } })()",
        "Array.prototype.indexOf.call({ length: 2 ** 31 }, 99)",
        "[...Array(1e6).keys()].sort(() => { while (true) {} })",
    ] {
        let began = limits::thread_cpu_ns();
        let fault = value(attack).expect_err(attack);
        let used_ms = (limits::thread_cpu_ns() - began) / 1_000_000;
        // The chain of promises grows: on a slow machine its time ends first, on a quick one its memory.
        assert!(matches!(fault, Fault::Cpu(300) | Fault::Memory(_)), "{attack}: {fault:?}");
        // Far above the limit: CPU time, too, grows on a machine whose cores are shared.
        assert!(used_ms < 3_000, "{attack}: {used_ms} ms");
    }
}

#[test]
fn memory_and_stack_have_an_end() {
    for attack in [
        "(() => { const a = []; while (true) a.push(new Array(1000).fill(1)) })()",
        "new Uint8Array(1 << 30)",
        "'x'.repeat(1 << 29)",
        "new Array(2 ** 32 - 1).fill(0)",
    ] {
        let fault = value(attack).expect_err(attack);
        assert!(matches!(fault, Fault::Memory(_) | Fault::Cpu(_)), "{attack}: {fault}");
    }
    for attack in [
        "(() => { const f = () => f() + 1; return f() })()",
        "JSON.parse('['.repeat(200000))",
        "(() => { let a = []; for (let i = 0; i < 200000; i++) a = [a]; return a })()",
    ] {
        let fault = value(attack).expect_err(attack).to_string();
        assert!(fault.contains("call stack") || fault.contains("stack overflow"), "{attack}: {fault}");
    }
    assert!(value("2n ** (2n ** 26n)").is_err());
    // An isolate that was pushed to its limit is gone; the next one is as good as new.
    assert_eq!(value("1 + 1"), Ok("2".to_owned()));
}

#[test]
fn text_never_becomes_code() {
    for attack in [
        "eval('1')",
        "new Function('return 1')()",
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "(function* () {}).constructor('yield 1')().next()",
        "(async function* () {}).constructor('yield 1')().next()",
        "Reflect.construct(Object.getPrototypeOf(async () => {}).constructor, ['return 1'])",
        "import('data:text/javascript,export default 1')",
    ] {
        let fault = value(attack).expect_err(attack);
        assert!(matches!(fault, Fault::Threw(_)), "{attack}: {fault}");
    }
    assert_eq!(value("(() => {}) instanceof Function"), Ok("true".to_owned()));
    assert_eq!(
        value(
            "[typeof WeakRef, typeof Atomics, typeof SharedArrayBuffer, typeof FinalizationRegistry, typeof performance, typeof require, typeof process, typeof fetch, typeof setTimeout]"
        ),
        Ok(format!("[{}]", ["\"undefined\""; 9].join(",")))
    );
}

#[test]
fn clock_and_chance_are_told() {
    assert_eq!(
        value("[Date.now(), new Date().toISOString(), +new Date(5), new Date(2026, 0, 2).toISOString()]"),
        Ok(r#"[1700000000000,"2023-11-14T22:13:20.000Z",5,"2026-01-02T00:00:00.000Z"]"#.to_owned())
    );
    assert_eq!(
        value(
            "[String(new Date(0)), Date().slice(0, 15), new Date('2026-01-02T03:04').getHours(), new Date(NaN) + '']"
        ),
        Ok(r#"["Thu Jan 01 1970 00:00:00 GMT+0000","Tue Nov 14 2023",3,"Invalid Date"]"#.to_owned())
    );
    assert_eq!(
        value(
            "[new Date(new Date(9)).getTime(), new Date(0) instanceof Date, new Date(0).getTimezoneOffset(), JSON.stringify(new Date(0))]"
        ),
        Ok(r#"[9,true,0,"\"1970-01-01T00:00:00.000Z\""]"#.to_owned())
    );
    let three = "[Math.random(), Math.random(), Math.random()]";
    let drawn = value(three).unwrap();
    assert_eq!(value(three), Ok(drawn.clone()));
    let numbers: Vec<f64> = serde_json::from_str(&drawn).unwrap();
    assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)) && numbers[0] != numbers[1]);
}

#[test]
fn a_clock_in_another_zone_is_still_utc() {
    // The zone of a process is read once by the engine's C library, so a process of its own asks.
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["--exact", "isolate::tests::clock_and_chance_are_told"])
        .env("TZ", "America/New_York")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn errors_name_the_scripts_own_lines() {
    let isolate = Isolate::new(&LIMITS).unwrap();
    isolate.add_module("./lib/inner.ts", "export function inner(x) {\n  throw new TypeError('bad ' + x)\n}");
    let code =
        "import { inner } from './lib/inner'\nexport default async () => {\n  await null\n  inner(3)\n}";
    let fault = run(&isolate, code).unwrap_err().to_string();
    assert_eq!(fault, "TypeError: bad 3\n    at inner (./lib/inner.ts:2:32)\n    at ./t.ts:4:3");
    assert_eq!(thrown("(() => { throw 'plain' })()"), "plain");
    assert_eq!(thrown("(() => { throw { message: 'm', code: 'c' } })()"), "m");
    assert!(thrown("(() => { throw { get message() { throw 1 } } })()").contains("object"));
    let syntax = run(&Isolate::new(&LIMITS).unwrap(), "export default () => {\n  let a = ;\n}")
        .unwrap_err()
        .to_string();
    assert!(syntax.starts_with("SyntaxError: ") && syntax.contains("./t.ts:2:"), "{syntax}");
    assert!(thrown("({ toJSON() { throw new Error('no json') } })").contains("no json"));
    assert!(thrown("(() => { const a = {}; a.a = a; return a })()").contains("circular"));
}

#[test]
fn imports_are_what_was_given() {
    let isolate = Isolate::new(&LIMITS).unwrap();
    isolate.add_module("servers/github/index.ts", "export const search = () => 'found'");
    isolate.add_module("./lib/a.ts", "import b from './b.js'; export default b + 1");
    isolate.add_module("./lib/b.ts", "export default 1");
    let code = "import { search } from 'servers/github'\nimport a from './lib/a.ts'\nexport default () => [search(), a]";
    assert_eq!(run(&isolate, code), Ok(r#"["found",2]"#.to_owned()));
    for (import, expected) in [
        ("node:fs", "scripts have no files, no network and no Node"),
        ("./lib/c.ts", "no module `./lib/c.ts`; did you mean `./lib/"),
        ("lodash", "no module `lodash`; there are: ./lib/a.ts, ./lib/b.ts"),
        ("../../etc/passwd", "no module"),
    ] {
        let isolate = Isolate::new(&LIMITS).unwrap();
        isolate.add_module("./lib/a.ts", "export default 1");
        isolate.add_module("./lib/b.ts", "export default 1");
        let told = run(&isolate, &format!("import x from '{import}'\nexport default () => x"))
            .unwrap_err()
            .to_string();
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn functions_of_the_host_take_and_give_text() {
    let isolate = Isolate::new(&LIMITS).unwrap();
    isolate
        .function("host", |args| match args.as_slice() {
            [one] => Ok(one.to_uppercase()),
            _ => Err("one text, please".to_owned()),
        })
        .unwrap();
    isolate.global("given", r#"{"a":[1]}"#).unwrap();
    let code =
        "export default () => { try { host() } catch (e) { return [host('x'), e.message, given.a[0]] } }";
    assert_eq!(run(&isolate, code), Ok(r#"["X","one text, please",1]"#.to_owned()));
}

#[test]
fn stopped_from_outside_it_ends() {
    let stop = Stop::default();
    let isolate = Isolate::with_stop(&Limits { cpu_ms: 60_000, ..LIMITS }, stop.clone()).unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        stop.stop();
    });
    let began = Instant::now();
    assert_eq!(run(&isolate, "export default () => { while (true) {} }"), Err(Fault::Stopped));
    assert!(began.elapsed() < Duration::from_secs(10));
    stopper.join().unwrap();
}
