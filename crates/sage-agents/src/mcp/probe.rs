//! The bounded question whether a server knows `server/discover`.
//!
//! ```text
//! rmcp --discover--> Probe --> server      an answer of another kind, or none in time, is told to rmcp as "not known";
//!      <--answer----       <--             it goes on with `initialize` on the same connection
//! ```
//! A server that is slow to start is not started twice for it. Its late answer is noted: then it is a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::time::Instant;

#[derive(Debug)]
pub struct Probe<T> {
    inner: T,
    patience: Duration,
    state: State,
    /// The server answered when nobody waited any more.
    late: Arc<AtomicBool>,
}

#[derive(Debug)]
enum State {
    Idle,
    Open { id: RequestId, until: Instant },
    GivenUp { id: RequestId },
}

impl<T> Probe<T> {
    pub fn new(inner: T, patience: Duration) -> (Probe<T>, Arc<AtomicBool>) {
        let late = Arc::new(AtomicBool::new(false));
        (Probe { inner, patience, state: State::Idle, late: Arc::clone(&late) }, late)
    }

    fn not_known(&mut self, id: RequestId) -> ServerJsonRpcMessage {
        self.state = State::GivenUp { id: id.clone() };
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to server/discover", None);
        ServerJsonRpcMessage::error(error, Some(id))
    }

    /// `None` if nobody wants to hear it.
    fn judge(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match (&self.state, message) {
            (State::Open { id, .. }, ServerJsonRpcMessage::Response(answer)) if *id == answer.id => {
                if matches!(answer.result, ServerResult::DiscoverResult(_)) {
                    self.state = State::Idle;
                    return Some(ServerJsonRpcMessage::Response(answer));
                }
                let id = answer.id;
                Some(self.not_known(id))
            }
            (State::GivenUp { id }, ServerJsonRpcMessage::Response(answer)) if *id == answer.id => {
                let is_new = matches!(answer.result, ServerResult::DiscoverResult(_));
                self.late.store(is_new, Ordering::SeqCst);
                None
            }
            (State::GivenUp { id }, ServerJsonRpcMessage::Error(answer))
                if Some(id) == answer.id.as_ref() =>
            {
                None
            }
            (_, message) => Some(message),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.state = State::Open { id: request.id.clone(), until: Instant::now() + self.patience };
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.state {
                State::Open { id, until } => {
                    match tokio::time::timeout_at(*until, self.inner.receive()).await {
                        Ok(message) => message?,
                        Err(_) => {
                            let id = id.clone();
                            return Some(self.not_known(id));
                        }
                    }
                }
                _ => self.inner.receive().await?,
            };
            if let Some(message) = self.judge(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
