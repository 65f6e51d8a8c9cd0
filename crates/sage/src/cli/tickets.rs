//! `sage tickets`: what is to be done in the project, and running it.

pub mod belong;
mod run;
mod view;

use std::process::ExitCode;

use clap::Subcommand;
use sage_core::ticket::{Book, BookError, Draft, Priority, State, Ticket};
use sage_engine::tickets::{Store, TicketError};
use serde_json::json;

use super::context::Context;
use super::failure::Failure;
use super::{print, print_json};
use crate::command_line::sage;
use crate::trust::person::refuse_steps;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the tickets that are not closed
    List(view::Filter),
    /// Show what can be worked on now, the most useful first
    Ready,
    /// Show one ticket
    Show {
        /// The ticket's id: T-3, or just 3
        id: String,
    },
    /// Add a ticket
    Add(Box<AddArgs>),
    /// Say that a ticket is done
    Done(ChangeArgs),
    /// Make a ticket open again
    Reopen(ChangeArgs),
    /// Give a ticket up
    Cancel(ChangeArgs),
    /// Run a workflow for a ticket, or for all that are ready, one after the other
    Run(Box<run::RunArgs>),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// What is to be done, in one line
    title: String,
    /// More about it
    #[arg(short = 'm', long, default_value = "")]
    detail: String,
    /// P0 (first) to P3
    #[arg(long, value_name = "P0..P3", default_value = "P2", value_parser = priority)]
    priority: Priority,
    /// A ticket that must be done first; may be given several times
    #[arg(long, value_name = "ID")]
    blocked_by: Vec<String>,
    /// A ticket that waits for this one; may be given several times
    #[arg(long, value_name = "ID")]
    blocks: Vec<String>,
    /// A file that it is about; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    /// How it is seen that it is done; may be given several times
    #[arg(long = "criterion", value_name = "TEXT")]
    acceptance: Vec<String>,
    /// The feature that it belongs to
    #[arg(long)]
    feature: Option<String>,
    /// Mark it as a decision for a person: no run works on it
    #[arg(long)]
    person: bool,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// Tickets by their ids: T-3, or just 3
    #[arg(required = true)]
    ids: Vec<String>,
    /// A note about it
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

fn priority(text: &str) -> Result<Priority, String> {
    Priority::parse(text).ok_or_else(|| format!("`{text}` is not a priority; it is P0 (first) to P3"))
}

impl Args {
    /// It starts a run.
    pub fn runs(&self) -> bool {
        matches!(self.action, Some(Action::Run(_)))
    }

    /// It only shows something.
    pub fn looks(&self) -> bool {
        matches!(self.action, None | Some(Action::List(_) | Action::Ready | Action::Show { .. }))
    }
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let engine = context.engine();
    let (store, json) = (engine.tickets(), args.json);
    // A run may have ended without anybody who could tell its ticket.
    if !args.looks() || context.project.refuse_links().is_ok() {
        store.settle(&engine).map_err(failure)?;
    }
    match args.action.unwrap_or_else(|| Action::List(view::Filter::default())) {
        Action::List(filter) => view::list(&store.read().map_err(failure)?, &filter, json),
        Action::Ready => view::ready(&store.read().map_err(failure)?, json),
        Action::Show { id } => {
            let book = store.read().map_err(failure)?;
            let ticket = book.find(&id).map_err(|error| failure(error.into()))?;
            view::show(&book, ticket, json)
        }
        Action::Add(add) => self::add(&store, *add, json),
        Action::Done(args) => change(&store, args, State::Done, json),
        Action::Reopen(args) => change(&store, args, State::Open, json),
        Action::Cancel(args) => change(&store, args, State::Cancelled, json),
        Action::Run(args) => run::execute(context, &store, *args, json),
    }
}

fn add(store: &Store, args: AddArgs, json: bool) -> Result<ExitCode, Failure> {
    let draft = Draft {
        title: args.title,
        detail: args.detail,
        priority: args.priority,
        blocked_by: args.blocked_by,
        blocks: args.blocks,
        files: args.files,
        acceptance: args.acceptance,
        feature: args.feature.as_deref().map(super::feature).transpose()?,
        person: args.person,
        origin: None,
    };
    let added = store.change(|book, at| {
        let id = book.add(draft.clone(), at)?;
        book.find(&id).cloned()
    });
    changed(&[added.map_err(failure)?], &[], json)
}

fn change(store: &Store, args: ChangeArgs, to: State, json: bool) -> Result<ExitCode, Failure> {
    let book = store.read().map_err(failure)?;
    if let Some(ticket) = args.ids.iter().filter_map(|id| book.find(id).ok()).find(|ticket| ticket.person) {
        refuse_steps("decide such a ticket", &sage("tickets show").arg(&ticket.id).to_string())?;
    }
    let done = store.change(|book, at| {
        let ready_before: Vec<String> = book.free().iter().map(|ticket| ticket.id.clone()).collect();
        let mut tickets: Vec<Ticket> = Vec::new();
        for id in &args.ids {
            let set = |ticket: &mut Ticket| {
                ticket.state = to;
                args.message.iter().for_each(|text| ticket.note(text, None, at));
            };
            tickets.push(book.edit(id, at, set)?.clone());
        }
        let is_new = |ticket: &&Ticket| {
            !ready_before.contains(&ticket.id) && !tickets.iter().any(|changed| changed.id == ticket.id)
        };
        let freed: Vec<Ticket> = book.free().into_iter().filter(is_new).cloned().collect();
        Ok::<_, BookError>((tickets, freed))
    });
    let (tickets, freed) = done.map_err(failure)?;
    changed(&tickets, &freed, json)
}

fn changed(tickets: &[Ticket], freed: &[Ticket], json: bool) -> Result<ExitCode, Failure> {
    let ids: Vec<&str> = freed.iter().map(|ticket| ticket.id.as_str()).collect();
    if json {
        print_json(&json!({"type": "tickets", "success": true, "tickets": tickets, "nowReady": ids}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for ticket in tickets {
        print(format_args!("{}\n", view::line(ticket)));
    }
    if !freed.is_empty() {
        eprintln!("note: ready now: {}", ids.join(", "));
        view::hint_next(freed);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with the tickets, without being in anybody's way.
fn warn(book: &Book) {
    book.problems().iter().for_each(|problem| eprintln!("warning: {problem}"));
}

pub fn failure(error: TicketError) -> Failure {
    let message = error.to_string();
    match error {
        TicketError::Damaged { .. } => {
            Failure::usage(message).hint("mend it by hand; nothing was changed, and it is never overwritten")
        }
        TicketError::Book(BookError::Unknown { near, .. }) => {
            Failure::usage(message).hint(near.unwrap_or_else(|| "sage tickets list --all".into()))
        }
        TicketError::Book(_) | TicketError::Plan(_) => Failure::usage(message),
        TicketError::Project(_) | TicketError::Io { .. } => Failure::failed(message),
    }
}
