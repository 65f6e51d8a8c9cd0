//! All tickets of a project, as their file has them. Their order stays as it is: a diff shows what changed.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Origin, Priority, State, Ticket};

/// The version that is written. A higher minor number only adds fields.
pub const VERSION: &str = "1.0";
/// A title is one line.
const MAX_TITLE_BYTES: usize = 255;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Book {
    version: String,
    pub tickets: Vec<Ticket>,
    /// What others have written, kept.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Default for Book {
    fn default() -> Book {
        Book { version: VERSION.into(), tickets: Vec::new(), other: Map::new() }
    }
}

/// Why a book cannot be used, or not be changed like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is not an object with a list `tickets`")]
    NotABook,
    #[error("it has version {0}, this sage reads {VERSION}: use a newer sage")]
    Newer(String),
    #[error("ticket {which}: {why}")]
    Ticket { which: String, why: String },
    #[error("two tickets have the id `{0}`; give one of them another")]
    Twice(String),
    #[error("no ticket `{id}`")]
    Unknown { id: String, near: Option<String> },
    #[error("tickets wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    #[error("a ticket needs a title of one line, at most {MAX_TITLE_BYTES} bytes")]
    Title,
}

/// A ticket to be made.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub title: String,
    pub detail: String,
    pub priority: Priority,
    pub blocked_by: Vec<String>,
    /// Tickets that wait for it.
    pub blocks: Vec<String>,
    pub files: Vec<String>,
    pub acceptance: Vec<String>,
    /// A decision that only a person can make.
    pub person: bool,
    pub feature: Option<String>,
    pub origin: Option<Origin>,
}

impl Book {
    pub fn read(text: &[u8]) -> Result<Book, BookError> {
        let value: Value = serde_json::from_slice(text).map_err(|why| BookError::NotJson(why.to_string()))?;
        let Value::Object(mut top) = value else { return Err(BookError::NotABook) };
        let version = match top.shift_remove("version") {
            None | Some(Value::Null) => VERSION.into(),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        };
        if version.trim_start_matches('v').split('.').next() != Some("1") {
            return Err(BookError::Newer(version));
        }
        let list = match top.shift_remove("tickets") {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(BookError::NotABook),
        };
        let mut tickets: Vec<Ticket> = Vec::with_capacity(list.len());
        let mut known = std::collections::BTreeSet::new();
        for (number, value) in list.into_iter().enumerate() {
            let ticket = read_ticket(value, number + 1)?;
            if !known.insert(ticket.id.clone()) {
                return Err(BookError::Twice(ticket.id));
            }
            tickets.push(ticket);
        }
        Ok(Book { version, tickets, other: top })
    }

    /// As it is written: for people, and the same for the same content.
    pub fn text(&self) -> String {
        // Maps with text keys and plain values: there is nothing in it that JSON could not say.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        text + "\n"
    }

    pub fn get(&self, id: &str) -> Option<&Ticket> {
        self.tickets.iter().find(|ticket| ticket.id == id)
    }

    /// As a person types it: `T-3`, `t-3` or `3`.
    pub fn find(&self, id: &str) -> Result<&Ticket, BookError> {
        let wanted = id.trim();
        let short = format!("T-{wanted}");
        let same = |ticket: &&Ticket| ticket.id.eq_ignore_ascii_case(wanted) || ticket.id == short;
        self.get(wanted).or_else(|| self.tickets.iter().find(same)).ok_or_else(|| {
            let ids = self.tickets.iter().map(|ticket| ticket.id.as_str());
            let near = crate::diagnostic::did_you_mean(wanted, ids);
            BookError::Unknown { id: wanted.escape_debug().to_string(), near }
        })
    }

    /// Changes a ticket and says when. Gives the ticket as it is then.
    pub fn edit(
        &mut self,
        id: &str,
        at: &str,
        change: impl FnOnce(&mut Ticket),
    ) -> Result<&Ticket, BookError> {
        let id = self.find(id)?.id.clone();
        let place = self.tickets.iter().position(|ticket| ticket.id == id).unwrap_or_default();
        let ticket = &mut self.tickets[place];
        let before = ticket.clone();
        change(ticket);
        if *ticket != before {
            ticket.updated_at = Some(at.into());
        }
        Ok(ticket)
    }

    /// A new ticket; its blockers must be there, and nothing may wait for itself.
    pub fn add(&mut self, draft: Draft, at: &str) -> Result<String, BookError> {
        let title = draft.title.trim().to_string();
        if title.is_empty() || title.len() > MAX_TITLE_BYTES || title.contains(|c: char| c.is_control()) {
            return Err(BookError::Title);
        }
        let blocked_by = self.ids(&draft.blocked_by)?;
        let blocks = self.ids(&draft.blocks)?;
        let id = self.next_id();
        let mut after = self.clone();
        for blocked in blocks {
            after.edit(&blocked, at, |ticket| ticket.blocked_by.push(id.clone()))?;
        }
        after.tickets.push(Ticket {
            id: id.clone(),
            title,
            state: State::Open,
            priority: draft.priority,
            blocked_by,
            detail: draft.detail,
            files: draft.files,
            acceptance: draft.acceptance,
            person: draft.person,
            feature: draft.feature,
            origin: draft.origin,
            created_at: Some(at.into()),
            updated_at: Some(at.into()),
            ..Ticket::default()
        });
        match after.cycle() {
            // One that was there before is not this ticket's fault.
            Some(cycle) if cycle.contains(&id) => Err(BookError::Cycle(cycle)),
            _ => {
                *self = after;
                Ok(id)
            }
        }
    }

    /// Ids as they are written in the book, each once.
    fn ids(&self, typed: &[String]) -> Result<Vec<String>, BookError> {
        let mut ids: Vec<String> = Vec::new();
        for id in typed {
            let id = &self.find(id)?.id;
            if !ids.contains(id) {
                ids.push(id.clone());
            }
        }
        Ok(ids)
    }

    /// Above every number that was ever given, also where only a blocker still names it.
    fn next_id(&self) -> String {
        let named = self.tickets.iter().flat_map(|ticket| ticket.blocked_by.iter().chain([&ticket.id]));
        let numbers = named.filter_map(|id| id.strip_prefix("T-")?.parse::<u64>().ok());
        format!("T-{}", numbers.max().unwrap_or(0).saturating_add(1))
    }
}

fn read_ticket(value: Value, number: usize) -> Result<Ticket, BookError> {
    let id = value.get("id").and_then(Value::as_str).map(|id| format!("`{}`", id.escape_debug()));
    let which = id.unwrap_or_else(|| format!("number {number}"));
    let refuse = |why: String| BookError::Ticket { which: which.clone(), why };
    let ticket: Ticket = serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if ticket.id.is_empty() || ticket.id.len() > 100 || ticket.id.contains(odd) {
        return Err(refuse("its id is empty, too long, or has spaces in it".into()));
    }
    Ok(ticket)
}
