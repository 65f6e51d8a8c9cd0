//! The scripted endpoint over real sockets: three protocols, streamed or not, and the ways they break.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sage_agents::fake_llm::{FakeLlm, Script};
use sage_core::port::Usage;
use serde_json::{Value, json};

/// No answer takes longer, unless the script says so.
const DEADLINE: Duration = Duration::from_secs(10);

struct Reply {
    status: u16,
    head: String,
    body: String,
    /// The body came to its end.
    whole: bool,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of each event; an ending `[DONE]` is a string.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }

    /// All texts at this place of the events, one after the other.
    fn joined(&self, pointer: &str) -> String {
        self.events()
            .iter()
            .filter_map(|event| event.pointer(pointer)?.as_str().map(str::to_string))
            .collect()
    }
}

fn ask(fake: &FakeLlm, method: &str, path: &str, body: &Value) -> Reply {
    let mut stream = connect(fake, method, path, body);
    let mut bytes = Vec::new();
    // A connection that is closed in the middle may end with an error.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
    let (body, whole) = if head.contains("chunked") { unchunk(rest) } else { (rest.to_string(), true) };
    Reply { status, head: head.to_lowercase(), body, whole }
}

fn connect(fake: &FakeLlm, method: &str, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(fake.url().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let body = body.to_string();
    let length = body.len();
    let auth = "x-api-key: secret\r\nauthorization: Bearer secret\r\n";
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\n{auth}connection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream
}

fn unchunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        body.push_str(&more[..size]);
        rest = &more[size + 2..];
    }
    (body, false)
}

fn anthropic(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": "hello"}]})
}

fn responses(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "input": [{"role": "user", "content": "hello"}]})
}

fn chat(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "hello"}],
    })
}

fn script() -> Value {
    json!([{
        "thinking": "hmm", "text": "näh: {{last_user}} {{n}}", "tool": {"name": "look", "input": {"path": "ö"}},
        "headers": {"x-ratelimit-limit-requests": 7},
        "usage": {"input_tokens": 100, "output_tokens": 30, "cached": 40, "cacheCreationInputTokens": 5, "reasoning": 10},
    }])
}

#[test]
fn anthropic_is_the_same_streamed_and_whole() {
    let fake = FakeLlm::start(script()).unwrap();
    let whole = ask(&fake, "POST", "/v1/messages", &anthropic(false)).json();
    let content = whole["content"].as_array().unwrap();
    assert_eq!(content[0]["thinking"], "hmm");
    assert_eq!(content[1]["text"], "näh: hello 1");
    assert_eq!((&content[2]["name"], &content[2]["input"]), (&json!("look"), &json!({"path": "ö"})));
    assert_eq!(whole["stop_reason"], "tool_use");
    let usage = json!({
        "input_tokens": 100, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 40, "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 10},
    });
    assert_eq!(whole["usage"], usage);
    let stated = Usage {
        input: Some(100),
        cache_read: Some(40),
        cache_write: Some(5),
        output: Some(20),
        reasoning: Some(10),
        ..Usage::default()
    };
    assert_eq!(fake.sent_usage(), stated);

    let streamed = ask(&fake, "POST", "/v1/messages?beta=true", &anthropic(true));
    assert!(streamed.whole && streamed.head.contains("content-type: text/event-stream"));
    assert!(streamed.head.contains("x-ratelimit-limit-requests: 7"));
    assert_eq!(streamed.joined("/delta/thinking"), "hmm");
    assert_eq!(streamed.joined("/delta/text"), "näh: hello 2");
    assert_eq!(streamed.joined("/delta/partial_json"), r#"{"path":"ö"}"#);
    assert_eq!(streamed.joined("/delta/stop_reason"), "tool_use");
    let events = streamed.events();
    assert_eq!(events.first().unwrap()["message"]["usage"]["output_tokens"], 1);
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    let mut twice = stated.clone();
    twice.add(&stated);
    assert_eq!(fake.sent_usage(), twice);
}

#[test]
fn responses_are_the_same_streamed_and_whole() {
    let fake = FakeLlm::start(script()).unwrap();
    let whole = ask(&fake, "POST", "/v1/responses", &responses(false)).json();
    assert_eq!(whole["output"][0]["summary"][0]["text"], "hmm");
    assert_eq!(whole["output"][1]["content"][0]["text"], "näh: hello 1");
    assert_eq!(whole["output"][2]["arguments"], r#"{"path":"ö"}"#);
    assert_eq!((&whole["status"], &whole["usage"]["total_tokens"]), (&json!("completed"), &json!(130)));
    let once = fake.sent_usage();
    assert_eq!((once.input, once.output, once.reasoning), (Some(55), Some(20), Some(10)));
    assert_eq!(once.total(), 130, "the classes do not overlap");

    let streamed = ask(&fake, "POST", "/responses", &responses(true));
    let events = streamed.events();
    let text = |kind: &str| -> String {
        let deltas = events.iter().filter(|event| event["type"] == format!("response.{kind}.delta"));
        deltas.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!((text("reasoning_summary_text"), text("output_text")), ("hmm".into(), "näh: hello 2".into()));
    assert_eq!(text("function_call_arguments"), r#"{"path":"ö"}"#);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["usage"]), (&json!("response.completed"), &whole["usage"]));
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(fake.sent_usage().total(), 260);
}

#[test]
fn chat_is_the_same_streamed_and_whole() {
    let fake = FakeLlm::start(script()).unwrap();
    let whole = ask(&fake, "POST", "/v1/chat/completions", &chat(false)).json();
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"], "näh: hello 1");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"path":"ö"}"#);
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 10);

    let streamed = ask(&fake, "POST", "/v1/chat/completions", &chat(true));
    let delta = |name: &str| streamed.joined(&format!("/choices/0/delta/{name}"));
    assert_eq!((delta("content"), delta("reasoning_content")), ("näh: hello 2".into(), "hmm".into()));
    assert_eq!(delta("tool_calls/0/function/arguments"), r#"{"path":"ö"}"#);
    let events = streamed.events();
    assert_eq!(events.last().unwrap(), "[DONE]");
    assert_eq!(events[events.len() - 2]["usage"], whole["usage"]);
    assert_eq!(fake.sent_usage().total(), 260);
    // Who does not ask for usage gets none, and none is counted.
    let mut quiet = chat(true);
    quiet["stream_options"] = Value::Null;
    ask(&fake, "POST", "/v1/chat/completions", &quiet);
    assert_eq!(fake.sent_usage().total(), 260);
}

#[test]
fn refusals_have_status_headers_and_each_protocols_words() {
    let fake = FakeLlm::start(json!([
        {"status": 429, "headers": {"Retry-After": 3}},
        {"status": 429, "error": "insufficient_quota", "message": "no more"},
        {"status": 529, "error": {"type": "t", "code": "c", "message": "m"}},
        {"text": "sorry", "stop_reason": "refusal"},
        {"text": "half", "stopReason": "max_tokens"},
        {"failed": "server_error"},
    ]))
    .unwrap();
    let reply = ask(&fake, "POST", "/v1/messages", &anthropic(true));
    assert_eq!((reply.status, &reply.json()["error"]["type"]), (429, &json!("rate_limit_error")));
    assert!(reply.head.contains("retry-after: 3"), "{}", reply.head);
    let reply = ask(&fake, "POST", "/v1/responses", &responses(true));
    let expected = json!({"message": "no more", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"});
    assert_eq!((reply.status, &reply.json()["error"]), (429, &expected));
    let reply = ask(&fake, "POST", "/v1/chat/completions", &chat(false));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (529, &json!("c")));
    let refusal = ask(&fake, "POST", "/v1/responses", &responses(false)).json();
    assert_eq!(refusal["output"][0]["content"][0], json!({"type": "refusal", "refusal": "sorry"}));
    let cut = ask(&fake, "POST", "/v1/responses", &responses(true)).events();
    assert_eq!(cut.last().unwrap()["type"], "response.incomplete");
    let failed = ask(&fake, "POST", "/v1/responses", &responses(true)).events();
    assert_eq!(failed.last().unwrap()["response"]["error"]["code"], "server_error");
}

#[test]
fn streams_break_after_the_text() {
    type Request = fn(bool) -> Value;
    let wires: [(&str, Request); 3] =
        [("/v1/messages", anthropic), ("/v1/responses", responses), ("/v1/chat/completions", chat)];
    for (path, request) in wires {
        let fake = FakeLlm::start(json!([
            {"text": "abcdef", "drop": true},
            {"text": "abcdef", "midstreamError": "overloaded_error", "tool": {"name": "never"}},
        ]))
        .unwrap();
        let dropped = ask(&fake, "POST", path, &request(true));
        assert!(!dropped.whole, "{path}");
        assert!(dropped.body.contains("ab") && dropped.body.contains("ef"), "{path}: {}", dropped.body);
        let broken = ask(&fake, "POST", path, &request(true));
        let text = serde_json::to_string(broken.events().last().unwrap()).unwrap();
        assert!(broken.whole && text.contains("overloaded_error"), "{path}: {text}");
        assert!(!broken.body.contains("never"));
        let sent = fake.sent_usage();
        if path == "/v1/messages" {
            assert_eq!(sent.output, Some(2), "only what the first event of each says");
        } else {
            assert!(sent.is_empty(), "{path}: {sent:?}");
        }
    }
}

#[test]
fn an_answer_can_be_nonsense_or_none() {
    let page = "<html>busy</html>";
    let script =
        json!([{"raw": page, "headers": {"content-type": "text/html"}}, {"close": true}, {"text": "x"}]);
    let fake = FakeLlm::start(script).unwrap();
    let reply = ask(&fake, "POST", "/v1/messages", &anthropic(true));
    assert_eq!((reply.status, reply.body.as_str()), (200, page));
    assert!(reply.head.contains("content-type: text/html"), "{}", reply.head);
    let mut stream = connect(&fake, "POST", "/v1/messages", &anthropic(true));
    let mut rest = Vec::new();
    // Closed, or reset where the request was not read to its end.
    assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0);
    assert!(fake.sent_usage().is_empty(), "nonsense has no usage");
    assert_eq!(ask(&fake, "POST", "/v1/messages", &anthropic(true)).joined("/delta/text"), "x");
}

#[test]
fn a_hanging_answer_waits_for_its_time_or_for_the_client_to_go() {
    let fake = FakeLlm::start(json!([
        {"hang": 0.2, "text": "late"},
        {"delayMs": 200, "text": "late"},
        {"stall": 0.2, "text": "late"},
        {"paceMs": 60, "text": "late"},
        {"hang": true},
        {"text": "half", "stall": true},
    ]))
    .unwrap();
    for _ in 0..4 {
        let begun = Instant::now();
        let reply = ask(&fake, "POST", "/v1/messages", &anthropic(true));
        assert_eq!(reply.joined("/delta/text"), "late");
        assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    }
    for last_part in [None, Some(r#""content":"f""#)] {
        let mut stream = connect(&fake, "POST", "/v1/chat/completions", &chat(true));
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        while last_part.is_some_and(|part| !seen.contains(part)) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed after {seen}");
            seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = stream.read(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "nothing more comes after {seen:?}");
    }
    // The endpoint stops at once, whoever still waits for it.
    let waiting = connect(&fake, "POST", "/v1/messages", &anthropic(true));
    let begun = Instant::now();
    drop(fake);
    assert!(begun.elapsed() < Duration::from_secs(2));
    drop(waiting);
}

#[test]
fn requests_are_logged_without_keys_and_a_reset_begins_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let script = Script::try_from(r#"[{"text": "{{last_tool_result}}"}]"#).unwrap();
    let fake = FakeLlm::listen(script, 0, Some(file.path())).unwrap();
    let tool = json!({"type": "tool_result", "tool_use_id": "t", "content": "42"});
    let body = json!({"max_tokens": 9, "messages": [{"role": "user", "content": [tool]}]});
    let reply = ask(&fake, "POST", "/v1/messages", &body);
    assert_eq!(reply.json()["content"][0]["text"], "42");
    assert_eq!(ask(&fake, "GET", "/v1/models", &Value::Null).json()["data"][0]["id"], "fake-1");
    let count = ask(&fake, "POST", "/v1/messages/count_tokens", &body).json();
    assert!(count["input_tokens"].as_u64().unwrap() > 1);
    assert_eq!(ask(&fake, "POST", "/v1/nothing", &body).status, 404);
    assert_eq!(ask(&fake, "POST", "/v1/messages", &json!(7)).status, 400);
    // A probe for one token does not use up a turn.
    let probe = ask(&fake, "POST", "/v1/messages", &json!({"max_tokens": 1, "messages": []})).json();
    assert_eq!(probe["content"][0]["text"], "#");

    let requests = fake.requests();
    assert_eq!(requests.len(), 6);
    assert_eq!((&requests[0]["body"], &requests[0]["auth"]), (&body, &json!("x-api-key")));
    assert_eq!(ask(&fake, "GET", "/__log", &Value::Null).json(), Value::from(requests.clone()));
    let lines = std::fs::read_to_string(file.path()).unwrap();
    let logged: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(logged, requests);
    assert!(!lines.contains("secret"));

    let wrong = ask(&fake, "POST", "/__reset", &json!({"script": [{"txt": 1}]}));
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("turn 1, `txt`"), "{}", wrong.body);
    assert_eq!(fake.requests().len(), 6, "a bad script changes nothing");
    let reset = json!({"script": {"turns": [{"text": "new {{n}}"}], "exhausted": "error"}});
    assert_eq!(ask(&fake, "POST", "/__reset", &reset).status, 200);
    assert!(fake.requests().is_empty() && fake.sent_usage().is_empty());
    assert_eq!(ask(&fake, "POST", "/v1/messages", &body).json()["content"][0]["text"], "new 1");
    assert_eq!(ask(&fake, "POST", "/v1/messages", &body).status, 400);
    ask(&fake, "POST", "/__reset", &json!({}));
    assert_eq!(ask(&fake, "POST", "/v1/messages", &body).json()["content"][0]["text"], "new 1");
}

#[test]
fn many_clients_share_one_script() {
    let fake = FakeLlm::start(json!([{"text": "first", "times": 20}, {"text": "then"}])).unwrap();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let client = || ask(&fake, "POST", "/v1/messages", &anthropic(false)).json();
        let clients: Vec<_> = (0..30).map(|_| scope.spawn(client)).collect();
        let text = |answer: Value| answer["content"][0]["text"].as_str().unwrap().to_string();
        clients.into_iter().map(|client| text(client.join().unwrap())).collect()
    });
    assert_eq!(answers.iter().filter(|answer| *answer == "first").count(), 20);
    assert_eq!(FakeLlm::start("[{}, 7]").unwrap_err().to_string(), "turn 2, expected an object, found 7");
}
