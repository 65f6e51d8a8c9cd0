//! `.sage/state/serve.json`: where the server of this project is and how to talk to it. Private, and gone with it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sage_core::wire::rfc3339;
use sage_engine::clock::Clock;
use sage_engine::project::Project;
use sage_engine::vfs::with_suffix;
use serde_json::{Value, json};

use crate::cli::failure::Failure;

#[derive(Debug)]
pub struct Card {
    path: PathBuf,
}

impl Card {
    pub fn write(project: &Project, url: &str, token: &str) -> Result<Card, Failure> {
        let path = project.state().join("serve.json");
        let since = rfc3339(Clock::System.now_ms());
        let card = json!({"url": url, "token": token, "pid": std::process::id(), "since": since});
        write_private(&path, &format!("{card}\n")).map_err(|error| {
            Failure::failed(format!("cannot write `{}`: {error}", path.display())).hint("sage doctor")
        })?;
        Ok(Card { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_ours(&self) -> bool {
        let read = || serde_json::from_slice::<Value>(&std::fs::read(&self.path).ok()?).ok();
        read().is_some_and(|card| card["pid"] == std::process::id())
    }
}

/// Another server of this project may have put its own there.
impl Drop for Card {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// In one piece, and never readable for others, not even for a moment.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let draft = with_suffix(path, &format!(".{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| std::fs::rename(&draft, path)).inspect_err(|_| drop(std::fs::remove_file(&draft)))
}
