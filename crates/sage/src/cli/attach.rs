//! `sage attach`: watch a running step, answer its questions and send messages to its agent.
//!
//! It only reads the files of the run and sends signals to its owner: the run does not notice when it ends.

mod answer;
mod question;
mod send;

use std::process::ExitCode;
use std::time::Duration;

use sage_core::event::Event;
use sage_core::run::{Run, StepId};
use sage_core::wire;
use sage_engine::open::{Engine, Snapshot};

use super::context::Context;
use super::failure::Failure;
use super::step_output::{Piece, StepOutput};
use super::{background, drive, feature, logs, print_json, questions};
use crate::command_line::{sage, tell};
use crate::display::activity_lines::of_entry;
use crate::display::tail::Tail;
use crate::display::text::{Line, Tone, clean_lines};
use crate::display::{Console, EventLines, Typed};
use answer::Answer;
use question::Question;

/// Between two looks.
const TICK: Duration = Duration::from_millis(100);
const PROMPT: &str = "> ";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// The step's path; may be left out if only one agent runs, or only one step has a question
    step: Option<String>,
    /// Send this message to the step's agent and exit
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let snapshot = engine.read(&feature)?;
    let step = match args.step {
        Some(step) => snapshot.run.step(super::step(&snapshot.run, &step)?).path.to_string(),
        None => only_step(&snapshot.run)?,
    };
    if let Some(text) = &args.message {
        let sent = send::send(context, &feature, &step, text)?;
        if args.json {
            print_json(&sent.json(&feature, &step))?;
        } else {
            eprintln!("{}", sent.text());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        return logs::output(context, &feature, &step, true, true);
    }
    Attached::new(context, &engine, &feature, &step, &snapshot).follow()
}

/// The one agent that runs; without any, the one step with a question.
fn only_step(run: &Run) -> Result<String, Failure> {
    let running: Vec<&str> = run
        .step_ids()
        .filter(|&id| run.agent_of(id).is_some() && run.state_name(id) == "running")
        .map(|id| run.step(id).path.as_ref())
        .collect();
    match running.as_slice() {
        [one] => Ok((*one).to_string()),
        [] if questions::of_run(run).len() == 1 => Ok(questions::of_run(run).remove(0).step),
        [] => Err(Failure::usage(format!("no agent of `{}` runs", run.feature))
            .hint(sage("status").arg(&run.feature))),
        [first, ..] => Err(Failure::usage(format!("{} agents run: {}", running.len(), running.join(", ")))
            .hint(sage("attach").arg(&run.feature).arg(first.to_string()))),
    }
}

/// A step that is being watched.
struct Attached<'a> {
    context: &'a Context,
    engine: &'a Engine,
    feature: &'a str,
    step: &'a str,
    dir: &'a std::path::Path,
    tail: Tail,
    output: StepOutput,
    events: EventLines,
    console: Console,
    /// It has an agent, which can be spoken to.
    speaks: bool,
    /// A question was answered while no process owned the run.
    needs_resume: bool,
    /// The id of the question that was shown last, while it is open.
    asked: Option<String>,
}

/// Why it is over.
enum Over {
    /// The step, or its run, has ended.
    Ended,
    /// The person leaves.
    Left,
}

impl<'a> Attached<'a> {
    fn new(
        context: &'a Context,
        engine: &'a Engine,
        feature: &'a str,
        step: &'a str,
        snapshot: &'a Snapshot,
    ) -> Attached<'a> {
        // Agents of a step may look, but neither answer nor speak.
        let typing = sage_agents::above().is_none();
        Attached {
            context,
            engine,
            feature,
            step,
            dir: &snapshot.dir,
            tail: Tail::new(engine.vfs.clone(), &snapshot.dir, snapshot.head.seq),
            output: StepOutput::default(),
            events: EventLines::default(),
            console: Console::open(drive::style(), typing),
            speaks: snapshot.run.find(step).is_some_and(|id| snapshot.run.agent_of(id).is_some()),
            needs_resume: false,
            asked: None,
        }
    }

    fn follow(mut self) -> Result<ExitCode, Failure> {
        if self.console.takes_input() {
            let help = match self.speaks {
                true => "type a message and Enter to send it; `q` and Enter, or Ctrl-C, to detach",
                false => "`q` and Enter, or Ctrl-C, to detach",
            };
            self.print(vec![Line::of(Tone::Dim, help)])?;
            self.console.set_prompt(PROMPT)?;
        }
        let over = loop {
            let goes_on = background::goes_on(self.context, self.engine, self.feature);
            let any = self.look()?;
            if !any && (self.has_ended() || !goes_on && !self.can_answer()) {
                break Over::Ended;
            }
            if let Some(over) = self.listen(if any { Duration::ZERO } else { TICK })? {
                break over;
            }
        };
        let run = self.tail.run();
        let word = run.and_then(|run| run.find(self.step).map(|id| wire::step_word(run, id, true)));
        let needs_resume = self.needs_resume;
        drop(self.console);
        match over {
            Over::Left => eprintln!("detached from {}; the run is not affected", self.step),
            Over::Ended => eprintln!("{}: {}", self.step, word.unwrap_or("gone")),
        }
        if needs_resume {
            tell(sage("resume").arg(self.feature));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints what is new; says whether there was anything.
    fn look(&mut self) -> Result<bool, Failure> {
        // What an attempt did comes before the event that ends it.
        let mut lines = self.done_since();
        let (step, events, mut told) = (self.step, &mut self.events, Vec::new());
        while self.tail.advance(&mut |news| {
            if is_of_step(&news.record, step) && is_told(news.event) {
                told.extend(events.lines(&news));
            }
        })? {}
        lines.extend(self.done_since());
        lines.extend(told.into_iter().map(|line| Line::of(Tone::Dim, &line)));
        lines.extend(self.questions());
        let any = !lines.is_empty();
        self.print(lines)?;
        Ok(any)
    }

    fn done_since(&mut self) -> Vec<Line> {
        let Some((run, id)) = self.tail.run().and_then(|run| Some((run, run.find(self.step)?))) else {
            return Vec::new();
        };
        let pieces = self.output.next(self.engine, self.dir, run, id);
        pieces.iter().flat_map(lines_of).collect()
    }

    /// A question that nobody was shown yet.
    fn questions(&mut self) -> Vec<Line> {
        let open = self.open_question();
        let id = open.as_ref().map(|open| open.id.clone());
        if id == self.asked {
            return Vec::new();
        }
        self.asked = id;
        let _ = self.console.set_prompt(open.as_ref().map_or(PROMPT, |open| open.prompt));
        open.map(|open| open.lines(self.console.takes_input())).unwrap_or_default()
    }

    /// As of the last look, so it was shown.
    fn open_question(&self) -> Option<Question> {
        let run = self.tail.run()?;
        let step = run.find(self.step)?;
        Question::of(run, step)
    }

    /// An approval can be answered in a run that no process owns; an agent's question ends with its agent.
    fn can_answer(&self) -> bool {
        self.console.takes_input() && self.open_question().is_some_and(|open| open.ask.is_none())
    }

    fn has_ended(&self) -> bool {
        let id = self.tail.run().and_then(|run| Some((run, run.find(self.step)?)));
        id.is_none_or(|(run, id): (&Run, StepId)| run.step(id).state.settled() || !run.status.open())
    }

    /// Waits for what the person types, and does it.
    fn listen(&mut self, wait: Duration) -> Result<Option<Over>, Failure> {
        for typed in self.console.read(wait)? {
            let text = match typed {
                Typed::Leave => return Ok(Some(Over::Left)),
                Typed::Line(text) => text.trim().to_string(),
            };
            let answer = self.open_question().and_then(|open| Some((open.read(&text)?, open.ask)));
            match (text.as_str(), answer) {
                ("", _) => {}
                ("q", _) => return Ok(Some(Over::Left)),
                (_, Some((answer, ask))) => self.answer(ask, answer)?,
                (text, None) => self.send(text)?,
            }
        }
        Ok(None)
    }

    fn answer(&mut self, ask: Option<String>, answer: Answer) -> Result<(), Failure> {
        let goes_on = background::goes_on(self.context, self.engine, self.feature);
        match answer::give(self.context, self.feature, self.step, ask, answer) {
            Ok(said) => {
                self.needs_resume = !goes_on;
                self.print(said.into_iter().map(|line| Line::of(Tone::Dim, &line)).collect())
            }
            Err(failure) => self.complain(&failure),
        }
    }

    fn send(&mut self, text: &str) -> Result<(), Failure> {
        match send::send(self.context, self.feature, self.step, text) {
            Ok(sent) => self.print(vec![Line::of(Tone::Dim, &sent.text())]),
            Err(failure) => self.complain(&failure),
        }
    }

    fn complain(&mut self, failure: &Failure) -> Result<(), Failure> {
        self.print(vec![Line::of(Tone::Bad, &format!("error: {}", failure.message))])
    }

    fn print(&mut self, lines: Vec<Line>) -> Result<(), Failure> {
        match lines.is_empty() {
            true => Ok(()),
            false => Ok(self.console.print(lines)?),
        }
    }
}

fn lines_of(piece: &Piece) -> Vec<Line> {
    match piece {
        Piece::Entry(entry) => of_entry(entry),
        Piece::Stdout(bytes) | Piece::Stderr(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            clean_lines(&text).lines().map(|line| Line::of(Tone::Plain, line)).collect()
        }
    }
}

/// Whether a record names the step.
fn is_of_step(record: &sage_engine::journal::Record<'_>, step: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Named {
        step: Option<String>,
    }
    serde_json::from_str(record.data).is_ok_and(|Named { step: named }| named.as_deref() == Some(step))
}

/// Questions and messages have a form of their own.
fn is_told(event: &Event) -> bool {
    !matches!(event, Event::StepAsked(_) | Event::StepMessaged(_))
}
