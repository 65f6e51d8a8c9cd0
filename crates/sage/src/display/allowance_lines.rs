//! How much of their accounts agents have used. What is nearly used up is a notice; the rest is one line.

use sage_core::port::Allowance;
use sage_core::run::Run;
use sage_core::wire::{allowance_text, rfc3339};

use super::text::{Line, Tone};

/// Of accounts that are nearly used up.
pub(super) fn near(run: &Run) -> Vec<Line> {
    let near = run.allowances().filter(|(_, allowance)| allowance.is_near());
    let line = |(agent, it): (&str, &Allowance)| {
        Line::of(Tone::Warn, "! ").with(Tone::Plain, &allowance_text(agent, it))
    };
    near.map(line).collect()
}

/// `  codex: 12% of its 5-hour limit used (resets at …), 3% of its 7-day limit used (resets at …)`
pub(super) fn calm(run: &Run) -> Vec<Line> {
    let mut agents: Vec<(&str, Vec<String>)> = Vec::new();
    for (agent, it) in run.allowances().filter(|(_, allowance)| !allowance.is_near()) {
        let resets = it.reset_at_ms.map(|at| format!(" (resets at {})", rfc3339(at))).unwrap_or_default();
        let text = format!("{}% of its {} limit used{resets}", it.used_percent, it.window);
        match agents.last_mut().filter(|(known, _)| *known == agent) {
            Some((_, texts)) => texts.push(text),
            None => agents.push((agent, vec![text])),
        }
    }
    let line = |(agent, texts): (&str, Vec<String>)| {
        Line::of(Tone::Plain, "  ").with(Tone::Dim, &format!("{agent}: {}", texts.join(", ")))
    };
    agents.into_iter().map(line).collect()
}
