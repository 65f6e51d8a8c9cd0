//! MCP over HTTP, on loopback only: `/mcp`, and `/health` for whoever watches.
//!
//! Everything is bounded: connections, sessions, headers, bodies, and how long the end may take. There is no CORS,
//! and no GET has an effect.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::MESSAGE_BYTES;
use super::guard::{Guard, Refusal};
use super::visitors::{Visitor, Visitors};

/// Of clients that say `initialize`; those that went away without a word are counted until they are forgotten.
const SESSIONS: usize = 1024;
/// A person may leave a client open over night.
const SESSION_IDLE: Duration = Duration::from_secs(24 * 3600);
const HEAD_BYTES: usize = 64 << 10;
/// For the head of a request, and between two of them; longer than clients keep an idle connection.
const HEAD_WAIT: Duration = Duration::from_secs(120);
/// For answers that are on their way when the end comes.
const GRACE: Duration = Duration::from_secs(2);

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Sessions = LocalSessionManager;

/// What to serve, where, and to whom.
pub struct Door<H> {
    pub listener: TcpListener,
    pub handler: H,
    pub guard: Guard,
    /// What `/health` says to those who know the token; looked at again for each request.
    pub health: Arc<dyn Fn() -> Value + Send + Sync>,
}

impl<H> std::fmt::Debug for Door<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("listener", &self.listener).field("guard", &self.guard).finish()
    }
}

/// Serves until `end`, then lets answers that are on their way finish.
pub async fn serve_http<H: ServerHandler + Clone>(
    door: Door<H>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let config = StreamableHttpServerConfig::default().with_max_request_body_bytes(MESSAGE_BYTES);
    let stop = config.cancellation_token.clone();
    let sessions = {
        let mut sessions = Sessions::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        Arc::new(sessions)
    };
    let handler = door.handler;
    let mcp = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
    let house = Arc::new(House { mcp, sessions, guard: door.guard, health: door.health });
    let visitors = Visitors::default();
    let (ending, ended) = watch::channel(());
    let mut end = pin!(end);
    loop {
        let stream = tokio::select! {
            accepted = door.listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of file descriptors, most likely: others will be closed.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut end => break,
        };
        let (house, mut ended, visitor) = (house.clone(), ended.clone(), visitors.enter());
        tokio::spawn(async move { connection(stream, house, visitor.into(), &mut ended).await });
    }
    drop(door.listener);
    stop.cancel();
    drop(ended);
    let _ = ending.send(());
    let _ = tokio::time::timeout(GRACE, ending.closed()).await;
    Ok(())
}

async fn connection<H: ServerHandler + Clone>(
    stream: TcpStream,
    house: Arc<House<H>>,
    visitor: Arc<Visitor>,
    ended: &mut watch::Receiver<()>,
) {
    // Progress is told as it happens.
    let _ = stream.set_nodelay(true);
    let stranger = visitor.clone();
    let answer = hyper::service::service_fn(move |request| {
        let (house, visitor) = (house.clone(), visitor.clone());
        async move { Ok::<_, Infallible>(house.answer(request, &visitor).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        // It ends with an error when the client hangs up.
        _ = &mut connection => return,
        () = stranger.asked_to_leave() => return,
        _ = ended.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// What all connections share.
struct House<H> {
    mcp: StreamableHttpService<H, Sessions>,
    sessions: Arc<Sessions>,
    guard: Guard,
    health: Arc<dyn Fn() -> Value + Send + Sync>,
}

impl<H: ServerHandler + Clone> House<H> {
    async fn answer(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        if let Err(refusal) = self.guard.check_place(request.uri(), request.headers()) {
            return refuse(refusal);
        }
        match request.uri().path() {
            "/mcp" => self.mcp(request, visitor).await,
            "/health" => self.health(&request).await,
            _ => refuse((StatusCode::NOT_FOUND, "there is /mcp and /health")),
        }
    }

    async fn mcp(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        if let Err(refusal) = Guard::check_query(request.uri()) {
            return refuse(refusal);
        }
        if !self.guard.is_known(request.headers()) {
            return unknown();
        }
        if !visitor.is_welcome() {
            return refuse((StatusCode::SERVICE_UNAVAILABLE, "too many connections"));
        }
        let is_first = !request.headers().contains_key("mcp-session-id");
        if is_first && self.sessions.sessions.read().await.len() >= SESSIONS {
            return refuse((StatusCode::SERVICE_UNAVAILABLE, "too many clients: restart sage serve"));
        }
        self.mcp.handle(request).await
    }

    async fn health(&self, request: &Request<Incoming>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = refuse((StatusCode::METHOD_NOT_ALLOWED, "only GET"));
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let look = self.health.clone();
        let Ok(health) = tokio::task::spawn_blocking(move || look()).await else {
            return refuse((StatusCode::INTERNAL_SERVER_ERROR, "the checks failed"));
        };
        let is_well = health["ok"] == true;
        let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let told = if self.guard.is_known(request.headers()) { health } else { json!({"ok": is_well}) };
        json_answer(status, &told)
    }
}

fn json_answer(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(value.to_string())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Strangers do not keep their connection.
fn refuse((status, why): Refusal) -> Answer {
    let mut answer = json_answer(status, &json!({"error": why}));
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn unknown() -> Answer {
    let why = "the header `Authorization: Bearer <token>` is missing or wrong; `sage serve` says where the token is";
    let mut answer = refuse((StatusCode::UNAUTHORIZED, why));
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}
