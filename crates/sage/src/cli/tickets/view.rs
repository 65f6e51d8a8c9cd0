//! Tickets for people and as JSON: what can be done, what is under way, what waits for what.

use std::process::ExitCode;

use sage_core::ticket::{Book, Standing, Ticket};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::table::print_table;
use super::super::{print, print_json};
use super::{belong, warn};
use crate::command_line::{CommandLine, sage, tell};
use crate::display::text::{clean, lines as text_lines};

#[derive(Debug, Default, clap::Args)]
pub struct Filter {
    /// Also those that are done or cancelled
    #[arg(long)]
    all: bool,
    /// Only those that stand so
    #[arg(long, value_parser = ["ready", "person", "blocked", "inProgress", "done", "cancelled"])]
    state: Option<String>,
    /// Only those of this feature
    #[arg(long)]
    feature: Option<String>,
}

/// `T-3  P1  open  Check tokens`
pub fn line(ticket: &Ticket) -> String {
    let (state, priority) = (ticket.state.name(), ticket.priority.name());
    format!("{}  {priority}  {state}  {}", clean(&ticket.id), clean(&ticket.title))
}

pub fn list(book: &Book, filter: &Filter, json: bool) -> Result<ExitCode, Failure> {
    let feature = filter.feature.as_deref().map(super::super::feature).transpose()?;
    let fits = |ticket: &&Ticket| {
        let standing = book.standing(ticket).name();
        let shown = filter.all || !ticket.state.closed();
        filter.state.as_ref().map_or(shown, |state| standing == state)
            && feature.as_ref().is_none_or(|feature| ticket.feature.as_ref() == Some(feature))
    };
    let ready: Vec<&Ticket> = book.free().into_iter().filter(fits).collect();
    let rest = |wanted: Standing| {
        book.tickets.iter().filter(fits).filter(move |ticket| book.standing(ticket) == wanted)
    };
    let under_way = rest(Standing::InProgress);
    let later = [Standing::Blocked, Standing::Done, Standing::Cancelled].into_iter().flat_map(rest);
    let shown: Vec<&Ticket> = under_way.chain(ready).chain(later).collect();
    let closed = book.tickets.iter().filter(|ticket| ticket.state.closed()).count();
    if json {
        return rows(book, &shown);
    }
    warn(book);
    match book.tickets.len() {
        _ if !shown.is_empty() => table(book, &shown),
        0 => {
            eprintln!("no tickets");
            tell(sage("tickets add").arg("TITLE"));
        }
        _ => {
            eprintln!("no such tickets");
            tell("sage tickets list --all");
        }
    }
    if !filter.all && filter.state.is_none() && closed > 0 {
        eprintln!("note: {closed} closed ({})", sage("tickets list --all"));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn ready(book: &Book, json: bool) -> Result<ExitCode, Failure> {
    let ready = book.free();
    if json {
        return rows(book, &ready);
    }
    warn(book);
    if ready.is_empty() {
        eprintln!("no ticket is ready");
        tell("sage tickets list");
    } else {
        table(book, &ready);
        hint_next(ready);
    }
    Ok(ExitCode::SUCCESS)
}

/// What to type for the first ticket that a run can work on, and for the first that a person decides.
pub fn hint_next<'a>(tickets: impl IntoIterator<Item = &'a Ticket>) {
    let (people, runs): (Vec<&Ticket>, Vec<&Ticket>) = tickets.into_iter().partition(|ticket| ticket.person);
    if let Some(first) = people.first() {
        eprintln!("note: {} is a decision for a person", clean(&first.id));
        tell(sage("tickets show").arg(clean(&first.id)));
        tell(decide(&first.id));
    }
    if let Some(first) = runs.first() {
        tell(sage("tickets run").arg(clean(&first.id)));
    }
}

/// Closes a ticket that is a decision.
fn decide(id: &str) -> CommandLine {
    sage("tickets done").arg(clean(id)).option("-m", "<what was decided>")
}

fn rows(book: &Book, tickets: &[&Ticket]) -> Result<ExitCode, Failure> {
    let rows: Vec<Value> = tickets.iter().map(|ticket| row(book, ticket)).collect();
    print_json(&json!({
        "type": "tickets", "tickets": rows, "total": book.tickets.len(), "problems": book.problems(),
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// The ticket as it is written, and what follows from the others.
fn row(book: &Book, ticket: &Ticket) -> Value {
    let mut row = json!(ticket);
    row["standing"] = json!(book.standing(ticket));
    row["waitsFor"] = json!(book.blockers(ticket));
    row["dependants"] = book.dependants(&ticket.id).into();
    row
}

fn table(book: &Book, tickets: &[&Ticket]) {
    let heading = ["ID", "PRIORITY", "STATE", "FEATURE", "TITLE"].map(String::from);
    let rows: Vec<[String; 5]> = std::iter::once(heading)
        .chain(tickets.iter().map(|ticket| {
            let standing = book.standing(ticket);
            let open = standing == Standing::Blocked;
            let blockers: Vec<String> = if open {
                book.blockers(ticket).iter().map(belong::blocker_text).collect()
            } else {
                Vec::new()
            };
            let waits = if blockers.is_empty() {
                String::new()
            } else {
                format!("  waits for {}", blockers.join(", "))
            };
            [
                clean(&ticket.id),
                ticket.priority.name().into(),
                standing.name().into(),
                ticket.feature.as_ref().map_or_else(|| "-".into(), |feature| clean(feature)),
                format!("{}{}", clean(&ticket.title), clean(&waits)),
            ]
        }))
        .collect();
    print_table(&rows);
}

pub fn show(book: &Book, ticket: &Ticket, json: bool) -> Result<ExitCode, Failure> {
    if json {
        let mut value = json!({"type": "ticket"});
        value["ticket"] = row(book, ticket);
        print_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![line(ticket)];
    let mut say = |name: &str, values: &[String]| {
        for (n, value) in values.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            lines.push(format!("  {name:11}  {}", clean(value)));
        }
    };
    let standing = book.standing(ticket);
    say("stands", &[standing.name().into()]);
    let waits: Vec<String> = book.blockers(ticket).iter().map(belong::blocker_text).collect();
    say("waits for", if ticket.state.closed() { &[] } else { &waits });
    let waiting = book.tickets.iter().filter(|other| other.blocked_by.contains(&ticket.id));
    say("blocks", &waiting.map(|other| other.id.clone()).collect::<Vec<_>>());
    say("feature", ticket.feature.as_slice());
    say("run", ticket.run.as_slice());
    say("detail", &text_lines(&ticket.detail).map(str::to_string).collect::<Vec<_>>());
    say("files", &ticket.files);
    say("done when", &ticket.acceptance);
    say("created", ticket.created_at.as_slice());
    say("changed", ticket.updated_at.as_slice());
    let note = |note: &sage_core::ticket::Note| {
        let at = note.at.as_ref().map(|at| format!("{at}  ")).unwrap_or_default();
        format!("{at}{}", note.text)
    };
    say("notes", &ticket.notes.iter().map(note).collect::<Vec<_>>());
    print(format_args!("{}\n", lines.join("\n")));
    match standing {
        Standing::Ready => tell(sage("tickets run").arg(clean(&ticket.id))),
        Standing::Person => tell(decide(&ticket.id)),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}
