//! One server that runs, and the connection to it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::ServiceError;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService,
};
use sage_core::policy::FailureClass;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::sync::watch;

use super::listener::Listener;
use super::server::McpServer;
use crate::attempt::Attempt;
use crate::outcome::{Miss, last_lines};
use crate::process::{Report, Resident, Spec, is_passing, private_file};
use crate::talk::make_pipe;

/// Until a server has said who it is. Some are installed by their own start.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// A server whose output has ended is gone within milliseconds.
const END_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Connection {
    name: String,
    service: RunningService<RoleClient, Listener>,
    resident: Resident,
    progress: watch::Receiver<u64>,
    /// A call has met its end.
    is_gone: AtomicBool,
}

impl Connection {
    /// Starts the server and makes its acquaintance. Dropped before that, nothing of it is left.
    pub async fn open(name: &str, server: &McpServer, attempt: &Attempt<'_>) -> Result<Connection, Miss> {
        let pipe = Pipe::make(attempt)?;
        let spec = spec(server, attempt, &pipe.path);
        let log = private_file(&attempt.cx.scratch.join("stderr.log")).ok();
        let lock = attempt.cx.children_lock.as_deref();
        let started = Resident::start(&attempt.config.keeper, &spec, lock, log, attempt.config.output_cap);
        let (resident, stdout) = started.map_err(|error| {
            let class = if is_passing(&error) { FailureClass::Transient } else { FailureClass::Invalid };
            Miss::failed(class, format!("server `{name}` could not be started: {error}"))
        })?;
        let (counter, progress) = watch::channel(0);
        let meeting =
            Listener(counter).serve_with_lifecycle((stdout, pipe.ours), ClientLifecycleMode::Initialize);
        match tokio::time::timeout(START_PATIENCE, meeting).await {
            Ok(Ok(service)) => Ok(Connection {
                name: name.to_owned(),
                service,
                resident,
                progress,
                is_gone: AtomicBool::new(false),
            }),
            Ok(Err(error)) => Err(not_met(name, &resident, &error).await),
            Err(_) => {
                let waited = humantime::format_duration(START_PATIENCE);
                let message = format!("server `{name}` did not answer `initialize` within {waited}");
                Err(Miss::failed(FailureClass::Timeout, with_words(message, &resident)))
            }
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
            || self.service.is_closed()
            || self.service.peer().is_transport_closed()
    }

    /// Counts up while the server says that it is at work.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.progress.clone()
    }

    /// Dropping the call cancels it.
    pub async fn call(&self, params: CallToolRequestParams) -> Result<CallToolResult, ServiceError> {
        self.service.peer().call_tool(params).await
    }

    /// Why there is no connection any more.
    pub async fn obituary(&self) -> String {
        self.is_gone.store(true, Ordering::SeqCst);
        let message = match end(&self.resident).await {
            Some(how) => format!("server `{}` died: {how}", self.name),
            None => format!("server `{}` closed the connection", self.name),
        };
        with_words(message, &self.resident)
    }

    /// Ends the server as the protocol wants it: its input ends, and it has `patience` to go.
    pub async fn close(self, patience: Duration) {
        let Connection { mut service, resident, .. } = self;
        let _ = service.close_with_timeout(patience).await;
        drop(service);
        resident.ended_within(patience).await;
    }
}

/// A named pipe, for the keeper opens what its program reads by name.
struct Pipe {
    path: PathBuf,
    ours: Sender,
    /// Keeps writes from failing before the program has opened its end.
    _theirs: Receiver,
}

impl Pipe {
    fn make(attempt: &Attempt<'_>) -> Result<Pipe, Miss> {
        let path = attempt.cx.scratch.join("server.pipe");
        let opened = make_pipe(&path).and_then(|()| {
            let theirs = OpenOptions::new().open_receiver(&path)?;
            Ok((OpenOptions::new().open_sender(&path)?, theirs))
        });
        let (ours, _theirs) = opened.map_err(|error| {
            let message = format!("cannot create `{}`: {error}", path.display());
            Miss::failed(FailureClass::Transient, message)
        })?;
        Ok(Pipe { path, ours, _theirs })
    }
}

/// The server belongs to the run, not to the step that happens to need it first.
fn spec(server: &McpServer, attempt: &Attempt<'_>, stdin: &std::path::Path) -> Spec {
    let mut env: Vec<_> = server.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    env.push(("SAGE_RUN".into(), attempt.call.run.clone().into()));
    Spec {
        program: server.command.clone().into(),
        args: server.args.iter().map(Into::into).collect(),
        cwd: server.cwd.clone().unwrap_or_else(|| attempt.cx.project.clone()),
        env,
        unset: Vec::new(),
        stdin: Some(stdin.to_path_buf()),
    }
}

async fn not_met(name: &str, resident: &Resident, error: &ClientInitializeError) -> Miss {
    let (class, message) = match end(resident).await {
        Some(End::Known(Report::Refused { passing, message })) => {
            let class = if passing { FailureClass::Transient } else { FailureClass::Invalid };
            (class, format!("server `{name}` could not be started: {message}"))
        }
        Some(how) => (FailureClass::Lost, format!("server `{name}` ended before it was ready: {how}")),
        None => (FailureClass::Invalid, format!("server `{name}` does not speak MCP as expected: {error}")),
    };
    Miss::failed(class, with_words(message, resident))
}

enum End {
    Known(Report),
    Unknown,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Known(report) => report.fmt(f),
            End::Unknown => f.write_str("its keeper was killed"),
        }
    }
}

/// How it ended; `None` if it has not.
async fn end(resident: &Resident) -> Option<End> {
    let gone = resident.ended_within(END_PATIENCE).await;
    gone.then(|| resident.report().map_or(End::Unknown, End::Known))
}

fn with_words(message: String, resident: &Resident) -> String {
    match last_lines(&resident.stderr_tail()) {
        words if words.is_empty() => message,
        words => format!("{message}: {words}"),
    }
}
