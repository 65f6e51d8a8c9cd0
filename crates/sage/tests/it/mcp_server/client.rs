//! A small MCP client: JSON lines over the pipes of `sage mcp`, in either lifecycle.
//!
//! What must stay true: nothing but JSON-RPC is ever on stdout, no answer takes longer than 45 seconds, and every
//! answer has what its tool's output schema promises.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dsl::{DEADLINE, Sage, wait_until};

/// What every call promises.
const LIMIT: Duration = Duration::from_secs(45);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, as until 2025-11-25.
    Session,
    /// `server/discover`, every request for itself: 2026-07-28.
    Stateless,
}

pub const BOTH: [Era; 2] = [Era::Session, Era::Stateless];

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    incoming: Receiver<Value>,
    era: Era,
    last_id: i64,
    /// Answers that came before somebody asked for them.
    early: BTreeMap<i64, Value>,
    pub notifications: Vec<Value>,
    /// What the server said of itself.
    pub about: Value,
    pub tools: Vec<Value>,
    /// What the person in front of it says to forms; `None` if it can show none.
    person: Option<Value>,
    /// Forms that were shown.
    pub forms: Vec<Value>,
}

/// What a tool answered.
#[derive(Debug)]
pub struct Reply {
    pub value: Value,
    pub text: String,
    pub is_error: bool,
}

impl Reply {
    #[track_caller]
    pub fn good(self) -> Value {
        assert!(!self.is_error, "{}", self.value);
        self.value
    }

    #[track_caller]
    pub fn error(self, code: &str) -> Value {
        assert!(self.is_error && self.value["code"] == code, "not {code}: {}", self.value);
        assert!(self.value["message"].as_str().is_some_and(|text| !text.is_empty()), "{}", self.value);
        assert!(self.text.starts_with(code), "{}", self.text);
        self.value
    }
}

impl Client {
    pub fn start(sage: &Sage, era: Era) -> Client {
        Client::with_person(sage, era, None)
    }

    /// A client that can show forms to a person, who gives this answer to each.
    pub fn with_person(sage: &Sage, era: Era, person: Option<Value>) -> Client {
        let mut command = sage.args(["mcp"]).command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (send, incoming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"garbage": line}));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            assert!(!text.contains("panicked at"), "sage mcp panicked:\n{text}");
        });
        let stdin = child.stdin.take();
        let (early, notifications, tools, forms) = Default::default();
        let about = Value::Null;
        let mut client = Client {
            child,
            stdin,
            incoming,
            era,
            last_id: 0,
            early,
            notifications,
            about,
            tools,
            person,
            forms,
        };
        client.shake_hands();
        client.tools = client.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
        client
    }

    fn shake_hands(&mut self) {
        self.about = match self.era {
            Era::Stateless => self.ask("server/discover", json!({})),
            Era::Session => {
                let about = self.ask(
                    "initialize",
                    json!({"protocolVersion": "2025-06-18", "capabilities": self.can(), "clientInfo": {"name": "tester", "version": "1"}}),
                );
                self.notify("notifications/initialized", json!({}));
                about
            }
        };
    }

    fn can(&self) -> Value {
        if self.person.is_some() { json!({"elicitation": {}}) } else { json!({}) }
    }

    /// Shows a form, and gives what the person says.
    fn show(&mut self, form: &Value) -> Value {
        self.forms.push(form.clone());
        self.person.clone().unwrap_or_else(|| panic!("asked though it cannot show forms: {form}"))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn write(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Sends a request; its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> i64 {
        self.last_id += 1;
        if self.era == Era::Stateless {
            for (name, value) in [
                ("protocolVersion", json!("2026-07-28")),
                ("clientInfo", json!({"name": "tester", "version": "1"})),
                ("clientCapabilities", self.can()),
            ] {
                params["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
            }
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// The whole message that answers a request.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(message) = self.early.remove(&id) {
                return message;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let message =
                self.incoming.recv_timeout(left).unwrap_or_else(|_| panic!("no answer to request {id}"));
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message["method"] == "elicitation/create" {
                let said = self.show(&message["params"]);
                self.write(&json!({"jsonrpc": "2.0", "id": message["id"], "result": said}));
                continue;
            }
            match message["id"].as_i64() {
                Some(id) => drop(self.early.insert(id, message)),
                None => self.notifications.push(message),
            }
        }
    }

    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let message = self.answer(id);
        assert!(message["result"].is_object(), "{method}: {message}");
        message["result"].clone()
    }

    pub fn send_call(&mut self, tool: &str, args: Value) -> i64 {
        self.send("tools/call", json!({"name": tool, "arguments": args}))
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, args: Value) -> Reply {
        let id = self.send_call(tool, args.clone());
        let message = self.answer(id);
        if message["result"]["resultType"] != "input_required" {
            self.early.insert(id, message);
            return self.reply(tool, id);
        }
        let mut responses = json!({});
        for (key, request) in message["result"]["inputRequests"].as_object().unwrap() {
            responses[key] = self.show(&request["params"]);
        }
        let state = &message["result"]["requestState"];
        let again =
            json!({"name": tool, "arguments": args, "inputResponses": responses, "requestState": state});
        let id = self.send("tools/call", again);
        self.reply(tool, id)
    }

    /// What a tool answered to an earlier request.
    #[track_caller]
    pub fn reply(&mut self, tool: &str, id: i64) -> Reply {
        let message = self.answer(id);
        let result = &message["result"];
        let complete = if self.era == Era::Stateless { json!("complete") } else { Value::Null };
        assert_eq!(result["resultType"], complete, "{message}");
        let is_error = result["isError"] == true;
        let value = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}")).to_string();
        if !is_error {
            self.check_promised(tool, &value);
        }
        Reply { value, text, is_error }
    }

    #[track_caller]
    fn check_promised(&self, tool: &str, value: &Value) {
        let definition =
            self.tools.iter().find(|it| it["name"] == tool).unwrap_or_else(|| panic!("no {tool}"));
        check(&definition["outputSchema"], value, tool);
    }

    /// Closes our side and waits for the process to end; how long it took.
    pub fn hang_up(mut self) -> Duration {
        let started = Instant::now();
        drop(self.stdin.take());
        wait_until(|| self.child.try_wait().unwrap().is_some(), DEADLINE, "sage mcp to end");
        started.elapsed()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of JSON Schema that our definitions use.
#[track_caller]
fn check(schema: &Value, value: &Value, place: &str) {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        many => many.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("{place}: type {other}"),
    };
    assert!(types.is_empty() || types.iter().any(|name| is(name)), "{place} is no {types:?}: {value}");
    let allowed = schema["enum"].as_array();
    assert!(allowed.is_none_or(|allowed| allowed.contains(value)), "{place}: {value} is not in {schema}");
    for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(field).is_some(), "{place}.{field} is missing in {value}");
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            check(inner, value, &format!("{place}.{name}"));
        }
    }
    for value in value.as_array().into_iter().flatten() {
        check(&schema["items"], value, &format!("{place}[]"));
    }
}
