//! How much of their accounts agents have used, as they said in the newest runs of the project.

use std::collections::BTreeMap;

use sage_core::port::Allowance;
use sage_engine::open::{Engine, Newest};

/// The newest runs that are looked at.
const RUNS: usize = 10;
/// How long it counts where no agent said when the window ends.
const FRESH_MS: u64 = 3_600_000;

/// By agent, and each window once: as it was said last, if the window has not ended since.
pub fn newest(engine: &Engine, now_ms: u64) -> BTreeMap<String, Vec<Allowance>> {
    let mut runs: Vec<(String, String)> = engine
        .index()
        .into_iter()
        .filter_map(|(feature, newest): (String, Newest)| Some((newest.run?, feature)))
        .collect();
    // Ids of runs begin with the time.
    runs.sort_unstable_by(|a, b| b.cmp(a));
    let read = |(run, feature): (String, String)| {
        engine.snapshot_of(&feature, &run).ok().filter(|it| !it.is_foreign)
    };
    let mut runs: Vec<_> = runs.into_iter().take(RUNS).filter_map(read).collect();
    runs.sort_by_key(|snapshot| snapshot.run.updated_ms);
    let mut windows: BTreeMap<(String, String), Allowance> = BTreeMap::new();
    for run in runs.iter().map(|snapshot| &snapshot.run) {
        let ends = |it: &Allowance| it.reset_at_ms.unwrap_or(run.updated_ms.saturating_add(FRESH_MS));
        for (agent, it) in run.allowances().filter(|(_, it)| ends(it) > now_ms) {
            windows.insert((agent.to_string(), it.window.clone()), it.clone());
        }
    }
    let mut agents: BTreeMap<String, Vec<Allowance>> = BTreeMap::new();
    for ((agent, _), allowance) in windows {
        agents.entry(agent).or_default().push(allowance);
    }
    agents
}
