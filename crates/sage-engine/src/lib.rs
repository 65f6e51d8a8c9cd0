//! Sage's durable engine: what must survive is written here, and what was written is found again.
//!
//! Storage: `vfs` (all file access), `journal` (the truth), `blobs` (large values), `checkpoint` (a run's image
//! for people and other tools), `lock` and `registry` (who runs what), `sim` (a disk that fails on demand).
//! Running: `run_loop` (the one loop), `prepare` and `perform` (a step before and in its attempt), `control`
//! (signals from other processes), `open` (starting and resuming), `background` (runs without a terminal),
//! `inbox` (wakes), `skills` (what can be reused), `cache` (results that later runs may take).

pub mod approvals;
pub mod background;
pub mod blobs;
pub mod cache;
mod called;
pub mod checkpoint;
pub mod clock;
pub mod control;
pub mod digest;
mod evaluate;
mod expect;
mod filter;
pub mod gc;
pub mod handoff;
pub mod image;
pub mod inbox;
pub mod journal;
pub mod limits;
pub mod lock;
pub mod open;
pub mod orchestration;
mod output;
mod pending;
mod perform;
mod pointer;
mod prepare;
pub mod project;
pub mod registry;
pub mod repair;
pub mod results;
pub mod run_loop;
pub mod sim;
pub mod skills;
mod teller;
pub mod tickets;
pub mod tokens;
mod trim;
pub mod trouble;
pub mod user_key;
pub mod verify;
pub mod vfs;
