//! A terminal on which lines are printed while a person types below them.
//!
//! The terminal is as it was when this is dropped. Without one, lines are only printed.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use unicode_width::UnicodeWidthStr;

use super::line_edit::{LineEdit, Typed};
use super::text::{Line, Style, clean};
use crate::out::Out;

const CLEAR_LINE: &str = "\r\x1b[2K";

#[derive(Debug)]
pub(crate) struct Console {
    style: Style,
    typing: Option<Typing>,
}

#[derive(Debug)]
struct Typing {
    line: LineEdit,
    prompt: String,
    /// How the terminal was before.
    before: Termios,
    /// A signal asked this process to end.
    ends: Arc<AtomicBool>,
}

impl Console {
    /// `typing`: a person may type, if there is a terminal on both sides.
    pub fn open(style: Style, typing: bool) -> Console {
        let terminal = typing && io::stdin().is_terminal() && io::stdout().is_terminal();
        let typing = terminal.then(Typing::begin).flatten();
        Console { style, typing }
    }

    pub fn takes_input(&self) -> bool {
        self.typing.is_some()
    }

    /// Lines above the one that is being typed. An error: nobody reads them any more.
    pub fn print(&mut self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        let style = Style { width: usize::MAX, ..self.style };
        let text: String = lines.into_iter().map(|line| line.render(style) + "\n").collect();
        self.write(&text)
    }

    /// What stands before the line that is being typed.
    pub fn set_prompt(&mut self, prompt: &str) -> io::Result<()> {
        match &mut self.typing {
            Some(typing) if typing.prompt != prompt => {
                typing.prompt = prompt.to_string();
                self.write("")
            }
            _ => Ok(()),
        }
    }

    /// Waits at most so long for something to be typed.
    pub fn read(&mut self, wait: Duration) -> io::Result<Vec<Typed>> {
        let Some(typing) = &mut self.typing else {
            std::thread::sleep(wait);
            return Ok(Vec::new());
        };
        let typed = typing.read(wait)?;
        let lines: Vec<Line> = typed
            .iter()
            .filter_map(|typed| match typed {
                Typed::Line(text) if !text.is_empty() => {
                    Some(Line::of(super::text::Tone::Bold, &typing.shown(text)))
                }
                _ => None,
            })
            .collect();
        self.print(lines)?;
        Ok(typed)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let Some(typing) = &self.typing else {
            Out.write_all(text.as_bytes())?;
            return Out.flush();
        };
        let line = typing.visible(super::terminal::size(None).width);
        Out.write_all(format!("{CLEAR_LINE}{text}{line}").as_bytes())?;
        Out.flush()
    }
}

impl Typing {
    /// Keys come one by one, unseen; `None` if the terminal cannot do that.
    fn begin() -> Option<Typing> {
        let before = tcgetattr(io::stdin()).ok()?;
        let ends = Arc::new(AtomicBool::new(false));
        note_end(ends.clone()).ok()?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Typing { line: LineEdit::default(), prompt: String::new(), before, ends })
    }

    fn read(&mut self, wait: Duration) -> io::Result<Vec<Typed>> {
        let stdin = io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut ready, Some(&wait)) {
            _ if self.ends.load(Ordering::Relaxed) => return Ok(vec![Typed::Leave]),
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0u8; 4096];
        match rustix::io::read(&stdin, &mut bytes) {
            // The terminal is gone.
            Ok(0) | Err(rustix::io::Errno::IO) => Ok(vec![Typed::Leave]),
            Ok(count) => Ok(self.line.push(&bytes[..count])),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn shown(&self, text: &str) -> String {
        format!("{}{}", self.prompt, clean(text))
    }

    /// The end of the line where all of it does not fit.
    fn visible(&self, width: usize) -> String {
        let room = width.saturating_sub(self.prompt.width() + 1);
        let mut text = clean(self.line.text());
        while text.width() > room {
            text.remove(0);
        }
        format!("{}{text}", self.prompt)
    }
}

/// SIGTERM and SIGHUP end nothing at once: the terminal must be restored first.
fn note_end(ends: Arc<AtomicBool>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let (mut term, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    drop(inside);
    let wait = async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = hangup.recv() => {}
        }
        ends.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().spawn(move || runtime.block_on(wait)).map(drop)
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(typing) = self.typing.take() {
            let _ = Out.write_all(CLEAR_LINE.as_bytes()).and_then(|()| Out.flush());
            // What it was is what it should be; more cannot be done about it.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &typing.before);
        }
    }
}
