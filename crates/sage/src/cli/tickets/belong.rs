//! A run and the ticket that it belongs to: may it start, has it begun, how has it ended.
//!
//! Tickets are for people: a run never fails because its ticket could not be written.

use sage_core::run::Run;
use sage_core::ticket::{Blocker, Book, Standing, Ticket};
use sage_engine::open::Engine;
use sage_engine::tickets::TicketError;
use serde_json::{Map, Value};

use super::super::context::Context;
use super::super::failure::{Failure, Kind};
use super::failure;
use crate::command_line::sage;

/// The ticket that a person wants to be run, if it can be now.
pub fn choose(context: &Context, id: &str, force: bool) -> Result<Ticket, Failure> {
    let engine = context.engine();
    let store = engine.tickets();
    store.settle(&engine).map_err(failure)?;
    let book = store.read().map_err(failure)?;
    let ticket = book.find(id).map_err(|error| failure(error.into()))?;
    if !force {
        refuse_unready(&book, ticket)?;
    }
    Ok(ticket.clone())
}

fn refuse_unready(book: &Book, ticket: &Ticket) -> Result<(), Failure> {
    let id = &ticket.id;
    let force = sage("tickets run").arg(id).arg("--force").comment("runs it anyway").to_string();
    Err(match book.standing(ticket) {
        Standing::Ready => return Ok(()),
        Standing::Person => {
            return Err(Failure::usage(format!("{id} is a decision for a person: a run cannot make it"))
                .hint(sage("tickets show").arg(id))
                .hint(sage("tickets done").arg(id).option("-m", "<what was decided>")));
        }
        Standing::InProgress => {
            let run = ticket.run.as_deref().map_or(String::new(), |run| format!(" by {run}"));
            Failure::new(Kind::Conflict, format!("{id} is in progress{run}"))
                .hint("sage list    # a run that stands still: sage resume FEATURE")
        }
        Standing::Done => Failure::usage(format!("{id} is done")).hint(sage("tickets reopen").arg(id)),
        Standing::Cancelled => {
            Failure::usage(format!("{id} is cancelled")).hint(sage("tickets reopen").arg(id))
        }
        Standing::Blocked => blocked(book, ticket),
    }
    .hint(force))
}

fn blocked(book: &Book, ticket: &Ticket) -> Failure {
    let id = &ticket.id;
    let blockers = book.blockers(ticket);
    if blockers.is_empty() {
        return Failure::usage(format!("{id} is blocked: its state says so"))
            .hint(sage("tickets reopen").arg(id));
    }
    let list: Vec<String> = blockers.iter().map(blocker_text).collect();
    let failure = Failure::usage(format!("{id} is blocked by {}", list.join(", ")));
    match book.cycle().filter(|cycle| cycle.contains(id)) {
        Some(cycle) => failure.hint(format!("they wait for each other: {}", cycle.join(" -> "))),
        None => failure.hint("sage tickets ready"),
    }
}

/// `T-3 (inProgress)`
pub fn blocker_text(blocker: &Blocker) -> String {
    format!("{} ({})", blocker.id, blocker.state.map_or("does not exist", |state| state.name()))
}

/// Its ticket, if it has one, is in progress.
pub fn began(engine: &Engine, inputs: &Map<String, Value>, run: &str) {
    tell(engine.tickets().began(inputs, run));
}

/// Its ticket, if it has one, is done or open again. A run that only stands still changes nothing.
pub fn ended(engine: &Engine, run: &Run) {
    tell(engine.tickets().ended(run));
}

fn tell(told: Result<(), TicketError>) {
    if let Err(error) = told {
        eprintln!("warning: the run's ticket could not be brought up to date: {error}");
    }
}
