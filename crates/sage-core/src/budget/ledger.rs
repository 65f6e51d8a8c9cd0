//! The tree of budgets: what each node may spend, has spent and has promised.
//!
//! A node is named by text (`run`, `phase:research`, `step:research/market`, `agent:claude`). A charge counts
//! in every node of its *way*; the order of a way only decides which shortage is told. The run is on every
//! way, named or not, so that no charge can miss it.

use std::collections::BTreeMap;
use std::fmt;

use super::amount::{money_text, tokens_text, unit_allows};
use super::{Amount, Cap};

/// The node that is on every way.
pub const RUN: &str = "run";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub cap: Option<Cap>,
    pub settled: Amount,
    pub reserved: Amount,
}

/// The first cap on the way that has no room.
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
    /// How many nodes have a cap: asked before every start, so it is not counted anew.
    caps: usize,
}

impl Node {
    /// What was spent above the cap: one response of an agent may do that, and raising it later undoes it.
    pub fn overshoot(&self) -> Amount {
        let cap = self.cap.unwrap_or_default();
        let above = |settled: u64, cap: Option<u64>| cap.map_or(0, |cap| settled.saturating_sub(cap));
        Amount {
            tokens: above(self.settled.tokens, cap.tokens),
            micro_usd: above(self.settled.micro_usd, cap.micro_usd),
        }
    }
}

impl Ledger {
    /// An empty cap is none.
    pub fn set_cap(&mut self, node: &str, cap: Option<Cap>) {
        let cap = cap.filter(|cap| !cap.is_empty());
        if cap.is_none() && !self.nodes.contains_key(node) {
            return;
        }
        let before = self.change(node, |node| std::mem::replace(&mut node.cap, cap));
        self.caps = self.caps + usize::from(cap.is_some()) - usize::from(before.is_some());
    }

    /// Before all caps are stated anew.
    pub fn clear_caps(&mut self) {
        self.nodes.values_mut().for_each(|node| node.cap = None);
        self.caps = 0;
    }

    pub fn cap(&self, node: &str) -> Option<Cap> {
        self.nodes.get(node)?.cap
    }

    /// Without any cap there is nothing to account for.
    pub fn has_caps(&self) -> bool {
        self.caps > 0
    }

    /// Whether every cap on the way has room; else the first one that has not.
    pub fn fits(&self, way: &[&str], want: Amount) -> Result<(), Short> {
        for name in counted(way) {
            let Some(Node { cap: Some(cap), settled, reserved }) = self.nodes.get(name) else {
                continue;
            };
            if !cap.allows(*settled, *reserved, want) {
                let (node, cap, settled, reserved) = (name.to_owned(), *cap, *settled, *reserved);
                return Err(Short { node, cap, settled, reserved, want });
            }
        }
        Ok(())
    }

    /// Promises `amount`, room or not: whoever replays a run takes promises as they were made.
    pub fn reserve(&mut self, way: &[&str], amount: Amount) {
        for name in counted(way) {
            self.change(name, |node| node.reserved = node.reserved.saturating_add(amount));
        }
    }

    /// Gives back all that was `reserved` and counts what was `spent`, also if that is more.
    pub fn settle(&mut self, way: &[&str], reserved: Amount, spent: Amount) {
        for name in counted(way) {
            self.change(name, |node| {
                node.reserved = node.reserved.saturating_sub(reserved);
                node.settled = node.settled.saturating_add(spent);
            });
        }
    }

    /// What was settled turns out to have been another amount.
    pub fn correct(&mut self, way: &[&str], settled: Amount, really: Amount) {
        for name in counted(way) {
            self.change(name, |node| {
                node.settled = node.settled.saturating_sub(settled).saturating_add(really);
            });
        }
    }

    /// The least that is left of each unit; `None` where nothing on the way limits it.
    pub fn left(&self, way: &[&str]) -> Cap {
        let mut tightest = Cap::default();
        for name in counted(way) {
            let Some(Node { cap: Some(cap), settled, reserved }) = self.nodes.get(name) else {
                continue;
            };
            let left = cap.left(*settled, *reserved);
            let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
            tightest.tokens = least(tightest.tokens, left.tokens);
            tightest.micro_usd = least(tightest.micro_usd, left.micro_usd);
        }
        tightest
    }

    /// Every node that has a cap or was charged, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(name, node)| (name.as_str(), node))
    }

    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    pub fn overshoot(&self, node: &str) -> Amount {
        self.nodes.get(node).map(Node::overshoot).unwrap_or_default()
    }

    fn change<T>(&mut self, name: &str, change: impl FnOnce(&mut Node) -> T) -> T {
        // `entry` alone wants an owned name also for a node that exists, which is all but the first time.
        match self.nodes.get_mut(name) {
            Some(node) => change(node),
            None => change(self.nodes.entry(name.to_owned()).or_default()),
        }
    }
}

/// The nodes of a way, each once, and the run.
fn counted<'a>(way: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let first = |(at, name): (usize, &&'a str)| (!way[..at].contains(name)).then_some(*name);
    let run = (!way.contains(&RUN)).then_some(RUN);
    way.iter().enumerate().filter_map(first).chain(run)
}

/// `the budget of the run is 200k tokens; 150k are spent, 60k are reserved, and this step needs 20k`.
impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the budget of ")?;
        match self.node.split_once(':') {
            None if self.node == RUN => f.write_str("the run")?,
            Some((kind @ ("phase" | "step" | "agent"), name)) => write!(f, "{kind} `{name}`")?,
            _ => write!(f, "`{}`", self.node)?,
        }
        let Short { cap, settled, reserved, want, .. } = self;
        let tokens = [settled.tokens, reserved.tokens, want.tokens];
        let money = [settled.micro_usd, reserved.micro_usd, want.micro_usd];
        let mut joint = " is";
        if let Some(limit) = short_of(cap.tokens, tokens) {
            let [settled, reserved, want] = tokens.map(tokens_text);
            write!(f, "{joint} {} tokens; ", tokens_text(limit))?;
            write_taken(f, tokens, &format!("{settled} are spent"), &format!("{reserved} are reserved"))?;
            write!(f, "this step needs {want}")?;
            joint = "; it is also";
        }
        if let Some(limit) = short_of(cap.micro_usd, money) {
            let [settled, reserved, want] = money.map(money_text);
            write!(f, "{joint} {}; ", money_text(limit))?;
            write_taken(f, money, &format!("{settled} is spent"), &format!("{reserved} is reserved"))?;
            write!(f, "this step needs {want}")?;
        }
        Ok(())
    }
}

/// The cap, if it is the one that has no room.
fn short_of(cap: Option<u64>, [settled, reserved, want]: [u64; 3]) -> Option<u64> {
    cap.filter(|_| !unit_allows(cap, settled, reserved, want))
}

/// What is zero is left out.
fn write_taken(f: &mut fmt::Formatter<'_>, amounts: [u64; 3], spent: &str, promised: &str) -> fmt::Result {
    match amounts {
        [0, 0, _] => Ok(()),
        [_, 0, _] => write!(f, "{spent}, and "),
        [0, _, _] => write!(f, "{promised}, and "),
        _ => write!(f, "{spent}, {promised}, and "),
    }
}
