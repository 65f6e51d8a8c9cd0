//! The engine as a whole, on a simulated disk, with simulated time and scripted steps.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod crashes;
mod running;
mod syncs;
mod world;
