//! What models cost: a table by model name that comes with Sage and that people can override.
//!
//! Prices change without notice and differ by contract, so a cost from this table is an estimate. A model that
//! the table does not know has no cost, rather than a cost of 0.

mod rate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::port::Usage;

pub use rate::Rate;

const BUILT_IN: &str = include_str!("prices.json");

const TOKENS_PER_RATE: u128 = 1_000_000;

/// By class of token. Reasoning costs what output costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    pub input: Rate,
    pub output: Rate,
    /// Without it, reading from a cache costs as much as input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Rate>,
    /// Without it, writing to a cache costs as much as input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Rate>,
}

impl Price {
    /// Rounded once, half up. `None` if nothing was reported: that is not the same as free.
    pub fn cost_micro_usd(&self, usage: &Usage) -> Option<u64> {
        let classes = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
            (usage.output, self.output),
            (usage.reasoning, self.output),
        ];
        let mut known =
            classes.iter().filter_map(|(tokens, rate)| Some((*tokens.as_ref()?, rate))).peekable();
        known.peek()?;
        let sum = known.fold(0_u128, |sum, (tokens, rate)| {
            sum.saturating_add(u128::from(tokens).saturating_mul(u128::from(rate.micro_usd())))
        });
        let rounded = sum.saturating_add(TOKENS_PER_RATE / 2) / TOKENS_PER_RATE;
        Some(u64::try_from(rounded).unwrap_or(u64::MAX))
    }
}

/// Prices by the beginning of a model's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceTable {
    as_of: String,
    models: BTreeMap<String, Price>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    as_of: String,
    per_million_tokens: BTreeMap<String, Price>,
}

impl PriceTable {
    /// Reads the embedded file: make it once and keep it.
    pub fn built_in() -> PriceTable {
        // A test reads the file, so that the default never stands in for it.
        let file: File = serde_json::from_str(BUILT_IN).unwrap_or_default();
        PriceTable { as_of: file.as_of, models: file.per_million_tokens }
    }

    /// Adds prices, or replaces those of the same name.
    #[must_use]
    pub fn with(mut self, overrides: impl IntoIterator<Item = (String, Price)>) -> PriceTable {
        self.models.extend(overrides.into_iter().map(|(model, price)| (model.to_lowercase(), price)));
        self
    }

    /// Up to when the built-in prices are known to be right, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Of the longest name in the table that `model` begins with, also without the provider before it
    /// (`anthropic/claude-...`) and with a date after it.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let model = model.trim().to_lowercase();
        let behind_slash = model.match_indices('/').map(|(at, _)| at + 1);
        // Bedrock: `us.anthropic.claude-...`.
        let behind_dot = model.find("anthropic.").map(|at| at + "anthropic.".len());
        let starts = std::iter::once(0).chain(behind_slash).chain(behind_dot);
        let mut names = starts.filter_map(|start| model.get(start..));
        names.find_map(|name| {
            // Others write `claude-opus-4.1` for what Anthropic calls `claude-opus-4-1`.
            let dashed = || name.starts_with("claude").then(|| name.replace('.', "-"));
            self.longest(name).or_else(|| self.longest(&dashed()?))
        })
    }

    pub fn cost_micro_usd(&self, model: &str, usage: &Usage) -> Option<u64> {
        self.price(model)?.cost_micro_usd(usage)
    }

    fn longest(&self, name: &str) -> Option<&Price> {
        let ends = (1..=name.len()).rev();
        let mut parts = ends.filter_map(|end| Some((name.get(..end)?, name.get(end..)?)));
        parts.find_map(|(prefix, rest)| self.models.get(prefix).filter(|_| is_same_model(prefix, rest)))
    }
}

/// Whether `rest` only says more about the model that `prefix` names, such as a date or `-preview`. A further
/// digit is another model with another price: `gpt-5` is not `gpt-5.9`, `claude-opus-4` not `claude-opus-4-9`.
fn is_same_model(prefix: &str, rest: &str) -> bool {
    if prefix.ends_with(|c: char| !c.is_alphanumeric()) {
        return true; // `my-proxy/` is meant for everything below it.
    }
    match rest.strip_prefix('-') {
        Some(more) => {
            // `-20250514` is a date, `-001` a revision and `-70b` a size; `-1` and `-10` are versions.
            let after = more.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_short = (1..=2).contains(&(more.len() - after.len()));
            !is_short || after.starts_with(char::is_alphanumeric)
        }
        None => !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'),
    }
}
