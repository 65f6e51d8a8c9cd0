//! How much of their accounts agents have used. What is nearly used up is a notice; the rest is one line.

use std::collections::HashMap;

use sage_core::port::Allowance;
use sage_core::run::Run;
use sage_core::wire::{allowance_text, rfc3339};

use super::text::{Line, Tone};

/// Each is worth a line of its own when it is reached; the first one also when the agent itself warns.
const THRESHOLDS: [u32; 3] = [75, 90, 100];

/// Warnings of one view: one line for each threshold of each account's window.
#[derive(Debug, Default)]
pub(super) struct Warned {
    /// The highest threshold that was told, and until when it counts.
    told: HashMap<(String, String), (u32, Option<u64>)>,
}

impl Warned {
    /// What is new, given everything that is known by now.
    pub fn news(&mut self, run: &Run) -> Vec<String> {
        let near = run.allowances().filter(|(_, allowance)| allowance.is_near());
        let news = near.filter(|(agent, allowance)| self.is_new(agent, allowance));
        news.map(|(agent, allowance)| format!("note: {}", allowance_text(agent, allowance))).collect()
    }

    fn is_new(&mut self, agent: &str, allowance: &Allowance) -> bool {
        let reached = THRESHOLDS.iter().rfind(|percent| allowance.used_percent >= **percent);
        let (reached, reset) = (*reached.unwrap_or(&THRESHOLDS[0]), allowance.reset_at_ms);
        let key = (agent.to_string(), allowance.window.clone());
        let told = self.told.get(&key);
        // Another window has begun when less is used than before.
        let new = told.is_none_or(|(told, until)| reached > *told || (reached < *told && *until != reset));
        if new {
            self.told.insert(key, (reached, reset));
        }
        new
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R18
    #[test]
    fn each_threshold_is_told_once() {
        let mut warned = Warned::default();
        let mut told = |used_percent, reset, warning| {
            let (window, reset_at_ms) = ("5-hour".to_string(), Some(reset));
            warned.is_new("claude", &Allowance { window, used_percent, reset_at_ms, warning })
        };
        let said = [
            told(76, 1, false),
            told(81, 1, false),
            told(91, 1, false),
            told(95, 1, true),
            told(100, 1, true),
        ];
        assert_eq!(said, [true, false, true, false, true]);
        assert!(told(40, 2, true), "a new window in which the agent warns early");
        assert!(!told(80, 2, true));
    }
}
