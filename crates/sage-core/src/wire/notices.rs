//! What people should know about a run although nothing failed.

use serde::{Deserialize, Serialize};

use super::rfc3339;
use crate::event::Aside;
use crate::port::Allowance;
use crate::price::UNKNOWN_MODEL;
use crate::run::{Output, Run};

/// Outputs that are not where the template says, in the order of the steps.
pub fn asides(run: &Run) -> impl Iterator<Item = &Aside> {
    let leaves = run.live_steps().filter(|step| step.children.is_none());
    leaves.filter_map(|step| match step.output.as_deref() {
        Some(Output::Leaf { aside, .. }) => aside.as_deref(),
        _ => None,
    })
}

pub fn notices(run: &Run) -> Vec<String> {
    let near = run.allowances().filter(|(_, allowance)| allowance.is_near());
    let near = near.map(|(agent, allowance)| allowance_text(agent, allowance));
    asides(run).map(Aside::to_string).chain(unpriced(run)).chain(near).collect()
}

/// `claude has used 87% of its 5-hour limit, which resets at 2026-11-18T05:20:58.000Z`
pub fn allowance_text(agent: &str, allowance: &Allowance) -> String {
    let Allowance { window, used_percent, reset_at_ms, .. } = allowance;
    let resets = reset_at_ms.map(|at| format!(", which resets at {}", rfc3339(at))).unwrap_or_default();
    format!("{agent} has used {used_percent}% of its {window} limit{resets}")
}

/// How much of an agent's account is used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowanceView {
    pub agent: String,
    pub window: String,
    pub used_percent: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resets_at: Option<String>,
    /// The agent itself warns that little is left.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub warning: bool,
}

impl AllowanceView {
    pub fn new(agent: &str, allowance: &Allowance) -> AllowanceView {
        AllowanceView {
            agent: agent.to_string(),
            window: allowance.window.clone(),
            used_percent: allowance.used_percent,
            resets_at: allowance.reset_at_ms.map(rfc3339),
            warning: allowance.warning,
        }
    }

    pub fn all(run: &Run) -> Vec<AllowanceView> {
        run.allowances().map(|(agent, allowance)| AllowanceView::new(agent, allowance)).collect()
    }
}

/// Models without a price, by name, and whose price was used.
pub fn unpriced(run: &Run) -> Vec<String> {
    let text = |(model, instead): (String, String)| unpriced_text(&model, &instead);
    run.usage().unpriced.into_iter().map(text).collect()
}

pub fn unpriced_text(model: &str, instead: &str) -> String {
    if model == UNKNOWN_MODEL {
        return format!("an agent did not name its model; its cost is estimated at the price of `{instead}`");
    }
    format!(
        "no price is known for model `{model}`; its cost is estimated at the price of `{instead}` \
         (set [prices.\"{model}\"] in sage.toml)"
    )
}
