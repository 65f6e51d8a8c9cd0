//! `sage tickets run`: a workflow for one ticket, or for all that are ready, the most useful first.

use std::collections::BTreeSet;
use std::process::ExitCode;

use sage_core::slug::Feature;
use sage_core::ticket::Ticket;
use sage_engine::tickets::Store;

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::run;
use super::{belong, failure};
use crate::command_line;

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The ticket's id: T-3, or just 3
    #[arg(required_unless_present = "ready")]
    id: Option<String>,
    /// All that are ready, and what becomes ready by them, one after the other
    #[arg(long, conflicts_with_all = ["id", "detach", "force"])]
    ready: bool,
    /// At most so many
    #[arg(long, value_name = "N", requires = "ready", value_parser = clap::value_parser!(u32).range(1..))]
    max: Option<u32>,
    /// Go on with the next one after one that did not succeed
    #[arg(long, requires = "ready")]
    keep_going: bool,
    /// Also if it is not ready
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    args: run::Args,
}

pub fn execute(context: &Context, store: &Store, args: RunArgs, json: bool) -> Result<ExitCode, Failure> {
    let mut flags = args.args.clone();
    flags.show.json |= json;
    match &args.id {
        Some(id) => work(context, &belong::choose(context, id, args.force)?, flags),
        None => all(context, store, &args, &flags),
    }
}

fn work(context: &Context, ticket: &Ticket, flags: run::Args) -> Result<ExitCode, Failure> {
    // A title that cannot name a file still has an id.
    let feature = Feature::from_title(&ticket.title).or_else(|_| Feature::from_title(&ticket.id))?;
    run::work(context, &feature, Some(ticket), flags)
}

/// Each of them once, in the order that the tickets have when its turn comes.
fn all(context: &Context, store: &Store, args: &RunArgs, flags: &run::Args) -> Result<ExitCode, Failure> {
    let mut tried: BTreeSet<String> = BTreeSet::new();
    let mut first_bad = None;
    // Of a run that was killed before its ticket knew of its end.
    store.settle(&context.engine()).map_err(failure)?;
    while args.max.is_none_or(|max| tried.len() < max as usize) {
        let book = store.read().map_err(failure)?;
        let Some(ticket) = book.ready().into_iter().find(|ticket| !tried.contains(&ticket.id)) else { break };
        tried.insert(ticket.id.clone());
        if !flags.show.json {
            eprintln!("{}: {}", ticket.id, crate::display::text::clean(&ticket.title));
        }
        let code = match work(context, ticket, flags.clone()) {
            Ok(code) => code,
            Err(failure) if args.keep_going => failure.report(),
            Err(failure) => return Err(failure),
        };
        if code != ExitCode::SUCCESS {
            first_bad.get_or_insert(code);
            if !args.keep_going {
                break;
            }
        }
    }
    if tried.is_empty() {
        let decides = !store.read().map_err(failure)?.free().is_empty();
        eprintln!("no ticket is ready for a run");
        command_line::tell(command_line::sage(if decides { "tickets ready" } else { "tickets list" }));
    }
    Ok(first_bad.unwrap_or(ExitCode::SUCCESS))
}
