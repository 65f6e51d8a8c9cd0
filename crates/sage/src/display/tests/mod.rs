//! Pictures of canned runs: built from events alone, as the real ones are.

mod canned;
mod doing;
mod estimate;
mod follow;
mod summary;
mod tree;
mod waits;

pub(crate) use canned::Canned;
