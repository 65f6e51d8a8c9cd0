//! A program's standard input that stays open while it works: lines go in when there is something to say.
//!
//! ```text
//! adapter --Mouth::say(line)--> Talk::drive --> named pipe in the scratch directory --> program
//! ```
//! The program sees the end of its input when every `Mouth` is gone. A program that does not read blocks only
//! the writing, which ends with it.

use std::path::{Path, PathBuf};

use sage_fence::private;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::attempt::Attempt;
use crate::outcome::Miss;

/// Says lines to a program.
#[derive(Clone, Debug)]
pub struct Mouth(UnboundedSender<String>);

impl Mouth {
    /// A program that is gone hears nothing, and that is known elsewhere.
    pub fn say(&self, line: String) {
        let _ = self.0.send(line);
    }
}

#[derive(Debug)]
pub struct Talk {
    path: PathBuf,
    lines: UnboundedReceiver<String>,
    pipe: Sender,
    /// Keeps writes from failing before the program has opened its end.
    _other_end: Receiver,
}

impl Talk {
    pub fn open(attempt: &Attempt<'_>) -> Result<(Talk, Mouth), Miss> {
        let path = attempt.cx.scratch.join("stdin.pipe");
        let opened = make_pipe(&path).and_then(|()| {
            let other_end = OpenOptions::new().open_receiver(&path)?;
            Ok((OpenOptions::new().open_sender(&path)?, other_end))
        });
        let (pipe, _other_end) = opened.map_err(|error| {
            let message = format!("cannot create `{}`: {error}", path.display());
            Miss::of_io(&error, message)
        })?;
        let (sender, lines) = unbounded_channel();
        Ok((Talk { path, lines, pipe, _other_end }, Mouth(sender)))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is said until nobody can say anything any more; then the program's input ends.
    pub async fn drive(mut self) {
        while let Some(line) = self.lines.recv().await {
            let written = self.pipe.write_all(line.as_bytes()).await;
            if written.is_err() || self.pipe.write_all(b"\n").await.is_err() {
                return;
            }
        }
    }
}

/// A new pipe; one of an earlier call of this attempt is replaced.
pub fn make_pipe(path: &Path) -> std::io::Result<()> {
    match private::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    private::make_pipe(path)
}
