//! What a turn has used, response by response.
//!
//! A response is told several times: when it begins, with each block of it (also those of subagents), when it ends,
//! and in the program's own file. Of each, whoever knows more is right; a response that broke off is counted as far
//! as it went.

use std::collections::BTreeMap;

use sage_core::port::Usage;
use sage_core::price::{Bill, Of, PriceTable};
use serde_json::Value;

use super::PROVIDER;
use super::spent::of_request;

/// What one event says about a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    pub id: Option<String>,
    pub model: Option<String>,
    pub usage: Usage,
    /// Of the cache writes, those that shall stay for an hour.
    pub cache_write_1h: u64,
}

impl Counted {
    /// Of a message, or of an event with its `usage`.
    pub fn of(message: &Value) -> Counted {
        let text = |name: &str| message[name].as_str().map(str::to_string);
        let usage = &message["usage"];
        Counted {
            id: text("id"),
            model: text("model"),
            usage: of_request(usage),
            cache_write_1h: usage["cache_creation"]["ephemeral_1h_input_tokens"].as_u64().unwrap_or(0),
        }
    }

    fn raise(&mut self, other: &Counted) {
        self.model = self.model.take().or_else(|| other.model.clone());
        self.usage.raise(&other.usage);
        self.cache_write_1h = self.cache_write_1h.max(other.cache_write_1h);
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tab {
    responses: BTreeMap<String, Counted>,
    /// The one that is under way.
    current: Option<String>,
}

impl Tab {
    /// A response begins.
    pub fn begin(&mut self, counted: &Counted) {
        self.current = counted.id.clone();
        self.take(counted);
    }

    /// The one that is under way ends.
    pub fn end(&mut self, counted: &Counted) {
        if let Some(response) = self.current.as_ref().and_then(|id| self.responses.get_mut(id)) {
            response.raise(counted);
        }
    }

    /// Something was said about a response. The program's own messages are none.
    pub fn take(&mut self, counted: &Counted) {
        let Some(id) = counted.id.as_ref().filter(|_| !counted.usage.is_empty()) else { return };
        if counted.model.as_deref() == Some("<synthetic>") {
            return;
        }
        self.responses.entry(id.clone()).or_default().raise(counted);
    }

    /// All responses so far, with what they cost by the table.
    pub fn usage(&self, prices: &PriceTable) -> Usage {
        let (mut sum, mut bill) = (Usage::default(), Bill::default());
        for response in self.responses.values() {
            sum.add(&response.usage);
            let of = Of::Request { cache_write_1h: response.cache_write_1h };
            bill.add(prices, response.model.as_deref(), Some(PROVIDER), &response.usage, of);
        }
        // Ids have no order: the one under way tells the model of now.
        let newest = self.current.as_ref().and_then(|id| self.responses.get(id)?.model.clone());
        let mut sum = bill.onto(sum);
        sum.model = newest.or(sum.model);
        sum
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: &str, output: u64) -> Counted {
        Counted::of(&json!({"id": id, "model": "claude-sonnet-5-5", "usage": {"input_tokens": 100,
            "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20, "output_tokens": output}}))
    }

    fn delta(output: u64) -> Counted {
        Counted::of(&json!({"type": "message_delta", "usage": {"output_tokens": output}}))
    }

    // covers: R18
    #[test]
    fn a_response_counts_once_however_often_it_is_told() {
        let prices = PriceTable::built_in();
        let mut tab = Tab::default();
        assert!(tab.usage(&prices).is_empty());
        tab.begin(&message("a", 1));
        assert_eq!(tab.usage(&prices).total(), 151, "a response that has only begun");
        tab.take(&message("a", 1));
        tab.end(&delta(7));
        tab.take(&message("a", 7));
        let usage = tab.usage(&prices);
        assert_eq!((usage.total(), usage.model.as_deref()), (157, Some("claude-sonnet-5-5")));
        // 100 x 2 + 30 x 0.1 + 20 x 2.5 + 7 x 10 per million.
        assert_eq!((usage.cost_usd, usage.cost_estimated), (Some(0.000323), true));
    }

    // covers: R18
    #[test]
    fn what_broke_off_and_what_subagents_used_counts_as_far_as_it_is_known() {
        let prices = PriceTable::built_in();
        let mut tab = Tab::default();
        tab.begin(&message("broken", 1));
        tab.begin(&message("whole", 1));
        tab.end(&delta(7));
        tab.take(&message("of a subagent", 1));
        assert_eq!(tab.usage(&prices).total(), 151 + 157 + 151);
        let own =
            json!({"id": "x", "model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}});
        tab.take(&Counted::of(&own));
        tab.take(&Counted::of(&json!({"id": "y", "model": "m"})));
        assert_eq!(tab.usage(&prices).total(), 151 + 157 + 151);
    }

    // covers: R18
    #[test]
    fn writes_for_an_hour_and_long_prompts_have_their_own_price() {
        let prices = PriceTable::built_in();
        let mut tab = Tab::default();
        tab.take(&Counted::of(&json!({"id": "a", "model": "claude-haiku-5-5", "usage": {
            "input_tokens": 100_001, "cache_creation_input_tokens": 1_000,
            "cache_creation": {"ephemeral_1h_input_tokens": 1_000}, "output_tokens": 0}})));
        // Above 100,000: $0.50, and $1 to write for an hour.
        assert_eq!(tab.usage(&prices).cost_usd, Some(0.051_000_5));
    }
}
