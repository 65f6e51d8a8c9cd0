//! Tables of the board's rules, the same rules through members, and (below) histories, files and processes.

mod board;
mod files;
mod histories;
mod members;
mod processes;

use std::collections::BTreeMap;
use std::path::Path;

use sage_core::policy::FailureClass;
use sage_core::target::{CallReport, Estimate, Hold, QuotaPolicy, TargetPolicy};

use super::*;

const NOW: u64 = 1_700_000_000_000;

/// Limits in memory or in a directory that ends with the test.
struct World {
    limits: Limits,
    home: Option<tempfile::TempDir>,
    config: LimitsConfig,
}

impl World {
    fn alone() -> Self {
        Self::alone_with(LimitsConfig::default())
    }

    fn alone_with(config: LimitsConfig) -> Self {
        Self { limits: Limits::alone(config.clone()), home: None, config }
    }

    fn on_disk() -> Self {
        Self::on_disk_with(LimitsConfig::default())
    }

    fn on_disk_with(config: LimitsConfig) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { limits: open(home.path(), config.clone()), home: Some(home), config }
    }

    fn both() -> [Self; 2] {
        [Self::alone(), Self::on_disk()]
    }

    fn both_with(config: &LimitsConfig) -> [Self; 2] {
        [Self::alone_with(config.clone()), Self::on_disk_with(config.clone())]
    }

    fn dir(&self) -> &Path {
        self.home.as_ref().unwrap().path()
    }

    /// As another process sees it: other descriptors, nothing remembered.
    fn other(&self) -> Limits {
        self.home.as_ref().map_or_else(|| self.limits.clone(), |home| open(home.path(), self.config.clone()))
    }

    fn member(&self, run: &str) -> Member {
        self.other().join(run).unwrap()
    }
}

fn open(dir: &Path, config: LimitsConfig) -> Limits {
    Limits::shared(config, dir.join("project"), dir.join("user"))
}

/// A policy under which each call is counted, and no more than so many are made in a minute.
fn per_minute(name: &str, most: u64) -> LimitsConfig {
    let quota = QuotaPolicy { requests_per_minute: Some(most), ..QuotaPolicy::default() };
    let policy = TargetPolicy { quota, ..TargetPolicy::default() };
    LimitsConfig { targets: BTreeMap::from([(name.to_owned(), policy)]), ..LimitsConfig::default() }
}

fn pool(pool: &str, units: u32, limit: u32) -> PoolWant<'_> {
    PoolWant { pool, units, limit }
}

fn want<'a>(pools: &'a [PoolWant<'a>], targets: &'a [String], priority: u8) -> Want<'a> {
    Want { pools, targets, priority, estimate: Estimate::default() }
}

trait Asks {
    fn asks(&self, pools: &[PoolWant<'_>], priority: u8, now_ms: u64) -> Result<Permit, Refused>;
    fn calls(&self, target: &str, now_ms: u64) -> Result<Permit, Refused>;
}

impl Asks for Member {
    fn asks(&self, pools: &[PoolWant<'_>], priority: u8, now_ms: u64) -> Result<Permit, Refused> {
        self.ask(&want(pools, &[], priority), now_ms).result()
    }

    fn calls(&self, target: &str, now_ms: u64) -> Result<Permit, Refused> {
        self.ask(&want(&[], &[target.to_owned()], 1), now_ms).result()
    }
}

impl Answer {
    fn result(self) -> Result<Permit, Refused> {
        match self {
            Answer::Granted(permit) => Ok(permit),
            Answer::Refused(refused) => Err(refused),
        }
    }
}

fn full(pool: &str) -> Refused {
    Refused::Pool { pool: pool.to_owned() }
}

fn failure() -> CallReport {
    CallReport { failure: Some(FailureClass::Transient), ..CallReport::default() }
}

/// Fails until nobody is let through any more.
fn break_target(member: &Member, target: &str, now_ms: u64) -> Hold {
    for _ in 0..100 {
        match member.calls(target, now_ms) {
            Ok(permit) => drop(permit.report(&failure(), now_ms)),
            Err(Refused::Target { hold, .. }) => return hold,
            Err(refused) => panic!("{refused:?}"),
        }
    }
    panic!("100 failures don't open the breaker")
}

fn held(limits: &Limits, pool: &str) -> u32 {
    limits.board().iter().filter(|entry| entry.pool == pool).map(|entry| entry.held).sum()
}
