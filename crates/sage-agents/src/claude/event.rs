//! The lines that Claude Code prints, as far as they matter. Unknown kinds and fields are nothing to worry about.

use sage_core::port::Allowance;
use serde_json::Value;

use super::allowance;
use super::channel::SERVERS;
use super::tab::Counted;

/// How most lines begin: pieces of an answer that will come as a whole. They are not worth reading.
const PIECE: &[u8] = br#"{"type":"stream_event","event":{"type":"content_block_delta""#;

#[derive(Debug)]
pub struct Line {
    /// The conversation that it belongs to.
    pub session: Option<String>,
    pub event: Event,
}

#[derive(Debug)]
pub enum Event {
    /// The turn begins.
    Init {
        servers: Vec<Server>,
        /// Its own agents, by name.
        agents: Vec<String>,
        model: Option<String>,
    },
    Said {
        blocks: Vec<Block>,
        /// What the request began with; of a subagent's nothing.
        context_tokens: Option<u64>,
        counted: Counted,
        /// A subagent said it.
        below: bool,
    },
    /// Tools have given their results.
    Results(Vec<ToolResult>),
    /// The agent's own model begins to answer.
    Request(Counted),
    /// It has answered, and whether it wants a tool and will be asked again.
    Response {
        counted: Counted,
        goes_on: bool,
    },
    /// The program's own words about a request that failed.
    Fault(Fault),
    /// It would try again after a while.
    Retry {
        fault: Fault,
        delay_ms: u64,
    },
    /// The account has used up what it may use.
    Limit {
        reset_at_ms: Option<u64>,
    },
    /// How much of it is used.
    Allowances(Vec<Allowance>),
    Ask {
        id: String,
        tool: String,
        input: Value,
        blocked_path: Option<String>,
    },
    /// It is about to use a tool and waits for a word, where sage asked for that (`Channel::hold_tools`).
    Holds {
        id: String,
    },
    /// A question that is none about a tool.
    OtherRequest {
        id: String,
    },
    Withdrawn {
        id: String,
    },
    /// It has begun with a message that was said with this id.
    Took(String),
    /// `None`: this version cannot tell.
    Servers(Option<Vec<Server>>),
    Result(Box<Value>),
    /// It is alive, and that is all: the process layer has noticed.
    Other,
}

#[derive(Debug)]
pub enum Block {
    Text(String),
    Tool { id: String, name: String, input: Value },
}

#[derive(Debug)]
pub struct ToolResult {
    pub id: String,
    pub text: String,
    pub failed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Such as `rate_limit`.
    pub kind: String,
    pub status: Option<u64>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    /// `connected`, `pending`, `failed`, `needs-auth`, `disabled`.
    pub status: String,
    pub error: Option<String>,
}

impl Line {
    /// `None` if it is no JSON object.
    pub fn parse(line: &[u8]) -> Option<Line> {
        if line.starts_with(PIECE) {
            return Some(Line { session: None, event: Event::Other });
        }
        let mut value: Value = serde_json::from_slice(line).ok().filter(Value::is_object)?;
        let session = value["session_id"].as_str().map(str::to_string);
        Some(Line { session, event: event(&mut value) })
    }
}

fn event(value: &mut Value) -> Event {
    match (text(&value["type"]).as_str(), text(&value["subtype"]).as_str()) {
        ("system", "init") => {
            let model = value["model"].as_str().map(str::to_string);
            let agents = value["agents"].as_array().into_iter().flatten().map(text).collect();
            Event::Init { servers: servers(&value["mcp_servers"]), agents, model }
        }
        ("system", "api_retry") => {
            let kind = text(&value["error"]);
            let fault = Fault { kind, status: value["error_status"].as_u64(), text: String::new() };
            Event::Retry { fault, delay_ms: value["retry_delay_ms"].as_u64().unwrap_or_default() }
        }
        ("assistant", _) if value["is_api_error_message"] == true => Event::Fault(fault(value)),
        ("assistant", _) => said(value),
        ("command_lifecycle", _) if ["started", "completed"].map(Value::from).contains(&value["state"]) => {
            Event::Took(text(&value["command_uuid"]))
        }
        ("user", _) => Event::Results(results(&value["message"]["content"])),
        ("stream_event", _) => streamed(&value["event"]),
        ("rate_limit_event", _) if value["rate_limit_info"]["status"] == "rejected" => {
            Event::Limit { reset_at_ms: allowance::reset_at_ms(&value["rate_limit_info"]) }
        }
        ("rate_limit_event", _) => Event::Allowances(allowance::read(&value["rate_limit_info"])),
        ("control_request", _) => request(value),
        ("control_cancel_request", _) => Event::Withdrawn { id: text(&value["request_id"]) },
        ("control_response", _) if value["response"]["request_id"] == SERVERS => {
            let list = &value["response"]["response"]["mcpServers"];
            Event::Servers(list.is_array().then(|| servers(list)))
        }
        ("result", _) => Event::Result(Box::new(value.take())),
        _ => Event::Other,
    }
}

fn streamed(event: &Value) -> Event {
    match event["type"].as_str() {
        Some("message_start") => Event::Request(Counted::of(&event["message"])),
        Some("message_delta") => {
            let reason = event["delta"]["stop_reason"].as_str();
            let goes_on = matches!(reason, Some("tool_use" | "pause_turn" | "max_tokens"));
            Event::Response { counted: Counted::of(event), goes_on }
        }
        _ => Event::Other,
    }
}

fn said(value: &Value) -> Event {
    let message = &value["message"];
    let own = value["parent_tool_use_id"].is_null();
    let blocks = message["content"].as_array().into_iter().flatten();
    let blocks = blocks.filter_map(|block| match block["type"].as_str()? {
        // What a subagent says is said to its agent.
        "text" if own => Some(Block::Text(text(&block["text"]))),
        "tool_use" => {
            let (id, name) = (text(&block["id"]), text(&block["name"]));
            Some(Block::Tool { id, name, input: block["input"].clone() })
        }
        _ => None,
    });
    let counts = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let counts = counts.map(|name| message["usage"][name].as_u64());
    let context = counts.into_iter().flatten().fold(0, u64::saturating_add);
    let (blocks, counted) = (blocks.collect(), Counted::of(message));
    let context_tokens = (own && context > 0).then_some(context);
    Event::Said { blocks, context_tokens, counted, below: !own }
}

fn results(content: &Value) -> Vec<ToolResult> {
    let blocks = content.as_array().into_iter().flatten();
    let result = |block: &Value| ToolResult {
        id: text(&block["tool_use_id"]),
        text: match &block["content"] {
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
            }
            other => text(other),
        },
        failed: block["is_error"] == true,
    };
    blocks.filter(|block| block["type"] == "tool_result").map(result).collect()
}

fn fault(value: &Value) -> Fault {
    Fault {
        kind: text(&value["error"]),
        status: value["api_error_status"].as_u64(),
        text: text(&value["message"]["content"][0]["text"]),
    }
}

fn request(value: &mut Value) -> Event {
    let id = text(&value["request_id"]);
    let request = &mut value["request"];
    match request["subtype"].as_str() {
        Some("can_use_tool") => {}
        Some("hook_callback") => return Event::Holds { id },
        _ => return Event::OtherRequest { id },
    }
    let (tool, blocked_path) = (text(&request["tool_name"]), request["blocked_path"].as_str());
    let blocked_path = blocked_path.map(str::to_string);
    Event::Ask { id, tool, blocked_path, input: request["input"].take() }
}

fn servers(list: &Value) -> Vec<Server> {
    let server = |value: &Value| Server {
        name: text(&value["name"]),
        status: text(&value["status"]),
        error: value["error"].as_str().map(str::to_string),
    };
    list.as_array().into_iter().flatten().map(server).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
