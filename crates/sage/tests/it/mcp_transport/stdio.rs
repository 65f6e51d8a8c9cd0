//! Lines that no client should send, and clients that leave.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};

const SLOW: &str = r#"
name: slow
phases:
  - id: p
    operations: { id: slow, type: shell, params: { run: "echo up > up; until [ -e go ]; do sleep 0.02; done; echo done > done" } }
"#;

/// Less than any wait that a call may have.
const PROMPT: Duration = Duration::from_secs(20);

struct Pipes {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Pipes {
    fn open(sage: &Sage) -> Pipes {
        let mut command = sage.args(["mcp"]).command();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Pipes { child, stdin, stdout }
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}));
        assert_eq!(self.line()["id"], "hello");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn ping(&mut self, id: i64) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(self.line(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }

    /// How long the process takes to end from now on, what is left on stdout, and stderr.
    fn ends(mut self) -> (Duration, String, String) {
        let started = Instant::now();
        wait_until(|| self.child.try_wait().unwrap().is_some(), DEADLINE, "the end of sage mcp");
        let took = started.elapsed();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (took, stdout, stderr)
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn execute(wait_ms: u64) -> Value {
    let arguments = json!({"feature": "x", "template": "slow", "waitMs": wait_ms});
    let params = json!({"name": "sage_workflow_execute", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

// covers: R16, S3
#[test]
fn a_client_that_hangs_up_is_not_waited_for_and_its_run_goes_on() {
    let sage = Sage::new().template("slow", SLOW);
    let mut pipes = Pipes::open(&sage);
    pipes.initialize();
    pipes.send(&execute(40_000));
    wait_until(|| sage.path("up").exists(), DEADLINE, "the run to begin");
    drop(pipes.stdin.take());
    let (took, ..) = pipes.ends();
    assert!(took < PROMPT, "{took:?}");
    assert!(!sage.path("done").exists());
    sage.write("go", "");
    wait_until(|| sage.path("done").exists(), DEADLINE, "the run to go on without its client");
    wait_until(|| sage.status("x")["status"] == "completed", DEADLINE, "the end of the run");
}

// covers: R16, S3
#[test]
fn a_signal_ends_it_too() {
    for signal in [Signal::TERM, Signal::INT] {
        let sage = Sage::new().template("slow", SLOW);
        let mut pipes = Pipes::open(&sage);
        pipes.initialize();
        pipes.send(&execute(40_000));
        wait_until(|| sage.path("up").exists(), DEADLINE, "the run to begin");
        kill_process(Pid::from_child(&pipes.child), signal).unwrap();
        let (took, ..) = pipes.ends();
        assert!(took < PROMPT, "{took:?}");
        sage.write("go", "");
        wait_until(|| sage.path("done").exists(), DEADLINE, "the run to go on without its client");
    }
}

// covers: R16
#[test]
fn calls_that_are_nearly_done_answer_after_the_end_of_the_input() {
    let sage = Sage::new();
    let mut pipes = Pipes::open(&sage);
    pipes.initialize();
    let params = json!({"name": "sage_workflow_list", "arguments": {}});
    pipes.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}));
    // The last line has no end.
    let stdin = pipes.stdin.as_mut().unwrap();
    stdin.write_all(br#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#).unwrap();
    drop(pipes.stdin.take());
    let (_, stdout, _) = pipes.ends();
    let mut ids: Vec<i64> = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [5, 6], "{stdout}");
}

// covers: R16
#[test]
fn what_is_no_message_is_refused_and_costs_nothing_else() {
    let sage = Sage::new();
    let mut pipes = Pipes::open(&sage);
    // Nobody has said hello yet.
    pipes.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}));
    pipes.write(b"hello?");
    pipes.initialize();
    pipes.write(b"");
    pipes.write(b"{\"jsonrpc\":");
    pipes.write(b"\xff\xfe\x00");
    pipes.ping(1);
    pipes.write(br#"[{"jsonrpc":"2.0","id":2,"method":"ping"}]"#);
    let batch = pipes.line();
    assert_eq!((&batch["id"], &batch["error"]["code"]), (&Value::Null, &json!(-32600)));
    pipes.write(br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":7}"#);
    let call = pipes.line();
    assert_eq!((&call["id"], &call["error"]["code"]), (&json!(3), &json!(-32600)), "{call}");
    pipes.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "no/such"}));
    assert_eq!(pipes.line()["error"]["code"], -32601);
    pipes.ping(5);
    drop(pipes.stdin.take());
    let (_, stdout, stderr) = pipes.ends();
    assert_eq!(stdout, "");
    assert!(stderr.contains("a line is not JSON"), "{stderr}");
}

// covers: R16, S1
#[test]
fn a_message_without_end_is_refused() {
    let sage = Sage::new();
    let mut pipes = Pipes::open(&sage);
    pipes.initialize();
    pipes.write(&vec![b'x'; (64 << 20) + 1]);
    let answer = pipes.line();
    assert!(answer["error"]["message"].as_str().unwrap().contains("64 MiB"), "{answer}");
    pipes.ping(1);
    let status = std::fs::read_to_string(format!("/proc/{}/status", pipes.child.id())).unwrap();
    let kib = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    assert!(kib("VmRSS:") < 200 << 10, "it was let go of: {} KiB", kib("VmRSS:"));
}
