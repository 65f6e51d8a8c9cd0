//! A board: who holds how much of which pool, and who waits for it. Pure; `text` reads and writes it.
//!
//! Rows are per member and pool, not per step, so that a board stays small whatever is in flight.
//! What must stay true:
//! - nothing is held while waiting: a ticket is a place in a queue, so no two wants can wait for each other;
//! - a want of several pools stops at the first that refuses it and waits only there. In pools that it has
//!   passed, its old tickets lapse; after `ageing_ms` they keep its own units free instead (`reserves`), so
//!   that it isn't overtaken for ever. All walk in the same order, so reservations can't close a circle.

use std::collections::BTreeMap;

/// A ticket that was not asked for again for so long is ignored: its run wants it no more, or is stopped.
pub(super) const TICKET_LIFE_MS: u64 = 2_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Board {
    /// Limits that a person has set, by pool.
    pub overrides: BTreeMap<String, u32>,
    /// By member id.
    pub members: BTreeMap<String, Row>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub run: String,
    pub pools: BTreeMap<String, Share>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Share {
    pub held: u32,
    pub ticket: Option<Ticket>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ticket {
    pub priority: u8,
    /// The first refusal since the member was last granted here.
    pub since_ms: u64,
    /// The last refusal here.
    pub asked_ms: u64,
    /// 0: it waits here, and nobody of a worse rank passes. Else it was free to pass here and waits for a
    /// later pool: only so many units are kept for it.
    pub reserves: u32,
}

impl Ticket {
    /// A clock that was set back must not make a ticket live for hours.
    fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.asked_ms) < TICKET_LIFE_MS
    }
}

/// A place in the queue: smaller is better.
type Rank<'a> = (u64, &'a str);

fn rank(since_ms: u64, priority: u8, ageing_ms: u64) -> u64 {
    since_ms.saturating_add(u64::from(priority).saturating_mul(ageing_ms))
}

/// What one member wants of one pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub member: &'a str,
    pub run: &'a str,
    pub pool: &'a str,
    pub units: u32,
    /// Unless a person has set another.
    pub limit: u32,
    pub priority: u8,
    pub now_ms: u64,
    pub ageing_ms: u64,
}

impl Board {
    fn limit(&self, ask: &Ask<'_>) -> u32 {
        self.overrides.get(ask.pool).copied().unwrap_or(ask.limit)
    }

    /// More than there can ever be counts as all of it, so that it can run alone.
    fn units(&self, ask: &Ask<'_>) -> u32 {
        ask.units.min(self.limit(ask))
    }

    fn share(&self, member: &str, pool: &str) -> Option<&Share> {
        self.members.get(member)?.pools.get(pool)
    }

    fn share_mut(&mut self, ask: &Ask<'_>) -> &mut Share {
        let row = self.members.entry(ask.member.to_owned()).or_default();
        if row.run != ask.run {
            row.run = ask.run.to_owned();
        }
        row.pools.entry(ask.pool.to_owned()).or_default()
    }

    /// The ticket that a refusal of this ask would leave.
    fn renewed(&self, ask: &Ask<'_>) -> Ticket {
        let fresh =
            Ticket { priority: ask.priority, since_ms: ask.now_ms, asked_ms: ask.now_ms, reserves: 0 };
        let Some(old) = self.share(ask.member, ask.pool).and_then(|share| share.ticket) else {
            return fresh;
        };
        // A lapsed ticket keeps its time, so that slow askers don't starve, but not its priority: the step
        // that had it may be gone.
        let priority = if old.is_fresh(ask.now_ms) { old.priority.min(ask.priority) } else { ask.priority };
        Ticket { priority, since_ms: old.since_ms.min(ask.now_ms), ..fresh }
    }

    fn rank<'a>(&self, ask: &Ask<'a>) -> Rank<'a> {
        let mine = self.renewed(ask);
        (rank(mine.since_ms, mine.priority, ask.ageing_ms), ask.member)
    }

    /// Others' tickets in this pool that come before this ask.
    fn better<'a>(&'a self, ask: &'a Ask<'_>) -> impl Iterator<Item = (&'a str, Ticket)> {
        let mine = self.rank(ask);
        self.members.iter().filter_map(move |(member, row)| {
            let ticket = row.pools.get(ask.pool)?.ticket.filter(|ticket| ticket.is_fresh(ask.now_ms))?;
            let theirs = (rank(ticket.since_ms, ticket.priority, ask.ageing_ms), member.as_str());
            (member != ask.member && theirs < mine).then_some((member.as_str(), ticket))
        })
    }

    pub fn held(&self, pool: &str) -> u64 {
        let shares = self.members.values().filter_map(|row| row.pools.get(pool));
        shares.map(|share| u64::from(share.held)).sum()
    }

    /// Whether it may be granted now, if everybody on the board lives.
    pub fn is_free(&self, ask: &Ask<'_>) -> bool {
        let (limit, units) = (self.limit(ask), self.units(ask));
        if ask.units == 0 || units == 0 {
            // A limit of 0 lets nobody in; who wants nothing gets it.
            return ask.units == 0;
        }
        let mut reserved = 0;
        for (_, ticket) in self.better(ask) {
            if ticket.reserves == 0 {
                return false;
            }
            reserved += u64::from(ticket.reserves);
        }
        self.held(ask.pool) + reserved + u64::from(units) <= u64::from(limit)
    }

    /// Who waits with the highest priority for a pool that the member holds units of: member, run, pool.
    pub fn pressed(&self, member: &str, now_ms: u64) -> Option<(String, String, String)> {
        let mine = self.members.get(member)?;
        let holds = |pool: &String| mine.pools.get(pool).is_some_and(|share| share.held > 0);
        let urgent = |share: &Share| {
            share.ticket.is_some_and(|it| it.priority == 0 && it.reserves == 0 && it.is_fresh(now_ms))
        };
        let mut others = self.members.iter().filter(|(name, _)| name.as_str() != member);
        others.find_map(|(name, row)| {
            let (pool, _) = row.pools.iter().find(|(pool, share)| urgent(share) && holds(pool))?;
            Some((name.clone(), row.run.clone(), pool.clone()))
        })
    }

    /// Everybody else whose death would help this ask.
    pub fn in_the_way(&self, ask: &Ask<'_>) -> Vec<String> {
        let holds = |row: &Row| row.pools.get(ask.pool).is_some_and(|share| share.held > 0);
        let holders =
            self.members.iter().filter(|(member, row)| *member != ask.member && holds(row)).map(|(m, _)| m);
        let mut found: Vec<String> = holders.cloned().collect();
        found.extend(self.better(ask).map(|(member, _)| member.to_owned()));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Grants it: says how many units were taken.
    pub fn take(&mut self, ask: &Ask<'_>) -> u32 {
        let units = self.units(ask);
        let share = self.share_mut(ask);
        share.held = share.held.saturating_add(units);
        share.ticket = None;
        self.tidy(ask.member);
        units
    }

    /// Refuses it: its member waits here. Not if its own limit lets nobody in: it would wait for ever, and
    /// others behind it.
    pub fn wait(&mut self, ask: &Ask<'_>) {
        if ask.limit == 0 && !self.overrides.contains_key(ask.pool) {
            return;
        }
        let ticket = self.renewed(ask);
        self.share_mut(ask).ticket = Some(ticket);
    }

    /// It is free here but was refused in a later pool: keeps its units for it, if it has waited too long.
    pub fn keep_place(&mut self, ask: &Ask<'_>) {
        let Some(old) = self.share(ask.member, ask.pool).and_then(|share| share.ticket) else {
            return;
        };
        if ask.now_ms.saturating_sub(old.since_ms) >= ask.ageing_ms {
            let ticket = Ticket { reserves: self.units(ask), ..self.renewed(ask) };
            self.share_mut(ask).ticket = Some(ticket);
        }
    }

    pub fn give(&mut self, member: &str, pool: &str, units: u32) {
        if let Some(share) = self.members.get_mut(member).and_then(|row| row.pools.get_mut(pool)) {
            share.held = share.held.saturating_sub(units);
            self.tidy(member);
        }
    }

    /// The member waits for nothing any more.
    pub fn withdraw(&mut self, member: &str) {
        if let Some(row) = self.members.get_mut(member) {
            row.pools.values_mut().for_each(|share| share.ticket = None);
            self.tidy(member);
        }
    }

    pub fn remove(&mut self, member: &str) {
        self.members.remove(member);
    }

    fn tidy(&mut self, member: &str) {
        if let Some(row) = self.members.get_mut(member) {
            row.pools.retain(|_, share| share.held > 0 || share.ticket.is_some());
            if row.pools.is_empty() {
                self.members.remove(member);
            }
        }
    }
}
