//! The connection to one server: its tools, and calls of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    ErrorCode, PaginatedRequestParams, RequestId, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use sage_core::policy::FailureClass;
use sage_core::secret::Redactor;

use super::answer::{ToolFailure, Unanswered};
use super::listener::{Listener, OnProgress};
use super::meeting::{Met, Talk, meet};
use super::pins::Pins;
use super::program::{Program, Workshop};
use super::server::{Lifecycle, McpServer};
use super::tool::Tool;

/// For a list of tools, per page.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// A list that is longer does not end.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 10_000;
/// How often a tool may say "ask again".
const MAX_ROUNDS: u32 = 10;
const ROUND_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Connection {
    name: String,
    talk: Talk,
    program: Option<Program>,
    listener: Listener,
    /// As they were after so many changes.
    tools: tokio::sync::Mutex<Option<(u64, Arc<[Tool]>)>>,
    /// A call has met its end.
    is_gone: AtomicBool,
    /// Hears of changes where the lifecycle does not tell them unasked.
    _subscription: Option<Ending>,
    redactor: Redactor,
    pub took: Duration,
}

#[derive(Debug)]
struct Ending(tokio::task::AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Starts the server and makes its acquaintance. Dropped before that, nothing of it is left.
    pub async fn open(
        name: &str,
        server: &McpServer,
        pins: &Pins,
        workshop: &Workshop,
    ) -> Result<Connection, ToolFailure> {
        let begun = Instant::now();
        let Met { talk, program, listener } = meet(name, server, pins.lifecycle(name), workshop).await?;
        let connection = Connection {
            name: name.to_owned(),
            _subscription: subscribe(talk.peer(), &listener),
            talk,
            program,
            listener,
            tools: tokio::sync::Mutex::default(),
            is_gone: AtomicBool::new(false),
            redactor: workshop.redactor.clone(),
            took: begun.elapsed(),
        };
        pins.remember(name, connection.lifecycle());
        Ok(connection)
    }

    pub fn is_closed(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst) || self.talk.is_closed() || self.talk.peer().is_transport_closed()
    }

    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.talk.peer().peer_info()
    }

    pub fn lifecycle(&self) -> Lifecycle {
        let old = self.info().is_none_or(|info| info.protocol_version.has_initialize());
        if old { Lifecycle::Initialize } else { Lifecycle::Discover }
    }

    /// Judged by `pins`; what a person should know of that goes to `notes`.
    pub async fn tools(&self, pins: &Pins, notes: &mut Vec<String>) -> Result<Arc<[Tool]>, Unanswered> {
        let mut known = self.tools.lock().await;
        let changes = self.listener.changes();
        if let Some((_, tools)) = known.as_ref().filter(|(when, _)| *when == changes) {
            return Ok(Arc::clone(tools));
        }
        let mut tools = self.list().await?;
        tools.iter_mut().for_each(|tool| tool.redact(&self.redactor));
        let told = pins.admit(&self.name, &mut tools);
        notes.extend(told.map_err(|why| Unanswered::Failed(ToolFailure::invalid(why)))?);
        let tools: Arc<[Tool]> = tools.into();
        *known = Some((changes, Arc::clone(&tools)));
        Ok(tools)
    }

    /// What the server asked for and did not get, in words for a person.
    pub fn take_declined(&self) -> Vec<String> {
        let declined = self.listener.take_declined();
        declined.into_iter().map(|what| format!("server `{}` {what}", self.name)).collect()
    }

    /// Somebody may have approved what was refused: it is looked at again.
    pub fn forget_tools(&self) {
        self.listener.has_changed();
    }

    async fn list(&self) -> Result<Vec<Tool>, Unanswered> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = tokio::time::timeout(LIST_PATIENCE, self.talk.peer().list_tools(Some(params))).await;
            let page = match page {
                Ok(Ok(page)) => page,
                Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    return Ok(tools);
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let waited = humantime::format_duration(LIST_PATIENCE);
                    let message = format!("server `{}` did not list its tools within {waited}", self.name);
                    return Err(Unanswered::Failed(ToolFailure::new(FailureClass::Timeout, message)));
                }
            };
            tools.extend(page.tools.into_iter().map(|tool| Tool::new(&self.name, tool)));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
            if tools.len() > MAX_TOOLS {
                break;
            }
        }
        let message = format!("server `{}` lists more tools than anybody has: {}", self.name, tools.len());
        Err(Unanswered::Failed(ToolFailure::invalid(message)))
    }

    /// Dropping the call cancels it.
    pub async fn call(
        &self,
        mut params: CallToolRequestParams,
        told: Option<OnProgress>,
    ) -> Result<CallToolResult, Unanswered> {
        for round in 0..MAX_ROUNDS {
            let required = match self.once(params.clone(), told.clone()).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(required) => required,
                _ => return Err(ServiceError::UnexpectedResponse.into()),
            };
            let asks = required.input_requests.is_some_and(|requests| !requests.is_empty());
            if asks || required.request_state.is_none() {
                let message = "it asks for more than its arguments, and nobody is there to answer";
                return Err(Unanswered::Failed(ToolFailure::invalid(message)));
            }
            params.request_state = required.request_state;
            tokio::time::sleep(ROUND_PAUSE * (round + 1)).await;
        }
        let message = format!("it wanted to be asked again {MAX_ROUNDS} times");
        Err(Unanswered::Failed(ToolFailure::new(FailureClass::Transient, message)))
    }

    async fn once(
        &self,
        params: CallToolRequestParams,
        told: Option<OnProgress>,
    ) -> Result<ServerResult, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.talk.peer();
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let mut pending = Pending { peer: peer.clone(), id: Some(handle.id.clone()) };
        let _attention = told.map(|told| self.listener.attend(handle.progress_token.clone(), told));
        let answer = handle.await_response().await;
        pending.id = None;
        answer
    }

    /// Why there is no connection any more.
    pub async fn obituary(&self) -> String {
        self.is_gone.store(true, Ordering::SeqCst);
        match &self.program {
            Some(program) => program.obituary().await,
            None => format!("server `{}` closed the connection", self.name),
        }
    }

    /// Ends the server as the protocol wants it: its input ends, and it has `patience` to go.
    pub async fn close(self, patience: Duration) {
        let Connection { mut talk, program, .. } = self;
        let _ = talk.close_with_timeout(patience).await;
        drop(talk);
        if let Some(program) = program {
            program.close(patience).await;
        }
    }
}

/// A request that was not answered yet. Whoever gives it up tells the server.
struct Pending {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let why = CancelledNotificationParam::new(Some(id), Some("nobody waits any more".into()));
            let _ = peer.notify_cancelled(why).await;
        });
    }
}

/// In the newer lifecycle a server tells changes only to those who asked for them.
fn subscribe(peer: &Peer<RoleClient>, listener: &Listener) -> Option<Ending> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if !tells || info.protocol_version.has_initialize() {
        return None;
    }
    let (peer, listener) = (peer.clone(), listener.clone());
    let hearing = tokio::spawn(async move {
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut subscription) = peer.listen(wanted).await else { return };
        // Whatever comes is about tools: nothing else was asked for.
        while let Ok(Some(_)) = subscription.next().await {
            listener.has_changed();
        }
    });
    Some(Ending(hearing.abort_handle()))
}
