//! Where code mode does not pay: found by playing smaller and smaller conversations.

use super::chain::{self, Chain};
use super::frozen::{Frozen, Set};
use super::sandbox::{Ran, Sandbox};
use super::ways::{Stage, Way};
use crate::cli::failure::Failure;

/// From where on code mode costs less than the other two ways; `None` if nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakEven {
    pub naive: Option<usize>,
    pub tool_search: Option<usize>,
}

/// One tiny call: the number of tools, up to `most`.
pub fn by_tools(frozen: &Frozen, sandbox: &dyn Sandbox, most: usize) -> Result<BreakEven, Failure> {
    let chain = chain::tiny(frozen)?;
    let once = Remembered(sandbox.run(chain.code[0]));
    let sizes: Vec<usize> = (1..=most).collect();
    scan(&sizes, |size| totals(&chain, frozen.set(*size), &once))
}

/// Lines of the log, some 2,000 tokens: every size beyond is worse for those who read it all.
const LINES: usize = 40;

/// One call with few tools: the tokens of its result, line by line of the log.
pub fn by_result(frozen: &Frozen, sandbox: &dyn Sandbox, tools: usize) -> Result<BreakEven, Failure> {
    let mut chain = chain::counting(frozen)?;
    let once = Remembered(sandbox.run(chain.code[0]));
    let log = chain.calls[0].result.clone();
    let ends: Vec<usize> = log.match_indices('\n').map(|(at, _)| at + 1).take(LINES).collect();
    let found = scan(&ends, |end| {
        chain.calls[0].result = log[..*end].to_string();
        totals(&chain, frozen.set(tools), &once)
    })?;
    let tokens = |end: usize| sage_engine::tokens::count(&log[..end]) as usize;
    Ok(BreakEven { naive: found.naive.map(tokens), tool_search: found.tool_search.map(tokens) })
}

/// The code is the same at every size, and so is what it gives: a short value.
struct Remembered(Ran);

impl Sandbox for Remembered {
    fn run(&self, _: &str) -> Ran {
        self.0.clone()
    }
}

fn totals(chain: &Chain, set: Set, sandbox: &dyn Sandbox) -> Result<[u64; 3], Failure> {
    let stage = Stage { chain, set, sandbox, retry: false };
    let mut totals = [0; 3];
    for (total, way) in totals.iter_mut().zip(Way::ALL) {
        *total = stage.play(way)?.spent.total();
    }
    Ok(totals)
}

/// The size after the last one at which code mode still loses.
fn scan(
    sizes: &[usize],
    mut totals: impl FnMut(&usize) -> Result<[u64; 3], Failure>,
) -> Result<BreakEven, Failure> {
    let (mut naive, mut tool_search) = (Some(0), Some(0));
    for (at, size) in sizes.iter().enumerate() {
        let [all, found, code] = totals(size)?;
        let next = (at + 1 < sizes.len()).then_some(at + 1);
        if code >= all {
            naive = next;
        }
        if code >= found {
            tool_search = next;
        }
    }
    let size = |at: Option<usize>| at.and_then(|at| sizes.get(at)).copied();
    Ok(BreakEven { naive: size(naive), tool_search: size(tool_search) })
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R19
    #[test]
    fn the_break_even_is_behind_the_last_loss() {
        let at = |size: &usize| Ok([*size as u64 * 10, 20, 35]);
        assert_eq!(scan(&[1, 2, 3, 4, 5], at).unwrap(), BreakEven { naive: Some(4), tool_search: None });
        assert_eq!(scan(&[8, 9], at).unwrap().naive, Some(8), "wins everywhere");
    }
}
