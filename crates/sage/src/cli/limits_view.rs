//! What `sage limits` shows: pools and targets with their sizes, who holds them and who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use sage_core::target::{Hold, HoldReason, QuotaPolicy, Target};
use sage_core::wire::rfc3339;
use sage_engine::limits::{Entry, Limits};
use sage_engine::open::Engine;
use serde_json::{Value, json};

use super::config::rates_text;
use super::context::Context;
use super::failure::Failure;
use super::target_names::{self, TARGET_POOL};
use super::{print, print_json};
use crate::display::text::{clean, clock_text};

/// The slots of all runs together.
pub const GLOBAL: &str = "global";

/// The slots of a pool, or of a target.
struct Slots {
    size: Option<u32>,
    overridden: bool,
    users: Vec<User>,
    waiting: Vec<Waiter>,
}

struct User {
    feature: String,
    run: String,
    units: u32,
}

/// It may hold some of the same slots, too: then it is also a user.
struct Waiter {
    feature: String,
    run: String,
    priority: u8,
    since_ms: u64,
}

struct Pool {
    name: String,
    /// Whom an affinity rule is about.
    agents: Vec<String>,
    slots: Slots,
}

struct Limited {
    name: String,
    limits: QuotaPolicy,
    hold: Option<Hold>,
    slots: Slots,
}

pub fn show(context: &Context, limits: &Limits, json: bool) -> Result<ExitCode, Failure> {
    let now = sage_engine::clock::Clock::System.now_ms();
    let board = Board::of(context, limits);
    let pools = pools(context, &board);
    let targets: Vec<Limited> = target_names::known(context, limits)
        .into_iter()
        .map(|(name, target)| limited(context, &board, name, &target, now))
        .collect();
    if json {
        print_json(&json!({
            "type": "limits", "pools": pools.iter().map(pool_json).collect::<Vec<_>>(),
            "targets": targets.iter().map(target_json).collect::<Vec<_>>(), "warning": limits.warning(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    pool_table(&pools, now);
    print("\n");
    target_table(&targets, now);
    if let Some(warning) = limits.warning() {
        eprintln!("note: {warning}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Who holds what and who waits, with the names that people know runs by.
struct Board {
    entries: Vec<Entry>,
    overrides: BTreeMap<String, u32>,
    features: BTreeMap<String, String>,
}

impl Board {
    fn of(context: &Context, limits: &Limits) -> Board {
        let engine: Engine = context.engine();
        let entries = limits.board();
        let runs: BTreeSet<String> = entries.iter().map(|entry| entry.run.clone()).collect();
        let feature = |run: String| (run.clone(), engine.feature_of(&run).unwrap_or(run));
        let features = runs.into_iter().map(feature).collect();
        Board { entries, overrides: limits.overrides(), features }
    }

    fn slots(&self, pool: &str, configured: Option<u32>) -> Slots {
        let own = || self.entries.iter().filter(|entry| entry.pool == pool);
        let feature =
            |entry: &Entry| self.features.get(&entry.run).cloned().unwrap_or_else(|| entry.run.clone());
        let user =
            |entry: &Entry| User { feature: feature(entry), run: entry.run.clone(), units: entry.held };
        let waiter = |entry: &Entry| {
            let (feature, run) = (feature(entry), entry.run.clone());
            entry.waiting.map(|w| Waiter { feature, run, priority: w.priority, since_ms: w.since_ms })
        };
        let users = own().filter(|entry| entry.held > 0).map(user).collect();
        let mut waiting: Vec<Waiter> = own().filter_map(waiter).collect();
        waiting.sort_by_key(|waiter| (waiter.priority, waiter.since_ms));
        let set = self.overrides.get(pool).copied();
        Slots { size: set.or(configured), overridden: set.is_some(), users, waiting }
    }
}

impl Slots {
    fn used(&self) -> u32 {
        self.users.iter().map(|user| user.units).fold(0, u32::saturating_add)
    }

    fn size_text(&self) -> String {
        let mark = if self.overridden { "*" } else { "" };
        self.size.map_or("-".into(), |size| format!("{size}{mark}"))
    }

    /// By feature: `payment 2, search 1`.
    fn users_text(&self) -> String {
        let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
        for user in &self.users {
            *sums.entry(&user.feature).or_default() += user.units;
        }
        sums.iter().map(|(feature, units)| format!("{feature} {units}")).collect::<Vec<_>>().join(", ")
    }

    fn json(&self) -> Value {
        let user = |user: &User| json!({"feature": user.feature, "run": user.run, "units": user.units});
        let waiter = |waiter: &Waiter| {
            json!({
                "feature": waiter.feature, "run": waiter.run, "priority": format!("P{}", waiter.priority),
                "since": rfc3339(waiter.since_ms),
            })
        };
        json!({
            "size": self.size, "overridden": self.overridden, "used": self.used(),
            "users": self.users.iter().map(user).collect::<Vec<_>>(),
            "waiting": self.waiting.iter().map(waiter).collect::<Vec<_>>(),
        })
    }
}

fn pools(context: &Context, board: &Board) -> Vec<Pool> {
    let config = &context.config;
    let parallel = if config.parallel_enabled { config.parallel } else { 1 };
    let affinity = |name: &str| {
        let number: usize = name.strip_prefix("affinity:")?.parse().ok()?;
        config.affinity.get(number)
    };
    let size = |name: &str| match name {
        GLOBAL => Some(parallel),
        name => config.pools.get(name).copied().or_else(|| affinity(name).map(|rule| rule.max_concurrent)),
    };
    let used = board.entries.iter().map(|entry| &entry.pool);
    let mut names: BTreeSet<String> =
        config.pools.keys().chain(board.overrides.keys()).chain(used).cloned().collect();
    names.extend((0..config.affinity.len()).map(|number| format!("affinity:{number}")));
    names.remove(GLOBAL);
    let names = std::iter::once(GLOBAL.to_string()).chain(names);
    let names = names.filter(|name| !name.starts_with(TARGET_POOL));
    let pool = |name: String| Pool {
        slots: board.slots(&name, size(&name)),
        agents: affinity(&name).map(|rule| rule.agents.clone()).unwrap_or_default(),
        name,
    };
    names.map(pool).collect()
}

fn limited(context: &Context, board: &Board, name: String, target: &Target, now_ms: u64) -> Limited {
    let policy = context.config.targets.policy(&name);
    let mut slots = board.slots(&format!("{TARGET_POOL}{name}"), policy.quota.concurrent);
    // Also what was set by hand is not more than the target has shown to bear.
    let limits = target.quota.limits(&QuotaPolicy { concurrent: slots.size, ..policy.quota });
    slots.size = limits.concurrent;
    Limited { hold: target.hold(policy, now_ms), name, limits, slots }
}

fn pool_json(pool: &Pool) -> Value {
    let mut value = pool.slots.json();
    value["name"] = pool.name.clone().into();
    if !pool.agents.is_empty() {
        value["agents"] = pool.agents.clone().into();
    }
    value
}

fn target_json(target: &Limited) -> Value {
    let mut value = target.slots.json();
    value["name"] = target.name.clone().into();
    value["requestsPerMinute"] = target.limits.requests_per_minute.into();
    value["inputTokensPerMinute"] = target.limits.input_tokens_per_minute.into();
    value["outputTokensPerMinute"] = target.limits.output_tokens_per_minute.into();
    let hold = |hold: &Hold| json!({"reason": hold.reason, "until": hold.until.map(rfc3339), "message": hold.message});
    value["parked"] = target.hold.as_ref().map_or(Value::Null, hold);
    value
}

fn pool_table(pools: &[Pool], now_ms: u64) {
    let width = pools.iter().map(|pool| pool.name.len()).max().unwrap_or(0);
    print(format_args!("{:width$}  {:>5}  {:>4}  BY\n", "POOL", "SIZE", "USED"));
    for pool in pools {
        let agents = clean(&pool.agents.join(", "));
        let about = if agents.is_empty() { agents } else { format!("({agents}) ") };
        let (size, used) = (pool.slots.size_text(), pool.slots.used());
        let line = format!("{:width$}  {size:>5}  {used:>4}  {about}{}", pool.name, pool.slots.users_text());
        print(format_args!("{}\n", line.trim_end()));
        waiting(&pool.slots, now_ms);
    }
    if pools.iter().any(|pool| pool.slots.overridden) {
        print("* set by `sage limits set`\n");
    }
}

fn waiting(slots: &Slots, now_ms: u64) {
    for waiter in &slots.waiting {
        let since = clock_text(now_ms.saturating_sub(waiter.since_ms));
        print(format_args!("  waits: {} (P{}, for {since})\n", waiter.feature, waiter.priority));
    }
}

fn target_table(targets: &[Limited], now_ms: u64) {
    let width = targets.iter().map(|target| target.name.len()).max().unwrap_or(0).max("TARGET".len());
    print(format_args!("{:width$}  {:>7}  {:>4}  PER MINUTE\n", "TARGET", "AT ONCE", "USED"));
    for target in targets {
        let (size, used) = (target.slots.size_text(), target.slots.used());
        let mut facts = vec![rates_text(&target.limits)];
        facts.push(target.slots.users_text());
        facts.extend(target.hold.as_ref().map(|hold| hold_text(hold, now_ms)));
        facts.retain(|fact| !fact.is_empty());
        let line = format!("{:width$}  {size:>7}  {used:>4}  {}", target.name, facts.join("; "));
        print(format_args!("{}\n", line.trim_end()));
        waiting(&target.slots, now_ms);
    }
    if targets.iter().any(|target| target.slots.overridden) {
        print("* set by `sage limits set`\n");
    }
}

fn hold_text(hold: &Hold, now_ms: u64) -> String {
    let what = match hold.reason {
        HoldReason::Isolated => "isolated",
        HoldReason::Breaker => "breaker open",
        HoldReason::RateLimit | HoldReason::Quota => "parked",
        HoldReason::Pool => "all slots are taken",
    };
    let until =
        hold.until.map(|until| format!(" for {}", clock_text(until.saturating_sub(now_ms).max(1_000))));
    format!("{what}{}: {}", until.unwrap_or_default(), clean(&hold.message))
}
