//! The command line: one file per command. Data on stdout, the rest on stderr.

mod agent_choice;
mod agents;
pub(crate) mod answer;
pub(crate) mod background;
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
pub(crate) mod inbox;
pub(crate) mod inbox_view;
mod init;
mod inputs;
mod install;
mod library;
mod limits;
mod limits_view;
pub(crate) mod list;
mod log_file;
mod logs;
mod mcp;
mod meant;
pub(crate) mod notes;
pub mod offline;
mod preflight;
pub(crate) mod prepare;
mod programs;
mod projection;
pub(crate) mod questions;
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
mod supervise;
mod table;
mod target_names;
mod templates;
pub(crate) mod tickets;
mod tools;
pub(crate) mod validate;
mod verify;
pub(crate) mod wake;
mod warnings;
mod worktrees;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sage_core::run::{Run, StepId};

use crate::out::Out;
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
    /// Show what happened, or what a step printed
    Logs(logs::Args),
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
    /// Show which agents can work here: installed, logged in, able to do what
    Agents(agents::Args),
    /// Check that everything is there that work needs, and say what to type where it is not
    Doctor(doctor::Args),
    /// Check journals, blobs and checkpoints for damage
    Verify(verify::Args),
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows where each goes.
            let _ = error.print();
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
    let context = Context::find(cli.directory.as_deref())?;
    let encryption = context.config.encryption;
    if let Some(variable) = encryption.filter(|_| !cli.command.only_reads()) {
        return Err(config::no_encryption(variable));
    }
    let (looks, acts) = (cli.command.looks_at_runs(), cli.command.acts_on_runs());
    // A supervisor writes state.
    if (looks || acts) && encryption.is_none() {
        background::ensure(&context);
    }
    let outcome = execute(&context, cli.command);
    // What was just done may be what a run in the background has waited for.
    if acts {
        background::ensure(&context);
    }
    outcome
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
            Command::Logs(_) | Command::Result(_) | Command::Inbox(_) | Command::Tickets(_) => true,
            _ => false,
        }
    }

    /// Commands that write no state of runs.
    fn only_reads(&self) -> bool {
        use Command::{Explain, Graph, List, Logs, Result, Status, Templates, Validate, Verify};
        let runs =
            matches!(self, Explain(_) | Graph(_) | List(_) | Logs(_) | Result(_) | Status(_) | Verify(_));
        let others = matches!(
            self,
            Templates(_) | Validate(_) | Command::Check(_) | Command::Config(_) | Command::Agents(_)
        );
        runs || others
    }

    fn acts_on_runs(&self) -> bool {
        use Command::{Approve, Budget, Cancel, Pause, Reject};
        matches!(self, Pause(_) | Cancel(_) | Approve(_) | Reject(_) | Budget(_))
    }
}

fn execute(context: &Context, command: Command) -> Result<ExitCode, Failure> {
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
        Command::Result(args) => result::execute(context, args),
        Command::Pause(args) => signal::pause(context, args),
        Command::Cancel(args) => signal::cancel(context, args),
        Command::Approve(args) => answer::approve(context, args),
        Command::Reject(args) => answer::reject(context, args),
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
        Command::Agents(args) => agents::execute(context, args),
        Command::Doctor(args) => doctor::execute(Some(&context.project.root), args),
        Command::Verify(args) => verify::execute(context, args),
        Command::Gc(args) => gc::execute(context, args),
        Command::Mcp(args) => mcp::execute(context, args),
        Command::Serve(args) => serve::execute(context, args),
        Command::Bench(args) => bench::execute(context, args),
        Command::Debug(args) => debug::execute(args),
        Command::Supervise => supervise::execute(context),
    }
}

/// Prints to stdout; a reader that has gone away (`| head`) is not an error.
pub(crate) fn print(text: impl std::fmt::Display) {
    use std::io::Write;
    // Remembered: `main` reports it.
    let _ = write!(Out, "{text}");
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(format_args!("{}\n", serde_json::to_string(value)?));
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
