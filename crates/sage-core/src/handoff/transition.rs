//! Who may hand work to whom, and what may become of a handoff. Everything else is refused, with what is allowed.

use super::{Handoff, Status, Transition, party};
use crate::role::Role;

/// The way of the work. Each hands to the next.
pub const ORDER: [Role; 5] =
    [Role::Planner, Role::Implementer, Role::Auditor, Role::Cleaner, Role::Orchestrator];

/// The usual type.
pub const WORK: &str = "work";
/// The type that leads back to the planner from anywhere.
pub const REPLANNING: &str = "requires_replanning";
/// The type of a handoff to oneself: a conversation broke, and the next one of the same role goes on.
pub const SESSION_LOST: &str = "session_lost";

/// Why something is not allowed, and what is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub message: String,
    pub hint: String,
}

pub fn check_parties(from: Role, to: Role, kind: &str) -> Result<(), Refusal> {
    let next = ORDER.iter().position(|role| *role == from).and_then(|place| ORDER.get(place + 1)).copied();
    let fine = match kind {
        SESSION_LOST => from == to,
        REPLANNING => to == Role::Planner && from != Role::Planner && ORDER.contains(&from),
        // The orchestrator begins the round.
        _ => next == Some(to) || (from, to) == (Role::Orchestrator, Role::Planner),
    };
    if fine {
        return Ok(());
    }
    let message = format!("{} does not hand to {} with the type `{kind}`", party(from), party(to));
    Err(Refusal { message, hint: format!("{} hands {}", party(from), allowed(from, next)) })
}

fn allowed(from: Role, next: Option<Role>) -> String {
    let own = format!("to itself (type `{SESSION_LOST}`, after a broken session)");
    let replanning = format!("to PLANNER (type `{REPLANNING}`)");
    let ways = match (from, next) {
        (Role::Planner, Some(next)) => vec![format!("to {}", party(next)), own],
        (_, Some(next)) => vec![format!("to {}", party(next)), replanning, own],
        (Role::Orchestrator, None) => vec!["to PLANNER".to_string(), own],
        (_, None) => {
            let way = ORDER.map(party).join(" -> ");
            return format!("only {own}; the way of the work is {way}");
        }
    };
    ways.join(", or ")
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Accepted => "accepted",
            Status::Rejected => "rejected",
            Status::Completed => "completed",
        }
    }

    pub fn is_open(self) -> bool {
        matches!(self, Status::Pending | Status::Accepted)
    }

    fn next(self) -> &'static [Status] {
        match self {
            Status::Pending => &[Status::Accepted, Status::Rejected],
            Status::Accepted => &[Status::Completed],
            Status::Rejected | Status::Completed => &[],
        }
    }
}

impl Handoff {
    /// Changes the status at a time; a rejection has a reason.
    pub fn advance(&mut self, to: Status, at: &str, reason: Option<&str>) -> Result<(), Refusal> {
        let (id, now) = (&self.handoff.handoff_id, self.handoff.status);
        if !now.next().contains(&to) {
            let message = format!("`{id}` is {} and cannot become {}", now.name(), to.name());
            return Err(Refusal { message, hint: next_hint(id, now) });
        }
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        if to == Status::Rejected && reason.is_none() {
            let message =
                format!("a rejection of `{id}` needs a reason: whoever made it has to know what to do");
            return Err(Refusal { message, hint: format!("sage handoff reject {id} --reason \"...\"") });
        }
        self.handoff.status = to;
        self.transitions.push(Transition { status: to, at: at.into(), reason: reason.map(Into::into) });
        Ok(())
    }
}

fn next_hint(id: &str, now: Status) -> String {
    match now {
        Status::Pending => format!("sage handoff accept {id}, or sage handoff reject {id} --reason \"...\""),
        Status::Accepted => format!("sage handoff complete {id}"),
        Status::Rejected => "a rejected one stays so: mend the work and create a new one".to_string(),
        Status::Completed => "a completed one stays so: the next role creates a new one".to_string(),
    }
}
