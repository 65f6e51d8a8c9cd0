//! What an attempt used: tokens by class, the model, and what they cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// In every field `None` means that nobody reported it; it is never taken for 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The cost, or a part of it, is not the agent's own figure but computed from the price table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_estimated: bool,
    /// The model as the agent names it; the latest one where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models without a known price, each with the model whose price was used instead.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced: BTreeMap<String, String>,
    /// More was used than this: the agent does not report all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl Usage {
    /// Known to be nothing.
    pub fn none() -> Usage {
        let zero = Some(0);
        Usage {
            input: zero,
            cache_read: zero,
            cache_write: zero,
            output: zero,
            reasoning: zero,
            cost_usd: Some(0.0),
            ..Usage::default()
        }
    }

    /// Neither tokens nor a cost were reported. A model alone is no usage.
    pub fn is_empty(&self) -> bool {
        self.classes().iter().all(Option::is_none) && self.cost_usd.is_none()
    }

    /// Sum of all known classes.
    pub fn total(&self) -> u64 {
        self.classes().into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// What a request carried to the model: everything but its answer.
    pub fn prompt_tokens(&self) -> u64 {
        let prompt = [self.input, self.cache_read, self.cache_write];
        prompt.into_iter().flatten().fold(0, u64::saturating_add)
    }

    pub fn add(&mut self, other: &Usage) {
        // An agent's figures are not to be trusted: they must not wrap around to nothing.
        self.each(other, |a, b| union(a, b, u64::saturating_add));
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.cost_estimated |= other.cost_estimated;
        self.model = other.model.clone().or(self.model.take());
        self.unpriced.extend(other.unpriced.clone());
        self.partial |= other.partial;
    }

    /// Another report about the same tokens: of each class, whoever knows more is right.
    pub fn raise(&mut self, other: &Usage) {
        self.each(other, |a, b| union(a, b, u64::max));
        self.cost_usd = self.cost_usd.into_iter().chain(other.cost_usd).reduce(f64::max);
        self.cost_estimated |= other.cost_estimated;
        self.model = other.model.clone().or(self.model.take());
        self.unpriced.extend(other.unpriced.clone());
        self.partial |= other.partial;
    }

    /// Takes back what was added before.
    pub fn subtract(&mut self, other: &Usage) {
        self.each(other, without);
        self.cost_usd = self.cost_usd.map(|cost| (cost - other.cost_usd.unwrap_or(0.0)).max(0.0));
    }

    /// Without model and cost.
    #[must_use]
    pub fn tokens(&self) -> Usage {
        let [input, cache_read, cache_write, output, reasoning] = self.classes();
        Usage { input, cache_read, cache_write, output, reasoning, ..Usage::default() }
    }

    /// Tokens of each class that are in this one and not in `other`.
    #[must_use]
    pub fn tokens_beyond(&self, other: &Usage) -> Usage {
        let mut beyond = self.tokens();
        beyond.each(other, without);
        beyond
    }

    /// The cost in millionths of a dollar.
    pub fn cost_micro_usd(&self) -> Option<u64> {
        // The cast saturates.
        self.cost_usd.map(|usd| (usd.max(0.0) * 1e6).round() as u64)
    }

    fn classes(&self) -> [Option<u64>; 5] {
        [self.input, self.cache_read, self.cache_write, self.output, self.reasoning]
    }

    fn each(&mut self, other: &Usage, of: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) {
        self.input = of(self.input, other.input);
        self.cache_read = of(self.cache_read, other.cache_read);
        self.cache_write = of(self.cache_write, other.cache_write);
        self.output = of(self.output, other.output);
        self.reasoning = of(self.reasoning, other.reasoning);
    }
}

fn union(a: Option<u64>, b: Option<u64>, of: fn(u64, u64) -> u64) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(of(a, b)),
        (a, b) => a.or(b),
    }
}

fn without(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.map(|a| a.saturating_sub(b.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: Option<u64>, output: Option<u64>, cost_usd: Option<f64>) -> Usage {
        Usage { input, output, cost_usd, ..Usage::default() }
    }

    // covers: R18
    #[test]
    fn reports_add_up_and_of_two_about_the_same_the_larger_holds() {
        let mut sum = usage(Some(1), None, Some(0.5));
        sum.add(&Usage { cost_estimated: true, model: Some("m".into()), ..usage(Some(2), Some(3), None) });
        assert_eq!((sum.total(), sum.cost_usd, sum.cost_estimated), (6, Some(0.5), true));
        assert_eq!(sum.model.as_deref(), Some("m"));
        sum.add(&usage(Some(u64::MAX), None, None));
        assert_eq!(sum.input, Some(u64::MAX), "sums do not wrap");

        let mut one = usage(Some(100), Some(1), None);
        one.raise(&usage(Some(90), Some(7), Some(0.25)));
        assert_eq!(one, usage(Some(100), Some(7), Some(0.25)));
    }

    // covers: R18
    #[test]
    fn what_was_added_can_be_taken_back() {
        let mut sum = usage(Some(5), Some(3), Some(0.75));
        sum.subtract(&usage(Some(2), None, Some(0.25)));
        assert_eq!(sum, usage(Some(3), Some(3), Some(0.5)));
        sum.subtract(&usage(Some(9), None, Some(9.0)));
        assert_eq!(sum, usage(Some(0), Some(3), Some(0.0)));
        let beyond = usage(Some(5), Some(3), Some(1.0)).tokens_beyond(&usage(Some(4), Some(9), None));
        assert_eq!(beyond, usage(Some(1), Some(0), None));
    }

    // covers: R18
    #[test]
    fn nothing_used_is_not_the_same_as_nothing_reported() {
        assert!(Usage::default().is_empty() && !Usage::none().is_empty());
        assert!(Usage { model: Some("m".into()), ..Usage::default() }.is_empty());
        assert_eq!((Usage::none().total(), Usage::none().cost_micro_usd()), (0, Some(0)));
        assert_eq!(usage(None, None, Some(-1.0)).cost_micro_usd(), Some(0));
        assert_eq!(usage(None, None, Some(0.0000015)).cost_micro_usd(), Some(2));
    }
}
