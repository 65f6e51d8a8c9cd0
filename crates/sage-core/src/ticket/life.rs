//! What runs do to the ticket that they belong to. Everything here may be told twice.

use serde_json::{Map, Value};

use super::{Book, Note, State, Ticket};

/// How a run that belongs to a ticket came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Succeeded,
    /// It did not do what was asked, and why not.
    Short(String),
}

/// The ticket that a run belongs to, by the run's inputs.
pub fn ticket_of(inputs: &Map<String, Value>) -> Option<&str> {
    inputs.get("ticket")?.get("id")?.as_str().filter(|id| !id.is_empty())
}

impl Book {
    /// A run of the ticket has begun, or goes on. A closed ticket stays closed if the run is no new one: a
    /// person has decided so since.
    pub fn began(&mut self, id: &str, run: &str, at: &str) {
        let began = |ticket: &mut Ticket| {
            let new = ticket.run.as_deref() != Some(run);
            // An older run that goes on does not take the ticket from a newer one. Ids sort by time.
            if ticket.run.as_deref().is_some_and(|newest| newest > run) {
                return;
            }
            if new || !ticket.state.closed() {
                ticket.state = State::InProgress;
                ticket.run = Some(run.into());
            }
        };
        // A ticket that was removed since is nobody's affair.
        let _ = self.edit(id, at, began);
    }

    /// A run of the ticket has ended. Only the newest one counts.
    pub fn ended(&mut self, id: &str, run: &str, how: &Ended, at: &str) {
        let ended = |ticket: &mut Ticket| {
            if ticket.run.as_deref() != Some(run) {
                return;
            }
            match how {
                Ended::Succeeded if !ticket.state.closed() => ticket.state = State::Done,
                Ended::Short(why) if ticket.state == State::InProgress => {
                    ticket.state = State::Open;
                    ticket.note(why, Some(run), at);
                }
                _ => {}
            }
        };
        let _ = self.edit(id, at, ended);
    }
}

impl Ticket {
    pub fn note(&mut self, text: &str, run: Option<&str>, at: &str) {
        let run = run.map(str::to_string);
        self.notes.push(Note { at: Some(at.into()), run, text: text.into(), ..Note::default() });
    }
}
