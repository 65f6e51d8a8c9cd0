//! Stands in for the `sage` binary in this crate's tests: keeper, evaluator, fake agent, fake MCP server, and an owner that can be killed.
//!
//! `own <project> <script>` runs one shell step with a children lock at `<project>/lock`, or the fake agent
//! if the script is a JSON list, and prints the outcome and its own peak memory in KiB. With the name of a
//! run after it, the step is isolated in a worktree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use sage_agents::{Executor, ExecutorConfig, fake_agent_main, fake_mcp_main, keeper_main};
use sage_core::port::{StepCall, StepCx, StepExecutor, StepOutcome, StopSignal};
use sage_core::template::{Isolation, Kind};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        [sage_agents::EVALUATE_ARG] => sage_agents::evaluate_main(),
        [sage_agents::KEEPER_ARG, ..] => keeper_main(args.into_iter().skip(1)),
        ["debug", "fake-agent", script, "--attempt", attempt] => {
            fake_agent_main(Path::new(script), attempt.parse().unwrap_or(1))
        }
        ["debug", "fake-mcp", starts, manners @ ..] => {
            let manners: Vec<String> = manners.iter().map(ToString::to_string).collect();
            fake_mcp_main(Path::new(starts), &manners)
        }
        ["debug", "mcp-client", url] => sage_agents::mcp::mcp_client_main(url),
        ["own", project, script, run @ ..] => own(Path::new(project), script, run).unwrap_or_else(|error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        }),
        _ => ExitCode::from(2),
    }
}

fn own(project: &Path, script: &str, run: &[&str]) -> std::io::Result<ExitCode> {
    let lock = std::fs::File::create(project.join("lock"))?;
    lock.try_lock_shared()?;
    let scratch = project.join("scratch");
    std::fs::create_dir_all(&scratch)?;
    let fake = script.starts_with('[');
    let call = StepCall {
        run: run.first().map_or_else(|| format!("run_{}", std::process::id()), ToString::to_string),
        feature: "owned".into(),
        path: "phase/step".into(),
        kind: if fake { Kind::Agent } else { Kind::Shell },
        operation: "shell".into(),
        attempt: 1,
        key: "00".into(),
        params: [(if fake { "script" } else { "run" }.to_string(), script.into())].into_iter().collect(),
        agent: fake.then(|| "fake".into()),
        model: None,
        allow: Default::default(),
        role: None,
        session: None,
        isolation: if run.is_empty() { Isolation::None } else { Isolation::Worktree },
        schema: None,
        input: serde_json::Value::Null,
        timeout_ms: None,
        idle_timeout_ms: None,
        unknown: false,
        fresh: false,
        feedback: None,
        messages: Vec::new(),
        keep_output: false,
        files: Vec::new(),
    };
    let cx = StepCx {
        watch: None,
        project: PathBuf::from(project),
        scratch,
        children_lock: Some(Arc::new(lock)),
        proofs: Vec::new(),
        stop: StopSignal::default(),
        nudge: Default::default(),
        questions: Default::default(),
        messages: Default::default(),
        crowd: Default::default(),
        prices: Default::default(),
        capped: false,
        progress: Arc::new(|_| {}),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The key of the tests.
    let key = Some(sage_core::seal::Key::new(&[7; sage_core::seal::KEY_LEN]));
    let config = ExecutorConfig { key, ..ExecutorConfig::default() };
    let outcome = runtime.block_on(Executor::new(config).execute(cx, call));
    let told = match &outcome {
        StepOutcome::Succeeded { result, .. } if fake => result.to_string(),
        StepOutcome::Succeeded { result, .. } => result["truncated"].to_string(),
        other => format!("{other:?}"),
    };
    println!("{told} {}", peak_kib());
    Ok(ExitCode::SUCCESS)
}

fn peak_kib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().trim_end_matches(" kB").to_string()
}
