//! `sage attach`: watch a running step, answer its questions and send messages to its agent.
//!
//! It only reads the files of the run and sends signals to its owner: the run does not notice when it ends.

mod answer;
mod send;

use std::process::ExitCode;
use std::time::Duration;

use sage_core::event::Event;
use sage_core::run::{OpenAsk, Run, StepId};
use sage_core::wire;
use sage_engine::open::{Engine, Snapshot};

use super::context::Context;
use super::failure::Failure;
use super::step_output::{Piece, StepOutput};
use super::{background, drive, feature, logs, print_json};
use crate::command_line::sage;
use crate::display::activity_lines::of_entry;
use crate::display::tail::Tail;
use crate::display::text::{Line, Tone, clean_lines};
use crate::display::{Console, EventLines, Typed};
use answer::Answer;

/// Between two looks.
const TICK: Duration = Duration::from_millis(100);
const PROMPT: &str = "> ";
const QUESTION: &str = "allow? [y/n/always] ";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The feature's title or slug
    feature: String,
    /// The step's path; may be left out if only one agent runs
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
        None => only_agent(&snapshot.run)?,
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

/// The one agent that runs.
fn only_agent(run: &Run) -> Result<String, Failure> {
    let running: Vec<&str> = run
        .step_ids()
        .filter(|&id| run.agent_of(id).is_some() && run.state_name(id) == "running")
        .map(|id| run.step(id).path.as_ref())
        .collect();
    match running.as_slice() {
        [one] => Ok((*one).to_string()),
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
    /// The question that is open, once it was shown.
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
            asked: None,
        }
    }

    fn follow(mut self) -> Result<ExitCode, Failure> {
        if self.console.takes_input() {
            let help = "type a message and Enter to send it; `q` and Enter, or Ctrl-C, to detach";
            self.print(vec![Line::of(Tone::Dim, help)])?;
            self.console.set_prompt(PROMPT)?;
        }
        let over = loop {
            let goes_on = background::goes_on(self.context, self.engine, self.feature);
            let any = self.look()?;
            if !any && (self.has_ended() || !goes_on) {
                break Over::Ended;
            }
            if let Some(over) = self.listen(if any { Duration::ZERO } else { TICK })? {
                break over;
            }
        };
        let run = self.tail.run();
        let word = run.and_then(|run| run.find(self.step).map(|id| wire::step_word(run, id, true)));
        drop(self.console);
        match over {
            Over::Left => eprintln!("detached from {}; the run is not affected", self.step),
            Over::Ended => eprintln!("{}: {}", self.step, word.unwrap_or("gone")),
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
        let id = open.as_ref().map(|(id, _)| id.clone());
        if id == self.asked {
            return Vec::new();
        }
        self.asked = id;
        // Whoever types now answers it, or speaks to the agent all the same.
        let _ = self.console.set_prompt(if self.asked.is_some() { QUESTION } else { PROMPT });
        open.map(|(_, lines)| lines).unwrap_or_default()
    }

    fn open_question(&self) -> Option<(String, Vec<Line>)> {
        let run = self.tail.run()?;
        let open = run.asks_of(run.find(self.step)?).next()?;
        Some((open.ask.id.clone(), question(open, run, self.console.takes_input())))
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
            match (text.as_str(), self.asked.clone().zip(Answer::read(&text))) {
                ("", _) => {}
                ("q", _) => return Ok(Some(Over::Left)),
                (_, Some((ask, answer))) => self.answer(ask, answer)?,
                (text, None) => self.send(text)?,
            }
        }
        Ok(None)
    }

    fn answer(&mut self, ask: String, answer: Answer) -> Result<(), Failure> {
        match answer::give(self.context, self.feature, self.step, ask, answer) {
            Ok(said) => self.print(said.into_iter().map(|line| Line::of(Tone::Dim, &line)).collect()),
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

/// Every line of the agent's own words is indented: none of them looks like the question itself.
fn question(open: &OpenAsk, run: &Run, answers_here: bool) -> Vec<Line> {
    let ask = &open.ask;
    let mut lines = vec![Line::of(Tone::Warn, "? ").with(Tone::Bold, &format!("may it use {}?", ask.tool))];
    let what = ask.command.clone().unwrap_or_else(|| ask.paths.join("\n"));
    lines.extend(what.lines().map(|line| Line::of(Tone::Plain, "    ").with(Tone::Plain, line)));
    lines.extend(ask.why.iter().map(|why| Line::of(Tone::Dim, &format!("  asked because {why}"))));
    if !answers_here {
        let command = sage("approve").arg(&run.feature).arg(run.step(open.step).path.to_string());
        lines.push(
            Line::of(Tone::Plain, "  → ").with(Tone::Bold, &command.option("--ask", &ask.id).to_string()),
        );
    }
    lines
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
