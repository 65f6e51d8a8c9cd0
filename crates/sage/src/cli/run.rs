//! `sage run`: start a workflow for a feature.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sage_core::run::Status;
use sage_core::slug::Feature;
use sage_core::ticket::Ticket;
use sage_core::verdict::Verdict;
use sage_engine::open::{Engine, OpenError, StartRequest};
use serde_json::Map;

use super::background;
use super::config::Attendance;
use super::context::Context;
use super::drive::{self, Show};
use super::failure::Failure;
use super::flags::Limits;
use super::notes::{self, Note};
use super::prepare::{self, Prepared, Wanted};
use super::tickets::belong;
use super::{agent_choice, diagnostics, dry_run, gc, meant, resume};
use crate::command_line::{CommandLine, sage};

/// `sage run`: what, and how.
#[derive(Debug, clap::Args)]
pub struct Asked {
    /// What you work on: a title, e.g. "payment processing" [default with -t: the template's name]
    feature: Option<String>,
    /// The ticket that it is for: in progress while it runs, done when it succeeds and leaves nothing open
    #[arg(long, value_name = "ID")]
    ticket: Option<String>,
    /// Also if the ticket is not ready
    #[arg(long, requires = "ticket")]
    force: bool,
    #[command(flatten)]
    args: Args,
}

impl Asked {
    /// It only shows something.
    pub fn looks(&self) -> bool {
        self.args.dry_run
    }
}

#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Template: a name that `sage templates` lists, or a file [default: the one of sage.toml, else feature]
    #[arg(short, long)]
    pub template: Option<String>,
    #[command(flatten)]
    pub limits: Limits,
    /// Give up an open run of the same feature and start anew
    #[arg(long, conflicts_with = "wait")]
    pub new: bool,
    /// Wait until an open run of the same feature has ended
    #[arg(long)]
    pub wait: bool,
    /// Run in the background; the terminal may be closed
    #[arg(short, long)]
    pub detach: bool,
    /// Show the plan and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer no questions: take the default
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub show: Show,
}

pub fn execute(context: &Context, mut asked: Asked) -> Result<ExitCode, Failure> {
    let title = match (&asked.feature, &asked.args.template) {
        (Some(title), None) => {
            asked.args.template = meant::template(context, title, &asked.args)?;
            title.clone()
        }
        (Some(title), Some(_)) => title.clone(),
        (None, Some(template)) => meant::title(template),
        (None, None) => {
            return Err(Failure::usage("there is no title: what do you work on?")
                .hint(sage("run").arg("payment processing"))
                .hint(sage("run").option("-t", "TEMPLATE").comment("takes the template's name as title")));
        }
    };
    let feature = Feature::from_title(&title)?;
    let ticket = asked.ticket.as_deref().map(|id| belong::choose(context, id, asked.force)).transpose()?;
    work(context, &feature, ticket.as_ref(), asked.args)
}

/// Runs a workflow for a feature, and for a ticket if there is one.
pub fn work(
    context: &Context,
    feature: &Feature,
    ticket: Option<&Ticket>,
    args: Args,
) -> Result<ExitCode, Failure> {
    args.limits.refuse_steps(&sage("run").arg(feature.title()).to_string(), true)?;
    let wanted = Wanted {
        feature,
        template: args.template.as_deref(),
        limits: &args.limits,
        inputs: Map::new(),
        replace: args.new,
        by_person: sage_agents::above().is_none(),
        asks: !args.yes && !args.dry_run && !args.show.json && !args.show.quiet,
    };
    let mut prepared = prepare::plan(context, wanted, &mut diagnostics::reporter(args.show.json))?;
    let tell = |notes: &[Note]| notes::print(if args.show.json { &[] } else { notes });
    tell(&prepared.notes);
    prepared.request.inputs.extend(ticket.map(|ticket| ("ticket".to_string(), ticket.input())));
    if args.dry_run {
        return dry_run::show(context, prepared.ready, &prepared.request, args.show.json);
    }
    tell(&prepare::check(context, &prepared)?);
    let Prepared { ready, request, .. } = prepared;
    if !args.show.json && !args.show.quiet {
        agent_choice::tell(&ready, &request.settings);
    }
    start(context, request, &args)
}

fn start(context: &Context, mut request: StartRequest, args: &Args) -> Result<ExitCode, Failure> {
    let mut engine = context.engine();
    tell_earlier(&engine, &request.feature);
    let detach = background::wanted(context, args.detach);
    engine.approvals = Arc::new(context.approvals(Attendance::of(args.yes)));
    if let Some(cache) = &mut engine.cache {
        cache.asks = asks(args) && !detach;
    }
    loop {
        let started = if detach {
            engine.start_detached(request.clone()).map(|(record, notices)| {
                notes::print(&notes::of_notices(&notices));
                belong::began(&engine, &request.inputs, &record.run);
                background::launch(context, &record, &args.show)
            })
        } else {
            let started = engine.start(request.clone());
            started.map(|owned| {
                let code = drive::drive(&engine, owned, &args.show, request.no_wait)?;
                gc::after_run(context, code);
                Ok(code)
            })
        };
        match started {
            Ok(outcome) => return outcome,
            Err(OpenError::Owned { .. }) if args.wait => wait_for_owner(context, &engine, &request.feature),
            // Between two owners in the background.
            Err(OpenError::Open { .. })
                if args.wait && background::goes_on(context, &engine, &request.feature) =>
            {
                wait_for_owner(context, &engine, &request.feature);
            }
            Err(error @ OpenError::Open { .. }) if asks(args) => match ask(&error) {
                Some('r') => return resume::execute(context, resume::Args::of(&request.feature, args)),
                Some('n') => request.replace = true,
                _ => return Err(conflict(error, &request, args)),
            },
            Err(error) => return Err(conflict(error, &request, args)),
        }
    }
}

/// With the same command that starts it all the same.
fn conflict(error: OpenError, request: &StartRequest, args: &Args) -> Failure {
    let again = args.again(request);
    match &error {
        OpenError::Owned { .. } => {
            Failure::from(error).hint(again.arg("--wait").comment("starts when it is done"))
        }
        OpenError::Obscured { .. } => {
            Failure::from(error).hint(again.arg("--new").comment("gives it up; keeps its files"))
        }
        OpenError::Garbled { .. } => {
            Failure::failed(error.to_string()).hint(again.arg("--new").comment("keeps the damaged files"))
        }
        OpenError::Open { .. } => {
            Failure::from(error).hint(again.arg("--new").comment("gives the open run up"))
        }
        OpenError::Foreign(_) => {
            Failure::from(error).hint(again.arg("--new").comment("leaves it and starts anew"))
        }
        _ => error.into(),
    }
}

impl Args {
    /// The command that was typed, for another time.
    fn again(&self, request: &StartRequest) -> CommandLine {
        let ticket = request.inputs.get("ticket").and_then(|ticket| ticket["id"].as_str());
        let command = sage("run").arg(&request.title).option_if("-t", self.template.as_deref());
        self.limits.typed(command.option_if("--ticket", ticket)).flag_if("--detach", self.detach)
    }
}

/// A run that ended badly could be resumed instead; after this it is no longer the newest.
fn tell_earlier(engine: &Engine, feature: &str) {
    let Ok(before) = engine.read(feature) else { return };
    let run = &before.run;
    if matches!(run.status, Status::Finished(Verdict::Failed) | Status::Cancelled { resumable: true }) {
        let done = sage_core::wire::Progress::of(run).text();
        let status = run.status.name();
        eprintln!(
            "note: starting a new run; the previous one {status} with {done} (`{}` continues it)",
            sage("resume").arg(feature)
        );
    }
}

/// The lock is freed by the owner's end or death; nothing tells us when, so we look.
fn wait_for_owner(context: &Context, engine: &Engine, feature: &str) {
    eprintln!("waiting for the run's owner to end");
    while background::goes_on(context, engine, feature) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn asks(args: &Args) -> bool {
    !args.yes && !args.show.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn ask(error: &OpenError) -> Option<char> {
    eprint!("{error}. [r]esume it, start a [n]ew one, or [a]bort? ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    line.trim().chars().next().map(|c| c.to_ascii_lowercase())
}
