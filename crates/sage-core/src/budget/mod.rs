//! What may be spent, in tokens and money: amounts, caps, and the tree of both.
//!
//! A step reserves before it starts and settles after; at every start what is settled and reserved fits under
//! every cap above it. Money is counted in millionths of a dollar, because sums of floats drift.

mod amount;
pub(crate) mod decimal;
mod estimate;
mod ledger;
#[cfg(test)]
mod tests;

pub use amount::{Amount, Cap, CapError};
pub use estimate::{History, MIN_MICRO_USD, MIN_TOKENS, reservation};
pub use ledger::{Ledger, Node, RUN, Short};
