//! Seeing agents work: the real Claude Code and the real Codex, a model behind HTTP, the scripted agent and a shell
//! step, each held in the middle of its work while every view is looked at. Then what they changed, and speaking to
//! them.

mod attach;
mod changes;
mod messages;
mod terminal;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, git, wait_until};
use crate::mcp_server::client::{Client, Era};
use crate::real_agents::project;

/// Works until the file `go` is there.
const HOLD: &str = "until test -e go; do sleep 0.05; done; echo released";

const TEAM: &str = r#"
name: t
phases:
  - id: work
    operations:
      - { type: agent, id: claude, agent: claude, params: { prompt: "claude-task: hold on", system: "Be careful.", tools: ["Bash"] } }
      - { type: agent, id: codex, agent: codex, params: { prompt: "codex-task: hold on", system: "Be brief." } }
      - { type: agent, id: model, agent: model, prompt: "model-task: look around" }
      - { type: agent, id: fake, agent: fake, params: { prompt: p, script: [ { run: "until test -e go; do sleep 0.05; done", say: played, usage: { input: 7 } } ] } }
      - { type: shell, id: build, params: { run: "echo compiling; printf '\\033[32m 3 of 7\\033[0m\\n'; until test -e go; do sleep 0.05; done" } }
"#;

fn used() -> Value {
    json!({"input_tokens": 1_000, "output_tokens": 100})
}

/// A tool of an agent that runs a shell command.
fn tool(agent: &str, command: &str) -> Value {
    match agent {
        "claude" => json!({"name": "Bash", "input": {"command": command, "description": "work"}}),
        _ => json!({"name": "exec_command", "input": {"cmd": command}}),
    }
}

/// A project with the real agents, a `model` behind HTTP, and as many slots as there are steps.
fn team(llm: &FakeLlm, template: &str) -> Option<Sage> {
    let sage = project(llm, template)?;
    let config = std::fs::read_to_string(sage.path("sage.toml")).unwrap();
    let model = format!(
        "[agents.model]\nadapter = \"llm\"\napi = \"anthropic\"\nurl = \"{}\"\nmodel = \"claude-sonnet-5-5\"\n",
        llm.url()
    );
    sage.write("sage.toml", format!("parallel = 9\n{config}{model}"));
    Some(sage)
}

/// The project as a git repository with one commit.
fn repository(sage: &Sage) {
    sage.write(".gitignore", ".sage\ngo\n");
    sage.write("kept.txt", "one\ntwo\n");
    git(sage, &["init", "-q"]);
    git(sage, &["config", "user.name", "me"]);
    git(sage, &["config", "user.email", "me@localhost"]);
    git(sage, &["add", "-A"]);
    git(sage, &["commit", "-qm", "start"]);
}

/// What the roster says that each running step does.
fn activities(sage: &Sage) -> Value {
    let runs = sage.sage("status --json").exit(0).json()["runs"].clone();
    let steps = runs[0]["working"].as_array().cloned().unwrap_or_default();
    steps
        .into_iter()
        .map(|step| (step["path"].as_str().unwrap().to_string(), step["activity"].clone()))
        .collect()
}

/// Waits until a running step does what `wanted` says.
#[track_caller]
fn until_doing(sage: &Sage, step: &str, wanted: &str) {
    let does = || activities(sage)[step].as_str().is_some_and(|text| text.contains(wanted));
    wait_until(does, DEADLINE, &format!("{step} to do {wanted}; now: {}", activities(sage)));
}

fn row<'a>(text: &'a str, name: &str) -> &'a str {
    let row = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    text.lines().find(row).unwrap_or_else(|| panic!("no row {name}: {text}"))
}

// covers: R8, S7, R18
#[test]
fn every_view_shows_what_running_steps_do() {
    let script = json!([
        {"match": "claude-task", "times": 1, "text": "I wait.", "tool": tool("claude", HOLD), "usage": used()},
        {"match": "codex-task", "times": 1, "tool": tool("codex", HOLD), "usage": used()},
        {"match": "model-task", "times": 1, "text": "I look around.\nNow.", "tool": {"name": "list_files", "input": {}}, "usage": used()},
        // The model's second answer is on its way for as long as the others are held.
        {"match": "sage.toml", "text": "never said", "hang": true},
        {"text": "All of it\nworks.", "usage": used()},
    ]);
    let llm = FakeLlm::start(script).unwrap();
    let Some(sage) = team(&llm, TEAM) else { return };
    let run = sage.spawn("run x -t t --quiet");
    until_doing(&sage, "work/claude", "Bash until test -e go");
    until_doing(&sage, "work/codex", "shell until test -e go");
    until_doing(&sage, "work/model", "list_files: ");
    until_doing(&sage, "work/fake", "Run until test -e go");
    until_doing(&sage, "work/build", "3 of 7");
    let status = sage.sage("status x").exit(0).stdout;
    assert!(row(&status, "claude").contains(" · Bash until test -e go"), "{status}");
    assert!(row(&status, "claude").contains("1.1k tokens"), "{status}");
    assert!(row(&status, "codex").contains(" · shell until test"), "{status}");
    assert!(row(&status, "build").ends_with(" · 3 of 7"), "{status}");
    sage.sage("status").exit(0).stdout_has("work/fake").stdout_has("Run until test -e go");
    let mut client = Client::start(&sage, Era::Session);
    let working = client.call("sage_inbox", json!({})).good()["roster"][0]["working"].clone();
    let of_claude = working.as_array().unwrap().iter().find(|step| step["path"] == "work/claude").unwrap();
    assert_eq!(of_claude["activity"], format!("Bash {HOLD}"));
    client.hang_up();
    let following = sage.spawn("logs x -f");
    let one = sage.spawn("logs x work/claude -f");
    let programs = sage.spawn("logs x -f --json");
    sage.write("go", "");
    sage.sage("cancel x").exit(0);
    run.end().exit(130);
    let told = following.end().exit(0);
    let told = told.stdout_has("work/claude started\n").stdout_has(&format!("work/claude | > Bash {HOLD}\n"));
    told.stdout_has("work/codex | > shell until")
        .stdout_has("work/model | Now.\n")
        .stdout_has("run cancelled");
    one.end().exit(0).stdout_has("I wait.\n> Bash until test -e go");
    let lines = programs.end().exit(0).json_lines();
    let does = |line: &&Value| line["type"] == "activity" && line["step"] == "work/claude";
    let kinds: Vec<&str> = lines.iter().filter(does).filter_map(|line| line["kind"].as_str()).collect();
    assert!(kinds.starts_with(&["message", "tool"]), "{kinds:?}");
    sage.assert_nothing_alive();
}

// covers: R8, R18
#[test]
fn logs_tell_what_an_agent_did_was_asked_and_used() {
    let script = json!([
        {"match": "claude-task", "times": 1, "text": "I begin.", "tool": tool("claude", "printf 'a\\nlast line\\n'"), "usage": used()},
        {"match": "codex-task", "times": 1, "tool": tool("codex", "echo broken >&2; exit 3"), "usage": used()},
        {"match": "model-task", "times": 1, "tool": {"name": "read_file", "input": {"path": "notes.txt"}}, "usage": used()},
        {"text": "All of it\nworks.", "usage": used()},
    ]);
    let llm = FakeLlm::start(script).unwrap();
    let Some(sage) = team(&llm, TEAM) else { return };
    sage.write("go", "");
    sage.write("notes.txt", "1\n2\n3\n");
    sage.sage("run x -t t --quiet").exit(0);
    let logs = |step: &str| sage.args(["logs", "x", step]).run().exit(0).stdout;
    let claude = logs("work/claude");
    assert!(claude.starts_with("I begin.\n> Bash printf 'a\\nlast line\\n'\n"), "{claude}");
    assert!(claude.contains("\n< Bash: last line (2 lines)\nAll of it\nworks.\n= 2.2k tokens, "), "{claude}");
    let codex = logs("work/codex");
    assert!(
        codex.contains("> shell echo broken >&2; exit 3\n") && codex.contains("< shell failed: broken\n"),
        "{codex}"
    );
    assert!(codex.contains("All of it\nworks.\n") && codex.contains("= 2.2k tokens, ~$"), "{codex}");
    let model = logs("work/model");
    assert!(model.contains("> read_file notes.txt\n< read_file: 3 lines\n"), "{model}");
    assert!(logs("work/fake").ends_with("< Run: done\nplayed\n= 7 tokens\n"), "{}", logs("work/fake"));
    // What they were asked, as it was sent.
    let asked = sage.sage("logs x work/claude --prompt").exit(0);
    assert_eq!(asked.stdout, "--- system\nBe careful.\n--- prompt\nclaude-task: hold on\n");
    let asked = sage.sage("logs x work/codex --prompt --json").exit(0).json();
    assert_eq!((&asked["system"], &asked["prompt"]), (&"Be brief.".into(), &"codex-task: hold on".into()));
    sage.sage("logs x work/build --prompt").exit(2).stderr_has("is a shell step and has no prompt");
    let sent = llm.prompts().iter().map(Value::to_string).collect::<String>();
    assert!(sent.contains("Be careful.") && sent.contains("Be brief."), "{sent}");
    // The same for programs.
    let output = sage.sage("logs x work/claude --json").exit(0).json();
    let kinds: Vec<&str> =
        output["activity"].as_array().unwrap().iter().filter_map(|it| it["kind"].as_str()).collect();
    assert!(kinds.starts_with(&["message", "tool"]) && kinds.contains(&"result"), "{output}");
    // What each step used is in `status`, and adds up to what the phase did.
    let status = sage.sage("status x").exit(0).stdout;
    let view = sage.status("x");
    let total: u64 =
        view["steps"].as_array().unwrap().iter().filter_map(|step| step["tokens"].as_u64()).sum();
    assert!(row(&status, "claude").contains(" · 2.2k tokens · $0."), "{status}");
    assert!(row(&status, "codex").contains(" · 2.2k tokens · ~$0."), "{status}");
    assert!(
        row(&status, "work").contains(&format!(" · {:.1}k tokens · ~$0.", total as f64 / 1e3)),
        "{status}"
    );
}
