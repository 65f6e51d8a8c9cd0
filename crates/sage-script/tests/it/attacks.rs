//! Hostile code ends at its limit, also where the engine cannot interrupt it, and its owner does not feel it.

use std::time::{Duration, Instant};

use sage_script::code::{CodeLimits, CodeRun, FailureKind};
use serde_json::json;

use crate::desk::Desk;

const CPU_MS: u64 = 300;
/// After the limit: what the kernel and a loaded machine need to end a process. The process' own CPU time, which is what
/// is limited, is exact.
const LATE: Duration = Duration::from_millis(200);

fn limits() -> CodeLimits {
    CodeLimits {
        cpu_ms: CPU_MS,
        wall_ms: 20_000,
        memory_bytes: 64 << 20,
        stack_bytes: 512 << 10,
        ..CodeLimits::default()
    }
}

/// CPU time of all children that have ended, of this test process alone.
fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let ticks: u64 = fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Each ends by its CPU limit, an error of its own or the memory limit; none may use more than limit + 200 ms.
fn ends(desk: &Desk, attack: &str) -> FailureKind {
    let before = children_cpu();
    let failure = desk.failure(attack);
    let used = children_cpu() - before;
    assert!(used <= Duration::from_millis(CPU_MS) + LATE, "{attack}: {used:?} of CPU, {failure:?}");
    failure.kind
}

// covers: R21
#[test]
fn endless_code_ends_at_its_limit() {
    let desk = Desk::with(limits());
    for attack in [
        "while (true) {}",
        "function* g() { while (true) yield 1 }\nfor (const x of g()) {}",
        "while (true) await null",
        "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
        "while (true) { try { while (true) {} } catch {} }",
        "try { while (true) {} } finally { while (true) {} }",
        "return Array.prototype.indexOf.call({ length: 2 ** 31 }, 99)",
    ] {
        assert_eq!(ends(&desk, attack), FailureKind::Cpu, "{attack}");
    }
    // Each promise holds the one before: which limit is first depends on the machine.
    let attack = "const f = () => Promise.resolve().then(f);\nawait f()";
    let kind = ends(&desk, attack);
    assert!(matches!(kind, FailureKind::Cpu | FailureKind::Memory), "{kind:?}");
    let patient = Desk::with(CodeLimits { cpu_ms: 20_000, memory_bytes: 16 << 20, ..limits() });
    assert_eq!(patient.failure(attack).kind, FailureKind::Memory);
}

// covers: R21
#[test]
fn natives_that_cannot_be_interrupted_end_at_the_limit_too() {
    let desk = Desk::with(limits());
    for attack in [
        "return 'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e4)).length",
        "return (new Array(3e7) + '').length",
        "return (new Array(3e7)).join('x'.repeat(3)).length",
    ] {
        let kind = ends(&desk, attack);
        assert!(matches!(kind, FailureKind::Cpu | FailureKind::Memory), "{attack}: {kind:?}");
    }
    assert_eq!(desk.value("return 1"), 1);
}

// covers: R21
#[test]
fn memory_and_stack_have_an_end_and_the_owner_does_not_feel_it() {
    let desk = Desk::with(limits());
    desk.value("return 1");
    let before = resident_kib();
    for attack in [
        "const a = [];\nwhile (true) a.push(new Array(1000).fill(1))",
        "return new Uint8Array(1 << 30)",
        "return 'x'.repeat(1 << 29)",
        "return Array(2 ** 32 - 1).fill(0)",
        "const f = () => f() + 1;\nreturn f()",
        "return JSON.parse('['.repeat(200000))",
        "let a = [];\nfor (let i = 0; i < 200000; i++) a = [a];\nreturn JSON.stringify(a)",
        "return 2n ** (2n ** 26n)",
        "let s = 'x';\nwhile (true) s += s",
        "const m = new Map();\nfor (let i = 0; ; i++) m.set(i, new Uint8Array(1e6))",
    ] {
        let kind = ends(&desk, attack);
        assert!(
            matches!(kind, FailureKind::Memory | FailureKind::Threw | FailureKind::Cpu),
            "{attack}: {kind:?}"
        );
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 16 << 10, "the owner grew by {grown} KiB");
}

// covers: R21
#[test]
fn a_flood_of_words_and_values_is_bounded() {
    let before = resident_kib();
    let desk = Desk::with(limits());
    let failure = desk.failure("while (true) console.log('x'.repeat(1000))");
    assert_eq!(failure.kind, FailureKind::Cpu);
    assert!(failure.console.text.len() <= 20 << 10);
    let desk =
        Desk::with(CodeLimits { cpu_ms: 60_000, wall_ms: 120_000, memory_bytes: 512 << 20, ..limits() });
    let failure = desk.failure("return 'x'.repeat(40 << 20)");
    assert!(failure.message.contains("more than 32 MiB"), "{failure:?}");
    let failure =
        desk.failure("import { send } from 'servers/mail';\nreturn await send({ to: 'x'.repeat(40 << 20) })");
    assert!(failure.message.contains("32 MiB"), "{failure:?}");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 96 << 10, "the owner grew by {grown} KiB");
    let nested = format!("return {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(desk.run(&nested).is_err());
}

/// Sleeping code uses no CPU: the owner's clock ends it.
// covers: R21
#[test]
fn the_wall_clock_ends_what_computes_in_natives() {
    let desk = Desk::with(CodeLimits { cpu_ms: 60_000, memory_bytes: 512 << 20, ..limits() });
    let run = CodeRun {
        wall_ms: Some(400),
        ..CodeRun::new("return 'a'.repeat(1e6).replaceAll('a', 'b'.repeat(1e4)).length")
    };
    let begun = Instant::now();
    let failure = desk.run_as(&run).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Timeout | FailureKind::Memory), "{failure:?}");
    assert!(
        begun.elapsed() < Duration::from_millis(400) + LATE + Duration::from_millis(300),
        "{:?}",
        begun.elapsed()
    );
}

/// The process must not outlive its owner, also while a native computes.
// covers: R21
#[test]
fn the_end_of_its_input_is_the_end_of_the_process() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let start = json!({"start": {"name": "code.ts", "code": "return (new Array(3e7) + '').repeat(50).length", "input": {},
        "now_ms": 0, "seed": 1, "limits": {"wall_ms": 60000, "cpu_ms": 60000, "memory_bytes": 1u64 << 30, "stack_bytes": 1 << 20,
        "console_bytes": 1000, "value_bytes": 1000, "max_calls": 10, "parallel": 16}}});
    let mut child = Command::new(env!("CARGO_BIN_EXE_sage-script-test"))
        .arg("__script")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{start}").unwrap();
    drop(stdin);
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it goes on without its owner");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
