//! Limits that all runs of a project share, and per provider all projects of a user, through small files.
//!
//! The loop asks before each attempt: `Limits::join` -> `Member::ask` -> `Permit`, which gives back on drop.
//! - `board`: who holds what and who waits, pure; `text`: its file;
//! - `store`: what is needed of a directory: `disk` (with `kept`, `name`) or `memory`; `place`: one in use;
//! - `member`, `site`, `permit`: one want, granted as a whole or not at all.
//!
//! What must stay true: everything is freed by death, never by timers; nobody waits while holding anything; a
//! stopped process makes others `Busy`, never hang.

mod board;
mod disk;
mod kept;
mod member;
mod memory;
mod name;
mod permit;
mod place;
mod site;
mod store;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sage_core::target::{Estimate, Hold, Target, TargetPolicy};

use disk::Disk;
pub use member::Member;
use memory::Memory;
pub use permit::Permit;
use place::{Place, Scope};
use store::{Patience, Store};

/// What is configured, the same for all runs that share a place or nearly so: each decides by its own.
#[derive(Clone, Debug)]
pub struct LimitsConfig {
    pub targets: BTreeMap<String, TargetPolicy>,
    /// Of targets that have none of their own.
    pub default_target: TargetPolicy,
    /// Waiting for so long is worth one step of priority.
    pub ageing_ms: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let (targets, default_target) = (BTreeMap::new(), TargetPolicy::default());
        Self { targets, default_target, ageing_ms: 60_000 }
    }
}

/// What an attempt needs.
#[derive(Clone, Debug)]
pub struct Want<'a> {
    pub pools: &'a [PoolWant<'a>],
    pub targets: &'a [String],
    /// Smaller is sooner.
    pub priority: u8,
    pub estimate: Estimate,
}

/// Units of a pool. More than its limit counts as all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWant<'a> {
    pub pool: &'a str,
    pub units: u32,
    /// Unless a person has set another. 0 lets nobody in.
    pub limit: u32,
}

#[derive(Debug)]
pub enum Answer {
    Granted(Permit),
    Refused(Refused),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// No room in it, or others come first. `target:NAME` is a target's own: too many calls are under way.
    Pool {
        pool: String,
    },
    Target {
        target: String,
        hold: Hold,
    },
    /// A process is stopped while it holds a lock. Ask again.
    Busy,
}

/// What a run holds of a pool, and whether it waits for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub pool: String,
    pub run: String,
    pub held: u32,
    pub waiting: Option<Waiting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub priority: u8,
    pub since_ms: u64,
    /// When it was last asked; after 2 s without that, it is passed over.
    pub asked_ms: u64,
}

/// Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Limits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: LimitsConfig,
    /// By `Scope`.
    places: [Place; 2],
    /// Ids of members in memory are numbers, so that a simulation repeats itself.
    next_id: Option<AtomicU64>,
}

impl Limits {
    /// Shared with other processes. Nothing is touched before it is needed.
    #[must_use]
    pub fn shared(config: LimitsConfig, project_dir: PathBuf, user_dir: PathBuf) -> Limits {
        let disks = [Box::new(Disk::new(project_dir)), Box::new(Disk::new(user_dir))];
        Self::new(config, disks.map(|disk| disk as Box<dyn Store>), None)
    }

    /// In memory, by the same rules: for simulations and tests.
    #[must_use]
    pub fn alone(config: LimitsConfig) -> Limits {
        let stores = [Box::<Memory>::default(), Box::default()].map(|memory| memory as Box<dyn Store>);
        Self::new(config, stores, Some(AtomicU64::new(0)))
    }

    fn new(config: LimitsConfig, [project, user]: [Box<dyn Store>; 2], next_id: Option<AtomicU64>) -> Self {
        let places = [Place::new(project, "this project"), Place::new(user, "providers")];
        Self(Arc::new(Shared { config, places, next_id }))
    }

    fn place(&self, scope: Scope) -> &Place {
        &self.0.places[scope as usize]
    }

    fn policy(&self, target: &str) -> &TargetPolicy {
        self.0.config.targets.get(target).unwrap_or(&self.0.config.default_target)
    }

    fn ageing_ms(&self) -> u64 {
        self.0.config.ageing_ms
    }

    /// A run takes part. It is on no board before it asks; the dead are removed from those that exist.
    pub fn join(&self, run: &str) -> io::Result<Member> {
        let id = match &self.0.next_id {
            Some(next) => format!("{:08}", next.fetch_add(1, Ordering::Relaxed)),
            None => ulid::Ulid::generate().to_string(),
        };
        for scope in Scope::ALL {
            self.sweep(scope);
        }
        Ok(Member::new(self.clone(), id, run))
    }

    /// Removes the dead. If that can't be done now, asks do it when they matter.
    fn sweep(&self, scope: Scope) {
        let mut state = self.place(scope).enter();
        if !state.store.has_board() || state.store.lock(Patience::Loop).is_err() {
            return;
        }
        if let Ok(before) = state.store.board().cloned() {
            let mut board = before.clone();
            board.members.retain(|member, _| state.store.is_alive(member));
            if board == before || state.store.put_board(board).is_ok() {
                state.store.sweep_proofs();
            }
        }
        state.store.unlock();
    }

    /// All targets that anything was ever written of, sorted.
    #[must_use]
    pub fn targets(&self) -> Vec<(String, Target)> {
        let mut found: Vec<_> =
            Scope::ALL.iter().flat_map(|scope| self.place(*scope).enter().store.targets()).collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    /// Why nothing may be asked of a target now. A look: it takes nothing and changes nothing.
    #[must_use]
    pub fn hold(&self, target: &str, now_ms: u64) -> Option<Hold> {
        let policy = self.policy(target);
        self.place(Scope::of_target(target)).enter().view(target, policy).hold(policy, now_ms)
    }

    /// Changes a target's state under its lock; says what it is then.
    pub fn change(&self, target: &str, change: impl FnOnce(&mut Target)) -> io::Result<Target> {
        let mut state = self.place(Scope::of_target(target)).enter();
        let (changed, ..) = state.change_target(target, self.policy(target), Patience::Person, change)?;
        Ok(changed)
    }

    /// Sets a pool's limit for all runs from now on, or takes that back. `target:NAME` is a target's width.
    pub fn set(&self, pool: &str, limit: Option<u32>) -> io::Result<()> {
        let mut state = self.place(Scope::of_pool(pool)).enter();
        state.store.lock(Patience::Person)?;
        let result = state.store.board().cloned().and_then(|before| {
            let mut board = before.clone();
            match limit {
                Some(limit) => board.overrides.insert(pool.to_owned(), limit),
                None => board.overrides.remove(pool),
            };
            if board == before { Ok(()) } else { state.store.put_board(board) }
        });
        state.store.unlock();
        result
    }

    /// The limits that people have set, by pool.
    #[must_use]
    pub fn overrides(&self) -> BTreeMap<String, u32> {
        let of =
            |scope: &Scope| self.place(*scope).enter().store.board().cloned().unwrap_or_default().overrides;
        Scope::ALL.iter().flat_map(of).collect()
    }

    /// Who holds and who waits, of those that live, by pool and run.
    #[must_use]
    pub fn board(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for scope in Scope::ALL {
            let mut state = self.place(scope).enter();
            let board = state.store.board().cloned().unwrap_or_default();
            for (member, row) in board.members {
                if !state.store.is_alive(&member) {
                    continue;
                }
                entries.extend(row.pools.into_iter().map(|(pool, share)| Entry {
                    pool,
                    run: row.run.clone(),
                    held: share.held,
                    waiting: share.ticket.map(|ticket| Waiting {
                        priority: ticket.priority,
                        since_ms: ticket.since_ms,
                        asked_ms: ticket.asked_ms,
                    }),
                }));
            }
        }
        entries.sort_by(|one, other| (&one.pool, &one.run).cmp(&(&other.pool, &other.run)));
        entries
    }

    /// Tells once that a directory can't be used, so that limits there hold in this process only.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        Scope::ALL.iter().find_map(|scope| self.place(*scope).enter().take_warning())
    }
}

#[cfg(test)]
mod tests;
