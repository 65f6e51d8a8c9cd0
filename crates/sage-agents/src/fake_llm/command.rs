//! Entry of `sage debug fake-llm <script.json> [--port n] [--log requests.jsonl]`.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::endpoint::FakeLlm;
use super::script::Script;

/// Prints one line, `{"listening": "http://127.0.0.1:PORT", "pid": N}`, and runs until SIGTERM or SIGINT.
pub fn fake_llm_main(script: &Path, port: u16, log: Option<&Path>) -> ExitCode {
    let script = match read(script) {
        Ok(script) => script,
        Err(message) => {
            eprintln!("fake llm: {message}");
            return ExitCode::from(2);
        }
    };
    match run(script, port, log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake llm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<Script, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the script `{}`: {error}", path.display()))?;
    Script::parse(&text).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn run(script: Script, port: u16, log: Option<&Path>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before anybody is told the address: a signal from then on ends it well.
        let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let endpoint = FakeLlm::listen(script, port, log)?;
        let line = json!({"listening": endpoint.url(), "pid": std::process::id()});
        writeln!(io::stdout(), "{line}")?;
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
