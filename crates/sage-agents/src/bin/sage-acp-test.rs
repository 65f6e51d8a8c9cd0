//! A scripted agent that speaks the Agent Client Protocol in plain JSON lines, for this crate's tests.
//!
//! `sage-acp-test <script.json>`; everything that it hears goes to `heard.jsonl` in its directory. The script:
//! `welcome` and `opened` are merged into the answers to `initialize` and `session/new`; `session` is the new
//! session's id; `history` are updates that `session/load` tells, in part after its answer; `fail` is an error
//! by method; `turn` is what it does with a prompt: `{update}`, `{line}` (as it is), `{ask: {method, params}}`
//! (waits for the answer), `{awaitCancel}`, `{exit: code}`, `{hang}`, `{answer}` or `{error}`. With `stay` it
//! does not leave by itself.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    if path == "--version" {
        return println!("sage-acp-test 1.2.3");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let script = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let stays = script_stays(&script);
    let mut robot = Robot { script, logged_in: false, next_id: 100, session: String::new() };
    while let Some(message) = hear() {
        robot.handle(&message);
    }
    if stays {
        sleep_for_ever();
    }
}

fn script_stays(script: &Value) -> bool {
    script["stay"] == json!(true)
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3_600));
    }
}

struct Robot {
    script: Value,
    logged_in: bool,
    next_id: u64,
    session: String,
}

fn hear() -> Option<Value> {
    let mut line = String::new();
    let count = std::io::stdin().lock().read_line(&mut line).unwrap_or(0);
    if count == 0 {
        return None;
    }
    let mut options = std::fs::File::options();
    let mut log = options.create(true).append(true).open("heard.jsonl").expect("a log");
    log.write_all(line.as_bytes()).expect("a log");
    Some(serde_json::from_str(&line).expect("JSON"))
}

fn say(message: &Value) {
    say_line(&message.to_string());
}

fn say_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: the test has seen what it wanted.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn merged(mut base: Value, more: &Value) -> Value {
    if let (Some(base), Some(more)) = (base.as_object_mut(), more.as_object()) {
        base.extend(more.clone());
    }
    base
}

impl Robot {
    fn handle(&mut self, message: &Value) {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        let params = &message["params"];
        if id.is_null() {
            return;
        }
        let failure = self.script["fail"][method].clone();
        if !failure.is_null() {
            return say(&json!({"jsonrpc": "2.0", "id": id, "error": failure}));
        }
        let needs_login = self.script["needsLogin"] == json!(true) && !self.logged_in;
        let result = match method {
            "initialize" => {
                merged(json!({"protocolVersion": 1, "agentCapabilities": {}}), &self.script["welcome"])
            }
            "authenticate" => {
                self.logged_in = true;
                json!({})
            }
            _ if method.starts_with("session/") && needs_login => {
                let error = json!({"code": -32000, "message": "Authentication required"});
                return say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "session/new" | "session/fork" => {
                self.session = self.script["session"].as_str().unwrap_or("s-1").to_string();
                merged(json!({"sessionId": self.session}), &self.script["opened"])
            }
            "session/load" | "session/resume" => {
                self.session = params["sessionId"].as_str().unwrap_or_default().to_string();
                let history = self.script["history"].as_array().cloned().unwrap_or_default();
                // Like Gemini: the first of it, the answer, the rest.
                let history: Vec<Value> = history.into_iter().filter(|_| method == "session/load").collect();
                history.iter().take(1).for_each(|update| self.update(update));
                say(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
                return history.iter().skip(1).for_each(|update| self.update(update));
            }
            "session/prompt" => return self.work(id),
            _ => json!({}),
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn update(&self, update: &Value) {
        let params = json!({"sessionId": self.session, "update": update});
        say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn work(&mut self, id: &Value) {
        for act in self.script["turn"].as_array().cloned().unwrap_or_default() {
            let Some((name, value)) = act.as_object().and_then(|act| act.iter().next()) else { continue };
            match name.as_str() {
                "update" => self.update(value),
                "line" => say_line(value.as_str().unwrap_or_default()),
                "ask" => self.ask(value),
                "awaitCancel" => while hear().is_some_and(|message| message["method"] != "session/cancel") {},
                "exit" => {
                    std::process::exit(value.as_i64().and_then(|code| code.try_into().ok()).unwrap_or(1))
                }
                "hang" => sleep_for_ever(),
                "answer" => say(&json!({"jsonrpc": "2.0", "id": id, "result": value})),
                "error" => say(&json!({"jsonrpc": "2.0", "id": id, "error": value})),
                other => panic!("unknown act `{other}`"),
            }
        }
    }

    /// Waits for the answer, which is in the log then.
    fn ask(&mut self, ask: &Value) {
        self.next_id += 1;
        let params = merged(json!({"sessionId": self.session}), &ask["params"]);
        say(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": ask["method"], "params": params}));
        while hear()
            .is_some_and(|message| message["id"] != json!(self.next_id) || !message["method"].is_null())
        {
        }
    }
}
