//! MCP over stdin and stdout: one message a line.
//!
//! When the client closes our stdin, what is nearly done may still answer; whatever waits is cut after that, and
//! the process ends. What is not JSON is told on stderr and skipped, as the official servers do; a message with
//! an id that cannot be read is answered with an error for that id, so that nobody waits for it in vain.

use std::collections::HashSet;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, ServiceExt, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ServerHandler, service};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::lines::{Line, Outgoing, take_stdio};
use super::{MESSAGE_BYTES, asked_to_end};

/// After the end of the input, for calls that are nearly done.
const GRACE: Duration = Duration::from_millis(500);
/// For calls that were cut, to answer.
const CUT: Duration = Duration::from_secs(1);

const INVALID_REQUEST: i32 = -32600;

/// Serves until the client hangs up or the process is asked to end.
pub async fn serve_stdio(handler: impl ServerHandler) -> io::Result<()> {
    let mut ends = pin!(asked_to_end()?);
    let (lines, out) = take_stdio()?;
    let hung_up = Arc::new(Notify::new());
    let pipes =
        Pipes { lines, out: Out { out, open: Arc::default() }, is_begun: false, until: None, hung_up };
    let hung_up = pipes.hung_up.clone();
    let running = tokio::select! {
        running = handler.serve(pipes) => match running {
            Ok(running) => running,
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(io::Error::other(error.to_string())),
        },
        () = &mut ends => return Ok(()),
    };
    let stop: service::RunningServiceCancellationToken = running.cancellation_token();
    let mut waiting = pin!(running.waiting());
    tokio::select! {
        _ = &mut waiting => return Ok(()),
        () = hung_up.notified() => {}
        () = &mut ends => {}
    }
    stop.cancel();
    let _ = tokio::time::timeout(CUT, waiting).await;
    Ok(())
}

/// Both directions, as rmcp wants them.
struct Pipes {
    lines: mpsc::Receiver<Line>,
    out: Out,
    /// A request came that chooses a lifecycle; before that, nothing else means anything.
    is_begun: bool,
    /// When the grace ends, once the input has.
    until: Option<Instant>,
    hung_up: Arc<Notify>,
}

/// Where messages go, and which requests they have not answered yet.
#[derive(Clone)]
struct Out {
    out: mpsc::Sender<Outgoing>,
    open: Arc<Open>,
}

#[derive(Debug, Default)]
struct Open {
    requests: Mutex<HashSet<RequestId>>,
    answered: Notify,
}

impl Open {
    fn requests(&self) -> std::sync::MutexGuard<'_, HashSet<RequestId>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, id: &RequestId) {
        self.requests().remove(id);
        self.answered.notify_one();
    }
}

impl Transport<RoleServer> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, hung_up) = (self.out.clone(), self.hung_up.clone());
        async move {
            let sent = out.message(message).await;
            // A client that does not listen any more will not ask either.
            if sent.is_err() {
                hung_up.notify_one();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while let Some(line) = self.lines.recv().await {
            let read = match line {
                Line::Text(text) => read(&text),
                Line::TooLong => Err(Refused::too_long()),
            };
            match read {
                Ok(Some(message)) if self.is_wanted(&message) => return Some(message),
                Ok(_) => {}
                Err(refused) => self.refuse(refused),
            }
        }
        self.drained().await;
        self.hung_up.notify_one();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close();
        Ok(())
    }
}

impl Pipes {
    /// Keeps book of requests; a notification before the first request has nobody to notify.
    fn is_wanted(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let is_probe = matches!(
                    request.request,
                    ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_)
                );
                self.is_begun |= !is_probe;
                self.out.open.requests().insert(request.id.clone());
                return true;
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A request that was taken back is not answered.
                    self.out.open.close(id);
                }
            }
            _ => {}
        }
        self.is_begun
    }

    /// Not awaited: the caller may be dropped at any time.
    fn refuse(&self, refused: Refused) {
        eprintln!("sage mcp: {}", refused.why);
        if let Some(id) = refused.id {
            let error = json!({"code": INVALID_REQUEST, "message": refused.why});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            let out = self.out.clone();
            tokio::spawn(async move { out.line(format!("{answer}\n").into_bytes()).await });
        }
    }

    /// Waits for the calls that are nearly done. May be dropped and called again.
    async fn drained(&mut self) {
        let until = *self.until.get_or_insert_with(|| Instant::now() + GRACE);
        while !self.out.open.requests().is_empty() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = self.out.open.answered.notified() => {}
            }
        }
    }
}

impl Out {
    async fn message(&self, message: ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        let sent = self.line(line).await;
        match &message {
            ServerJsonRpcMessage::Response(response) => self.open.close(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.open.close(id)),
            _ => {}
        }
        sent
    }

    async fn line(&self, line: Vec<u8>) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (written, result) = oneshot::channel();
        self.out.send((line, written)).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

/// Why a line was not taken, and to whom to say so.
#[derive(Debug)]
struct Refused {
    id: Option<Value>,
    why: String,
}

impl Refused {
    fn too_long() -> Refused {
        let why = format!("a message is larger than {} MiB and was not read", MESSAGE_BYTES >> 20);
        Refused { id: Some(Value::Null), why }
    }
}

/// The message of a line; none if there is none, or one that we do not know and need not answer.
fn read(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Refused> {
    // Some programs begin what they write with a byte order mark.
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let why = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Value>(line) {
        Err(error) => Err(Refused { id: None, why: format!("a line is not JSON: {error}") }),
        Ok(Value::Object(message)) => match message.get("id") {
            None if message.contains_key("method") => Ok(None),
            None => Err(Refused { id: None, why: format!("a line is no message: {why}") }),
            Some(_) if !message.contains_key("method") => Ok(None),
            Some(id) => Err(Refused { id: Some(id.clone()), why: format!("not a valid request: {why}") }),
        },
        Ok(_) => Err(Refused { id: Some(Value::Null), why: "a message is an object, one a line".into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Option<Value>, String) {
        let refused = read(line.as_bytes()).unwrap_err();
        (refused.id, refused.why)
    }

    // covers: R16
    #[test]
    fn what_cannot_be_read_is_told_to_whoever_waits() {
        assert!(read(b" \r\n").unwrap().is_none());
        assert!(read(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap().is_some());
        // A method that nobody knows is a request all the same; rmcp says that it is unknown.
        assert!(read(br#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#).unwrap().is_some());
        assert_eq!(refused("{oops").0, None);
        assert_eq!(refused("[]").0, Some(Value::Null));
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"x"}"#).0,
            Some(json!(7))
        );
        assert_eq!(refused(r#"{"jsonrpc":"2.0"}"#).0, None);
    }
}
