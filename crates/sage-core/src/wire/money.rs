//! Costs as all doors show them.

use crate::port::Usage;

/// In dollars, to the millionth: what the budgets count in.
pub fn shown_cost(usage: &Usage) -> Option<f64> {
    usage.cost_usd.map(|usd| (usd * 1e6).round() / 1e6)
}
