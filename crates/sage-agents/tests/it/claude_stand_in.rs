//! What the real program does not do on demand, done by a shell script in its place; and what sage adds to it.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sage_agents::{AgentConfig, Executor};
use sage_core::policy::FailureClass;
use sage_core::port::{Permission, Progress, StepExecutor};
use sage_core::template::Kind;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::bench::{Bench, until};
use crate::claude_desk::Desk;

const RESULT: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"result":"fine","num_turns":1}"#;

fn stand_in(script: &str) -> Bench {
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "go"}));
    bench.call.agent = Some("claude".into());
    let command = ["/bin/sh", "-c", &script.replace("RESULT", &format!("echo '{RESULT}'"))];
    bench.agent(AgentConfig {
        name: "claude".into(),
        adapter: "claude".into(),
        command: command.map(str::to_string).to_vec(),
        ..AgentConfig::default()
    })
}

#[tokio::test]
async fn a_program_that_stays_after_its_result_is_ended_and_the_result_counts() {
    let bench = stand_in("trap '' TERM; RESULT; while :; do sleep 1; done");
    assert_eq!(bench.run().await.succeeded(), "fine");
    let bench = stand_in("RESULT; exit 7");
    assert_eq!(bench.run().await.succeeded(), "fine");
}

/// What Claude Code said of a used-up subscription before it had events for it, in each of its forms.
// covers: R7
#[tokio::test]
async fn an_epoch_in_words_is_when_a_subscription_is_full_again() {
    let said = "Claude AI usage limit reached|4102444800";
    let result = |error: bool, extra: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":{error},"result":"{said}","num_turns":1{extra}}}"#
        )
    };
    let limit = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"SAID"}]},"error":"rate_limit","is_api_error_message":true}"#;
    let thrown = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["SAID"],"num_turns":0}"#;
    let line = |text: &str| format!("read -r prompt; echo '{}'", text.replace("SAID", said));
    for script in [
        line(&result(true, "")),
        format!("{}; echo '{}'", line(limit), result(true, "")),
        line(&result(true, r#","api_error_status":429"#)),
        line(&result(false, "")),
        line(thrown),
        format!("echo '{said}' >&2; exit 1"),
    ] {
        let failure = stand_in(&script).run().await.failed(FailureClass::Quota);
        assert_eq!(failure.refusal.unwrap().reset_at_ms, Some(4_102_444_800_000), "{script}");
    }
    // An answer that speaks of it is an answer.
    let about = result(false, "").replace(said, &format!("it prints `{said}`"));
    assert!(stand_in(&line(&about)).run().await.succeeded().as_str().unwrap().contains("it prints"));
}

#[tokio::test]
async fn its_input_ends_after_the_result_and_not_before() {
    let bench = stand_in("read -r prompt; echo \"$prompt\" > told; RESULT; cat > rest; echo > ended");
    assert_eq!(bench.run().await.succeeded(), "fine");
    assert!(bench.read("told").contains("\"content\":\"go\""));
    assert!(bench.path("ended").exists() && bench.read("rest").is_empty());
}

#[tokio::test]
async fn nonsense_is_no_result() {
    let nonsense = r#"printf '\377\000 not json\n{"type":"result"\n[1]\n'"#;
    stand_in(nonsense).run().await.failed(FailureClass::Lost).says("3 lines were not understood");
    stand_in("exit 0").run().await.failed(FailureClass::Lost).says("without a result");
    let long = stand_in("head -c 200000 /dev/zero | tr '\\0' x; echo; RESULT").output_cap(100_000);
    assert_eq!(long.run().await.succeeded(), "fine");
}

#[tokio::test]
async fn questions_are_withdrawn_and_unknown_ones_refused() {
    let ask = r#"{"type":"control_request","request_id":"ID","request":{"subtype":"SUB","tool_name":"Bash","input":{}}}"#;
    let ask = |id: &str, sub: &str| format!("echo '{}'", ask.replace("ID", id).replace("SUB", sub));
    let script = format!(
        "read -r prompt; {}; read -r refused; echo \"$refused\" > refused; {}; {}; {}; read -r answer; \
         echo \"$answer\" > answer; RESULT",
        ask("odd", "unheard_of"),
        ask("gone", "can_use_tool"),
        r#"while ! test -e asked; do sleep 0.01; done; echo '{"type":"control_cancel_request","request_id":"gone"}'"#,
        ask("kept", "can_use_tool"),
    );
    let mut bench = stand_in(&script);
    bench.cx.questions = sage_core::port::Questions::new(Arc::new(OnlyKept(bench.path("asked"))));
    assert_eq!(bench.run().await.succeeded(), "fine");
    assert!(bench.read("refused").contains("\"error\"") && bench.read("refused").contains("\"odd\""));
    assert!(bench.read("answer").contains("\"kept\"") && bench.read("answer").contains("\"allow\""));
    assert_eq!(bench.cx.questions.open(), 0);
}

// covers: S4
#[tokio::test]
async fn a_question_ends_with_the_turn_that_asked_it() {
    let ask = r#"{"type":"control_request","request_id":"gone","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#;
    let aborted = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","num_turns":1}"#;
    // It is reminded while it asks, and says nothing about the question any more.
    let script = format!(
        r#"read -r prompt; echo '{{"type":"system","subtype":"init"}}'; echo '{ask}'; read -r interrupt;
        echo '{aborted}'; read -r go_on; echo > told; while ! test -e closed; do sleep 0.01; done; RESULT"#
    );
    let mut bench = stand_in(&script);
    bench.cx.questions = sage_core::port::Questions::new(Arc::new(OnlyKept(bench.path("asked"))));
    let story = async {
        until("the question", || bench.path("asked").exists()).await;
        assert_eq!(bench.cx.questions.open(), 1);
        bench.cx.nudge.give();
        until("the reminder", || bench.path("told").exists()).await;
        until("no question", || bench.cx.questions.open() == 0).await;
        std::fs::write(bench.path("closed"), "").unwrap();
    };
    assert_eq!(bench.run_with(story).await.succeeded(), "fine");
}

/// Thinks for ever about all questions but one, and leaves a file when it begins to think.
struct OnlyKept(std::path::PathBuf);

impl sage_core::port::Asks for OnlyKept {
    fn ask(&self, ask: sage_core::port::PermissionAsk) -> sage_core::port::BoxFuture<'static, Permission> {
        if ask.id == "kept" {
            return Box::pin(std::future::ready(Permission::Allow { input: None }));
        }
        std::fs::write(&self.0, "").unwrap();
        Box::pin(std::future::pending())
    }
}

// covers: R23
#[tokio::test]
async fn it_is_found_with_its_version_and_its_login() {
    let Some(mut desk) = Desk::new(json!([])) else { return };
    let agent = sage_agents::agent::adapter("claude").unwrap();
    let probe = agent.probe(desk.config()).await;
    assert!(probe.version.unwrap().starts_with("2."));
    assert_eq!((probe.auth, probe.hint), (sage_agents::agent::Auth::Ready, None));
    for key in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
        desk.config().env.insert(key.into(), String::new());
    }
    let probe = agent.probe(desk.config()).await;
    if cfg!(target_os = "linux") {
        assert_eq!(probe.auth, sage_agents::agent::Auth::Missing);
        assert!(probe.hint.unwrap().contains("/login"));
    }
    desk.config().command = vec!["no-such-claude".into()];
    let probe = agent.probe(desk.config()).await;
    assert_eq!((probe.found, probe.version), (None, None));
    assert!(probe.hint.unwrap().contains("npm install"));
}

/// Prints how much later the first event comes than without sage. By hand: `cargo nextest run -p sage-agents
/// --run-ignored only overhead --no-capture`.
// covers: R20
#[tokio::test]
#[ignore = "a measurement"]
async fn overhead_until_the_first_event() {
    let script = r#"echo '{"type":"system","subtype":"init"}'; read -r x; RESULT"#;
    let mut times = Times::default();
    for round in 0..15 {
        let bench = stand_in(script);
        let argv = bench.config.agents["claude"].command.clone();
        times.measure(round, bench, &argv, &[]).await;
    }
    times.print("stand-in");
    let mut times = Times::default();
    for round in 0..9 {
        let Some(desk) = Desk::new(json!([{"text": "x"}])) else { return };
        let agent = desk.bench.config.agents["claude"].clone();
        let env: Vec<(String, String)> = agent.env.into_iter().collect();
        // The first start in a new home does more than all others.
        without_sage(&agent.command, &env).await;
        times.measure(round, desk.bench, &agent.command, &env).await;
    }
    times.print("claude");
}

#[derive(Default)]
struct Times {
    with: Vec<Duration>,
    bare: Vec<Duration>,
}

impl Times {
    /// In turns: whoever comes second finds everything warm.
    async fn measure(&mut self, round: u32, bench: Bench, argv: &[String], env: &[(String, String)]) {
        if round.is_multiple_of(2) {
            self.bare.push(without_sage(argv, env).await);
            self.with.push(with_sage(&bench).await);
        } else {
            self.with.push(with_sage(&bench).await);
            self.bare.push(without_sage(argv, env).await);
        }
    }

    fn print(&mut self, what: &str) {
        let (with, bare) = (median(&mut self.with), median(&mut self.bare));
        let (least_with, least_bare) = (self.with[0], self.bare[0]);
        println!(
            "{what}: medians: sage {with:?}, bare {bare:?}; least: sage {least_with:?}, bare {least_bare:?}"
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn with_sage(bench: &Bench) -> Duration {
    let mut cx = bench.cx.clone();
    let first: Arc<Mutex<Option<Instant>>> = Arc::default();
    let seen = Arc::clone(&first);
    cx.progress = Arc::new(move |it| {
        if matches!(it, Progress::Alive) {
            seen.lock().unwrap().get_or_insert_with(Instant::now);
        }
    });
    let start = Instant::now();
    let executor = Executor::new(bench.config.clone());
    let running = tokio::spawn(executor.execute(cx, bench.call.clone()));
    until("the first event", || first.lock().unwrap().is_some()).await;
    bench.cx.stop.set(sage_core::port::Stop::Now);
    let _ = running.await;
    let first = first.lock().unwrap().unwrap();
    first - start
}

/// The same flags and variables, as far as they matter for the start.
async fn without_sage(argv: &[String], env: &[(String, String)]) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let flags = "-p --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio --include-partial-messages \
        --session-id 00000000-0000-7000-8000-000000000001 --permission-mode acceptEdits --strict-mcp-config \
        --mcp-config {\"mcpServers\":{}} --settings {\"permissions\":{\"allow\":[],\"ask\":[]}} \
        --disallowedTools AskUserQuestion,EnterPlanMode,ExitPlanMode,EnterWorktree,ExitWorktree,CronCreate,CronDelete,CronList,ScheduleWakeup";
    let start = Instant::now();
    let mut child = tokio::process::Command::new(&argv[0])
        .args(&argv[1..])
        .args(flags.split_whitespace())
        .envs(env.iter().map(|(name, value)| (name, value)))
        .envs([("CLAUDE_CODE_MAX_RETRIES", "1"), ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")])
        .envs([("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")])
        .envs([("DISABLE_TELEMETRY", "1"), ("DISABLE_ERROR_REPORTING", "1")])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{prompt}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap();
    let took = start.elapsed();
    child.kill().await.unwrap();
    took
}
