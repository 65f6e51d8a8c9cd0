//! What models cost: a table by model name that comes with Sage and that people can override.
//!
//! Prices change without notice and differ by contract, so a cost from this table is an estimate. A model that
//! the table does not know is never free: it has no cost, or that of the dearest model of its provider (bill.rs).

mod bill;
mod cost;
mod rate;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::port::Usage;

pub use bill::{Bill, UNKNOWN_MODEL};
pub use cost::Cost;
pub use rate::Rate;

const BUILT_IN: &str = include_str!("prices.json");

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
    /// What is to stay in the cache for an hour; without it, as much as any cache write.
    #[serde(default, rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Rate>,
    /// Other rates for long prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// What a number of tokens belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// One request, with those of its cache writes that shall stay for an hour.
    Request { cache_write_1h: u64 },
    /// Nobody knows how many requests: each is taken for a short one.
    Several,
}

/// The rates of a request whose prompt has more than `above` tokens, cached ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LongPrompt {
    pub above: u64,
    pub input: Rate,
    pub output: Rate,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Rate>,
    #[serde(default, rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Rate>,
}

impl Price {
    pub const fn new(input: Rate, output: Rate) -> Price {
        Price { input, output, cache_read: None, cache_write: None, cache_write_1h: None, long_prompt: None }
    }

    /// `None` if nothing was reported: that is not the same as free.
    pub fn cost(&self, usage: &Usage, of: Of) -> Option<Cost> {
        let (request, cache_write_1h) = match of {
            Of::Request { cache_write_1h } => (true, cache_write_1h),
            Of::Several => (false, 0),
        };
        let long = self.long_prompt.filter(|long| request && usage.prompt_tokens() > long.above);
        let rates = long.map_or(*self, LongPrompt::rates);
        let cache_write = rates.cache_write.unwrap_or(rates.input);
        let longer = usage.cache_write.unwrap_or(0).min(cache_write_1h);
        let classes = [
            (usage.input, rates.input),
            (usage.cache_read, rates.cache_read.unwrap_or(rates.input)),
            (usage.cache_write.map(|tokens| tokens - longer), cache_write),
            (usage.cache_write.map(|_| longer), rates.cache_write_1h.unwrap_or(cache_write)),
            (usage.output, rates.output),
            (usage.reasoning, rates.output),
        ];
        let mut known =
            classes.iter().filter_map(|(tokens, rate)| Some((*tokens.as_ref()?, rate))).peekable();
        known.peek()?;
        Some(known.fold(Cost::default(), |sum, (tokens, rate)| sum.saturating_add(Cost::of(tokens, *rate))))
    }

    /// Of several requests together, rounded once, half up.
    pub fn cost_micro_usd(&self, usage: &Usage) -> Option<u64> {
        self.cost(usage, Of::Several).map(Cost::micro_usd)
    }

    /// Whether nothing costs less than by the other price.
    pub fn is_at_least(&self, other: &Price) -> bool {
        let is_at_least =
            |one: &Price, two: &Price| one.classes().iter().zip(two.classes()).all(|(a, b)| *a >= b);
        let long = |price: &Price| price.long_prompt.map_or(*price, LongPrompt::rates);
        let from = |price: &Price| price.long_prompt.map_or(u64::MAX, |long| long.above);
        // From where on each counts a prompt as long may differ; then all rates must do for all prompts.
        let in_between = from(self) <= from(other) || is_at_least(self, &long(other));
        is_at_least(self, other)
            && is_at_least(&long(self), &long(other))
            && is_at_least(&long(self), other)
            && in_between
    }

    /// With what stands in for rates that are left out.
    fn classes(&self) -> [Rate; 5] {
        let cache_write = self.cache_write.unwrap_or(self.input);
        let cache_write_1h = self.cache_write_1h.unwrap_or(cache_write);
        [self.input, self.output, self.cache_read.unwrap_or(self.input), cache_write, cache_write_1h]
    }
}

impl LongPrompt {
    fn rates(self) -> Price {
        let LongPrompt { above: _, input, output, cache_read, cache_write, cache_write_1h } = self;
        Price { input, output, cache_read, cache_write, cache_write_1h, long_prompt: None }
    }
}

/// Prices by the beginning of a model's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceTable {
    as_of: String,
    models: BTreeMap<String, Price>,
    /// What agents call models for short: `sonnet`.
    aliases: BTreeMap<String, String>,
    /// Models that cannot be used any more: no unknown model is one of them.
    retired: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    as_of: String,
    aliases: BTreeMap<String, String>,
    retired: BTreeSet<String>,
    per_million_tokens: BTreeMap<String, Price>,
}

impl PriceTable {
    /// Reads the embedded file: make it once and keep it.
    pub fn built_in() -> PriceTable {
        // A test reads the file, so that the default never stands in for it.
        let file: File = serde_json::from_str(BUILT_IN).unwrap_or_default();
        let File { as_of, aliases, retired, per_million_tokens: models } = file;
        PriceTable { as_of, models, aliases, retired }
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
    /// (`anthropic/claude-...`) and with a date after it; or of the model that it is an alias of.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let model = model.trim().to_lowercase();
        // `sonnet[1m]` is `sonnet` with a larger context.
        let alias = || self.aliases.get(model.split('[').next()?).and_then(|name| self.models.get(name));
        self.named(&model).or_else(alias)
    }

    fn named(&self, model: &str) -> Option<&Price> {
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

    /// Of several requests together.
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
