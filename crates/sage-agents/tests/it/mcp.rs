//! Tools of a real MCP server process: one for all steps, alive as long as the executor, and no longer.

use sage_agents::{Executor, McpServer};
use sage_core::policy::FailureClass;
use sage_core::port::{Progress, StepCall, StepCx, StepExecutor, Stop};
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, DEADLINE, Outcome, alive, kill, sage, until};

/// An executor that stays, as in a workflow.
struct Workflow {
    bench: Bench,
    executor: Executor,
}

impl Workflow {
    fn new(change: impl FnOnce(&mut McpServer)) -> Workflow {
        let mut bench = Bench::new(Kind::Tool, json!({}));
        let starts = bench.path("starts").display().to_string();
        let mut server = McpServer {
            command: sage().display().to_string(),
            args: vec!["debug".into(), "fake-mcp".into(), starts],
            ..McpServer::default()
        };
        change(&mut server);
        bench.config.servers.insert("s".into(), server);
        let executor = Executor::new(bench.config.clone());
        Workflow { bench, executor }
    }

    fn call(&self, step: &str, tool: &str, arguments: Value) -> (StepCx, StepCall) {
        let (mut cx, mut call) = (self.bench.cx.clone(), self.bench.call.clone());
        cx.scratch = self.bench.path(step);
        std::fs::create_dir_all(&cx.scratch).unwrap();
        call.path = step.into();
        let params = json!({"server": "s", "tool": tool, "arguments": arguments});
        call.params = params.as_object().unwrap().clone();
        (cx, call)
    }

    async fn execute(&self, (cx, call): (StepCx, StepCall)) -> Outcome {
        let running = self.executor.execute(cx, call);
        Outcome(tokio::time::timeout(DEADLINE, running).await.expect("the attempt does not end"))
    }

    async fn run(&self, step: &str, tool: &str, arguments: Value) -> Outcome {
        self.execute(self.call(step, tool, arguments)).await
    }

    /// Pids of all starts so far.
    fn starts(&self) -> Vec<u32> {
        self.bench.read("starts").lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn shows_progress(&self) -> bool {
        self.bench.progress.lock().unwrap().iter().any(|it| matches!(it, Progress::Alive))
    }

    async fn cancelled(&self) {
        until("the server to hear of it", || self.bench.read("starts").contains("cancelled\n")).await;
    }
}

// covers: R24, R3
#[tokio::test]
async fn one_server_serves_all_steps() {
    let workflow = Workflow::new(|_| {});
    let outcomes = tokio::join!(
        workflow.run("a", "echo", json!({"n": 1})),
        workflow.run("b", "slow", json!({"ms": 50, "n": 2})),
        workflow.run("c", "text", json!({"text": "[3]"})),
    );
    assert_eq!(outcomes.0.succeeded(), json!({"n": 1}));
    assert_eq!(outcomes.1.succeeded()["n"], 2);
    assert_eq!(outcomes.2.succeeded(), json!([3]));
    let failed = workflow.run("d", "error", json!({"text": "no such page"})).await;
    failed.failed(FailureClass::Failed).says("`error` of server `s`: no such page");
    workflow
        .run("e", "nothing", json!({}))
        .await
        .failed(FailureClass::Invalid)
        .says("server `s` has no tool `nothing`");
    let [pid] = workflow.starts()[..] else { panic!("{:?}", workflow.starts()) };
    assert!(alive(pid));
    workflow.executor.close().await;
    assert!(!alive(pid));
}

// covers: R24, R20
#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let workflow = Workflow::new(|_| {});
    let crashed = workflow.run("a", "crash", json!({})).await;
    crashed.failed(FailureClass::Lost).says("server `s` died: exit code 3: crashing as told");
    assert_eq!(workflow.run("b", "echo", json!({"n": 1})).await.succeeded(), json!({"n": 1}));
    let [_, second] = workflow.starts()[..] else { panic!("{:?}", workflow.starts()) };
    kill(second, rustix::process::Signal::KILL);
    until("its death", || !alive(second)).await;
    // Whoever calls before its death was noticed is told; the next one has a new server.
    let outcome = workflow.run("c", "echo", json!({"n": 2})).await;
    if !matches!(outcome.0, sage_core::port::StepOutcome::Succeeded { .. }) {
        outcome.failed(FailureClass::Lost).says("killed by SIGKILL");
        workflow.run("d", "echo", json!({"n": 2})).await.succeeded();
    }
    assert_eq!(workflow.starts().len(), 3);
    // Without a word of farewell: its lifeline goes with the executor.
    let starts = workflow.starts();
    drop(workflow.executor);
    until("all of them to be gone", || !starts.iter().any(|pid| alive(*pid))).await;
}

// covers: R24, R20
#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_and_its_server_stays() {
    let workflow = Workflow::new(|server| server.timeout_ms = Some(300));
    let late = workflow.run("a", "hang", json!({})).await;
    late.failed(FailureClass::Timeout).says("`hang` of server `s` timed out after 300ms");
    workflow.cancelled().await;
    let (cx, mut call) = workflow.call("b", "hang", json!({}));
    (call.timeout_ms, call.idle_timeout_ms) = (Some(60_000), Some(200));
    workflow.execute((cx, call)).await.failed(FailureClass::Timeout).says("no progress for 200ms");
    // The step's own limit counts, and progress keeps it from being idle.
    let (cx, mut call) = workflow.call("c", "slow", json!({"ms": 3_000}));
    (call.timeout_ms, call.idle_timeout_ms) = (Some(60_000), Some(2_000));
    workflow.execute((cx, call)).await.succeeded();
    assert!(workflow.shows_progress());
    assert_eq!(workflow.starts().len(), 1);
}

// covers: R24
#[tokio::test]
async fn a_call_that_is_stopped_is_cancelled() {
    let workflow = Workflow::new(|_| {});
    workflow.run("a", "echo", json!({})).await.succeeded();
    let (cx, call) = workflow.call("b", "slow", json!({"ms": 10_000}));
    let stop = cx.stop.clone();
    let story = async {
        until("the tool to be at work", || workflow.shows_progress()).await;
        stop.set(Stop::Graceful);
    };
    tokio::join!(workflow.execute((cx, call)), story).0.stopped();
    workflow.cancelled().await;
    assert_eq!(workflow.starts().len(), 1);
}

// covers: R24
#[tokio::test]
async fn what_is_no_server_is_told() {
    let said = async |command: &str, args: &[&str], class| {
        let workflow = Workflow::new(|server| {
            server.command = command.into();
            server.args = args.iter().map(ToString::to_string).collect();
        });
        workflow.run("a", "echo", json!({})).await.failed(class).message
    };
    let missing = said("no-such-program", &[], FailureClass::Invalid).await;
    assert_eq!(missing, "server `s` could not be started: program `no-such-program` was not found");
    let ended = said("sh", &["-c", "echo oh >&2; exit 4"], FailureClass::Lost).await;
    assert_eq!(ended, "server `s` ended before it was ready: exit code 4: oh");
    let mut unknown = Workflow::new(|_| {}).call("a", "echo", json!({}));
    unknown.1.params["server"] = "t".into();
    let told = Workflow::new(|_| {}).execute(unknown).await.failed(FailureClass::Invalid);
    told.says("unknown server `t`; known: `s`");
}
