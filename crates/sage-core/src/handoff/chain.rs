//! The handoffs of one taskId in order, and the list of all: views that follow from the handoffs themselves.

use serde::{Deserialize, Serialize};

use super::{Handoff, Refusal, SESSION_LOST, Status, Transition, check_parties, party};
use crate::digest::Digest;
use crate::role::Role;

/// Open for so long without a change: nobody looks after it.
pub const STUCK_MS: u64 = 24 * 3_600_000;
/// Of a name that is used for a file.
const NAME_BYTES: usize = 100;

/// What lists say about a handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub handoff_id: String,
    pub task_id: String,
    pub from: String,
    pub to: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: Status,
    pub timestamp: String,
    /// `2026-01-31/<handoffId>.json`
    pub file: String,
    pub transitions: Vec<Transition>,
    /// Its chain has come to its end.
    pub archived: bool,
}

/// `chain-<taskId>.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    pub version: u32,
    pub task_id: String,
    pub archived: bool,
    pub handoffs: Vec<Entry>,
}

/// `index.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub version: u32,
    pub handoffs: Vec<Entry>,
}

impl Entry {
    pub fn of(handoff: &Handoff) -> Entry {
        let header = &handoff.handoff;
        Entry {
            handoff_id: header.handoff_id.clone(),
            task_id: handoff.context.task_id.clone(),
            from: party(header.from),
            to: party(header.to),
            kind: header.kind.clone(),
            status: header.status,
            timestamp: header.timestamp.clone(),
            file: handoff.file(),
            transitions: handoff.transitions.clone(),
            archived: false,
        }
    }

    /// When each of its states began, in ms since the epoch. A time that cannot be read is left out.
    pub fn times_ms(&self) -> Vec<(Status, u64)> {
        let time = |transition: &Transition| Some((transition.status, time_ms(&transition.at)?));
        self.transitions.iter().filter_map(time).collect()
    }

    pub fn age_ms(&self, now_ms: u64) -> u64 {
        time_ms(&self.timestamp).map_or(0, |created| now_ms.saturating_sub(created))
    }

    /// Open, and nothing has happened to it for a day.
    pub fn is_stuck(&self, now_ms: u64) -> bool {
        let last = self.times_ms().last().map_or_else(|| time_ms(&self.timestamp), |(_, at)| Some(*at));
        self.status.is_open() && last.is_some_and(|last| now_ms.saturating_sub(last) >= STUCK_MS)
    }
}

fn time_ms(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    u64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()
}

impl Handoff {
    /// Where it is kept: by the day of its creation.
    pub fn file(&self) -> String {
        let day = self.handoff.timestamp.get(..10).unwrap_or("undated");
        format!("{day}/{}.json", self.handoff.handoff_id)
    }
}

impl Index {
    pub const VERSION: u32 = 1;

    /// All of them, oldest first, with those marked whose chain is at its end.
    pub fn of(handoffs: &[Handoff]) -> Index {
        let mut entries: Vec<Entry> = handoffs.iter().map(Entry::of).collect();
        entries.sort_by(|a, b| (&a.timestamp, &a.handoff_id).cmp(&(&b.timestamp, &b.handoff_id)));
        let mut index = Index { version: Index::VERSION, handoffs: entries };
        let ended: Vec<String> =
            index.chains().into_iter().filter(|chain| chain.archived).map(|chain| chain.task_id).collect();
        for entry in &mut index.handoffs {
            entry.archived = ended.contains(&entry.task_id);
        }
        index
    }

    /// One for each taskId.
    pub fn chains(&self) -> Vec<Chain> {
        let mut chains: Vec<Chain> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for entry in &self.handoffs {
            let place = *places.entry(entry.task_id.as_str()).or_insert_with(|| {
                let task_id = entry.task_id.clone();
                chains.push(Chain {
                    version: Index::VERSION,
                    task_id,
                    archived: false,
                    handoffs: Vec::new(),
                });
                chains.len() - 1
            });
            chains[place].handoffs.push(entry.clone());
        }
        for chain in &mut chains {
            chain.archived = chain.has_ended();
            let archived = chain.archived;
            chain.handoffs.iter_mut().for_each(|entry| entry.archived = archived);
        }
        chains
    }

    pub fn chain(&self, task_id: &str) -> Option<Chain> {
        self.chains().into_iter().find(|chain| chain.task_id == task_id)
    }
}

impl Chain {
    /// The orchestrator has it back, or a broken session has been made good, and nobody has anything left to do.
    fn has_ended(&self) -> bool {
        let open = self.handoffs.iter().any(|entry| entry.status.is_open());
        let only_lost = self.handoffs.iter().all(|entry| entry.kind == SESSION_LOST);
        let last = self.handoffs.iter().rev().find(|entry| entry.status == Status::Completed);
        !open && last.is_some_and(|entry| only_lost || entry.to == party(Role::Orchestrator))
    }

    /// Only who has the work can hand it on: it was accepted from somebody, or came back by a rejection.
    pub fn check_next(&self, handoff: &Handoff) -> Result<(), Refusal> {
        let header = &handoff.handoff;
        check_parties(header.from, header.to, &header.kind)?;
        let from = party(header.from);
        let had = |entry: &Entry| {
            let taken = matches!(entry.status, Status::Accepted | Status::Completed);
            entry.from == from || (entry.to == from && taken)
        };
        if self.handoffs.is_empty() || header.kind == SESSION_LOST || self.handoffs.iter().any(had) {
            return Ok(());
        }
        let message = format!("{from} does not have the work of `{}`", self.task_id);
        let offered = self.handoffs.iter().find(|entry| entry.to == from && entry.status == Status::Pending);
        let hint = match (offered, self.handoffs.last()) {
            (Some(entry), _) => format!("sage handoff accept {}    # first", entry.handoff_id),
            (None, Some(last)) => {
                format!("the last handoff is {} -> {} ({})", last.from, last.to, last.status.name())
            }
            (None, None) => String::new(),
        };
        Err(Refusal { message, hint })
    }
}

/// `chain-<taskId>.json`; what is no good in a file's name is replaced, and a hash keeps such names apart.
pub fn chain_file(task_id: &str) -> String {
    if is_id(task_id) {
        return format!("chain-{task_id}.json");
    }
    let readable: String =
        task_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(NAME_BYTES / 2).collect();
    format!("chain-{readable}~{}.json", Digest::of(task_id.as_bytes()).short())
}

/// Good as the name of a file on every system.
pub fn is_id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=NAME_BYTES).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(plain)
}
