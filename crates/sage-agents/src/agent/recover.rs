//! A turn whose owner was killed, and what is found out about it afterwards.

use sage_core::port::Usage;
use sage_core::price::PriceTable;

/// A turn without an end.
#[derive(Clone, Copy, Debug)]
pub struct CutTurn<'a> {
    /// When it began, and when the next turn of the conversation did, in ms since the epoch.
    pub since_ms: u64,
    pub until_ms: Option<u64>,
    /// The agent's own counters before it.
    pub counters: Option<&'a Usage>,
    pub prices: &'a PriceTable,
}

/// What it had used.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub usage: Usage,
    /// The agent's own counters after it, where they count over the whole conversation.
    pub counters: Option<Usage>,
}
