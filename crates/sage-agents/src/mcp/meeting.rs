//! How a server is met: which of the two lifecycles, in which order, and when another try is worth it.
//!
//! ```text
//! auto, unknown:       discover (bounded), else initialize on the same connection;  then anew with initialize
//! auto, known:         what worked the last time;                                   then anew with the other
//! initialize, discover: only that
//! ```

use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sage_core::policy::FailureClass;

use super::answer::ToolFailure;
use super::http::Http;
use super::listener::Listener;
use super::probe::Probe;
use super::program::{Program, Workshop};
use super::server::{Lifecycle, McpServer};
use super::trouble::Trouble;
use super::wire::MESSAGE_BYTES;
use crate::https;

/// Until a server has said who it is. Some are installed by their own start.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// For an answer to `server/discover`: those that do not know it often say nothing.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// The same at an address, where the question goes further and nothing has to start.
const HTTP_PROBE_PATIENCE: Duration = Duration::from_secs(5);

pub type Talk = RunningService<RoleClient, Listener>;

#[derive(Debug)]
pub struct Met {
    pub talk: Talk,
    pub program: Option<Program>,
    pub listener: Listener,
}

/// One way to meet a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The newer lifecycle, and the older one if the server does not know it.
    Probe,
    Initialize,
    Discover,
}

/// Why a try has failed, and what is worth trying now.
struct Unmet {
    failure: ToolFailure,
    next: Next,
}

enum Next {
    Nothing,
    Planned,
    Discover,
}

pub async fn meet(
    name: &str,
    server: &McpServer,
    known: Option<Lifecycle>,
    workshop: &Workshop,
) -> Result<Met, ToolFailure> {
    let mut ways = ways(server.lifecycle, known).into_iter();
    let mut way = ways.next().unwrap_or(Way::Probe);
    loop {
        let unmet = match &server.url {
            Some(url) => at_address(name, url, server, way).await,
            None => program(name, server, way, workshop).await,
        };
        let Unmet { failure, next } = match unmet {
            Ok(met) => return Ok(met),
            Err(unmet) => unmet,
        };
        way = match next {
            Next::Nothing => return Err(failure),
            Next::Discover => Way::Discover,
            Next::Planned => ways.next().ok_or(failure)?,
        };
    }
}

fn ways(wanted: Lifecycle, known: Option<Lifecycle>) -> Vec<Way> {
    match (wanted, known) {
        (Lifecycle::Initialize, _) => vec![Way::Initialize],
        (Lifecycle::Discover, _) => vec![Way::Discover],
        (Lifecycle::Auto, Some(Lifecycle::Initialize)) => vec![Way::Initialize, Way::Probe],
        (Lifecycle::Auto, Some(Lifecycle::Discover)) => vec![Way::Discover, Way::Initialize],
        (Lifecycle::Auto, _) => vec![Way::Probe, Way::Initialize],
    }
}

impl Way {
    fn mode(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Way::Initialize => ClientLifecycleMode::Initialize,
            Way::Discover => ClientLifecycleMode::Discover { preferred_versions },
            Way::Probe => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        }
    }

    fn asked(self) -> &'static str {
        match self {
            Way::Discover => "server/discover",
            Way::Probe | Way::Initialize => "initialize",
        }
    }
}

/// Dropped before its end, nothing of the program is left.
async fn program(name: &str, server: &McpServer, way: Way, workshop: &Workshop) -> Result<Met, Unmet> {
    let nothing = |failure| Unmet { failure, next: Next::Nothing };
    let (mut program, wire) = Program::start(name, server, workshop).map_err(nothing)?;
    let patience = if way == Way::Probe { PROBE_PATIENCE } else { START_PATIENCE };
    let (wire, late) = Probe::new(wire, patience);
    let listener = Listener::default();
    let meeting = listener.clone().serve_with_lifecycle(wire, way.mode());
    match tokio::time::timeout(START_PATIENCE, meeting).await {
        Ok(Ok(talk)) => {
            program.has_started();
            Ok(Met { talk, program: Some(program), listener })
        }
        Ok(Err(error)) => {
            let (failure, has_started) = program.not_met(&told(&error), server).await;
            let next = match late.load(Ordering::SeqCst) {
                true => Next::Discover,
                // What cannot be started now cannot be started another way.
                false if !has_started => Next::Nothing,
                false => Next::Planned,
            };
            Err(Unmet { failure, next })
        }
        // Everything was tried on this connection, and it had all the time there is.
        Err(_) => {
            let ToolFailure { message, .. } = too_late(name, way, START_PATIENCE);
            Err(nothing(ToolFailure::new(FailureClass::Timeout, program.with_words(message))))
        }
    }
}

async fn at_address(name: &str, url: &str, server: &McpServer, way: Way) -> Result<Met, Unmet> {
    let nothing = |failure| Unmet { failure, next: Next::Nothing };
    let wrong = |why: String| nothing(ToolFailure::invalid(format!("server `{name}`: {why}")));
    let uri = https::address(url).map_err(|why| wrong(format!("`url` `{url}` {why}")))?;
    let http = Http::new(&uri).map_err(wrong)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(super::http::headers(&server.headers).map_err(wrong)?)
        .max_concurrent_requests(server.width() as usize)
        .max_sse_event_size(MESSAGE_BYTES);
    let wire = StreamableHttpClientTransport::with_client(http, config);
    let listener = Listener::default();
    let patience = if way == Way::Probe { HTTP_PROBE_PATIENCE } else { START_PATIENCE };
    let meeting = listener.clone().serve_with_lifecycle(wire, way.mode());
    match tokio::time::timeout(patience, meeting).await {
        Ok(Ok(talk)) => Ok(Met { talk, program: None, listener }),
        Ok(Err(error)) => {
            let about = format!("server `{name}` at {url}");
            Err(match trouble(&error) {
                Some(trouble) => nothing(trouble.failure().about(&about)),
                None => {
                    let message = format!("{about} does not speak MCP as expected: {}", told(&error));
                    Unmet { failure: ToolFailure::invalid(message), next: Next::Planned }
                }
            })
        }
        Err(_) => Err(Unmet { failure: too_late(name, way, patience), next: Next::Planned }),
    }
}

fn too_late(name: &str, way: Way, patience: Duration) -> ToolFailure {
    let waited = humantime::format_duration(patience);
    let message = format!("server `{name}` did not answer `{}` within {waited}", way.asked());
    ToolFailure::new(FailureClass::Timeout, message)
}

/// What an address said instead, wherever the error has it.
fn trouble(error: &ClientInitializeError) -> Option<&Trouble> {
    match error {
        ClientInitializeError::TransportError { error, .. } => Trouble::of(error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => trouble(fallback),
        _ => None,
    }
}

fn told(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => told(fallback),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        ClientInitializeError::TransportError { error, .. } => https::reasons(error.error.as_ref()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R24
    #[test]
    fn what_worked_comes_first() {
        let auto = |known| ways(Lifecycle::Auto, known);
        assert_eq!(auto(None), [Way::Probe, Way::Initialize]);
        assert_eq!(auto(Some(Lifecycle::Initialize)), [Way::Initialize, Way::Probe]);
        assert_eq!(auto(Some(Lifecycle::Discover)), [Way::Discover, Way::Initialize]);
        assert_eq!(ways(Lifecycle::Discover, Some(Lifecycle::Initialize)), [Way::Discover]);
    }
}
