//! The command line: one file per command. Data on stdout, the rest on stderr.

pub(crate) mod agent_choice;
mod agents;
mod allowances;
pub(crate) mod answer;
mod approvals;
mod attach;
pub(crate) mod background;
pub(crate) mod baseline;
mod bench;
mod breakers;
mod budget;
mod cache;
pub(crate) mod catalog;
mod check;
mod code;
mod compare;
mod config;
mod config_command;
pub(crate) mod context;
mod debug;
mod diagnostics;
mod diff;
mod doctor;
pub(crate) mod drive;
mod dry_run;
mod explain;
pub(crate) mod failure;
pub(crate) mod flags;
mod fork;
mod gc;
mod graph_command;
pub(crate) mod handoff;
mod health;
pub(crate) mod history;
pub(crate) mod inbox;
pub(crate) mod inbox_view;
mod init;
mod inputs;
pub mod inquire;
mod install;
mod keep;
mod known;
pub(crate) mod library;
mod limits;
mod limits_view;
pub(crate) mod list;
mod log_file;
mod logs;
mod mcp;
mod meant;
pub(crate) mod notes;
pub mod offline;
pub(crate) mod preflight;
pub(crate) mod prepare;
mod programs;
mod projection;
pub(crate) mod questions;
mod repair;
mod reports;
pub(crate) mod result;
pub(crate) mod resume;
pub(crate) mod roster;
pub(crate) mod run;
mod serve;
pub(crate) mod session;
mod session_talk;
pub(crate) mod signal;
pub(crate) mod skills;
pub(crate) mod status;
mod step_output;
mod supervise;
mod table;
mod target_names;
mod templates;
mod threads;
pub(crate) mod tickets;
mod tools;
pub(crate) mod trust;
pub(crate) mod validate;
mod verify;
pub(crate) mod wake;
mod warnings;
mod worktrees;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sage_core::run::{Run, StepId};

use context::Context;
use failure::Failure;

use crate::command_line::{self, sage};

/// Runs a team of AI agents in parallel on your own machine and never loses their work.
#[derive(Debug, Parser)]
#[command(name = "sage", version, max_term_width = 100, after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    /// Work in this directory, as if sage had been started there
    #[arg(short = 'C', value_name = "DIR", global = true)]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 succeeded, 1 failed, 2 bad usage or template, 3 degraded, 4 paused until a person
acts, 5 conflict, 130 interrupted or cancelled.

Start here: sage run \"<feature>\", in the folder of your project.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Set up a project: .sage, sage.toml, the way to it for Claude Code (.mcp.json, /sage.workflow)
    Init(init::Args),
    /// Run a workflow for a feature
    Run(run::Asked),
    /// Go on with a feature's last run; nothing that is finished runs again
    Resume(resume::Args),
    /// Go on from a step of a run in another way, as a run of its own; the first one stays as it is
    Fork(fork::Args),
    /// Compare a parallel run with a sequential run of the same work
    Compare(compare::Args),
    /// Say why a step ran, was reused or waits
    Explain(explain::Args),
    /// List the runs of this project
    List(list::Args),
    /// Show where a run stands
    Status(status::Args),
    /// Show the events of a run, the activity and output of a step, or the prompt of its agent
    Logs(logs::Args),
    /// Watch a running step, answer its questions and send messages to its agent
    Attach(attach::Args),
    /// Show the file changes of steps
    Diff(diff::Args),
    /// All runs that ever were: list, statistics, SQL
    History(history::Args),
    /// Print the result of a run or a step as JSON
    Result(result::Args),
    /// Let running steps finish, start no more
    Pause(signal::PauseArgs),
    /// End a run; it can be resumed
    Cancel(signal::CancelArgs),
    /// Say yes to an approval, or let an unknown step run again
    Approve(answer::ApproveArgs),
    /// Say no to an approval or an unknown step
    Reject(answer::RejectArgs),
    /// Show what agents may do without asking, and take back answers that were kept
    Approvals(approvals::Args),
    /// Named conversations with agents: make, list, show, resume, fork, delete
    Session(session::Args),
    /// Show what waits for a person, unhandled wakes and dead letters
    Inbox(inbox::Args),
    /// Tell the inbox that something finished, is blocked, failed or was found
    Wake(wake::Args),
    /// Show what a run may spend and has spent, or let it spend more
    Budget(budget::Args),
    /// Show and change what may run at once
    Limits(limits::Args),
    /// Show, reset and isolate what steps depend on
    Breakers(breakers::Args),
    /// Show and clear the results that are kept for later runs
    Cache(cache::Args),
    /// Hand work from one role to the next, and see where it is
    Handoff(handoff::Args),
    /// What is to be done: list, add and finish tickets, and run those that are ready
    Tickets(tickets::Args),
    /// What earlier runs found out, for those to come: list, search, show, save, approve, run
    Skills(skills::Args),
    /// Run TypeScript that calls the tools of MCP servers, in a sandbox
    Code(code::Args),
    /// Check TypeScript: its syntax and, with a `tsc`, its types
    Check(check::Args),
    /// Tools of the project's MCP servers: search, describe, call, approve
    Tools(tools::Args),
    /// Check a template and report everything that is wrong with it
    Validate(validate::Args),
    /// Draw a template's or a run's graph
    Graph(graph_command::Args),
    /// List, show and create templates, or print their JSON Schema
    Templates(templates::Args),
    /// Show every setting with the place it comes from
    Config(config_command::Args),
    /// Trust the programs that this project defines, and state that came from elsewhere
    Trust(trust::Args),
    /// Show which agents can work here: installed, logged in, able to do what
    Agents(agents::Args),
    /// Check that everything is there that work needs, and say what to type where it is not
    Doctor(doctor::Args),
    /// Check journals, blobs and checkpoints for damage
    Verify(verify::Args),
    /// Put a damaged run together from what is left of it; the damaged files are kept
    Repair(repair::Args),
    /// Remove what is over and old: runs, worktrees, logs and what belongs to them
    Gc(gc::Args),
    /// Be an MCP server on stdin and stdout, for the agent that starts it
    Mcp(mcp::Args),
    /// Be an MCP server over HTTP on this machine, with a token; /health tells how things are
    Serve(serve::Args),
    /// Measure the engine on this machine
    Bench(bench::Args),
    /// Tools for tests and bug reports
    Debug(debug::Args),
    /// Look after the runs in the background
    #[command(hide = true)]
    Supervise,
}

pub fn main() -> ExitCode {
    crate::file_limit::survive();
    sage_agents::keep_with(sage_agents::own_executable());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows where each goes. What was typed may be hostile.
            match error.use_stderr() {
                true => eprint!("{}", error.render()),
                false => print(error.render()),
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match dispatch(cli) {
        Ok(code) => match crate::out::problem() {
            None => code,
            Some(error) => Failure::failed(format!("cannot write to standard output: {error}")).report(),
        },
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    command_line::remember(cli.directory.as_deref(), std::env::current_dir().ok().as_deref());
    // Needs no project, and must not care where it runs.
    if let Command::Debug(args) = cli.command {
        return debug::execute(args);
    }
    // Looks at projects that nobody else could work with.
    if let Command::Doctor(args) = cli.command {
        return doctor::execute(cli.directory.as_deref(), args);
    }
    let mut context = ready(cli.directory.as_deref(), &cli.command)?;
    let encryption = context.config.encryption;
    let (looks, acts) = (cli.command.looks_at_runs(), cli.command.acts_on_runs());
    // A supervisor writes state.
    if (looks || acts) && encryption.is_none() {
        background::ensure(&context);
    }
    let mut outcome = execute(&mut context, cli.command);
    // A person who is there is asked for what the command lacks, and it is tried again.
    while let Err(Failure { word: Some(word), .. }) = &outcome
        && trust::obtain(&mut context, word)?
        && let Ok(again) = Cli::try_parse()
    {
        let accepts_foreign = context.accepts_foreign;
        context = Context { accepts_foreign, ..ready(cli.directory.as_deref(), &again.command)? };
        outcome = execute(&mut context, again.command);
    }
    // What was just done may be what a run in the background has waited for.
    if acts {
        background::ensure(&context);
    }
    outcome
}

/// The project, for a command: one that writes needs a place that is ours, and a key to seal what it writes.
fn ready(directory: Option<&Path>, command: &Command) -> Result<Context, Failure> {
    let mut context = Context::find(directory)?;
    if let Some(variable) = context.config.encryption.filter(|_| command.writes_runs()) {
        return Err(config::no_encryption(variable));
    }
    if !command.only_looks() {
        context.project.refuse_strange()?;
        if !matches!(command, Command::Gc(_)) {
            context.project.refuse_links()?;
        }
    }
    if command.seals() {
        context.seal_state();
    }
    Ok(context)
}

impl Command {
    /// Commands that show runs; whoever looks sees to it that somebody looks after those in the background.
    fn looks_at_runs(&self) -> bool {
        match self {
            Command::Resume(args) => !args.is_supervised(),
            Command::Run(_)
            | Command::Fork(_)
            | Command::Compare(_)
            | Command::Explain(_)
            | Command::List(_)
            | Command::Status(_) => true,
            Command::Logs(_) | Command::Attach(_) | Command::Diff(_) | Command::Result(_) => true,
            Command::Inbox(_) | Command::Tickets(_) | Command::History(_) => true,
            _ => false,
        }
    }

    /// Commands that only show something: they work on a project whose state cannot be written.
    fn only_looks(&self) -> bool {
        match self {
            Command::Explain(_) | Command::List(_) | Command::Status(_) | Command::Logs(_) => true,
            Command::Result(_) | Command::Validate(_) | Command::Graph(_) | Command::Config(_) => true,
            Command::History(_) => true,
            Command::Agents(_) | Command::Doctor(_) | Command::Verify(_) | Command::Debug(_) => true,
            Command::Diff(_) => true,
            Command::Budget(args) => args.looks(),
            Command::Limits(args) => args.looks(),
            Command::Breakers(args) => args.looks(),
            Command::Cache(args) => args.looks(),
            Command::Handoff(args) => args.looks(),
            Command::Tickets(args) => args.looks(),
            Command::Skills(args) => args.looks(),
            Command::Session(args) => args.looks(),
            Command::Inbox(args) => args.looks(),
            Command::Templates(args) => args.looks(),
            Command::Trust(args) => args.looks(),
            Command::Approvals(args) => args.looks(),
            Command::Gc(args) => args.looks(),
            Command::Run(args) => args.looks(),
            Command::Repair(args) => args.looks(),
            _ => false,
        }
    }

    /// Commands that write state of runs, or may.
    fn writes_runs(&self) -> bool {
        !self.only_looks() && !matches!(self, Command::Check(_))
    }

    /// Commands that write state which only this user may have written: they need the key, and create it.
    fn seals(&self) -> bool {
        match self {
            Command::Run(_) | Command::Resume(_) | Command::Fork(_) | Command::Pause(_) => !self.only_looks(),
            Command::Cancel(_) | Command::Approve(_) | Command::Reject(_) | Command::Attach(_) => true,
            Command::Compare(_) => true,
            Command::Repair(args) => !args.looks(),
            Command::Session(_) | Command::Trust(_) | Command::Budget(_) => !self.only_looks(),
            Command::Tools(_) | Command::Code(_) | Command::Check(_) => true,
            Command::Mcp(_) | Command::Serve(_) | Command::Supervise => true,
            Command::Tickets(args) => args.runs(),
            _ => false,
        }
    }

    fn acts_on_runs(&self) -> bool {
        use Command::{Approve, Budget, Cancel, Pause, Reject};
        matches!(self, Pause(_) | Cancel(_) | Approve(_) | Reject(_) | Budget(_))
    }
}

fn execute(context: &mut Context, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Init(args) => init::execute(context, args),
        Command::Run(args) => run::execute(context, args),
        Command::Resume(args) => resume::execute(context, args),
        Command::Fork(args) => fork::execute(context, args),
        Command::Compare(args) => compare::execute(context, args),
        Command::Explain(args) => explain::execute(context, args),
        Command::List(args) => list::execute(context, args),
        Command::Status(args) => status::execute(context, args),
        Command::Logs(args) => logs::execute(context, args),
        Command::Attach(args) => attach::execute(context, args),
        Command::Diff(args) => diff::execute(context, args),
        Command::History(args) => history::execute(context, args),
        Command::Result(args) => result::execute(context, args),
        Command::Pause(args) => signal::pause(context, args),
        Command::Cancel(args) => signal::cancel(context, args),
        Command::Approve(args) => answer::approve(context, args),
        Command::Reject(args) => answer::reject(context, args),
        Command::Approvals(args) => approvals::execute(context, args),
        Command::Inbox(args) => inbox::execute(context, args),
        Command::Wake(args) => wake::execute(context, args),
        Command::Handoff(args) => handoff::execute(context, args),
        Command::Session(args) => session::execute(context, args),
        Command::Skills(args) => skills::execute(context, args),
        Command::Budget(args) => budget::execute(context, args),
        Command::Cache(args) => cache::execute(context, args),
        Command::Limits(args) => limits::execute(context, args),
        Command::Breakers(args) => breakers::execute(context, args),
        Command::Tools(args) => tools::execute(context, args),
        Command::Tickets(args) => tickets::execute(context, args),
        Command::Code(args) => code::execute(context, args),
        Command::Check(args) => check::execute(context, args),
        Command::Validate(args) => validate::execute(context, args),
        Command::Graph(args) => graph_command::execute(context, args),
        Command::Templates(args) => templates::execute(context, args),
        Command::Config(args) => config_command::execute(context, args),
        Command::Trust(args) => trust::execute(context, args),
        Command::Agents(args) => agents::execute(context, args),
        Command::Doctor(args) => doctor::execute(Some(&context.project.root), args),
        Command::Verify(args) => verify::execute(context, args),
        Command::Repair(args) => repair::execute(context, args),
        Command::Gc(args) => gc::execute(context, args),
        Command::Mcp(args) => mcp::execute(context, args),
        Command::Serve(args) => serve::execute(context, args),
        Command::Bench(args) => bench::execute(context, args),
        Command::Debug(args) => debug::execute(args),
        Command::Supervise => supervise::execute(context),
    }
}

/// Prints to stdout; a reader that has gone away (`| head`) is not an error.
pub(crate) use crate::say::out as print;

pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    crate::say::painted(format_args!("{}\n", crate::say::json(&serde_json::to_string(value)?)));
    Ok(())
}

/// The step that a person named, or the nearest name.
fn step(run: &Run, path: &str) -> Result<StepId, Failure> {
    let missing = || {
        let near = sage_core::diagnostic::did_you_mean(path, run.live_steps().map(|step| step.path.as_ref()));
        Failure::usage(format!("no step `{path}` in `{}`", run.feature))
            .hint(near.unwrap_or_else(|| sage("status").arg(&run.feature).to_string()))
    };
    run.find(path).ok_or_else(missing)
}

/// The feature's slug from what a person typed: its title or its slug.
fn feature(name: &str) -> Result<String, Failure> {
    Ok(sage_core::slug::Feature::from_title(name)?.slug().to_string())
}
