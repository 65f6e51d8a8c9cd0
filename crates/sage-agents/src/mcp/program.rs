//! A server that is a program: started under a keeper, spoken to by its standard input and output.
//!
//! It belongs to this process and to no run: many runs may use it, one after the other or at once, so it holds the
//! lock of none. It ends with this process, by its lifeline; if even its keeper was killed, whoever starts a server
//! or resumes a run next finds it by its owner's name in its environment (`process::sweep`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rmcp::service::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use sage_core::policy::FailureClass;
use sage_core::secret::Redactor;
use sage_fence::private;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

use super::answer::ToolFailure;
use super::environment;
use super::server::McpServer;
use super::wire::{Lines, MESSAGE_BYTES};
use crate::outcome::{class_of_io, last_lines};
use crate::process::{OWNER_VARIABLE, Report, Resident, Spec, is_passing, owner_mark};
use crate::talk::make_pipe;

/// A server whose output has ended is gone within milliseconds.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Pipes that are older belong to nobody: a start takes a minute at most.
const LEFT_BEHIND: Duration = Duration::from_secs(600);

/// How servers are started.
#[derive(Clone, Debug)]
pub struct Workshop {
    pub keeper: PathBuf,
    /// Where servers work that say nothing about it.
    pub project: PathBuf,
    /// For pipes and logs; 0700.
    pub scratch: PathBuf,
    /// Bytes of a log.
    pub log_bytes: u64,
    /// What is taken out of everything that servers say.
    pub redactor: Redactor,
}

#[derive(Debug)]
pub struct Program {
    name: String,
    resident: Resident,
    /// It said a line that is too long.
    overflow: Arc<AtomicBool>,
    /// Our copy of its end of the pipe, until it has opened its own, and the pipe's name.
    starting: Option<(Receiver, Removed)>,
}

pub type Wire = AsyncRwTransport<RoleClient, Lines<Receiver>, Sender>;

impl Program {
    pub fn start(
        name: &str,
        server: &McpServer,
        workshop: &Workshop,
    ) -> Result<(Program, Wire), ToolFailure> {
        let pipe = Pipe::make(&workshop.scratch).map_err(|error| {
            let message = format!("cannot create a pipe in `{}`: {error}", workshop.scratch.display());
            ToolFailure::new(class_of_io(&error), message)
        })?;
        let spec = spec(server, workshop, &pipe.path.0);
        let log = private::create(&workshop.scratch.join(format!("{name}.log"))).ok();
        let started =
            Resident::start(&workshop.keeper, &spec, None, log, workshop.log_bytes, &workshop.redactor);
        let (resident, stdout) = started.map_err(|error| {
            let class = if is_passing(&error) { FailureClass::System } else { FailureClass::Invalid };
            ToolFailure::new(class, format!("server `{name}` could not be started: {error}"))
        })?;
        let (lines, overflow) = Lines::new(stdout, MESSAGE_BYTES);
        let wire = AsyncRwTransport::new_client(lines, pipe.ours).with_max_line_length(usize::MAX);
        let starting = Some((pipe.theirs, pipe.path));
        Ok((Program { name: name.to_owned(), resident, overflow, starting }, wire))
    }

    /// It has answered: what its start needed is not needed any more.
    pub fn has_started(&mut self) {
        self.starting = None;
    }

    /// Why nobody has met it, and whether it had started at all.
    pub async fn not_met(&self, why: &str, server: &McpServer) -> (ToolFailure, bool) {
        let name = &self.name;
        let mut has_started = true;
        let (class, message) = match self.end().await {
            _ if self.overflow.load(Ordering::SeqCst) => (FailureClass::Invalid, self.too_long()),
            Some(End::Known(Report::Refused { passing, message })) => {
                has_started = false;
                let class = if passing { FailureClass::System } else { FailureClass::Invalid };
                (class, format!("server `{name}` could not be started: {message}"))
            }
            Some(how) => {
                let message = self.with_words(format!("server `{name}` ended before it was ready: {how}"));
                let words = self.resident.stderr_tail();
                let hint = environment::hint(name, server, &words, std::env::vars_os());
                let hint = hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
                return (ToolFailure::new(FailureClass::Lost, message + &hint), true);
            }
            None => (FailureClass::Invalid, format!("server `{name}` does not speak MCP as expected: {why}")),
        };
        (ToolFailure::new(class, self.with_words(message)), has_started)
    }

    /// Why there is no connection any more.
    pub async fn obituary(&self) -> String {
        let message = match self.end().await {
            _ if self.overflow.load(Ordering::SeqCst) => self.too_long(),
            Some(how) => format!("server `{}` died: {how}", self.name),
            None => format!("server `{}` closed the connection", self.name),
        };
        self.with_words(message)
    }

    /// Its input has ended; it has `patience` to go, then it is made to.
    pub async fn close(self, patience: Duration) {
        self.resident.ended_within(patience).await;
        self.resident.end(END_PATIENCE).await;
    }

    pub fn with_words(&self, message: String) -> String {
        match last_lines(&self.resident.stderr_tail()) {
            words if words.is_empty() => message,
            words => format!("{message}: {words}"),
        }
    }

    fn too_long(&self) -> String {
        format!("server `{}` said a message of more than {} MiB", self.name, MESSAGE_BYTES >> 20)
    }

    /// How it ended; `None` if it has not.
    async fn end(&self) -> Option<End> {
        if self.overflow.load(Ordering::SeqCst) {
            return None;
        }
        let gone = self.resident.ended_within(END_PATIENCE).await;
        gone.then(|| self.resident.report().map_or(End::Unknown, End::Known))
    }
}

/// A named pipe, for the keeper opens what its program reads by name.
struct Pipe {
    path: Removed,
    ours: Sender,
    /// Keeps writes from failing before the program has opened its end.
    theirs: Receiver,
}

impl Pipe {
    fn make(scratch: &Path) -> std::io::Result<Pipe> {
        clear(scratch);
        let path = scratch.join(format!("{}.pipe", ulid::Ulid::generate()));
        make_pipe(&path)?;
        let path = Removed(path);
        let theirs = OpenOptions::new().open_receiver(&path.0)?;
        Ok(Pipe { ours: OpenOptions::new().open_sender(&path.0)?, theirs, path })
    }
}

/// A file that goes when this does.
#[derive(Debug)]
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = private::remove_file(&self.0);
    }
}

/// Removes the pipes of those who were killed while a server started.
fn clear(scratch: &Path) {
    for path in private::list(scratch).unwrap_or_default().into_iter().map(|it| scratch.join(it.name)) {
        let made = path.symlink_metadata().and_then(|metadata| metadata.modified());
        let old =
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > LEFT_BEHIND));
        if old && path.extension().is_some_and(|extension| extension == "pipe") {
            let _ = private::remove_file(&path);
        }
    }
}

fn spec(server: &McpServer, workshop: &Workshop, stdin: &Path) -> Spec {
    let mut env = environment::inherited(server, std::env::vars_os());
    env.extend(server.env.iter().map(|(name, value)| (name.into(), value.into())));
    env.push((OWNER_VARIABLE.into(), owner_mark().into()));
    Spec {
        program: server.command.clone().into(),
        args: server.args.iter().map(Into::into).collect(),
        cwd: server.cwd.clone().unwrap_or_else(|| workshop.project.clone()),
        env,
        unset: Vec::new(),
        bare: true,
        stdin: Some(stdin.to_path_buf()),
    }
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
