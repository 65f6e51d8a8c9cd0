//! The real Claude Code and the real Codex, driven by the binary against a scripted model endpoint.
//!
//! They come from npm (`./test` installs them into the target directory); where they are not, each test says
//! so and ends. Homes are private, so nothing of the user's is read or written.

use std::path::PathBuf;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};

/// Where the agents' programs are.
pub fn programs() -> Option<PathBuf> {
    let given = std::env::var_os("SAGE_TEST_AGENTS").map(PathBuf::from);
    let target = PathBuf::from(env!("CARGO_BIN_EXE_sage"));
    let beside = target.ancestors().nth(2).map(|dir| dir.join("tools/agents/node_modules/.bin"));
    let found = given.or(beside).filter(|dir| dir.join("claude").exists() && dir.join("codex").exists());
    if found.is_none() {
        println!("skipped: the real agents are not installed (./test does)");
    }
    found
}

/// Where the agents of a project keep what is theirs.
fn homes(sage: &Sage) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(sage.outside().file_name().unwrap())
}

/// A project whose agents `claude` and `codex` are the real ones and talk to `model` only.
pub fn project(model: &FakeLlm, template: &str) -> Option<Sage> {
    let programs = programs()?;
    let sage = Sage::new().template("t", template);
    // Codex finds its sandbox only outside of the temporary directory.
    let homes = homes(&sage);
    std::fs::create_dir_all(homes.join("codex")).unwrap();
    std::fs::create_dir_all(homes.join("claude")).unwrap();
    let (url, homes) = (model.url(), homes.display().to_string());
    let provider = format!(
        r#"model_providers.fake={{name="fake",base_url="{url}/v1",env_key="FAKE_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}}"#
    );
    let config = format!(
        r#"
[agents.claude]
adapter = "claude"
command = ["{claude}"]
[agents.claude.env]
HOME = "{homes}/claude"
ANTHROPIC_BASE_URL = "{url}"
ANTHROPIC_API_KEY = "dummy"
[agents.codex]
adapter = "codex"
command = ["{codex}", "-c", '{provider}', "-c", "model_provider=fake"]
model = "fake-1"
[agents.codex.env]
HOME = "{homes}/codex"
CODEX_HOME = "{homes}/codex"
FAKE_KEY = "dummy"
[approvals]
deadline = "60s"
"#,
        claude = programs.join("claude").display(),
        codex = programs.join("codex").display(),
    );
    sage.write("sage.toml", config);
    Some(sage)
}

fn asks(sage: &Sage, step: &str) -> bool {
    let Some(status) = sage.engine().latest("x").map(|_| sage.status("x")) else { return false };
    status["steps"].as_array().unwrap().iter().any(|it| it["path"] == step && !it["asks"].is_null())
}

fn tokens(sage: &Sage) -> Value {
    sage.status("x")["metrics"]["tokensByClass"].clone()
}

const TEAM: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: write, agent: claude, role: implementer, prompt: "claude-task: make it" }
      - { type: agent, id: run, agent: codex, role: implementer, prompt: "codex-task: run it" }
  - id: check
    dependencies: [work]
    operations:
      - { type: agent, id: audit, agent: claude, role: auditor, prompt: "audit-task: {{ steps['work/write'].result }} and {{ steps['work/run'].result }}" }
"#;

fn team_script() -> Value {
    json!([
        {"match": "audit-task", "text": "both fine", "usage": {"input_tokens": 70, "output_tokens": 7}},
        {"match": "claude-task", "tool": {"name": "Bash", "input": {"command": "bash -c 'echo claude > claude.txt'", "description": "write"}},
         "usage": {"input_tokens": 100, "output_tokens": 10}},
        {"match": "codex-task", "times": 1, "tool": {"name": "exec_command", "input": {"cmd": "echo codex > codex.txt"}},
         "usage": {"input_tokens": 200, "output_tokens": 20}},
        {"text": "finished", "usage": {"input_tokens": 1000, "output_tokens": 100}},
    ])
}

// covers: S1, S4, R1
#[test]
fn a_team_of_real_agents_works_in_parallel_asks_and_is_counted() {
    let model = FakeLlm::start(team_script()).unwrap();
    let Some(sage) = project(&model, TEAM) else { return };
    let run = sage.spawn("run x -t t --quiet");
    wait_until(|| asks(&sage, "work/write"), DEADLINE, "claude's question");
    assert!(!sage.path("claude.txt").exists());
    let inbox = sage.sage("inbox").exit(0);
    inbox.stdout_has("work/write").stdout_has("claude.txt");
    sage.sage("approve x work/write").exit(0);
    run.end().exit(0);
    assert_eq!(sage.lines("claude.txt"), ["claude"]);
    assert_eq!(sage.lines("codex.txt"), ["codex"]);
    let results = sage.results("x");
    assert_eq!(results[1]["results"]["audit"], "both fine", "{results}");
    let (counted, sent) = (tokens(&sage), model.sent_usage());
    assert_eq!(counted["input"], json!(sent.input.unwrap_or(0)), "{counted}");
    assert_eq!(counted["output"], json!(sent.output.unwrap_or(0)), "{counted}");
    assert_eq!(counted["unattributed"], 0);
    assert_eq!(sage.status("x")["metrics"]["contextReloads"], 0);
    sage.assert_nothing_alive();
}

const LONG: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: one, agent: AGENT, params: { prompt: "the-task: count to ten", tools: ["Bash"] } }
"#;

/// The session knows that its agent works on what it was asked.
fn is_heard(sage: &Sage) -> bool {
    let sessions = std::fs::read_dir(sage.path(".sage/sessions")).into_iter().flatten().flatten();
    let mut records = sessions.filter_map(|it| std::fs::read_to_string(it.path().join("session.json")).ok());
    records.any(|record| record.contains("\"heard\": true"))
}

/// The agent itself has written down what it was about to do: it does so a moment later.
fn is_written(dir: &std::path::Path, what: &str) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|it| it.path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => !path.is_symlink() && is_written(&path, what),
        false => {
            let is_log = path.extension().is_some_and(|it| it == "jsonl");
            is_log && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(what))
        }
    })
}

/// Sage is killed in the middle of a turn; whoever resumes goes on in the same conversation.
fn killed_owner(agent: &str, tool: Value) {
    let script = json!([
        {"tool": tool, "usage": {"input_tokens": 10, "output_tokens": 1}},
        {"text": "ten", "usage": {"input_tokens": 20, "output_tokens": 2}},
    ]);
    let model = FakeLlm::start(script).unwrap();
    let Some(sage) = project(&model, &LONG.replace("AGENT", agent)) else { return };
    let run = sage.spawn("run x -t t --quiet");
    wait_until(|| !sage.lines("begun").is_empty() && is_heard(&sage), DEADLINE, "the agent's tool to run");
    let own = homes(&sage).join(agent);
    wait_until(|| is_written(&own, "echo once >> begun"), DEADLINE, "the agent's own record");
    run.kill();
    sage.assert_nothing_alive();
    sage.sage("resume x --quiet").exit(0);
    assert_eq!(sage.results("x")[0]["results"]["one"], "ten");
    assert_eq!(sage.lines("begun"), ["once"], "the tool did not run again");
    let asked = model.prompts();
    let last = asked.last().unwrap().to_string();
    assert!(last.contains("the-task: count to ten"), "the conversation went on");
    assert_eq!(last.matches("the-task").count(), 1, "and was not told again");
    let metrics = sage.status("x")["metrics"].clone();
    assert_eq!(metrics["contextReloads"], 0, "{metrics}");
    assert_eq!(
        metrics["tokensByClass"]["unattributed"], 0,
        "a killed owner's attempt has no bill yet: {metrics}"
    );
    sage.assert_nothing_alive();
}

// covers: R5, S3, R3
#[test]
fn a_killed_sage_goes_on_in_claudes_session() {
    let command = "echo once >> begun; sleep 300";
    killed_owner("claude", json!({"name": "Bash", "input": {"command": command, "description": "count"}}));
}

// covers: R5, S3, R3
#[test]
fn a_killed_sage_goes_on_in_codexs_session() {
    killed_owner("codex", json!({"name": "exec_command", "input": {"cmd": "echo once >> begun; sleep 300"}}));
}

// covers: P7
#[test]
fn urgent_work_interrupts_a_real_agent_which_goes_on() {
    let script = json!([
        {"tool": {"name": "Bash", "input": {"command": "echo once >> begun; sleep 300", "description": "work"}}},
        {"text": "went on"},
    ]);
    let model = FakeLlm::start(script).unwrap();
    let urgent = "name: u\nphases:\n  - id: p\n    operations: { type: shell, id: now, params: { run: 'echo urgent >> order' } }\n";
    let Some(sage) = project(&model, &LONG.replace("AGENT", "claude")) else { return };
    sage.write(".sage/templates/u.yaml", urgent);
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    sage.write("sage.toml", format!("parallel = 1\n{config}"));
    let run = sage.spawn("run x -t t --quiet");
    wait_until(|| sage.path("begun").exists(), DEADLINE, "the agent's tool to run");
    sage.sage("run hotfix -t u --priority P0 --quiet").exit(0);
    assert_eq!(sage.lines("order"), ["urgent"]);
    run.end().exit(0);
    assert_eq!(sage.results("x")[0]["results"]["one"], "went on");
    assert_eq!(sage.lines("begun"), ["once"]);
    sage.sage("logs x").exit(0).stdout_has("work/one makes way for");
    sage.assert_nothing_alive();
}
