//! The way to all servers: one connection each for the whole process, whoever needs it.
//!
//! ```text
//! tool steps --+                 Seat "github"  --> Connection ==stdio== program     started on first use,
//! code mode  --+--> Hub --call-> Seat "search"  --> Connection ==HTTP=== address     kept until the end,
//! sage tools --+                 (width, slot)                                       again after it has died
//! ```
//! What must stay true: whoever needs a server at the same time waits for the same start (R3); no more calls at once
//! than its width; a tool that is not what was trusted is not called; a call whose server died is repeated only if
//! the tool says that this is as good as once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use rmcp::model::CallToolRequestParams;
use sage_core::diagnostic::did_you_mean;
use sage_core::policy::FailureClass;
use sage_core::seal::Key;
use sage_core::secret::Redactor;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::answer::{ToolAnswer, ToolFailure, Unanswered};
use super::arguments;
use super::connection::Connection;
use super::listener::OnProgress;
use super::pins::{Pin, Pins};
use super::program::Workshop;
use super::server::{Lifecycle, McpServer};
use super::tool::Tool;
use crate::process::sweep_orphans;

/// Of a call where nobody says how long it may take.
const CALL_PATIENCE: Duration = Duration::from_secs(60);
/// For a server to write down what it must before it goes.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct HubConfig {
    pub servers: BTreeMap<String, McpServer>,
    /// Servers that the user has not trusted: they are refused by name.
    pub untrusted: BTreeSet<String>,
    /// Where servers work that say nothing about it.
    pub project: PathBuf,
    /// The executable that answers to `__keep`: this one.
    pub keeper: PathBuf,
    /// The user's: definitions are sealed with it. Without one they are forgotten at the end.
    pub key: Option<Key>,
    /// Where trusted definitions are kept (`.sage/state/tools`); `None` forgets them at the end.
    pub state: Option<PathBuf>,
    /// Bytes of a server's log.
    pub log_bytes: u64,
    /// What is taken out of everything that servers say.
    pub redactor: Redactor,
}

#[derive(Debug)]
pub struct Hub {
    seats: BTreeMap<String, Seat>,
    untrusted: BTreeSet<String>,
    workshop: Workshop,
    pins: Pins,
    notes: Mutex<Vec<String>>,
    /// The workshop is made when the first server starts, and goes with this.
    made: Mutex<Option<Made>>,
    is_kept: bool,
}

/// Where a server is used, whether it runs or not.
#[derive(Debug)]
struct Seat {
    name: String,
    server: McpServer,
    width: Semaphore,
    /// Held while the server starts: who needs it at the same time waits for the same one.
    slot: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

/// A scratch directory of this process alone.
#[derive(Debug)]
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = sage_fence::private::remove_all(path);
        }
    }
}

/// What is known of a server that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquaintance {
    pub lifecycle: Lifecycle,
    pub protocol: String,
    /// As it calls itself, with its version.
    pub calls_itself: String,
    /// From its start until it had said who it is.
    pub took: Duration,
    pub tools: usize,
    pub refused: Vec<String>,
}

impl Hub {
    pub fn new(config: HubConfig) -> Hub {
        let seat = |(name, server): (String, McpServer)| {
            let width = Semaphore::new(server.width() as usize);
            let seat = Seat { name: name.clone(), server, width, slot: tokio::sync::Mutex::default() };
            (name, seat)
        };
        let temporary = || std::env::temp_dir().canonicalize().unwrap_or_else(|_| std::env::temp_dir());
        let own = || temporary().join(format!("sage-{}", ulid::Ulid::generate()));
        Hub {
            seats: config.servers.into_iter().map(seat).collect(),
            untrusted: config.untrusted,
            workshop: Workshop {
                keeper: config.keeper,
                project: config.project,
                scratch: config.state.clone().unwrap_or_else(own),
                log_bytes: config.log_bytes,
                redactor: config.redactor,
            },
            is_kept: config.state.is_some(),
            pins: Pins::new(config.state, config.key),
            notes: Mutex::default(),
            made: Mutex::default(),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.seats.keys().map(String::as_str)
    }

    /// Servers that are left out because the user has not trusted them.
    pub fn untrusted(&self) -> impl Iterator<Item = &str> {
        self.untrusted.iter().map(String::as_str)
    }

    /// What a person should know and was not told yet.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn note(&self, notes: impl IntoIterator<Item = String>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).extend(notes);
    }

    /// Whether a server is a program of this machine, and not an address.
    pub fn is_program(&self, server: &str) -> bool {
        self.seats.get(server).is_some_and(|seat| seat.server.url.is_none())
    }

    /// The definition of a tool that is trusted. Starts nothing.
    pub fn pin(&self, server: &str, tool: &str) -> Option<Pin> {
        self.pins.pin(server, tool)
    }

    /// The tools of all servers, which are asked at the same time. Tools that are `refused` are among them.
    pub async fn tools(self: &Arc<Self>) -> Vec<(String, Result<Arc<[Tool]>, ToolFailure>)> {
        let mut asking = tokio::task::JoinSet::new();
        for name in self.seats.keys().cloned() {
            let hub = Arc::clone(self);
            asking.spawn(async move {
                let tools = hub.tools_of(&name).await;
                (name, tools)
            });
        }
        let mut answers = asking.join_all().await;
        answers.sort_by(|one, other| one.0.cmp(&other.0));
        answers
    }

    pub async fn tools_of(&self, server: &str) -> Result<Arc<[Tool]>, ToolFailure> {
        self.listed_by(server).await.map_err(|failure| self.redacted(failure))
    }

    async fn listed_by(&self, server: &str) -> Result<Arc<[Tool]>, ToolFailure> {
        let seat = self.seat(server)?;
        // It may have died since it was used last: its tools are listed by the next one.
        for _ in 0..2 {
            let connection = self.connection(seat).await?;
            match self.listed(&connection).await {
                Ok(tools) => return Ok(tools),
                Err(Unanswered::Failed(failure)) => return Err(failure),
                Err(Unanswered::Gone) => drop(connection.obituary().await),
            }
        }
        let message = format!("server `{server}` dies when it is asked for its tools");
        Err(ToolFailure::new(FailureClass::Lost, message))
    }

    pub async fn tool(&self, server: &str, tool: &str) -> Result<Tool, ToolFailure> {
        let tools = self.tools_of(server).await?;
        find(&tools, server, tool).cloned()
    }

    /// Calls a tool. `timeout` is for the call itself; without one it is the server's.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
        on_progress: Option<OnProgress>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let answer = self.answer(server, tool, arguments, timeout, on_progress).await;
        answer
            .map(|answer| answer.redacted(&self.workshop.redactor))
            .map_err(|failure| self.redacted(failure))
    }

    fn redacted(&self, failure: ToolFailure) -> ToolFailure {
        let message = self.workshop.redactor.text(&failure.message).into_owned();
        ToolFailure { message, ..failure }
    }

    async fn answer(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
        on_progress: Option<OnProgress>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let seat = self.seat(server)?;
        // Nobody closes it.
        let _permit = seat.width.acquire().await;
        let own = seat.server.timeout_ms.map(Duration::from_millis);
        let limit = timeout.or(own).unwrap_or(CALL_PATIENCE);
        let about = format!("`{tool}` of server `{server}`");
        let mut repeated = false;
        loop {
            let connection = self.connection(seat).await?;
            let definition = match self.definition(&connection, server, tool).await {
                Ok(definition) => definition,
                Err(Unanswered::Failed(failure)) => return Err(failure),
                Err(Unanswered::Gone) if !repeated => {
                    repeated = true;
                    connection.obituary().await;
                    continue;
                }
                Err(Unanswered::Gone) => return Err(lost(&connection).await),
            };
            arguments::check(&definition, &arguments)?;
            let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            let calling = connection.call(params, on_progress.clone());
            let answer = tokio::time::timeout(limit, calling).await;
            self.note(connection.take_declined());
            let Ok(answer) = answer else {
                let message = format!("{about} timed out after {}", humantime::format_duration(limit));
                return Err(ToolFailure::new(FailureClass::Timeout, message));
            };
            let again = !std::mem::replace(&mut repeated, true) && definition.is_repeatable();
            match answer {
                Ok(result) => {
                    let mut answer = ToolAnswer::from(result);
                    arguments::look_at(&definition, &mut answer);
                    return Ok(answer);
                }
                Err(Unanswered::Gone) if again => drop(connection.obituary().await),
                Err(Unanswered::Gone) => return Err(lost(&connection).await),
                Err(Unanswered::Failed(failure)) if again && failure.class == FailureClass::Lost => {}
                Err(Unanswered::Failed(failure)) => return Err(failure.about(&about)),
            }
        }
    }

    /// Starts a server if it does not run, and tells what it is like.
    pub async fn meet(&self, server: &str) -> Result<Acquaintance, ToolFailure> {
        let tools = self.tools_of(server).await?;
        let connection =
            self.connection(self.seat(server)?).await.map_err(|failure| self.redacted(failure))?;
        let info = connection.info();
        let own = info.as_ref().and_then(|info| info.server_info.as_ref());
        Ok(Acquaintance {
            lifecycle: connection.lifecycle(),
            protocol: info.as_ref().map_or_else(String::new, |info| info.protocol_version.to_string()),
            calls_itself: own.map_or_else(String::new, |own| format!("{} {}", own.name, own.version)),
            took: connection.took,
            tools: tools.len(),
            refused: tools.iter().filter_map(|tool| tool.refused.clone()).collect(),
        })
    }

    /// Tools of a server, or the one that is named, that are not used until they are approved.
    pub async fn unapproved(&self, server: &str, tool: Option<&str>) -> Result<Vec<Tool>, ToolFailure> {
        let tools = self.tools_of(server).await?;
        if let Some(tool) = tool {
            find(&tools, server, tool)?;
        }
        let wanted = |it: &&Tool| it.refused.is_some() && tool.is_none_or(|tool| it.name == tool);
        Ok(tools.iter().filter(wanted).cloned().collect())
    }

    /// Approves tools exactly as they are here: one that has changed since stays refused.
    pub async fn approve(&self, server: &str, tools: &[Tool]) -> Result<(), ToolFailure> {
        self.pins.approve(server, &tools.iter().collect::<Vec<_>>()).map_err(ToolFailure::invalid)?;
        self.connection(self.seat(server)?).await?.forget_tools();
        Ok(())
    }

    /// Ends all servers, at the same time.
    pub async fn close(&self) {
        let mut closing = tokio::task::JoinSet::new();
        for seat in self.seats.values() {
            // One that is still in use is ended by its lifeline.
            if let Some(connection) = seat.slot.lock().await.take().and_then(Arc::into_inner) {
                closing.spawn(connection.close(FAREWELL));
            }
        }
        closing.join_all().await;
        drop(self.made.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn seat(&self, server: &str) -> Result<&Seat, ToolFailure> {
        self.seats.get(server).ok_or_else(|| {
            if self.untrusted.contains(server) {
                return ToolFailure::invalid(untrusted(server));
            }
            let names: Vec<String> = self.names().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let near = did_you_mean(server, self.names()).map(|near| format!("{near} ")).unwrap_or_default();
            ToolFailure::invalid(format!("unknown server `{server}`; {near}known: {names}"))
        })
    }

    /// The connection to a server, which is started if it does not run.
    async fn connection(&self, seat: &Seat) -> Result<Arc<Connection>, ToolFailure> {
        let mut slot = seat.slot.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        // What is left of a dead one goes first.
        *slot = None;
        self.prepare(seat).await?;
        let opened = Connection::open(&seat.name, &seat.server, &self.pins, &self.workshop).await?;
        let connection = Arc::new(opened);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Before a program starts: its place, and nobody in it whom a dead process has left there.
    async fn prepare(&self, seat: &Seat) -> Result<(), ToolFailure> {
        static SWEPT: Once = Once::new();
        if seat.server.url.is_none() && !SWEPT.is_completed() {
            let _ = tokio::task::spawn_blocking(|| SWEPT.call_once(|| drop(sweep_orphans()))).await;
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            let scratch = &self.workshop.scratch;
            sage_fence::private::create_dir_all(scratch).map_err(|error| {
                let message = format!("cannot create `{}`: {error}", scratch.display());
                ToolFailure::new(FailureClass::Transient, message)
            })?;
            *made = Some(Made((!self.is_kept).then(|| scratch.clone())));
        }
        Ok(())
    }

    async fn listed(&self, connection: &Connection) -> Result<Arc<[Tool]>, Unanswered> {
        let mut notes = Vec::new();
        let tools = connection.tools(&self.pins, &mut notes).await;
        self.note(notes);
        tools
    }

    async fn definition(
        &self,
        connection: &Connection,
        server: &str,
        tool: &str,
    ) -> Result<Tool, Unanswered> {
        let mut tools = self.listed(connection).await?;
        if tools.iter().any(|it| it.name == tool && it.refused.is_some()) {
            connection.forget_tools();
            tools = self.listed(connection).await?;
        }
        let found = find(&tools, server, tool).map_err(Unanswered::Failed)?;
        match &found.refused {
            Some(why) => Err(Unanswered::Failed(ToolFailure::new(FailureClass::Rejected, why.clone()))),
            None => Ok(found.clone()),
        }
    }
}

/// Why a server is left out.
pub fn untrusted(server: &str) -> String {
    format!("server `{server}` is not trusted; to trust it, type: sage trust")
}

fn find<'a>(tools: &'a [Tool], server: &str, name: &str) -> Result<&'a Tool, ToolFailure> {
    tools.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let near = did_you_mean(name, tools.iter().map(|tool| tool.name.as_str()));
        let near = near.unwrap_or_else(|| format!("see: sage tools search {server}/"));
        ToolFailure::invalid(format!("server `{server}` has no tool `{name}`; {near}"))
    })
}

async fn lost(connection: &Connection) -> ToolFailure {
    ToolFailure::new(FailureClass::Lost, connection.obituary().await)
}
