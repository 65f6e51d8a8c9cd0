//! `.sage/state/serve.json`: where the server of this project is and how to talk to it. Private, and gone with it.

use std::path::{Path, PathBuf};

use sage_core::wire::rfc3339;
use sage_engine::clock::Clock;
use sage_engine::project::Project;
use sage_fence::private;
use serde_json::{Value, json};

use crate::cli::failure::Failure;

/// An address and a token.
const MAX_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub struct Card {
    path: PathBuf,
}

impl Card {
    pub fn write(project: &Project, url: &str, token: &str) -> Result<Card, Failure> {
        let path = project.state().join("serve.json");
        let since = rfc3339(Clock::System.now_ms());
        let card = json!({"url": url, "token": token, "pid": std::process::id(), "since": since});
        private::write_durable(&path, format!("{card}\n").as_bytes()).map_err(|error| {
            Failure::failed(format!("cannot write `{}`: {error}", path.display())).hint("sage doctor")
        })?;
        Ok(Card { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_ours(&self) -> bool {
        let read = || serde_json::from_slice::<Value>(&private::read(&self.path, MAX_BYTES).ok()?).ok();
        read().is_some_and(|card| card["pid"] == std::process::id())
    }
}

/// Another server of this project may have put its own there.
impl Drop for Card {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = private::remove_file(&self.path);
        }
    }
}
