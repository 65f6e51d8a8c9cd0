//! The tree of budgets.

use std::collections::BTreeMap;

use super::{Amount, Cap};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub cap: Option<Cap>,
    pub settled: Amount,
    pub reserved: Amount,
}

/// The first cap on the way up that has no room.
#[derive(Clone, Debug, PartialEq)]
pub struct Short {
    pub node: String,
    pub cap: Cap,
    pub settled: Amount,
    pub reserved: Amount,
    pub want: Amount,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    nodes: BTreeMap<String, Node>,
}
