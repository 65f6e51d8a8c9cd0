//! A small MCP server for tests and bug reports: JSON-RPC lines by hand, so that it can also be wrong.
//!
//! Each start adds its pid as a line to a file. Its tools are in `tools.rs`. Manners make it difficult:
//! `empty` and `deaf` answer unknown methods with `{}` or not at all, `prim` ends when it hears one, `modern` knows
//! only the newer lifecycle, `slow` starts after a while, `stubborn` stays when its input ends, `brittle` crashes in
//! every third call, `other` describes a tool in other words, `loud` in words that a terminal would obey, `destroys`
//! has the tool `erase`, which says that it is destructive, `curious` has the tool `ask`, which asks its client for
//! what it is told to (`method`, `params`) and answers with what it got.

mod tools;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

/// More than anybody waits for an answer to a question that need not be answered.
const SLOW_START: Duration = Duration::from_millis(3_500);

struct Fake {
    starts: PathBuf,
    manners: Vec<String>,
    calls: u32,
    is_other: bool,
    /// The call that waits for an answer of the client.
    waiting: Option<Value>,
}

/// Serves on standard input and output until the input ends.
pub fn fake_mcp_main(starts: &Path, manners: &[String]) -> ExitCode {
    let (starts, manners) = (starts.to_owned(), manners.to_vec());
    let mut fake = Fake { starts, manners, calls: 0, is_other: false, waiting: None };
    fake.is_other = fake.is("other");
    fake.note(&std::process::id().to_string());
    if fake.is("slow") {
        std::thread::sleep(SLOW_START);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            eprintln!("not JSON: {line}");
            return ExitCode::FAILURE;
        };
        if message["method"] == "notifications/cancelled" {
            fake.note("cancelled");
        }
        if message["method"].is_null() {
            fake.is_answered(&message);
        } else if !message["id"].is_null() {
            fake.answer(message);
        }
    }
    while fake.is("stubborn") {
        std::thread::sleep(Duration::from_secs(1));
    }
    ExitCode::SUCCESS
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: the input ends, too.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

impl Fake {
    fn is(&self, manner: &str) -> bool {
        self.manners.iter().any(|it| it == manner)
    }

    /// One write, so that lines of several servers do not mix.
    fn note(&self, line: &str) {
        let opened = std::fs::File::options().create(true).append(true).open(&self.starts);
        if let Err(error) = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
            eprintln!("{}: {error}", self.starts.display());
        }
    }

    fn answer(&mut self, message: Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let own = json!({"name": "fake-mcp", "version": "1"});
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" if !self.is("modern") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": own,
            }),
            "server/discover" if self.is("modern") => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": own},
            }),
            "tools/list" => tools::page(
                &params["cursor"],
                self.is_other,
                self.is("loud"),
                &[("ask", self.is("curious")), ("erase", self.is("destroys"))],
            ),
            "tools/call" => return self.call(message),
            "ping" => json!({}),
            _ if self.is("empty") => json!({}),
            _ if self.is("deaf") => return,
            _ if self.is("prim") => {
                eprintln!("I never heard of that");
                std::process::exit(4);
            }
            method => {
                let error = json!({"code": -32601, "message": format!("unknown method {method}")});
                return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn call(&mut self, message: Value) {
        self.calls += 1;
        if self.is("brittle") && self.calls.is_multiple_of(3) {
            eprintln!("three is too much");
            std::process::exit(3);
        }
        if message["params"]["name"] == "change" {
            self.is_other = !self.is_other;
            say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        }
        if message["params"]["name"] == "ask" {
            return self.ask(&message);
        }
        tools::call(message);
    }

    /// In the newer lifecycle a question is a sort of answer.
    fn ask(&mut self, message: &Value) {
        let arguments = &message["params"]["arguments"];
        let question = json!({"method": arguments["method"], "params": arguments["params"]});
        if self.is("modern") {
            let result = json!({"resultType": "input_required", "inputRequests": {"q": question}});
            return say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        self.waiting = Some(message["id"].clone());
        say(
            &json!({"jsonrpc": "2.0", "id": "question", "method": question["method"], "params": question["params"]}),
        );
    }

    fn is_answered(&mut self, answer: &Value) {
        let Some(id) = self.waiting.take().filter(|_| answer["id"] == "question") else { return };
        let got = json!({"result": answer["result"], "error": answer["error"]});
        let result = json!({"content": [], "structuredContent": got, "resultType": "complete"});
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}
