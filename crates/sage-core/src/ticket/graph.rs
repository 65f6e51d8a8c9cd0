//! What waits for what: blockers, cycles, and the tickets that can be worked on now, the most useful first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Book, State, Ticket};
use crate::graph::Graph;

/// Where a ticket stands for somebody who looks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    Ready,
    /// Nothing keeps a person from deciding it.
    Person,
    Blocked,
    InProgress,
    Done,
    Cancelled,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Standing::Ready => "ready",
            Standing::Person => "person",
            Standing::Blocked => "blocked",
            Standing::InProgress => "inProgress",
            Standing::Done => "done",
            Standing::Cancelled => "cancelled",
        }
    }
}

/// A ticket that must be done first and is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    pub id: String,
    /// `None`: there is no such ticket.
    pub state: Option<State>,
}

impl Book {
    /// What keeps a ticket from being ready, in the order it names them.
    pub fn blockers(&self, ticket: &Ticket) -> Vec<Blocker> {
        let state = |id: &String| self.get(id).map(|blocker| blocker.state);
        let blockers = ticket.blocked_by.iter().map(|id| Blocker { id: id.clone(), state: state(id) });
        blockers.filter(|blocker| blocker.state != Some(State::Done)).collect()
    }

    pub fn standing(&self, ticket: &Ticket) -> Standing {
        match ticket.state {
            State::Done => Standing::Done,
            State::Cancelled => Standing::Cancelled,
            State::InProgress => Standing::InProgress,
            State::Blocked => Standing::Blocked,
            State::Open if !self.blockers(ticket).is_empty() => Standing::Blocked,
            State::Open if ticket.person => Standing::Person,
            State::Open => Standing::Ready,
        }
    }

    /// What a run can work on, the most useful first.
    pub fn ready(&self) -> Vec<&Ticket> {
        self.free().into_iter().filter(|ticket| !ticket.person).collect()
    }

    /// What can be worked on, by a run or by a person: by priority, then by how many tickets wait for it, then by id.
    pub fn free(&self) -> Vec<&Ticket> {
        let waiting = self.waiting();
        let states: BTreeMap<&str, State> =
            self.tickets.iter().map(|ticket| (ticket.id.as_str(), ticket.state)).collect();
        let done = |id: &String| states.get(id.as_str()) == Some(&State::Done);
        let free = |ticket: &&Ticket| ticket.state == State::Open && ticket.blocked_by.iter().all(done);
        let mut ready: Vec<&Ticket> = self.tickets.iter().filter(free).collect();
        ready.sort_by_cached_key(|ticket| {
            (ticket.priority, Reverse(reached(&waiting, &ticket.id)), id_key(&ticket.id))
        });
        ready
    }

    /// How many unfinished tickets wait for this one, directly or through others.
    pub fn dependants(&self, id: &str) -> usize {
        reached(&self.waiting(), id)
    }

    /// Blocker -> unfinished tickets that name it.
    fn waiting(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ticket in self.tickets.iter().filter(|ticket| !ticket.state.closed()) {
            for blocker in &ticket.blocked_by {
                waiting.entry(blocker).or_default().push(&ticket.id);
            }
        }
        waiting
    }

    /// Tickets that wait for each other; the first is named again at the end.
    pub fn cycle(&self) -> Option<Vec<String>> {
        let numbers: BTreeMap<&str, u32> =
            self.tickets.iter().map(|ticket| ticket.id.as_str()).zip(0_u32..).collect();
        let mut graph = Graph::new(self.tickets.len());
        for (ticket, from) in self.tickets.iter().zip(0_u32..) {
            for to in ticket.blocked_by.iter().filter_map(|id| numbers.get(id.as_str())) {
                graph.edge(from, *to);
            }
        }
        let mut path = graph.order().err()?.0;
        path.extend(path.first().copied());
        Some(path.into_iter().map(|number| self.tickets[number as usize].id.clone()).collect())
    }

    /// What is wrong with the book, without making it useless: for whoever looks at it.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        if let Some(cycle) = self.cycle() {
            problems.push(format!("tickets wait for each other and can never start: {}", cycle.join(" -> ")));
        }
        for ticket in self.tickets.iter().filter(|ticket| !ticket.state.closed()) {
            for blocker in self.blockers(ticket) {
                let why = match blocker.state {
                    None => "which does not exist",
                    Some(State::Cancelled) => "which is cancelled",
                    Some(_) => continue,
                };
                problems.push(format!("{} waits for {}, {why}", ticket.id, blocker.id));
            }
        }
        problems
    }
}

/// How many tickets can be reached from `id`, itself not counted.
fn reached(waiting: &BTreeMap<&str, Vec<&str>>, id: &str) -> usize {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = waiting.get(id).cloned().unwrap_or_default();
    while let Some(next) = open.pop() {
        if next != id && seen.insert(next) {
            open.extend(waiting.get(next).into_iter().flatten());
        }
    }
    seen.len()
}

/// `T-2` comes before `T-10`.
pub(super) fn id_key(id: &str) -> (&str, u64, &str) {
    let letters = id.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters, id[letters.len()..].parse().unwrap_or(0), id)
}
