//! What an attempt costs by the table, request by request.
//!
//! A model without a price is counted as the dearest known model of its provider, so that a cap on money holds
//! whatever the model is called; the bill says so. Only where the provider is unknown, too, there is no cost.

use std::collections::BTreeMap;

use super::{Cost, Of, Price, PriceTable};
use crate::port::Usage;

/// The name of a model that nobody told.
pub const UNKNOWN_MODEL: &str = "unknown";

/// The sum so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    cost: Cost,
    requests: u64,
    /// Some request has no cost.
    open: bool,
    model: Option<String>,
    unpriced: BTreeMap<String, String>,
}

impl Bill {
    /// `provider` is whose model it is, where the model's name does not tell.
    pub fn add(
        &mut self,
        prices: &PriceTable,
        model: Option<&str>,
        provider: Option<&str>,
        usage: &Usage,
        of: Of,
    ) {
        self.model = model.map(str::to_string).or(self.model.take());
        if usage.total() == 0 {
            self.requests += u64::from(!usage.is_empty());
            return;
        }
        if let Some(price) = model.and_then(|model| prices.price(model)) {
            return self.charge(price, usage, of);
        }
        let provider = model.and_then(provider_of).or(provider);
        match provider.and_then(|provider| prices.dearest(Some(provider), usage, of)) {
            Some((name, price)) => {
                self.unpriced.insert(model.unwrap_or(UNKNOWN_MODEL).to_string(), name.to_string());
                self.charge(price, usage, of);
            }
            None => self.open = true,
        }
    }

    /// What nobody can price, as the dearest model of all.
    pub fn add_dearest(&mut self, prices: &PriceTable, model: Option<&str>, usage: &Usage) {
        if let Some((name, price)) = prices.dearest(None, usage, Of::Several) {
            self.unpriced.insert(model.unwrap_or(UNKNOWN_MODEL).to_string(), name.to_string());
            self.charge(price, usage, Of::Several);
        }
    }

    fn charge(&mut self, price: &Price, usage: &Usage, of: Of) {
        if let Some(cost) = price.cost(usage, of) {
            self.cost = self.cost.saturating_add(cost);
            self.requests += 1;
        }
    }

    /// `None` if some request could not be priced.
    pub fn usd(&self) -> Option<f64> {
        (self.requests > 0 && !self.open).then(|| self.cost.usd())
    }

    /// Writes on `usage` what the bill says: the cost, if it is known, and that it is an estimate.
    pub fn onto(&self, mut usage: Usage) -> Usage {
        usage.model = self.model.clone().or(usage.model);
        if let Some(usd) = self.usd() {
            usage.cost_usd = Some(usd);
            // Nothing is nothing, by any table.
            usage.cost_estimated = usage.total() > 0;
            usage.unpriced.extend(self.unpriced.clone());
        }
        usage
    }
}

impl PriceTable {
    /// The model for which these tokens cost the most, of one provider or of all.
    fn dearest(&self, provider: Option<&str>, usage: &Usage, of: Of) -> Option<(&str, &Price)> {
        // `anthropic/work` is an account.
        let provider = provider.map(|provider| provider.split('/').next().unwrap_or(provider));
        let of_it = |name: &str| provider.is_none_or(|provider| provider_of(name) == Some(provider));
        let models = self.models.iter().filter(|(name, _)| of_it(name) && !self.retired.contains(*name));
        let dearest = models.max_by_key(|(_, price)| price.cost(usage, of))?;
        Some((dearest.0.as_str(), dearest.1))
    }
}

/// Whose model it is, as far as its name tells.
fn provider_of(model: &str) -> Option<&'static str> {
    const FAMILIES: [(&str, &str); 7] = [
        ("claude-", "anthropic"),
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex-", "openai"),
        ("gemini-", "google"),
    ];
    let model = model.trim().to_lowercase();
    let name = model.rsplit('/').next().unwrap_or(&model);
    let name = name.rfind("anthropic.").map_or(name, |at| &name[at + "anthropic.".len()..]);
    FAMILIES.into_iter().find(|(family, _)| name.starts_with(family)).map(|(_, provider)| provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    fn billed(model: Option<&str>, provider: Option<&str>) -> Usage {
        let mut bill = Bill::default();
        bill.add(&PriceTable::built_in(), model, provider, &tokens(1_000, 1_000), Of::Several);
        bill.onto(tokens(1_000, 1_000))
    }

    // covers: R18
    #[test]
    fn a_cost_from_the_table_is_marked_as_an_estimate() {
        let usage = billed(Some("claude-sonnet-4-5"), None);
        assert_eq!((usage.cost_usd, usage.cost_estimated), (Some(0.018), true));
        assert_eq!(usage.model.as_deref(), Some("claude-sonnet-4-5"));
        assert!(usage.unpriced.is_empty());
    }

    // covers: R18
    #[test]
    fn an_unknown_model_costs_what_the_dearest_of_its_provider_costs() {
        for (model, provider) in
            [(Some("gpt-99"), None), (Some("fake-1"), Some("openai")), (None, Some("openai/work"))]
        {
            let usage = billed(model, provider);
            // $30 + $180 per million.
            assert_eq!((usage.cost_usd, usage.cost_estimated), (Some(0.21), true), "{model:?}");
            let name = model.unwrap_or("unknown").to_string();
            assert_eq!(usage.unpriced, BTreeMap::from([(name, "gpt-5.5-pro".to_string())]));
        }
        let claude = billed(Some("claude-opus-9"), Some("openai"));
        assert_eq!(claude.unpriced["claude-opus-9"], "claude-opus-4-1", "the name decides");
        assert_eq!(claude.cost_usd, Some(0.09));
    }

    // covers: R18
    #[test]
    fn without_a_provider_there_is_no_cost_until_a_cap_needs_one() {
        let prices = PriceTable::built_in();
        let mut bill = Bill::default();
        bill.add(&prices, Some("gpt-5"), None, &tokens(1_000, 1_000), Of::Several);
        bill.add(&prices, Some("llama-4"), None, &tokens(1_000, 1_000), Of::Several);
        let usage = bill.onto(tokens(2_000, 2_000));
        assert_eq!((usage.cost_usd, usage.cost_estimated), (None, false));
        let mut bill = Bill::default();
        bill.add_dearest(&prices, Some("llama-4"), &tokens(1_000, 1_000));
        assert_eq!(bill.usd(), Some(0.21));
        assert_eq!(Bill::default().usd(), None, "nothing was requested");
    }

    // covers: R18
    #[test]
    fn many_small_requests_are_not_rounded_one_by_one() {
        let prices = PriceTable::built_in();
        let mut bill = Bill::default();
        for _ in 0..1_000 {
            bill.add(&prices, Some("gpt-5-nano"), None, &tokens(1, 0), Of::Several);
        }
        // 1,000 x $0.05 per million.
        assert_eq!(bill.usd(), Some(0.00005));
    }
}
