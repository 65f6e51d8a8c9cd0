//! The display's thread: wakes ten times a second or when nudged, reads what is new, shows it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sage_core::event::{Event, RunPaused};
use sage_core::run::{Run, Status};
use sage_core::wire::rfc3339;
use sage_engine::vfs::Vfs;

use super::activity_lines::Watched;
use super::allowance_lines::Warned;
use super::doing::Doing;
use super::frame::{self, Purpose};
use super::json;
use super::lines::Lines;
use super::tail::{News, Tail};
use super::terminal::{self, Screen};
use super::text::wrap;
use super::why::pause_text;
use super::{Mode, Size};
use crate::out::Out;

/// Fast enough for a spinner, slow enough to cost nothing.
const TICK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Records up to here are known: they are folded, but not told.
    pub from_seq: u64,
    pub color: bool,
    /// Instead of the terminal's own width.
    pub width: Option<u16>,
    /// End by itself once the run has ended or stands still.
    pub until_closed: bool,
    /// Its owner leaves instead of waiting for a known time.
    pub no_wait: bool,
    /// Lines and JSON include the activity of agents whose attempts end after this record.
    pub activity: Option<u64>,
}

/// Puts lines above the tree, from anywhere.
#[derive(Clone, Debug)]
pub struct Voice(Arc<Shared>);

impl Voice {
    /// Prints a line on stderr without disturbing the tree.
    pub fn say(&self, line: impl Into<String>) {
        self.0.ask(|wishes| {
            wishes.said.push(line.into());
            wishes.nudged = true;
        });
    }
}

/// A run being shown. Dropping it shows the last state and ends the thread.
#[derive(Debug)]
pub struct Display {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    wishes: Mutex<Wishes>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Wishes {
    finish: bool,
    nudged: bool,
    /// Lines to be put above the tree.
    said: Vec<String>,
}

impl Shared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.wishes());
        self.wake.notify_all();
    }

    /// Waits for the next tick or wish.
    fn pause(&self) {
        let idle = |wishes: &mut Wishes| !wishes.finish && !wishes.nudged;
        let waited = self.wake.wait_timeout_while(self.wishes(), TICK, idle);
        let (mut wishes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        wishes.nudged = false;
    }
}

impl Display {
    /// Shows the run in `run_dir` from now on. Its journal need not exist yet.
    pub fn start(vfs: Arc<dyn Vfs>, run_dir: PathBuf, mode: Mode, options: Options) -> Display {
        Display::start_with(vfs, &run_dir, mode, options, Box::new(Out))
    }

    pub(super) fn start_with(
        vfs: Arc<dyn Vfs>,
        run_dir: &Path,
        mode: Mode,
        options: Options,
        stdout: Box<dyn Write + Send>,
    ) -> Display {
        Display::start_view(vfs, run_dir, View::new(run_dir, mode, options, stdout), options)
    }

    /// The live tree on anything that understands a terminal's sequences.
    #[cfg(test)]
    pub(super) fn start_tree(
        vfs: Arc<dyn Vfs>,
        run_dir: &Path,
        options: Options,
        out: Box<dyn Write + Send>,
    ) -> Display {
        let kind = Kind::tree(run_dir, out, options);
        let view =
            View { kind, watched: None, out: Box::new(io::sink()), text: String::new(), broken: false };
        Display::start_view(vfs, run_dir, view, options)
    }

    fn start_view(vfs: Arc<dyn Vfs>, run_dir: &Path, view: View, options: Options) -> Display {
        let shared = Arc::new(Shared::default());
        let tail = Tail::new(vfs, run_dir, options.from_seq);
        let work = Work { tail, view, shared: shared.clone(), until_closed: options.until_closed };
        let named = std::thread::Builder::new().name("sage-display".into());
        // Without a thread the run goes on unseen; that is better than not at all.
        let thread = named.spawn(|| work.run()).ok();
        Display { shared, thread }
    }

    /// Something may have changed: look now.
    pub fn nudge(&self) {
        self.shared.ask(|wishes| wishes.nudged = true);
    }

    pub fn voice(&self) -> Voice {
        Voice(self.shared.clone())
    }

    /// Whether it has ended by itself.
    pub fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the display ends by itself: with `until_closed`, or when nobody reads what it writes.
    pub fn wait(mut self) {
        self.join();
    }

    /// Shows what is left and ends.
    pub fn finish(self) {}

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed, and must not take the run with it.
            let _ = thread.join();
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.shared.ask(|wishes| wishes.finish = true);
        self.join();
    }
}

struct Work {
    tail: Tail,
    view: View,
    shared: Arc<Shared>,
    until_closed: bool,
}

impl Work {
    fn run(mut self) {
        loop {
            let (finish, said) = {
                let mut wishes = self.shared.wishes();
                (wishes.finish, std::mem::take(&mut wishes.said))
            };
            // An error: nobody reads what we write.
            let Ok(still) = self.round(&said, finish) else { return };
            if finish || (still && self.until_closed) {
                return;
            }
            self.shared.pause();
        }
    }

    /// Reads all that is new and shows it; says whether the run stands still.
    fn round(&mut self, said: &[String], finish: bool) -> io::Result<bool> {
        let mut broken = None;
        loop {
            let view = &mut self.view;
            match self.tail.advance(&mut |news| view.tell(&news)) {
                Ok(false) => break,
                Ok(true) => view.flush()?,
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            }
        }
        let run = self.tail.run();
        let purpose = if finish { Purpose::Last } else { Purpose::Live };
        self.view.paint(run, purpose, said, broken.as_deref())?;
        Ok(run.is_some_and(|run| stands_still(run.status)))
    }
}

/// With a known time its owner stays and goes on by itself.
fn stands_still(status: Status) -> bool {
    !matches!(status, Status::Running | Status::Paused { until: Some(_), .. })
}

struct View {
    kind: Kind,
    watched: Option<Watched>,
    out: Box<dyn Write + Send>,
    /// Lines that were not written yet.
    text: String,
    /// It was told that the journal cannot be followed any further.
    broken: bool,
}

enum Kind {
    Tree {
        screen: Screen<Box<dyn Write + Send>>,
        color: bool,
        width: Option<u16>,
        /// What scripts said, to be put above the tree.
        notes: Vec<String>,
        /// What running steps do.
        doing: Doing,
        warned: Warned,
    },
    Lines(Lines),
    Json,
    /// Only that it waits is told: else it would seem to hang.
    Quiet {
        waits: Vec<String>,
        no_wait: bool,
    },
}

impl Kind {
    fn tree(run_dir: &Path, out: Box<dyn Write + Send>, options: Options) -> Kind {
        let (screen, notes, doing) = (Screen::new(out), Vec::new(), Doing::of_run(run_dir));
        Kind::Tree {
            screen,
            color: options.color,
            width: options.width,
            notes,
            doing,
            warned: Warned::default(),
        }
    }
}

impl View {
    fn new(run_dir: &Path, mode: Mode, options: Options, out: Box<dyn Write + Send>) -> View {
        let kind = match mode {
            Mode::Tree if terminal::can_paint() => Kind::tree(run_dir, Box::new(io::stderr()), options),
            Mode::Tree | Mode::Lines => Kind::Lines(Lines::default()),
            Mode::Json => Kind::Json,
            Mode::Quiet => Kind::Quiet { waits: Vec::new(), no_wait: options.no_wait },
        };
        let json = matches!(mode, Mode::Json);
        let watched = options.activity.map(|since_seq| Watched::new(run_dir, since_seq, json));
        View { kind, watched, out, text: String::new(), broken: false }
    }

    fn tell(&mut self, news: &News<'_>) {
        if let Some(watched) = &mut self.watched {
            watched.before(news, &mut self.text);
        }
        match &mut self.kind {
            Kind::Lines(lines) => lines.tell(news, &mut self.text),
            Kind::Json => json::tell(news, &mut self.text),
            Kind::Quiet { waits, no_wait: false } => waits.extend(wait_line(news)),
            Kind::Tree { notes, .. } => notes.extend(noted(news)),
            Kind::Quiet { .. } => {}
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }

    fn paint(
        &mut self,
        run: Option<&Run>,
        purpose: Purpose,
        said: &[String],
        broken: Option<&str>,
    ) -> io::Result<()> {
        if let (Some(watched), Some(run)) = (&mut self.watched, run) {
            watched.look(run, &mut self.text);
        }
        self.flush()?;
        let mut said: Vec<String> = said.iter().map(|line| super::text::clean(line)).collect();
        if let Kind::Quiet { waits, .. } = &mut self.kind {
            said.append(waits);
        }
        if let (Some(why), false) = (broken, self.broken) {
            said.push(format!("cannot follow the journal: {}", super::text::clean(why)));
            self.broken = true;
        }
        let Kind::Tree { screen, color, width, notes, doing, warned } = &mut self.kind else {
            // A closed stderr is no reason to stop.
            said.iter().for_each(|line| drop(writeln!(io::stderr(), "{line}")));
            return Ok(());
        };
        let size = terminal::size(*width);
        // The last row is the cursor's.
        let room = Size { width: size.width, height: size.height.saturating_sub(1).max(1) };
        let lines = run.map(|run| frame::frame(run, now_ms(), room, purpose, doing)).unwrap_or_default();
        // Of a run that has ended the summary says it.
        let near = run.filter(|run| run.status.open()).map(|run| warned.news(run));
        let said = notes
            .drain(..)
            .chain(near.unwrap_or_default())
            .chain(said)
            .flat_map(|line| wrap(&line, size.width));
        screen.paint(&said.collect::<Vec<_>>(), &lines, *color, size.width)
    }
}

/// A line of a script (`sage.log`), or about it: an `await` may be missing.
fn noted(news: &News<'_>) -> Vec<String> {
    match news.event {
        Event::StepNoted(noted) if !news.silent => noted.text.lines().map(super::text::clean).collect(),
        _ => Vec::new(),
    }
}

/// The run begins to wait for a known time, and its owner stays.
fn wait_line(news: &News<'_>) -> Option<String> {
    match news.event {
        Event::RunPaused(RunPaused { until: Some(until), needs, .. }) if !news.silent => {
            let needs = needs.as_ref().map(|needs| format!(": {needs}")).unwrap_or_default();
            Some(format!("paused until {}: {}{needs}", rfc3339(*until), pause_text(news.run)))
        }
        _ => None,
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
