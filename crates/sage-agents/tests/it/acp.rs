//! The `acp` adapter with a scripted agent: a real process that speaks the protocol, well and badly.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use sage_agents::AgentConfig;
use sage_core::policy::FailureClass;
use sage_core::port::{
    Asks, BoxFuture, Continuity, Message, Permission, PermissionAsk, Progress, Questions, StepOutcome, Stop,
    Usage,
};
use sage_core::role::Role;
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, Outcome, key, until};

fn agent(bench: &Bench) -> AgentConfig {
    let script = bench.path("script.json").display().to_string();
    AgentConfig {
        name: "robot".into(),
        adapter: "acp".into(),
        command: vec![env!("CARGO_BIN_EXE_sage-acp-test").into(), script],
        ..AgentConfig::default()
    }
}

fn acp(script: Value) -> Bench {
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "go"}));
    bench.call.agent = Some("robot".into());
    bench.config.sessions = Some(bench.path(".sessions"));
    bench.script(script).with(|bench| {
        let agent = agent(bench);
        bench.config.agents.insert("robot".into(), agent);
    })
}

impl Bench {
    fn with(mut self, change: impl FnOnce(&mut Bench)) -> Bench {
        change(&mut self);
        self
    }

    fn script(self, script: Value) -> Bench {
        std::fs::write(self.path("script.json"), script.to_string()).unwrap();
        self
    }

    fn role(self, role: Role) -> Bench {
        self.with(|bench| bench.call.role = Some(role))
    }

    /// Everything that the agent has heard with this method; answers of ours have none.
    fn heard(&self, method: &str) -> Vec<Value> {
        let text = self.read("heard.jsonl");
        let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        messages.filter(|message| message["method"].as_str().unwrap_or_default() == method).collect()
    }

    fn answers(&self) -> Vec<Value> {
        self.heard("")
    }

    fn prompt(&self) -> String {
        self.heard("session/prompt").pop().unwrap()["params"]["prompt"][0]["text"]
            .as_str()
            .unwrap()
            .to_string()
    }

    fn continuity(&self) -> Option<Continuity> {
        let progress = self.progress.lock().unwrap();
        progress.iter().rev().find_map(|it| match it {
            Progress::Session { continuity, .. } => Some(*continuity),
            _ => None,
        })
    }
}

fn chunk(id: Option<&str>, text: &str) -> Value {
    let mut update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    id.into_iter().for_each(|id| update["messageId"] = id.into());
    json!({ "update": update })
}

fn end() -> Value {
    json!({"answer": {"stopReason": "end_turn"}})
}

fn script(turn: &[Value]) -> Value {
    json!({ "turn": turn })
}

fn ask_for(kind: &str, input: Value) -> Value {
    let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
    json!({"ask": {"method": "session/request_permission", "params": {
        "toolCall": {"toolCallId": "t1", "title": "the title", "kind": kind, "rawInput": input,
            "locations": input.get("path").map(|path| json!([{ "path": path }])).unwrap_or(json!([]))},
        "options": [option("3", "reject_always"), option("1", "allow_always"), option("2", "reject_once"),
            option("4", "allow_once")],
    }}})
}

/// Answers every question in the same way and remembers it.
struct Clerk {
    answer: Option<Permission>,
    asked: Mutex<Vec<PermissionAsk>>,
}

impl Clerk {
    /// One that never answers has no answer.
    fn new(answer: Option<Permission>) -> Arc<Clerk> {
        Arc::new(Clerk { answer, asked: Mutex::default() })
    }
}

impl Asks for Clerk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        self.asked.lock().unwrap().push(ask);
        match self.answer.clone() {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn usage(outcome: &Outcome) -> Usage {
    match &outcome.0 {
        StepOutcome::Succeeded { usage, .. }
        | StepOutcome::Failed { usage, .. }
        | StepOutcome::Stopped { usage } => usage.clone(),
    }
}

// covers: S3, R18
#[tokio::test]
async fn a_turn_from_the_first_word_to_the_answer() {
    let tokens = json!({"totalTokens": 125, "inputTokens": 10, "cachedReadTokens": 100, "cachedWriteTokens": 0,
        "outputTokens": 15, "thoughtTokens": 4});
    let bench = acp(script(&[
        chunk(Some("a"), "let me "),
        chunk(Some("a"), "look"),
        json!({"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hmm"}}}),
        json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls -l", "name": "Bash",
            "kind": "execute", "rawInput": {"command": "ls -l"}}}),
        json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}}),
        json!({"update": {"sessionUpdate": "something_new", "x": 1}}),
        json!({"line": r#"{"jsonrpc":"2.0","method":"_vendor/news","params":{}}"#}),
        json!({"update": {"sessionUpdate": "usage_update", "used": 125, "size": 1000,
            "cost": {"amount": 0.25, "currency": "USD"}}}),
        chunk(Some("b"), "all "),
        chunk(Some("b"), "done\n"),
        json!({"answer": {"stopReason": "end_turn", "usage": tokens}}),
    ]));
    let outcome = bench.run().await;
    let used = usage(&outcome);
    assert_eq!(outcome.succeeded(), "all done");
    assert_eq!(
        (used.input, used.cache_read, used.output, used.reasoning),
        (Some(10), Some(100), Some(11), Some(4))
    );
    assert_eq!((used.total(), used.cost_usd), (125, Some(0.25)));
    assert_eq!(bench.activity(), "let me look\n> Bash ls -l\n< Bash: no output\nall done\n\n");
    assert_eq!(bench.prompt(), "go");
    let welcome = &bench.heard("initialize")[0]["params"];
    assert_eq!(welcome["clientCapabilities"]["fs"], json!({"readTextFile": true, "writeTextFile": true}));
    assert_ne!(welcome["clientCapabilities"]["terminal"], json!(true));
    let opened = &bench.heard("session/new")[0]["params"];
    assert_eq!(opened["cwd"], json!(bench.cx.project.canonicalize().unwrap()));
    assert_eq!(bench.continuity(), Some(Continuity::New));
}

// covers: S6
#[tokio::test]
async fn what_a_role_may_not_do_is_refused_without_asking_anybody() {
    for (role, kind, input, why) in [
        (Role::Auditor, "edit", json!({"path": "src/a.rs"}), "change files"),
        (Role::Auditor, "delete", json!({"path": "src/a.rs"}), "change files"),
        (Role::Auditor, "move", json!({}), "change files"),
        (Role::Planner, "edit", json!({"path": "src/a.rs"}), "change files in docs/"),
        (Role::Planner, "execute", json!({"command": "ls"}), "run commands"),
        (Role::Auditor, "fetch", json!({"url": "http://x"}), "use the network"),
    ] {
        let clerk = Clerk::new(Some(Permission::Allow { input: None }));
        let turn = [ask_for(kind, input), chunk(None, "ok"), end()];
        let bench = acp(script(&turn)).role(role).with(|it| it.cx.questions = Questions::new(clerk.clone()));
        assert_eq!(bench.run().await.succeeded(), "ok");
        let answer = bench.answers().remove(0);
        assert_eq!(
            answer["result"]["outcome"],
            json!({"outcome": "selected", "optionId": "2"}),
            "{role} {kind}"
        );
        let message = answer["result"]["_meta"]["sage"]["message"].as_str().unwrap();
        assert!(message.ends_with(why), "{message}");
        assert!(clerk.asked.lock().unwrap().is_empty());
    }
}

// covers: S4, S6
#[tokio::test]
async fn other_questions_are_answered_by_others() {
    let allow = || Permission::Allow { input: None };
    let deny = || Permission::Deny { message: "not today".into() };
    let edited = || Permission::Allow { input: Some(json!({"command": "true"})) };
    for (answer, chosen) in [(allow(), "4"), (deny(), "2"), (edited(), "2")] {
        let clerk = Clerk::new(Some(answer));
        let turn = [ask_for("execute", json!({"command": "make all"})), chunk(None, "ok"), end()];
        let bench = acp(script(&turn)).with(|it| it.cx.questions = Questions::new(clerk.clone()));
        assert_eq!(bench.run().await.succeeded(), "ok");
        assert_eq!(bench.answers()[0]["result"]["outcome"]["optionId"], chosen);
        let asked = clerk.asked.lock().unwrap();
        assert_eq!((asked.len(), asked[0].command.as_deref()), (1, Some("make all")));
    }
    // Reading where it works is nobody's business; what the step lists is allowed, too.
    let turn =
        [ask_for("read", json!({"path": "a.txt"})), ask_for("other", json!({})), chunk(None, "ok"), end()];
    let bench = acp(script(&turn)).role(Role::Observer).param("tools", json!(["the title"]));
    bench.run().await.succeeded();
    let chosen: Vec<Value> =
        bench.answers().iter().map(|it| it["result"]["outcome"]["optionId"].clone()).collect();
    assert_eq!(chosen, ["4", "4"]);
}

// covers: S6
#[tokio::test]
async fn an_agent_that_gives_up_when_refused_has_failed_for_that_reason() {
    let cancelled = json!({"answer": {"stopReason": "cancelled"}});
    let bench = acp(script(&[ask_for("edit", json!({"path": "a"})), cancelled.clone()])).role(Role::Auditor);
    bench.run().await.failed(FailureClass::Failed).says("your role may not change files");
    acp(script(&[cancelled])).run().await.failed(FailureClass::Lost).says("not by sage");
}

// covers: S4, R7
#[tokio::test]
async fn a_turn_that_ends_at_a_denied_question_has_failed_for_that_reason() {
    // As opencode and qwen do: no word, or only the one before the question.
    for before in [vec![], vec![chunk(None, "let me look")]] {
        let mut turn = before;
        turn.extend([ask_for("execute", json!({"command": "make"})), end()]);
        let clerk = Clerk::new(Some(Permission::Deny { message: "not today".into() }));
        let bench = acp(script(&turn)).with(|it| it.cx.questions = Questions::new(clerk));
        bench.run().await.failed(FailureClass::Failed).says("`execute` was not allowed: not today");
    }
}

// covers: S3, R5
#[tokio::test]
async fn an_agent_that_has_asked_is_not_told_its_task_again() {
    let welcome = json!({"agentCapabilities": {"loadSession": true}});
    let ask = ask_for("execute", json!({"command": "make"}));
    let clerk = Clerk::new(Some(Permission::Allow { input: None }));
    // As Gemini: the question is the first that is heard of the prompt.
    let bench = acp(json!({"welcome": welcome, "turn": [ask, {"exit": 9}]}))
        .with(|it| it.cx.questions = Questions::new(clerk));
    bench.run().await.failed(FailureClass::Lost);
    let bench = bench.script(json!({"welcome": welcome, "turn": [chunk(None, "done"), end()]})).attempt(2);
    assert_eq!(bench.run().await.succeeded(), "done");
    assert_eq!(bench.continuity(), Some(Continuity::Resumed));
    assert!(bench.prompt().starts_with("You were interrupted"), "{}", bench.prompt());
}

// covers: S4, S6
#[tokio::test]
async fn tools_of_a_step_are_known_by_the_names_of_any_agent() {
    for (tools, asked) in [
        (json!(["Bash"]), 0),
        (json!(["run_shell_command"]), 0),
        (json!(["execute"]), 0),
        (json!(["Edit"]), 1),
    ] {
        let clerk = Clerk::new(Some(Permission::Allow { input: None }));
        let turn = [ask_for("execute", json!({"command": "make"})), chunk(None, "ok"), end()];
        let bench = acp(script(&turn)).param("tools", tools.clone());
        let bench = bench.with(|it| it.cx.questions = Questions::new(clerk.clone()));
        assert_eq!(bench.run().await.succeeded(), "ok");
        assert_eq!(clerk.asked.lock().unwrap().len(), asked, "{tools}");
    }
}

fn replay() -> Value {
    json!([
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "old task"}},
        chunk(Some("old"), "old words")["update"],
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "old tool", "status": "completed"},
        {"sessionUpdate": "usage_update", "used": 50, "size": 100, "cost": {"amount": 2.0, "currency": "USD"}},
    ])
}

fn loads() -> Value {
    json!({"agentCapabilities": {"loadSession": true}})
}

// covers: S3, R5
#[tokio::test]
async fn a_session_that_is_loaded_tells_its_history_and_that_is_not_new() {
    let crash = json!({"welcome": loads(), "turn": [chunk(Some("old"), "old words"), {"exit": 9}]});
    let bench = acp(crash);
    let lost = bench.run().await.failed(FailureClass::Lost).says("exit code 9");
    assert_eq!(lost.partial["text"], "old words");

    let cost = json!({"update": {"sessionUpdate": "usage_update", "used": 60, "size": 100,
        "cost": {"amount": 2.5, "currency": "USD"}}});
    let turn = [cost, end()];
    let bench = bench.script(json!({"welcome": loads(), "history": replay(), "turn": turn})).attempt(2);
    bench.run().await.failed(FailureClass::Lost).says("without a word");
    assert_eq!(bench.continuity(), Some(Continuity::Resumed));
    assert_eq!(bench.heard("session/load")[0]["params"]["sessionId"], "s-1");
    assert!(bench.prompt().starts_with("You were interrupted"), "{}", bench.prompt());
    assert_eq!(bench.usages().last().unwrap().cost_usd, Some(0.5));
    assert_eq!(bench.activity(), "");
}

// covers: S3, R5
#[tokio::test]
async fn a_session_goes_on_in_the_best_way_that_the_agent_has() {
    let resumes = json!({"agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}}}});
    let crash =
        |welcome: &Value| json!({"welcome": welcome, "turn": [chunk(None, "old words"), {"exit": 9}]});
    let again =
        |welcome: &Value| json!({"welcome": welcome, "session": "s-2", "turn": [chunk(None, "new"), end()]});
    let bench = acp(crash(&resumes));
    bench.run().await.failed(FailureClass::Lost);
    let bench = bench.script(again(&resumes)).attempt(2);
    assert_eq!(bench.run().await.succeeded(), "new");
    assert_eq!((bench.heard("session/resume").len(), bench.heard("session/load").len()), (1, 0));

    // Neither: everything is told again, in a new session.
    let bench = acp(crash(&json!({})));
    bench.run().await.failed(FailureClass::Lost);
    let bench = bench.script(again(&json!({}))).attempt(2);
    assert_eq!(bench.run().await.succeeded(), "new");
    assert_eq!(bench.continuity(), Some(Continuity::Reloaded));
    assert!(bench.prompt().contains("old words") && bench.prompt().ends_with("go"), "{}", bench.prompt());

    // It has forgotten.
    let bench = acp(crash(&resumes));
    bench.run().await.failed(FailureClass::Lost);
    let mut forgetful = again(&resumes);
    forgetful["fail"] = json!({"session/resume": {"code": -32002, "message": "Resource not found"}});
    let bench = bench.script(forgetful).attempt(2);
    assert_eq!(bench.run().await.succeeded(), "new");
    assert_eq!((bench.continuity(), bench.heard("session/new").len()), (Some(Continuity::Reloaded), 2));
}

// covers: S3
#[tokio::test]
async fn a_session_is_forked_by_the_agent() {
    let forks = json!({"agentCapabilities": {"sessionCapabilities": {"fork": {}, "resume": {}}}});
    let turn =
        |session: &str| json!({"welcome": forks, "session": session, "turn": [chunk(None, "yes"), end()]});
    let bench = acp(turn("s-1")).with(|bench| bench.call.session = Some("base".into()));
    bench.run().await.succeeded();
    let store = sage_agents::session::Store::new(bench.path(".sessions"), Some(key()));
    store.fork("base", "copy").unwrap();
    let bench = bench.script(turn("s-2")).with(|bench| bench.call.session = Some("copy".into()));
    bench.run().await.succeeded();
    assert_eq!(bench.heard("session/fork")[0]["params"]["sessionId"], "s-1");
    assert_eq!(bench.continuity(), Some(Continuity::Forked));
    assert_eq!(store.load("copy").unwrap().conversation.as_deref(), Some("s-2"));
}

// covers: S4
#[tokio::test]
async fn a_turn_is_cancelled_before_its_program_is_ended() {
    let tokens = json!({"totalTokens": 12, "inputTokens": 10, "outputTokens": 2});
    let cancelled = json!({"answer": {"stopReason": "cancelled", "usage": tokens}});
    let bench = acp(script(&[chunk(None, "begun"), json!({"awaitCancel": true}), cancelled]));
    let stop = async {
        until("the prompt", || !bench.heard("session/prompt").is_empty()).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    let outcome = bench.run_with(stop).await;
    assert_eq!(usage(&outcome).total(), 12);
    outcome.stopped();
    assert_eq!(bench.heard("session/cancel")[0]["params"]["sessionId"], "s-1");
}

// covers: S4
#[tokio::test]
async fn whoever_does_not_listen_is_ended_all_the_same() {
    for level in [Stop::Graceful, Stop::Now] {
        let bench = acp(script(&[json!({"hang": true})]));
        let stop = async {
            until("the prompt", || !bench.heard("session/prompt").is_empty()).await;
            bench.cx.stop.set(level);
        };
        bench.run_with(stop).await.stopped();
    }
    // A question that nobody answers does not keep it, either, and the agent is told so.
    let clerk = Clerk::new(None);
    let turn = [ask_for("execute", json!({"command": "x"})), json!({"awaitCancel": true}), end()];
    let bench = acp(script(&turn)).with(|it| it.cx.questions = Questions::new(clerk.clone()));
    let stop = async {
        until("the question", || !clerk.asked.lock().unwrap().is_empty()).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    bench.run_with(stop).await.stopped();
    assert_eq!(bench.answers()[0]["result"]["outcome"]["outcome"], "cancelled");
}

// covers: R7
#[tokio::test]
async fn errors_get_their_class() {
    for (error, class) in [
        (
            json!({"code": -32603, "message": "Internal error: API Error: 400 bad", "data": {"errorKind": "unknown"}}),
            FailureClass::Invalid,
        ),
        (
            json!({"code": -32603, "message": "API Error: Request rejected (429)", "data": {"errorKind": "rate_limit"}}),
            FailureClass::RateLimit,
        ),
        (json!({"code": -32603, "message": "API Error: 529 overloaded"}), FailureClass::Transient),
        (json!({"code": -32000, "message": "Authentication required"}), FailureClass::Auth),
        (
            json!({"code": -32603, "message": "Internal error", "data": {"codexErrorInfo": "usageLimitExceeded"}}),
            FailureClass::Quota,
        ),
        (json!({"code": -32603, "message": "Internal error", "data": "a bug"}), FailureClass::Failed),
    ] {
        let bench = acp(script(&[chunk(Some("a"), "so far"), json!({"error": error})]));
        let failure = bench.run().await.failed(class);
        assert_eq!(failure.partial["text"], "so far");
    }
    let refused = acp(script(&[json!({"error": {"code": -32603, "message": "429 error, retry in 7s"}})]));
    let failure = refused.run().await.failed(FailureClass::RateLimit);
    assert_eq!(failure.refusal.unwrap().retry_after_ms, Some(7_000));
    // As codex-acp does: the error is a message, and the turn ends well.
    let told = [chunk(Some("a"), "look"), chunk(None, "last status: 500 Internal Server Error\n\n"), end()];
    acp(script(&told)).run().await.failed(FailureClass::Transient);
}

#[tokio::test]
async fn only_the_end_of_a_turn_is_a_success() {
    for (reason, class, part) in [
        ("max_tokens", FailureClass::Failed, "limit of tokens"),
        ("max_turn_requests", FailureClass::Failed, "limit of requests"),
        ("refusal", FailureClass::Failed, "refused"),
        ("a_new_one", FailureClass::Failed, ""),
    ] {
        let bench = acp(script(&[chunk(None, "half"), json!({"answer": {"stopReason": reason}})]));
        let failure = bench.run().await.failed(class).says(part);
        assert_eq!(failure.partial["text"], "half", "{reason}");
    }
    acp(script(&[end()])).run().await.failed(FailureClass::Lost).says("without a word");
}

#[tokio::test]
async fn json_is_read_where_it_is_wanted() {
    let answers = |text: &str| {
        acp(script(&[chunk(None, text), end()]))
            .with(|bench| bench.call.schema = Some(json!({"type": "object"})))
    };
    let bench = answers("Here it is:\n```json\n{\"a\": 1}\n```");
    assert_eq!(bench.run().await.succeeded(), json!({"a": 1}));
    assert!(bench.prompt().contains("JSON Schema") && bench.prompt().contains(r#"{"type":"object"}"#));
    answers("no idea").run().await.failed(FailureClass::Invalid).says("not JSON: no idea");
}

#[tokio::test]
async fn what_is_no_message_is_left_out() {
    let noise = ["Loading model…", "{broken", "[1,2]", "42", "", "\u{1b}[31mred\u{1b}[0m"];
    let mut turn: Vec<Value> = noise.iter().map(|line| json!({ "line": line })).collect();
    turn.extend([chunk(None, "fine"), end()]);
    let bench = acp(script(&turn));
    assert_eq!(bench.run().await.succeeded(), "fine");
    let log = bench.activity();
    assert!(log.contains("# not a message: Loading model…") && log.contains("{broken"), "{log}");
}

// covers: S4
#[tokio::test]
async fn an_agent_that_hangs_is_ended_by_the_idle_timeout() {
    let bench = acp(script(&[chunk(None, "begun"), json!({"hang": true})])).idle_timeout(400);
    let failure = bench.run().await.failed(FailureClass::Timeout).says("no progress");
    assert_eq!(failure.partial["text"], "begun");
}

#[tokio::test]
async fn an_agent_that_does_not_leave_is_made_to() {
    let bench = acp(json!({"stay": true, "turn": [chunk(None, "done"), end()]}));
    let start = Instant::now();
    assert_eq!(bench.run().await.succeeded(), "done");
    assert!(start.elapsed().as_secs() >= 3, "it was not given the time to leave by itself");
}

#[tokio::test]
async fn an_agent_that_leaves_with_its_last_word_is_heard() {
    let bench = acp(script(&[chunk(None, "done"), end(), json!({"exit": 3})]));
    assert_eq!(bench.run().await.succeeded(), "done");
}

#[tokio::test]
async fn a_login_needs_a_key_or_a_person() {
    let methods = json!([{"id": "oauth", "name": "Browser"}, {"id": "gemini-api-key", "name": "Key"}]);
    let script =
        json!({"needsLogin": true, "welcome": {"authMethods": methods}, "turn": [chunk(None, "in"), end()]});
    let with_key = |key: &str| {
        acp(script.clone()).with(|bench| {
            let agent = bench.config.agents.get_mut("robot").unwrap();
            agent.env.insert("GEMINI_API_KEY".into(), key.into());
        })
    };
    let bench = with_key("k");
    assert_eq!(bench.run().await.succeeded(), "in");
    assert_eq!(bench.heard("authenticate")[0]["params"]["methodId"], "gemini-api-key");
    let bench = with_key("");
    bench.run().await.failed(FailureClass::Auth).says("once in a terminal and log in (`Browser`, `Key`)");
    assert!(bench.heard("authenticate").is_empty());
}

#[tokio::test]
async fn a_model_is_set_or_the_step_says_why_not() {
    let option = json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "big",
        "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}]});
    let script = json!({"opened": {"configOptions": [option]}, "turn": [chunk(None, "ok"), end()]});
    let wants = |script: &Value| acp(script.clone()).with(|bench| bench.call.model = Some("Small".into()));
    let bench = wants(&script);
    bench.run().await.succeeded();
    let set = &bench.heard("session/set_config_option")[0]["params"];
    assert_eq!(set, &json!({"sessionId": "s-1", "configId": "model", "value": "small"}));
    let mut refusing = script.clone();
    refusing["fail"] = json!({"session/set_config_option": {"code": -32602, "message": "no such model"}});
    let failure = wants(&refusing).run().await.failed(FailureClass::Invalid);
    failure.says("no such model").says("it offers: big, small");
    let choiceless = json!({"turn": [chunk(None, "ok"), end()]});
    let bench = wants(&choiceless);
    bench.run().await.succeeded();
    assert!(bench.activity().contains("no choice of a model; `Small`"));
}

// covers: S6, R17
#[tokio::test]
async fn files_are_read_and_written_only_where_it_may() {
    let file = |method: &str, path: &str| json!({"ask": {"method": method, "params": {"path": path, "content": "new"}}});
    let turn = [
        file("fs/read_text_file", "a.txt"),
        file("fs/read_text_file", "/etc/passwd"),
        file("fs/write_text_file", "docs/b.txt"),
        file("fs/write_text_file", "src/c.txt"),
        json!({"ask": {"method": "terminal/create", "params": {"command": "ls"}}}),
        chunk(None, "ok"),
        end(),
    ];
    let bench = acp(script(&turn)).role(Role::Planner);
    std::fs::write(bench.path("a.txt"), "old").unwrap();
    bench.run().await.succeeded();
    let answers = bench.answers();
    assert_eq!(answers[0]["result"]["content"], "old");
    assert!(answers[1]["error"].is_object() && answers[3]["error"].is_object(), "{answers:?}");
    assert_eq!((bench.read("docs/b.txt").as_str(), bench.path("src/c.txt").exists()), ("new", false));
    assert_eq!(answers[4]["error"]["code"], -32601, "there is no terminal");
}

#[tokio::test]
async fn system_prompt_and_servers_reach_the_agent() {
    let takes = json!({"agentCapabilities": {"sessionCapabilities": {"systemPrompt": {}}}});
    let script = |welcome: &Value| json!({"welcome": welcome, "turn": [chunk(None, "ok"), end()]});
    let ordered = |welcome: &Value| {
        acp(script(welcome)).param("system", json!("be brief")).with(|bench| {
            let agent = bench.config.agents.get_mut("robot").unwrap();
            agent.mcp_servers.insert("docs".into(), json!({"command": "docs-server", "args": ["-x"]}));
        })
    };
    let bench = ordered(&takes);
    bench.run().await.succeeded();
    let opened = &bench.heard("session/new")[0]["params"];
    assert_eq!(opened["systemPrompt"]["content"][0]["text"], "be brief");
    assert_eq!(opened["mcpServers"][0]["command"], "docs-server");
    assert_eq!(bench.prompt(), "go");
    let bench = ordered(&json!({}));
    bench.run().await.succeeded();
    assert_eq!(bench.prompt(), "be brief\n\ngo");
}

#[tokio::test]
async fn a_program_that_is_not_one_is_told_apart() {
    let with = |command: &[&str]| {
        acp(json!({})).with(|bench| {
            let agent = bench.config.agents.get_mut("robot").unwrap();
            agent.command = command.iter().map(ToString::to_string).collect();
        })
    };
    with(&["no-such-program-of-ours"]).run().await.failed(FailureClass::Invalid);
    with(&["sh", "-c", "echo wrong flag >&2; exit 2"])
        .run()
        .await
        .failed(FailureClass::Invalid)
        .says("did not start: exit code 2: wrong flag");
    with(&["true"]).run().await.failed(FailureClass::Lost).says("without an answer");
    with(&[]).run().await.failed(FailureClass::Invalid).says("has no `command`");
    let old = json!({"welcome": {"protocolVersion": 7}});
    acp(old).run().await.failed(FailureClass::Invalid).says("version 7");
}

#[tokio::test]
async fn a_probe_finds_the_program_and_its_version() {
    let adapter = sage_agents::agent::adapter("acp").unwrap();
    let mut config = AgentConfig {
        name: "robot".into(),
        command: vec![env!("CARGO_BIN_EXE_sage-acp-test").into(), "--acp".into()],
        ..AgentConfig::default()
    };
    let probe = adapter.probe(&config).await;
    assert_eq!(probe.version.as_deref(), Some("sage-acp-test 1.2.3"));
    assert_eq!(probe.found.as_deref(), Some(env!("CARGO_BIN_EXE_sage-acp-test")));
    config.command = vec!["no-such-program-of-ours".into()];
    let probe = adapter.probe(&config).await;
    assert!(probe.found.is_none() && probe.hint.unwrap().contains("install `no-such-program-of-ours`"));
}

// covers: P3
#[tokio::test]
async fn what_an_agent_wants_to_know_is_a_question_and_the_form_comes_back() {
    let schema = json!({"type": "object", "properties": {"color": {"type": "string", "title": "Color", "enum": ["red", "blue"]}}});
    let form = json!({"ask": {"method": "elicitation/create", "params": {"mode": "form", "message": "Which color?", "requestedSchema": schema}}});
    let turn = [form, chunk(None, "painted"), end()];
    let given = json!({"answers": {"color": {"choices": ["blue"]}}});
    let clerk = Clerk::new(Some(Permission::Allow { input: Some(given) }));
    let bench = acp(script(&turn)).with(|bench| bench.cx.questions = Questions::new(clerk.clone()));
    assert_eq!(bench.run().await.succeeded(), "painted");
    let asked = clerk.asked.lock().unwrap().clone();
    assert_eq!(asked[0].inquiry.as_ref().unwrap().title(), "Which color? (red, blue)");
    let offered = &bench.heard("initialize")[0]["params"]["clientCapabilities"]["elicitation"];
    assert_eq!(*offered, json!({"form": {}}));
    let answer = bench.answers().pop().unwrap()["result"].clone();
    assert_eq!(answer, json!({"action": "accept", "content": {"color": "blue"}}));
    // Nobody answers, and a field without words for it is left empty.
    let clerk = Clerk::new(Some(Permission::Deny { message: "decide yourself".into() }));
    let bench = acp(script(&turn)).with(|bench| bench.cx.questions = Questions::new(clerk));
    assert_eq!(bench.run().await.succeeded(), "painted");
    assert_eq!(bench.answers().pop().unwrap()["result"], json!({"action": "decline"}));
    let bench = acp(script(&[chunk(None, "x"), end()])).param("questions", json!(false));
    bench.run().await.succeeded();
    assert!(bench.heard("initialize")[0]["params"]["clientCapabilities"]["elicitation"].is_null());
}

// covers: P3, R17
#[tokio::test]
async fn an_agent_plans_in_its_own_mode_and_changes_nothing_before_its_plan_is_approved() {
    let plan = ask_for("switch_mode", json!({"plan": "1. paint"}));
    let write = json!({"ask": {"method": "fs/write_text_file", "params": {"path": "PATH", "content": "x"}}});
    let modes = json!({"currentModeId": "default", "availableModes": [{"id": "default", "name": "d"}, {"id": "plan", "name": "p"}]});
    let bench = |answer: Permission, write: &Value| {
        let clerk = Clerk::new(Some(answer));
        let turn = [
            write.clone(),
            ask_for("execute", json!({"command": "make"})),
            plan.clone(),
            write.clone(),
            chunk(None, "done"),
            end(),
        ];
        let bench = acp(json!({"turn": turn, "opened": {"modes": modes}})).param("mode", json!("plan"));
        let bench = bench.with(|bench| bench.cx.questions = Questions::new(clerk.clone()));
        let turn =
            serde_json::to_string(&turn).unwrap().replace("PATH", bench.path("made").to_str().unwrap());
        let turn: Value = serde_json::from_str(&turn).unwrap();
        (bench.script(json!({"turn": turn, "opened": {"modes": modes}})), clerk)
    };
    let (yes, clerk) = bench(Permission::Allow { input: None }, &write);
    assert_eq!(yes.run().await.succeeded(), "done");
    assert_eq!(yes.heard("session/set_mode")[0]["params"]["modeId"], "plan");
    let asked = clerk.asked.lock().unwrap().clone();
    assert_eq!((asked[0].command.as_deref(), asked[0].planning), (Some("make"), true));
    assert_eq!(asked[1].inquiry.as_ref().unwrap().plan(), Some("1. paint"));
    let said = yes.answers();
    let said: Vec<String> =
        said.iter().map(|answer| answer["error"]["data"]["message"].to_string()).collect();
    assert!(said.iter().any(|why| why.contains("has to be approved first")), "{said:?}");
    assert_eq!(yes.read("made"), "x", "after that it may");
    // A plan that is not approved is asked for again, in words.
    let (no, _) = bench(Permission::Deny { message: "use brushes".into() }, &write);
    no.run().await.succeeded();
    assert!(no.prompt().starts_with("Your plan was not approved: use brushes"), "{}", no.prompt());
    assert!(!no.path("made").exists());
    let none = acp(script(&[chunk(None, "x"), end()])).param("mode", json!("plan"));
    none.run().await.failed(FailureClass::Invalid).says("agent `robot` has no plan mode");
}

// covers: R16
#[tokio::test]
async fn files_of_the_prompt_are_blocks_where_the_agent_takes_them() {
    use sage_core::digest::Digest;
    use sage_core::port::{FileKind, PromptFile};
    let file = |path: &str, content: &[u8]| {
        let (kind, _) = FileKind::of(content).unwrap();
        PromptFile { path: path.into(), sha: Digest::of(content), kind, content: content.into() }
    };
    let files = || vec![file("docs/a.md", b"the albatross"), file("shot.png", b"\x89PNG\r\n\x1a\n")];
    let prompt = |bench: &Bench| bench.heard("session/prompt").pop().unwrap()["params"]["prompt"].clone();
    let turn = [chunk(None, "seen"), end()];
    let takes =
        json!({"agentCapabilities": {"promptCapabilities": {"image": true, "embeddedContext": true}}});
    let all = acp(json!({"turn": turn, "welcome": takes})).with(|bench| bench.call.files = files());
    all.run().await.succeeded();
    let blocks = prompt(&all);
    assert_eq!(blocks[1]["type"], "image", "{blocks}");
    assert!(blocks[0]["text"].as_str().unwrap().contains("the albatross"), "{blocks}");
    assert_eq!((&blocks[1]["data"], &blocks[1]["mimeType"]), (&json!("iVBORw0KGgo="), &json!("image/png")));
    let none = acp(script(&turn)).with(|bench| bench.call.files = files());
    none.run().await.succeeded();
    let blocks = prompt(&none);
    let text = blocks[0]["text"].as_str().unwrap();
    assert_eq!(blocks.as_array().unwrap().len(), 1);
    assert!(text.contains("the albatross") && text.contains("The file `shot.png` is at "), "{text}");
    let place = text.rsplit(' ').next().unwrap();
    assert!(std::path::Path::new(place).is_file(), "{place}");
}

// covers: S4, R18
#[tokio::test]
async fn a_persons_message_is_the_next_prompt_of_the_same_conversation() {
    let tokens = json!({"totalTokens": 15, "inputTokens": 10, "outputTokens": 5});
    let bench =
        acp(script(&[chunk(None, "fine"), json!({"answer": {"stopReason": "end_turn", "usage": tokens}})]));
    bench.cx.messages.send(Message { id: "1".into(), text: "mind the gap".into() });
    let outcome = bench.run().await;
    assert_eq!(usage(&outcome).total(), 30, "both prompts are counted");
    assert_eq!(outcome.succeeded(), "fine");
    let prompts = bench.heard("session/prompt");
    assert_eq!(prompts.len(), 2);
    assert_eq!(bench.heard("initialize").len(), 1, "it is the same process");
    assert_eq!(prompts[0]["params"]["sessionId"], prompts[1]["params"]["sessionId"]);
    let text = prompts[1]["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("mind the gap"), "{text}");
    assert_eq!(bench.activity(), "fine\n@ mind the gap\nfine\n");
}
