//! Real agents that speak ACP against the scripted model: codex-acp, Gemini, and claude-agent-acp where node is new
//! enough.
//!
//! Without them on this machine the tests say so and pass. `SAGE_TEST_AGENTS` and `SAGE_TEST_ACP` are the directories
//! they are in, `SAGE_TEST_MCP` has a newer node.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_agents::AgentConfig;
use sage_agents::fake_llm::{FakeLlm, Script};
use sage_core::policy::FailureClass;
use sage_core::port::{
    Asks, BoxFuture, Continuity, Message, Permission, PermissionAsk, Progress, Questions, Stop,
};
use sage_core::role::Role;
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, Outcome, marked};

/// These are large programs, and some machines are small and busy.
const PATIENCE: Duration = Duration::from_secs(150);

struct Real {
    llm: FakeLlm,
    bench: Bench,
    /// Not below the temporary directory: codex's sandbox does not work from there.
    _home: tempfile::TempDir,
}

#[derive(Clone, Copy)]
enum Which {
    Codex,
    Claude,
    Gemini,
}

fn tools(variable: &str, below: &str) -> PathBuf {
    let given = std::env::var_os(variable).map(PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    given.unwrap_or_else(|| target.join("tools").join(below))
}

fn installed(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(name);
    if program.exists() {
        return Some(program);
    }
    println!("skipped: there is no {name} in {}", folder.display());
    None
}

fn agents() -> PathBuf {
    tools("SAGE_TEST_AGENTS", "agents/node_modules/.bin")
}

/// A node that is new enough for the agent: the system's, or the one of the MCP clients.
fn node(least: u32) -> Option<PathBuf> {
    let candidates =
        [PathBuf::from("node"), tools("SAGE_TEST_MCP", "mcp").join("node_modules/node/bin/node")];
    let found = candidates.into_iter().find(|node| {
        let output = Command::new(node).arg("--version").output();
        let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let major =
            version.ok().and_then(|text| text.trim_start_matches('v').split('.').next()?.parse().ok());
        major.is_some_and(|major: u32| major >= least)
    });
    if found.is_none() {
        println!("skipped: there is no node {least} or newer");
    }
    found
}

/// claude-agent-acp has the model think of a title meanwhile.
fn with_title(script: Value) -> Value {
    let mut turns = vec![json!({"match": "Write the title", "text": "a title"})];
    turns.extend(script.as_array().unwrap().iter().cloned());
    Value::Array(turns)
}

impl Real {
    fn new(which: Which, script: Value) -> Option<Real> {
        let llm = FakeLlm::start(with_title(script)).unwrap();
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let agent = match which {
            Which::Codex => codex(&llm, home.path())?,
            Which::Claude => claude(&llm, home.path())?,
            Which::Gemini => gemini(&llm, home.path())?,
        };
        let mut bench = Bench::new(Kind::Agent, json!({"prompt": "the first task"})).agent(agent);
        bench.call.agent = Some("robot".into());
        bench.config.sessions = Some(bench.path(".sessions"));
        Some(Real { llm, bench, _home: home })
    }

    fn script(&self, script: Value) {
        self.llm.reset(Script::try_from(with_title(script)).unwrap());
    }

    /// Runs to the end, and sees that nothing is left.
    async fn run(&self) -> Outcome {
        let outcome =
            tokio::time::timeout(PATIENCE, self.bench.start()).await.expect("the attempt does not end");
        assert_eq!(marked(&self.bench.call.run), [] as [u32; 0], "processes are left");
        Outcome(outcome)
    }

    fn again(&mut self) {
        self.bench.call.attempt += 1;
        self.bench.call.unknown = true;
    }

    fn continuity(&self) -> Option<Continuity> {
        let progress = self.bench.progress.lock().unwrap();
        progress.iter().rev().find_map(|it| match it {
            Progress::Session { continuity, .. } => Some(*continuity),
            _ => None,
        })
    }
}

fn agent(command: Vec<String>, env: &[(&str, &str)]) -> AgentConfig {
    AgentConfig {
        name: "robot".into(),
        adapter: "acp".into(),
        command,
        env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..AgentConfig::default()
    }
}

fn codex(llm: &FakeLlm, home: &Path) -> Option<AgentConfig> {
    let program = installed(&agents(), "codex-acp")?;
    let node = node(20)?;
    let provider = json!({"name": "fake", "base_url": format!("{}/v1", llm.url()), "env_key": "FAKE_KEY",
        "wire_api": "responses", "request_max_retries": 0, "stream_max_retries": 0});
    let config = json!({"model_providers": {"fake": provider}, "model_provider": "fake", "model": "fake-1"});
    let home = home.display().to_string();
    let env = [
        ("HOME", home.as_str()),
        ("CODEX_HOME", &home),
        ("FAKE_KEY", "none"),
        ("MODEL_PROVIDER", "fake"),
        ("CODEX_CONFIG", &config.to_string()),
    ];
    Some(agent(vec![node.display().to_string(), program.display().to_string()], &env))
}

fn claude(llm: &FakeLlm, home: &Path) -> Option<AgentConfig> {
    let program = installed(&tools("SAGE_TEST_ACP", "acp").join("node_modules/.bin"), "claude-agent-acp")?;
    let node = node(22)?;
    let home = home.display().to_string();
    let env = [
        ("HOME", home.as_str()),
        ("ANTHROPIC_BASE_URL", &llm.url()),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("IS_SANDBOX", "1"),
    ];
    Some(agent(vec![node.display().to_string(), program.display().to_string()], &env))
}

fn gemini(llm: &FakeLlm, home: &Path) -> Option<AgentConfig> {
    let program = installed(&agents(), "gemini")?;
    let node = node(20)?;
    std::fs::create_dir(home.join(".gemini")).unwrap();
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    std::fs::write(home.join(".gemini/settings.json"), settings.to_string()).unwrap();
    let env = [
        ("HOME", home.to_str().unwrap()),
        ("GEMINI_API_KEY", "none"),
        ("GOOGLE_GEMINI_BASE_URL", &llm.url()),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
    ];
    let words = [&node.display().to_string(), &program.display().to_string(), "--acp", "--skip-trust"];
    // Without one, another model is asked which model to take, and uses up the script.
    let model = Some("gemini-2.5-flash".into());
    Some(AgentConfig { model, ..agent(words.map(String::from).to_vec(), &env) })
}

fn run_tool(which: Which, command: &str) -> Value {
    match which {
        Which::Codex => json!({"name": "exec_command", "input": {"cmd": command, "yield_time_ms": 5000,
            "sandbox_permissions": "require_escalated", "justification": "needed"}}),
        Which::Claude => json!({"name": "Bash", "input": {"command": command, "description": "needed"}}),
        Which::Gemini => json!({"name": "run_shell_command", "input": {"command": command}}),
    }
}

/// Allows or denies everything.
struct Clerk(Permission, Mutex<Vec<PermissionAsk>>);

impl Asks for Clerk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.1.lock().unwrap().push(ask);
        Box::pin(std::future::ready(self.0.clone()))
    }
}

async fn works_asks_and_goes_on(which: Which) {
    let script = json!([{"text": "let me look", "tool": run_tool(which, "echo made > made.txt")}, {"text": "all done"}]);
    let Some(mut real) = Real::new(which, script) else { return };
    let clerk = Arc::new(Clerk(Permission::Allow { input: None }, Mutex::default()));
    real.bench.cx.questions = Questions::new(clerk.clone());
    let outcome = real.run().await;
    let usage = match &outcome.0 {
        sage_core::port::StepOutcome::Succeeded { usage, .. } => usage.clone(),
        other => panic!("{other:?}\n{}", real.bench.read(".scratch/stderr.log")),
    };
    assert_eq!(outcome.succeeded(), "all done");
    let log = real.bench.activity();
    assert_eq!(real.bench.read("made.txt"), "made\n", "{log}");
    let asked = clerk.1.lock().unwrap().clone();
    assert_eq!((asked.len(), asked[0].command.as_deref()), (1, Some("echo made > made.txt")));
    let sent = real.llm.sent_usage();
    match which {
        Which::Codex => assert_eq!(usage.total(), sent.total(), "{usage:?} {sent:?}"),
        // The title is not part of the turn.
        Which::Claude | Which::Gemini => {
            assert!((1..=sent.total()).contains(&usage.total()), "{usage:?} {sent:?}");
        }
    }
    assert!(log.contains("let me look\n") && log.contains("echo made > made.txt"), "{log}");

    // Other work in another process: the model is given all that was said before.
    real.bench.call.session = Some("talk".into());
    real.script(json!([{"text": "one"}]));
    real.run().await.succeeded();
    real.bench.call.key = "other".into();
    real.bench.call.params.insert("prompt".into(), json!("the second task"));
    real.script(json!([{"text": "two"}]));
    assert_eq!(real.run().await.succeeded(), "two");
    assert_eq!(real.continuity(), Some(Continuity::Resumed));
    let told = real.llm.prompts().last().unwrap().to_string();
    assert!(told.contains("the first task") && told.contains("the second task"));
}

async fn stops_and_goes_on(which: Which) {
    let script = json!([{"text": "a first word", "tool": run_tool(which, "true")}, {"hang": 60}]);
    let Some(mut real) = Real::new(which, script) else { return };
    real.bench.cx.questions =
        Questions::new(Arc::new(Clerk(Permission::Allow { input: None }, Mutex::default())));
    let stop = async {
        let goes_on = || real.llm.prompts().iter().any(|it| it.to_string().contains("a first word"));
        while !goes_on() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        real.bench.cx.stop.set(Stop::Graceful);
    };
    let both = async { tokio::join!(real.run(), stop) };
    let (outcome, ()) = tokio::time::timeout(PATIENCE, both).await.expect("the stop");
    outcome.stopped();
    real.script(json!([{"text": "here again"}]));
    real.bench.cx.stop = Default::default();
    real.again();
    assert_eq!(real.run().await.succeeded(), "here again");
    assert_eq!(real.continuity(), Some(Continuity::Resumed));
}

async fn keeps_to_its_role(which: Which) {
    let script =
        json!([{"text": "x", "tool": run_tool(which, "echo made > made.txt")}, {"text": "could not"}]);
    let Some(mut real) = Real::new(which, script) else { return };
    let clerk = Arc::new(Clerk(Permission::Allow { input: None }, Mutex::default()));
    real.bench.cx.questions = Questions::new(clerk.clone());
    real.bench.call.role = Some(Role::Planner);
    let outcome = real.run().await;
    match which {
        Which::Codex => drop(outcome.failed(FailureClass::Failed).says("your role may not run commands")),
        Which::Claude | Which::Gemini => assert_eq!(outcome.succeeded(), "could not"),
    }
    assert!(!real.bench.path("made.txt").exists() && clerk.1.lock().unwrap().is_empty());
}

// covers: S3, S4, R18
#[tokio::test]
async fn codex_works_asks_and_goes_on() {
    works_asks_and_goes_on(Which::Codex).await;
}

// covers: S3, S4
#[tokio::test]
async fn codex_stops_and_goes_on() {
    stops_and_goes_on(Which::Codex).await;
}

// covers: S6
#[tokio::test]
async fn codex_keeps_to_its_role() {
    keeps_to_its_role(Which::Codex).await;
}

// covers: S3, S4, R18
#[tokio::test]
async fn claude_works_asks_and_goes_on() {
    works_asks_and_goes_on(Which::Claude).await;
}

// covers: S3, S4
#[tokio::test]
async fn claude_stops_and_goes_on() {
    stops_and_goes_on(Which::Claude).await;
}

// covers: S6
#[tokio::test]
async fn claude_keeps_to_its_role() {
    keeps_to_its_role(Which::Claude).await;
}

/// It reads a file through sage before it creates it, and names its tools in no message.
// covers: S4, S6
#[tokio::test]
async fn gemini_creates_files_and_uses_the_tools_that_the_step_lists() {
    let write = json!({"name": "write_file", "input": {"file_path": "new/made.txt", "content": "made"}});
    let script = json!([
        {"tool": write},
        {"tool": run_tool(Which::Gemini, "echo ran > ran.txt")},
        {"text": "all done"},
    ]);
    let Some(mut real) = Real::new(Which::Gemini, script) else { return };
    let clerk = Arc::new(Clerk(Permission::Deny { message: "not listed".into() }, Mutex::default()));
    real.bench.cx.questions = Questions::new(clerk.clone());
    real.bench.call.params.insert("tools".into(), json!(["Write", "Bash"]));
    let answer = real.run().await.succeeded();
    assert_eq!(answer, "all done", "{}", real.bench.activity());
    assert_eq!(real.bench.read("new/made.txt"), "made");
    assert_eq!(real.bench.read("ran.txt"), "ran\n");
    assert!(clerk.1.lock().unwrap().is_empty());
}

/// Answers what an agent wants to know, and allows the rest.
struct Person(Mutex<Vec<PermissionAsk>>);

impl Asks for Person {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        let questions = ask.inquiry.as_ref().map(|inquiry| inquiry.questions().to_vec()).unwrap_or_default();
        let given = sage_core::inquiry::PersonAnswers::to(&questions, &["Blue".into()], None);
        let input = given.ok().filter(|_| !questions.is_empty()).map(|given| given.into_input());
        self.0.lock().unwrap().push(ask);
        Box::pin(std::future::ready(Permission::Allow { input }))
    }
}

// covers: P3
#[tokio::test]
async fn claude_asks_a_person_and_hears_the_answer() {
    let option = |label: &str| json!({"label": label, "description": "d"});
    let question = json!({"question": "Which color?", "header": "Color", "multiSelect": false, "options": [option("Red"), option("Blue")]});
    let ask = json!({"name": "AskUserQuestion", "input": {"questions": [question]}});
    let script = json!([{"text": "hm", "tool": ask}, {"text": "so be it: {{last_tool_result}}"}]);
    let Some(mut real) = Real::new(Which::Claude, script) else { return };
    let person = Arc::new(Person(Mutex::default()));
    real.bench.cx.questions = Questions::new(person.clone());
    let answer = real.run().await.succeeded().to_string();
    assert!(answer.contains("Blue"), "{answer}");
    assert_eq!(person.0.lock().unwrap()[0].inquiry.as_ref().unwrap().title(), "Which color? (Red, Blue)");
}

// covers: P3, R17
#[tokio::test]
async fn claude_plans_first() {
    let plan = json!({"name": "Write", "input": {"file_path": "{{after:You should create your plan at}}", "content": "1. paint"}});
    let leave = json!({"name": "ExitPlanMode", "input": {}});
    let script = json!([{"text": "a", "tool": plan}, {"text": "b", "tool": leave}, {"text": "c", "tool": run_tool(Which::Claude, "echo made > made.txt")}, {"text": "done"}]);
    let Some(mut real) = Real::new(Which::Claude, script) else { return };
    let person = Arc::new(Person(Mutex::default()));
    real.bench.cx.questions = Questions::new(person.clone());
    real.bench.call.params.insert("mode".into(), json!("plan"));
    let outcome = real.run().await;
    let asked = person.0.lock().unwrap().clone();
    let log = real.bench.activity();
    assert_eq!(outcome.succeeded(), "done", "{asked:#?}\n{log}");
    let plans: Vec<&str> = asked.iter().filter_map(|ask| ask.inquiry.as_ref()?.plan()).collect();
    assert_eq!(plans, ["1. paint"], "{asked:#?}\n{log}");
    assert_eq!(real.bench.read("made.txt"), "made\n");
}

/// It asks only while it plans; its plan is a part of its words.
// covers: P3, R17
#[tokio::test]
async fn codex_asks_a_person_while_it_plans_and_works_when_its_plan_is_approved() {
    let option = |label: &str| json!({"label": label, "description": "d"});
    let question = json!({"id": "color", "header": "Color", "question": "Which color?", "options": [option("Red"), option("Blue")]});
    let ask = json!({"name": "request_user_input", "input": {"questions": [question]}});
    let script = json!([
        {"tool": ask},
        {"text": "<proposed_plan>\n1. paint it {{last_tool_result}}\n</proposed_plan>"},
        {"tool": run_tool(Which::Codex, "echo made > made.txt")},
        {"text": "done"},
    ]);
    let Some(mut real) = Real::new(Which::Codex, script) else { return };
    let person = Arc::new(Person(Mutex::default()));
    real.bench.cx.questions = Questions::new(person.clone());
    real.bench.call.params.insert("mode".into(), json!("plan"));
    let outcome = real.run().await;
    let asked = person.0.lock().unwrap().clone();
    assert_eq!(outcome.succeeded(), "done", "{asked:#?}\n{}", real.bench.activity());
    let title = asked[0].inquiry.as_ref().unwrap().title();
    assert!(title.contains("Which color? (Red, Blue"), "{title}");
    let plan = asked[1].inquiry.as_ref().and_then(|inquiry| inquiry.plan()).unwrap_or_default();
    assert!(plan.contains("1. paint it") && plan.contains("Blue"), "{asked:#?}");
    assert_eq!(real.bench.read("made.txt"), "made\n");
}

/// What a model was asked: with the files of the step, its effort, and a model that the agent offers if it `chooses`.
async fn is_asked_as_its_step_says(which: Which, chooses: bool, picture: &str) -> Option<Value> {
    use sage_core::digest::Digest;
    use sage_core::port::{FileKind, PromptFile};
    let mut real = Real::new(which, json!([{"text": "seen"}]))?;
    let file = |path: &str, content: &[u8]| {
        let (kind, _) = FileKind::of(content).unwrap();
        PromptFile { path: path.into(), sha: Digest::of(content), kind, content: content.into() }
    };
    real.bench.call.files = vec![file("docs/a.md", b"the albatross"), file("shot.png", PICTURE)];
    real.bench.call.params.insert("effort".into(), json!("high"));
    if chooses {
        real.bench.call.model = Some("none".into());
        let refused = real.run().await.failed(FailureClass::Invalid);
        let offered = refused.message.split_once("it offers: ").unwrap().1;
        // The first is the one that it has, of which it knows nothing.
        real.bench.call.model = offered.split(", ").nth(1).map(str::to_string);
        real.again();
    }
    real.run().await.succeeded();
    let sent = real.llm.prompts().into_iter().find(|it| it.to_string().contains("the first task")).unwrap();
    let text = sent.to_string();
    assert!(text.contains("the albatross"), "{text}");
    assert!(text.contains(picture), "{text}");
    Some(sent)
}

/// A whole picture of four pixels.
const PICTURE: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd, 0xd4, 0x9a, 0x73, 0x00,
    0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xc0, 0x00, 0xc2, 0x0c,
    0xff, 0x81, 0x00, 0x00, 0x1f, 0xee, 0x05, 0xfb, 0x0b, 0xd9, 0x68, 0x8b, 0x00, 0x00, 0x00, 0x00, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

// covers: R16
#[tokio::test]
async fn codex_thinks_and_sees_as_its_step_says() {
    let Some(sent) = is_asked_as_its_step_says(Which::Codex, true, "data:image/png;base64,").await else {
        return;
    };
    assert_eq!(sent.pointer("/reasoning/effort"), Some(&json!("high")), "{}", sent["reasoning"]);
}

// covers: R16
#[tokio::test]
async fn gemini_sees_the_files_of_its_step() {
    is_asked_as_its_step_says(Which::Gemini, false, "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91Jpz").await;
}

/// The message comes while the agent works on its prompt, and is its next one.
async fn hears_a_person(which: Which) {
    let script = json!([
        {"match": "mind the gap", "text": "as you like"},
        {"text": "first answer"},
    ]);
    let Some(real) = Real::new(which, script) else { return };
    real.bench.cx.messages.send(Message { id: "1".into(), text: "mind the gap".into() });
    let outcome = real.run().await;
    assert_eq!(outcome.succeeded(), "as you like", "{}", real.bench.activity());
    // Agents also ask for a title of the conversation, and at any time.
    let told: Vec<String> = real.llm.prompts().iter().map(Value::to_string).collect();
    let whole = ["the first task", "first answer", "mind the gap"];
    assert!(told.iter().any(|prompt| whole.iter().all(|text| prompt.contains(text))), "{told:#?}");
    let log = real.bench.activity();
    // Without its notes.
    let said: Vec<&str> = log.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(said.ends_with(&["first answer", "@ mind the gap", "as you like"]), "{log}");
}

// covers: S4
#[tokio::test]
async fn a_real_codex_over_acp_hears_a_person() {
    hears_a_person(Which::Codex).await;
}

// covers: S4
#[tokio::test]
async fn a_real_gemini_hears_a_person() {
    hears_a_person(Which::Gemini).await;
}
