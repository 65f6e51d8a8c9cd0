//! The engine as a whole, on a simulated disk, with simulated time and scripted steps.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod budgets;
mod cache;
mod cache_crashes;
mod cache_stale;
mod crashes;
mod figures;
mod fork;
mod gc;
mod hedges;
mod obstacles;
mod questions;
mod quotas;
mod repairs;
mod running;
mod script;
mod sharing;
mod stalls;
mod syncs;
mod trouble;
mod urgent;
mod wakes;
mod world;
