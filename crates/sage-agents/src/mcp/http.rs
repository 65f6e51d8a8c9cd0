//! Servers at an address: the protocol's HTTP transport, on our own HTTP client.
//!
//! ```text
//! rmcp's transport --message--> post --> 200 JSON | 200 event stream | 202 | trouble
//!                  --resume---> get  --> event stream
//!                  --end------> delete
//! ```
//! What must stay true: every body and every event has a limit; a refusal keeps its status, so that a rate limit is
//! never taken for a broken server.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures_core::stream::BoxStream;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sage_core::policy::FailureClass;
use sse_stream::{Sse, SseStream};

use super::bound::Bounded;
use super::trouble::Trouble;
use super::wire::MESSAGE_BYTES;
use crate::https::{self, Client, reasons};
use crate::outcome::excerpt;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Of an error's own text.
const ERROR_BYTES: usize = 1 << 20;

/// Lower-case, as names of headers are compared.
const OWN_HEADERS: [&str; 5] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<Trouble>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

#[derive(Clone, Debug)]
pub struct Http(Client);

impl Http {
    pub fn new(url: &Uri) -> Result<Http, String> {
        https::client(url).map(Http)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        let host = request.uri().authority().map_or_else(String::new, ToString::to_string);
        self.0.request(request).await.map_err(|error| {
            let message = format!("cannot reach {host}: {}", reasons(&error));
            // It will be the same certificate next time.
            if message.contains("invalid peer certificate") {
                let message = format!("{message}; SSL_CERT_FILE can name a file of trusted ones");
                return StreamableHttpError::Client(Trouble::new(FailureClass::Invalid, message));
            }
            // Nothing was sent over a connection that there never was. Of others nobody knows.
            let class = if error.is_connect() { FailureClass::Transient } else { FailureClass::Lost };
            StreamableHttpError::Client(Trouble::new(class, message))
        })
    }
}

fn request(
    method: Method,
    uri: &str,
    session: Option<&str>,
    auth: Option<String>,
    own: Headers,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failed> {
    let wrong =
        |what: &str| StreamableHttpError::Client(Trouble::new(FailureClass::Invalid, what.to_owned()));
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().map_err(|_| wrong("its address cannot be read"))?;
    let headers = request.headers_mut();
    headers.extend(own.into_iter().map(|(name, value)| (Some(name), value)));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("sage/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let given = |text: &str| HeaderValue::from_str(text).map_err(|_| wrong("a header has odd characters"));
    if let Some(session) = session {
        headers.insert(HEADER_SESSION_ID, given(session)?);
    }
    if let Some(token) = auth {
        headers.insert(AUTHORIZATION, given(&format!("Bearer {token}"))?);
    }
    Ok(request)
}

impl StreamableHttpClient for Http {
    type Error = Trouble;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let mut request = request(Method::POST, &uri, session.as_deref(), auth, headers, body)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.send(request).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(&message, session.is_some(), response).await;
        }
        accepted(&message, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        let request = request(Method::DELETE, &uri, Some(&session), auth, headers, Bytes::new())?;
        let response = self.send(request).await?;
        let status = response.status();
        if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(StreamableHttpError::Client(Trouble::refused(status, response.headers(), "")))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let mut request = request(Method::GET, &uri, session.as_deref(), auth, headers, Bytes::new())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(Ok(last)) = last.map(|last| HeaderValue::from_str(&last)) {
            request.headers_mut().insert(HEADER_LAST_EVENT_ID, last);
        }
        let response = self.send(request).await?;
        let status = response.status();
        // Whoever does not let us in will not do so when asked again and again.
        if matches!(status.as_u16(), 401 | 403 | 405) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(StreamableHttpError::Client(Trouble::refused(status, response.headers(), "")));
        }
        match kind(&response) {
            Some(kind) if kind.starts_with(EVENTS) => Ok(events(response)),
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }
}

async fn accepted(
    message: &ClientJsonRpcMessage,
    response: Response<Incoming>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let session = response.headers().get(HEADER_SESSION_ID);
    let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
    // Whatever comes back for what wants no answer is not looked at.
    let wants = matches!(message, ClientJsonRpcMessage::Request(_));
    let empty = response.headers().get(CONTENT_LENGTH).is_some_and(|length| length == "0");
    match kind(&response) {
        _ if empty && !wants => Ok(StreamableHttpPostResponse::Accepted),
        Some(kind) if kind.starts_with(EVENTS) => {
            Ok(StreamableHttpPostResponse::Sse(events(response), session))
        }
        Some(kind) if kind.starts_with(JSON) => {
            let body = whole(response, MESSAGE_BYTES).await?;
            match serde_json::from_slice(&body) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(_) if !wants => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => {
                    let said = excerpt(&String::from_utf8_lossy(&body));
                    let why = format!("its answer is not MCP: {error}: `{said}`");
                    Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why)))
                }
            }
        }
        kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
    }
}

/// An answer without success may still be one of the protocol. That somebody does not know `server/discover` is
/// told as such, whatever words he found: then the older way is tried.
async fn refused(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<Incoming>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let (status, headers) = (response.status(), response.headers().clone());
    let is_json = kind(&response).is_some_and(|kind| kind.starts_with(JSON));
    let body = whole(response, ERROR_BYTES).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&body);
    let trouble = Trouble::refused(status, &headers, &said);
    let told = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let passing = matches!(trouble.class, FailureClass::Auth | FailureClass::RateLimit);
    if passing {
        return Err(StreamableHttpError::Client(trouble));
    }
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !has_session
    {
        let error = told.map_or_else(|| ErrorData::invalid_request(trouble.message, None), |told| told.error);
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match told.filter(|_| is_json) {
        Some(error) => Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None)),
        None => Err(StreamableHttpError::Client(trouble)),
    }
}

fn kind(response: &Response<Incoming>) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(kind.as_bytes()).trim().to_ascii_lowercase())
}

fn events(response: Response<Incoming>) -> Events {
    Box::pin(SseStream::new(Bounded::new(response.into_body(), MESSAGE_BYTES)))
}

async fn whole(response: Response<Incoming>, limit: usize) -> Result<Bytes, Failed> {
    let body = Limited::new(response.into_body(), limit).collect().await.map_err(|error| {
        let message = format!("its answer broke off: {error}");
        StreamableHttpError::Client(Trouble::new(FailureClass::Lost, message))
    })?;
    Ok(body.to_bytes())
}

/// Those that a person has configured. Some are the transport's own.
pub fn headers(given: &BTreeMap<String, String>) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let odd = || format!("header `{name}` has characters that no header has");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd())?;
        if OWN_HEADERS.contains(&key.as_str()) {
            return Err(format!("header `{name}` belongs to the protocol and cannot be set"));
        }
        Ok((key, HeaderValue::from_str(value).map_err(|_| odd())?))
    };
    given.iter().map(header).collect()
}
