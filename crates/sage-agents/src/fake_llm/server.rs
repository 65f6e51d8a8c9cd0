//! Connections, routes and answers.
//!
//! ```text
//! POST /v1/messages  /v1/responses  /v1/chat/completions   the next turn
//! POST /v1beta/models/<model>:[stream]generateContent      the next turn
//! POST /v1/messages/count_tokens    GET /v1/models         fixed answers
//! GET /__log                        POST /__reset          for whoever wrote the script
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use sage_core::port::Usage;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::body::{Answer, hang_on, stream};
use super::conversation::{last_tool_result, last_user};
use super::log::Log;
use super::number::Numbers;
use super::placeholder::Values;
use super::script::Script;
use super::turn::{Problem, Turn};
use super::wire::{Exchange, Wire};

/// A conversation with pictures fits; a mistake does not fill the memory.
const REQUEST_BYTES: usize = 64 << 20;

/// The script closes the connection without an answer.
#[derive(Debug)]
struct HungUp;

impl fmt::Display for HungUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script hangs up")
    }
}

impl std::error::Error for HungUp {}

/// What all connections share.
#[derive(Debug)]
pub struct State {
    written: Mutex<Script>,
    script: Mutex<Script>,
    calls: AtomicU64,
    numbers: Numbers,
    usage: Mutex<Usage>,
    pub log: Log,
}

impl State {
    pub fn new(script: Script, log: Log) -> State {
        State {
            written: Mutex::new(script.clone()),
            script: Mutex::new(script),
            calls: AtomicU64::new(0),
            numbers: Numbers::new(),
            usage: Mutex::default(),
            log,
        }
    }

    /// From the first turn on, with another script or the same.
    pub fn reset(&self, script: Option<Script>) {
        let mut written = lock(&self.written);
        if let Some(script) = script {
            *written = script;
        }
        *lock(&self.script) = written.clone();
        *lock(&self.usage) = Usage::default();
        self.calls.store(0, Ordering::SeqCst);
        self.log.clear();
    }

    pub fn usage(&self) -> Usage {
        lock(&self.usage).clone()
    }

    fn sent(&self, usage: &Usage) {
        lock(&self.usage).add(usage);
    }

    fn next_turn(&self, request: &Value) -> Result<Turn, String> {
        // A probe for one token, which some clients send before they begin, is not part of the story.
        if request["max_tokens"].as_u64() == Some(1) {
            return Turn::parse(&json!({"text": "#"}));
        }
        let n = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let (last_user, last_tool_result) = (last_user(request), last_tool_result(request));
        let values = Values { last_user, last_tool_result, n, request: request.to_string() };
        lock(&self.script).next(&values)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub async fn serve(listener: TcpListener, state: Arc<State>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, state.clone()))),
            // Out of file descriptors, most likely: others will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    // Each event is its own packet, as it is with a model that thinks in between.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| {
        let state = state.clone();
        async move { handle(&state, request).await.ok_or(HungUp) }
    });
    // It ends with an error when the script or the client hangs up.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// `None` where the script wants no answer.
async fn handle(state: &Arc<State>, request: Request<Incoming>) -> Option<Response<Answer>> {
    let (head, body) = request.into_parts();
    let bytes = match Limited::new(body, REQUEST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Some(json_response(413, &json!({"error": {"message": error.to_string()}}))),
    };
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let target = head.uri.path_and_query().map_or_else(|| head.uri.path(), |path| path.as_str());
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/__log") => return Some(json_response(200, &state.log.entries().into())),
        (&Method::POST, "/__reset") => return Some(reset(state, &body)),
        _ => state.log.record(head.method.as_str(), target, &head.headers, &body),
    }
    Some(match (&head.method, head.uri.path()) {
        (&Method::GET | &Method::HEAD, "/") => json_response(200, &json!({"ok": true})),
        (&Method::GET, path) if path.ends_with("/models") => json_response(200, &models()),
        (&Method::POST, path) if path.ends_with("/messages/count_tokens") => {
            json_response(200, &json!({"input_tokens": (bytes.len() / 4).max(1)}))
        }
        (&Method::POST, path) => match Wire::of(path) {
            Some(wire) => return answer(state, wire, path, &body).await,
            None => not_found(path),
        },
        (_, path) => not_found(path),
    })
}

async fn answer(state: &Arc<State>, wire: Wire, path: &str, request: &Value) -> Option<Response<Answer>> {
    if !request.is_object() {
        let problem =
            Problem { message: Some("the request is not a JSON object".into()), ..Problem::default() };
        return Some(json_response(400, &wire.error(400, &problem)));
    }
    let turn = match state.next_turn(request) {
        Ok(turn) => turn,
        Err(message) => {
            let problem = Problem { message: Some(message), ..Problem::default() };
            return Some(json_response(500, &wire.error(500, &problem)));
        }
    };
    tokio::time::sleep(Duration::from_millis(turn.delay_ms)).await;
    if let Some(hang) = turn.hang {
        hang_on(hang).await;
    }
    if turn.close {
        return None;
    }
    let mut response = match (turn.status, &turn.raw) {
        (Some(status), _) => {
            let body = turn.body.clone().unwrap_or_else(|| wire.error(status, &turn.error));
            json_response(status, &body)
        }
        (None, Some(raw)) => response(200, "text/event-stream", Either::Left(Full::new(raw.clone().into()))),
        (None, None) => respond(state, wire, Wire::is_streamed(path, request), request, &turn),
    };
    for (name, value) in &turn.headers {
        // Checked when the script was read; a placeholder may have put something else in.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Some(response)
}

fn respond(state: &Arc<State>, wire: Wire, streamed: bool, request: &Value, turn: &Turn) -> Response<Answer> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let exchange = Exchange { request, turn, numbers: &state.numbers, now_s };
    if streamed {
        let (pieces, state) = (wire.stream(&exchange), state.clone());
        let body = stream(pieces, move |usage| state.sent(usage));
        return response(200, "text/event-stream", Either::Right(body));
    }
    let (whole, usage) = wire.plain(&exchange);
    state.sent(&usage);
    json_response(200, &whole)
}

fn reset(state: &State, body: &Value) -> Response<Answer> {
    let script = body.get("script").map(Script::read).transpose();
    match script {
        Ok(script) => {
            state.reset(script);
            json_response(200, &json!({"ok": true}))
        }
        Err(message) => json_response(400, &json!({"error": {"message": message}})),
    }
}

fn models() -> Value {
    let model = json!({
        "id": "fake-1", "type": "model", "object": "model", "display_name": "Fake", "owned_by": "fake",
        "created": 0, "created_at": "1970-01-01T00:00:00Z",
    });
    json!({"object": "list", "data": [model], "has_more": false, "first_id": "fake-1", "last_id": "fake-1"})
}

fn not_found(path: &str) -> Response<Answer> {
    let message = format!("the scripted endpoint has no `{path}`");
    json_response(404, &json!({"type": "error", "error": {"type": "not_found_error", "message": message}}))
}

fn json_response(status: u16, value: &Value) -> Response<Answer> {
    let body = Full::new(Bytes::from(value.to_string()));
    response(status, "application/json", Either::Left(body))
}

fn response(status: u16, kind: &'static str, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
