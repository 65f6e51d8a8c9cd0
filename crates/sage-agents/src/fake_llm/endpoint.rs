//! A running endpoint: a thread of its own, whatever runtime the caller has, gone when it is dropped.

use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use sage_core::port::Usage;
use serde_json::Value;
use tokio::sync::oneshot;

use super::log::Log;
use super::script::Script;
use super::server::{State, serve};
use super::wire::Wire;

#[derive(Debug)]
pub struct FakeLlm {
    address: SocketAddr,
    state: Arc<State>,
    /// Dropped to stop it.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeLlm {
    /// On a free port. The script is JSON, as a value or as text.
    pub fn start<S>(script: S) -> io::Result<FakeLlm>
    where
        S: TryInto<Script>,
        S::Error: Display,
    {
        let wrong = |error: S::Error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
        FakeLlm::listen(script.try_into().map_err(wrong)?, 0, None)
    }

    /// On this port of loopback (0: a free one); each request is also a line of the file `log`.
    pub fn listen(script: Script, port: u16, log: Option<&Path>) -> io::Result<FakeLlm> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::new(script, Log::open(log)?));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let shared = state.clone();
        let thread = std::thread::Builder::new().name("fake-llm".into()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener, shared) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(FakeLlm { address, state, stop: Some(stop), thread: Some(thread) })
    }

    /// Such as `http://127.0.0.1:40001`, without `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order: `{t, method, path, headers, auth, body}`.
    pub fn requests(&self) -> Vec<Value> {
        self.state.log.entries()
    }

    /// The bodies of requests for an answer, which are those that a turn was played for.
    pub fn prompts(&self) -> Vec<Value> {
        let asks = |request: &Value| {
            let path = request["path"].as_str().unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            request["method"] == "POST" && request["body"].is_object() && Wire::of(path).is_some()
        };
        self.requests().into_iter().filter(asks).map(|mut request| request["body"].take()).collect()
    }

    /// All usage that was sent to clients so far, in classes that do not overlap. What a stream would have
    /// sent after it broke off does not count.
    pub fn sent_usage(&self) -> Usage {
        self.state.usage()
    }

    /// Another script from its first turn on; requests and usage are forgotten.
    pub fn reset(&self, script: Script) {
        self.state.reset(Some(script));
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl TryFrom<&str> for Script {
    type Error = String;

    fn try_from(text: &str) -> Result<Script, String> {
        Script::parse(text)
    }
}

impl TryFrom<Value> for Script {
    type Error = String;

    fn try_from(value: Value) -> Result<Script, String> {
        Script::read(&value)
    }
}
