//! One fence for all adapters: no agent writes what configures agents, whatever path it names, and none reads
//! the secrets of Sage.

use std::path::{Path, PathBuf};

use sage_agents::AgentConfig;
use sage_agents::fake_llm::{FakeLlm, Script};
use sage_core::fence::PROTECTED;
use sage_core::policy::FailureClass;
use sage_core::port::{Permission, StepOutcome};
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::claude_desk::{Desk, tool};
use crate::codex_bench::Codex;

const TOKEN: &str = "tok-4711-of-serve";

/// Every protected name is there: as a file, or as a folder with a file in it.
fn lay_out(root: &Path) {
    for name in PROTECTED {
        let file = file_of(root, name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    for folder in [".sage/state", ".sage/sessions/s", "docs", "nested/repo/.git/hooks"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for secret in [".sage/state/serve.json", ".sage/sessions/s/turn-1.json"] {
        std::fs::write(root.join(secret), TOKEN).unwrap();
    }
    for (target, link) in [(".git", "link"), (".sage/state", "state"), ("../.claude", "docs/settings")] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    std::fs::hard_link(root.join(".mcp.json"), root.join("hard.json")).unwrap();
}

fn file_of(root: &Path, name: &str) -> PathBuf {
    let is_file = name.ends_with(".toml") || name.ends_with(".json");
    if is_file { root.join(name) } else { root.join(name).join("file") }
}

/// Paths that mean something protected. All are tried by every adapter that writes for its agent.
fn tricks(root: &Path) -> Vec<String> {
    let mut paths = vec![
        "link/hooks/post-commit".into(),
        "link/file".into(),
        "docs/settings/settings.json".into(),
        "nested/repo/.git/hooks/pre-commit".into(),
        "hard.json".into(),
        ".sage/operations/test.run.md".into(),
        ".g\u{200c}it/config".into(),
        ".\u{17f}age/templates/x.yaml".into(),
        "docs/../.GIT/hooks/x".into(),
    ];
    for name in PROTECTED {
        let file = file_of(root, name);
        let inside = file.strip_prefix(root).unwrap().to_str().unwrap().to_string();
        paths.extend([
            inside.clone(),
            inside.to_uppercase(),
            format!("./docs/../{inside}"),
            format!("{name}./x"),
            format!("{name} /x"),
            format!("sub/{name}/x"),
            file.display().to_string(),
        ]);
    }
    paths
}

fn secrets(root: &Path) -> Vec<String> {
    let absolute = root.join(".sage/state/serve.json").display().to_string();
    let plain = [
        ".sage/state/serve.json",
        "state/serve.json",
        "docs/../.sage/sessions/s/turn-1.json",
        "./.sage//state/serve.json",
    ];
    plain.map(str::to_string).into_iter().chain([absolute]).collect()
}

#[track_caller]
fn assert_untouched(root: &Path) {
    for name in PROTECTED {
        assert_eq!(std::fs::read_to_string(file_of(root, name)).unwrap(), "mine", "{name}");
    }
    for path in [".git/hooks", "nested/repo/.git/hooks", ".claude", ".sage/state"] {
        let names = std::fs::read_dir(root.join(path)).into_iter().flatten().flatten();
        let new: Vec<_> = names.map(|entry| entry.file_name()).collect();
        let known = |name: &std::ffi::OsString| name == "file" || name == "serve.json";
        assert!(new.iter().all(known), "{path}: {new:?}");
    }
    assert!(!root.join(".sage/operations").exists() && !root.join("sub").exists());
    let odd = std::fs::read_dir(root).unwrap().flatten().map(|entry| entry.file_name());
    let odd: Vec<_> = odd.filter(|name| name.to_string_lossy().to_lowercase().contains("git")).collect();
    assert_eq!(odd, [".git"]);
}

// covers: R17
#[tokio::test]
async fn llm_agents_write_nothing_that_configures_agents_and_read_no_secrets() {
    let fake = FakeLlm::start(json!([])).unwrap();
    let config = AgentConfig {
        name: "model".into(),
        adapter: "llm".into(),
        api: Some("chat".into()),
        url: Some(fake.url()),
        model: Some("m".into()),
        ..AgentConfig::default()
    };
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "go"})).agent(config);
    bench.call.agent = Some("model".into());
    let root = bench.dir.path().canonicalize().unwrap();
    lay_out(&root);
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    let writes =
        tricks(&root).into_iter().map(|path| call("write_file", json!({"path": path, "content": "theirs"})));
    let reads = secrets(&root).into_iter().map(|path| call("read_file", json!({ "path": path })));
    let all = call("list_files", json!({"recursive": true}));
    let calls: Vec<Value> = writes.chain(reads).chain([all]).collect();
    let count = calls.len();
    let good = call("write_file", json!({"path": "docs/new.md", "content": "fine"}));
    let script = json!([{"tools": calls}, {"tools": [good]}, {"text": "done"}]);
    fake.reset(Script::try_from(script).unwrap());
    bench.run().await.succeeded();
    assert_untouched(&root);
    assert_eq!(bench.read("docs/new.md"), "fine");
    let sent = fake.prompts()[1].to_string();
    assert!(!sent.contains(TOKEN), "{sent}");
    assert!(!sent.contains("turn-1.json\\n"), "a list does not look into private folders");
    let refused = ["is protected", "is private to Sage", "No such file"].map(|why| sent.matches(why).count());
    assert_eq!(refused.iter().sum::<usize>(), count - 1, "{sent}");
}

// covers: R17
#[tokio::test]
async fn acp_agents_write_nothing_that_configures_agents_and_read_no_secrets() {
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "go"}));
    bench.call.agent = Some("robot".into());
    let root = bench.dir.path().canonicalize().unwrap();
    lay_out(&root);
    let script = root.join("script.json");
    let config = AgentConfig {
        name: "robot".into(),
        adapter: "acp".into(),
        command: vec![env!("CARGO_BIN_EXE_sage-acp-test").into(), script.display().to_string()],
        ..AgentConfig::default()
    };
    let bench = bench.agent(config);
    let ask = |method: &str, params: Value| json!({"ask": {"method": method, "params": params}});
    let write = |path: String| ask("fs/write_text_file", json!({"path": path, "content": "theirs"}));
    let option = json!([{"optionId": "yes", "name": "yes", "kind": "allow_once"}]);
    let permission = |path: String| {
        let call = json!({"toolCallId": "t", "title": "edit", "kind": "edit", "locations": [{"path": path}]});
        ask("session/request_permission", json!({"toolCall": call, "options": option.clone()}))
    };
    let paths = tricks(&root);
    let mut turn: Vec<Value> = paths.iter().cloned().map(write).collect();
    turn.extend(paths.iter().cloned().map(permission));
    turn.extend(secrets(&root).into_iter().map(|path| ask("fs/read_text_file", json!({ "path": path }))));
    let asked = turn.len();
    turn.push(write("docs/new.md".into()));
    turn.push(json!({"answer": {"stopReason": "end_turn"}}));
    std::fs::write(&script, json!({ "turn": turn }).to_string()).unwrap();
    let _ = bench.run().await;
    assert_untouched(&root);
    assert_eq!(bench.read("docs/new.md"), "theirs");
    let heard = bench.read("heard.jsonl");
    assert!(!heard.contains(TOKEN) && !heard.contains("\"yes\""), "{heard}");
    let refused = heard.matches("\"error\"").count() + heard.matches("\"cancelled\"").count();
    assert_eq!(refused, asked, "{heard}");
}

// covers: R17
#[tokio::test]
async fn the_scripted_agent_writes_nothing_that_configures_agents() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    lay_out(&root);
    for path in tricks(&root) {
        let mut bench = Bench::fake(json!([{"write": {path.clone(): "theirs"}, "result": 1}]));
        bench.cx.project = root.clone();
        let message = bench.run().await.failed(FailureClass::Failed).message;
        assert!(message.contains("protected") || message.contains("No such file"), "{path}: {message}");
    }
    assert_untouched(&root);
    // Nor from a working directory inside of it.
    let mut bench = Bench::fake(json!([{"write": {"hooks/x": "theirs"}, "result": 1}]));
    bench.cx.project = root.clone();
    let message = bench.param("cwd", json!(".git")).run().await.failed(FailureClass::Failed).message;
    assert!(message.contains("protected"), "{message}");
}

// covers: R17
#[tokio::test]
async fn claude_writes_nothing_that_configures_agents_even_with_opened_tools() {
    let Some(desk) = Desk::new(json!([])) else { return };
    let desk = desk.answers(|_| Box::pin(std::future::ready(Permission::Allow { input: None })));
    let desk = desk.param("tools", json!(["Write", "Edit", "Read"]));
    let root = desk.bench.dir.path().canonicalize().unwrap();
    for (target, link) in [(".git", "link"), (".sage/state", "state")] {
        std::fs::create_dir_all(root.join(target)).unwrap();
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    std::fs::write(root.join(".sage/state/serve.json"), TOKEN).unwrap();
    let mut paths: Vec<String> = PROTECTED
        .map(|name| {
            let file = file_of(&root, name);
            file.strip_prefix(&root).unwrap().display().to_string()
        })
        .into();
    paths.extend(
        [".claude/settings.json", "sub/.mcp.json", "docs/../.mcp.json", "link/hooks/x"].map(String::from),
    );
    paths.push(root.join(".gemini/settings.json").display().to_string());
    let mut script: Vec<Value> =
        paths.iter().map(|path| tool("Write", json!({"file_path": path, "content": "theirs"}))).collect();
    script.push(tool("Write", json!({"file_path": "made.txt", "content": "fine"})));
    script.push(tool("Read", json!({"file_path": root.join(".sage/state/serve.json")})));
    script.push(json!({"text": "done"}));
    desk.script(json!(script));
    let mut desk = desk;
    desk.bench.config.private = vec![root.join(".sage")];
    assert_eq!(desk.run().await.succeeded(), "done");
    for path in &paths {
        assert!(!root.join(path).exists(), "{path}");
    }
    assert_eq!(desk.bench.read("made.txt"), "fine");
    assert!(!desk.last_sent().contains(TOKEN));
}

// covers: R17
#[tokio::test]
async fn codex_writes_nothing_that_configures_agents() {
    let paths = |root: &Path| {
        let files =
            PROTECTED.map(|name| file_of(root, name).strip_prefix(root).unwrap().display().to_string());
        let more = [
            "link/hooks/x",
            "nested/repo/.git/hooks/x",
            "docs/settings/x",
            ".sage/operations/x.md",
            "hard.json",
        ];
        files.into_iter().chain(more.map(String::from)).collect::<Vec<_>>()
    };
    let Some(codex) = Codex::new(json!([])) else { return };
    let root = codex.bench.dir.path().canonicalize().unwrap();
    lay_out(&root);
    // Beside a hard link the kernel sees the same file: it is not there in the first place.
    std::fs::remove_file(root.join("hard.json")).unwrap();
    let tries: Vec<String> =
        paths(&root).iter().map(|path| format!("mkdir -p $(dirname {path}); echo theirs > {path}")).collect();
    let command =
        format!("{}; cat .sage/state/serve.json; echo fine > docs/new.md; echo tried", tries.join("; "));
    codex.script(json!([{"tool": {"name": "exec_command", "input": {"cmd": command}}}, {"text": "{{last_tool_result}}"}]));
    let mut codex = codex;
    codex.bench.config.private = vec![root.join(".sage")];
    let (answer, _) = codex.answers().await;
    let answer = answer.as_str().unwrap().to_string();
    assert!(answer.contains("tried") && !answer.contains(TOKEN), "{answer}");
    std::fs::remove_file(root.join("hard.json")).unwrap();
    assert_untouched(&root);
    assert_eq!(codex.bench.read("docs/new.md"), "fine\n");
}

// covers: R17
#[tokio::test]
async fn what_codex_makes_where_nothing_was_is_moved_away_and_the_attempt_fails() {
    let Some(codex) = Codex::new(json!([])) else { return };
    let command =
        "echo theirs > .mcp.json; mkdir .claude; echo theirs > .claude/settings.json; echo x > made";
    codex.script(json!([{"tool": {"name": "exec_command", "input": {"cmd": command}}}, {"text": "done"}]));
    let outcome = codex.run().await.0;
    let StepOutcome::Failed { class, message, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(class, FailureClass::Invalid, "{message}");
    assert!(message.contains(".mcp.json") && message.contains(".claude"), "{message}");
    for path in [".mcp.json", ".claude", ".gemini", "sage.toml"] {
        assert!(!codex.bench.path(path).exists(), "{path}");
    }
    assert!(codex.bench.path("made").exists());
    assert_eq!(codex.bench.read(".scratch/refused-1-.mcp.json"), "theirs\n");
}
