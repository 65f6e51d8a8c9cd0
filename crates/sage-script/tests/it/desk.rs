//! A session with a few servers: `Desk::new().run("return 1")`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sage_core::port::BoxFuture;
use sage_script::code::{CodeAnswer, CodeFailure, CodeLimits, CodeRun, CodeSession, Skills, Tools};
use sage_script::tools::ToolDef;
use serde_json::{Value, json};

pub struct Desk {
    pub servers: Arc<Servers>,
    pub session: CodeSession,
    runtime: tokio::runtime::Runtime,
}

impl Desk {
    pub fn new() -> Desk {
        Desk::with(CodeLimits::default())
    }

    pub fn with(limits: CodeLimits) -> Desk {
        let servers = Arc::new(Servers::new());
        let program = PathBuf::from(env!("CARGO_BIN_EXE_sage-script-test"));
        let skills = Shelf(BTreeMap::from([
            (
                "rank".to_string(),
                "export const best = (list: number[]): number => Math.max(...list);".to_string(),
            ),
            (
                "twice".to_string(),
                "import * as rank from \"skills/rank\";\nreturn 2 * rank.best(input.list)".to_string(),
            ),
        ]));
        let session = CodeSession::new(program, servers.clone(), Arc::new(skills), limits);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Desk { servers, session, runtime }
    }

    pub fn run(&self, code: &str) -> Result<CodeAnswer, CodeFailure> {
        self.run_as(&CodeRun::new(code))
    }

    pub fn run_as(&self, run: &CodeRun) -> Result<CodeAnswer, CodeFailure> {
        self.runtime.block_on(self.session.run(run))
    }

    pub fn value(&self, code: &str) -> Value {
        match self.run(code) {
            Ok(answer) => answer.value,
            Err(failure) => panic!("{failure:?}"),
        }
    }

    pub fn failure(&self, code: &str) -> CodeFailure {
        self.run(code).expect_err("it must fail")
    }
}

pub struct Shelf(BTreeMap<String, String>);

impl Skills for Shelf {
    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn text(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().ok_or_else(|| format!("there is no skill `{name}`"))
    }
}

/// Two servers with what real ones answer.
pub struct Servers {
    catalogue: Arc<[ToolDef]>,
    /// Arguments as they left.
    pub called: Mutex<Vec<(String, Value)>>,
    pub now: AtomicUsize,
    pub most: AtomicUsize,
}

impl Servers {
    fn new() -> Servers {
        let listed = json!({
            "github": [
                {"name": "list-issues", "description": "List issues of a repository. With pages.",
                 "inputSchema": {"type": "object", "required": ["owner"], "properties": {"owner": {"type": "string"}, "page": {"type": "integer"}}},
                 "annotations": {"readOnlyHint": true}},
                {"name": "get_user", "description": "Get a user", "inputSchema": {"type": "object"}}],
            "mail": [
                {"name": "send", "description": "Send a message", "inputSchema": {"type": "object", "required": ["to"],
                 "properties": {"to": {"type": "string"}}}},
                {"name": "wait", "description": "Wait for some time", "inputSchema": {"type": "object"}},
                {"name": "fail", "description": "Always fails", "inputSchema": {"type": "object"}}]});
        let servers = listed.as_object().unwrap().iter();
        let tools = servers.flat_map(|(server, tools)| {
            tools
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|tool| ToolDef::from_listing(server, tool))
                .collect::<Vec<_>>()
        });
        Servers {
            catalogue: tools.collect(),
            called: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

impl Tools for Servers {
    fn catalogue(&self) -> Arc<[ToolDef]> {
        self.catalogue.clone()
    }

    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            self.called.lock().unwrap().push((format!("{server}/{tool}"), input.clone()));
            match tool {
                "list-issues" => {
                    let page = input["page"].as_u64().unwrap_or(0);
                    let issue = |id: u64| {
                        json!({"id": id, "title": format!("issue {id}"), "body": "x".repeat(200),
                        "author": format!("person{id}@example.com"), "open": id.is_multiple_of(100)})
                    };
                    Ok(json!({"issues": (page * 500..page * 500 + 500).map(issue).collect::<Vec<_>>()}))
                }
                "get_user" => {
                    Ok(json!({"name": "Ann", "email": "ann@example.com", "phone": "+49 30 1234567"}))
                }
                "send" => Ok(json!({"sent": true})),
                "wait" => {
                    let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
                    self.most.fetch_max(now, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or(20))).await;
                    self.now.fetch_sub(1, Ordering::SeqCst);
                    Ok(Value::Null)
                }
                "fail" => Err("the mailbox of boss@example.com is full".into()),
                _ => Err(format!("no tool `{tool}`")),
            }
        })
    }
}
