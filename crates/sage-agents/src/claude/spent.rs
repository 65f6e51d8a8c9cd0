//! What a turn has used, from its terminal events.
//!
//! `model_usage_since_last_result` is this invocation's, complete and with subagents. `usage` lacks subagents
//! and, where a limit ended the turn, the last request; `total_cost_usd` counts over the whole conversation.
//! So the first is taken, and the others only where a version does not have it.

use sage_core::port::Usage;
use sage_core::price::{Bill, Of, PriceTable};
use serde_json::Value;

use super::PROVIDER;

/// What one terminal event told.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// By model, with its cost where the program has a price for it.
    models: Vec<(Option<String>, Usage)>,
}

impl Spent {
    /// All models together. What has no price of the program's own is priced by the table.
    pub fn usage(&self, prices: &PriceTable) -> Usage {
        let mut sum = Usage { reasoning: None, ..Usage::none() };
        for (model, usage) in &self.models {
            if usage.cost_usd.is_some() {
                sum.add(usage);
                continue;
            }
            let mut bill = Bill::default();
            bill.add(prices, model.as_deref(), Some(PROVIDER), usage, Of::Several);
            sum.add(&bill.onto(usage.clone()));
        }
        Usage { model: None, ..sum }
    }
}

/// `counted` is the conversation's cost before this event.
pub fn spent(result: &Value, counted: Option<f64>) -> Spent {
    let models = result["model_usage_since_last_result"].as_object();
    let Some(models) = models else {
        let usage = Usage { cost_usd: cost_since(result, counted), ..tokens(&result["usage"], SNAKE) };
        let model = result["modelUsage"].as_object().and_then(|models| models.keys().next().cloned());
        return Spent { models: if usage.is_empty() { Vec::new() } else { vec![(model, usage)] } };
    };
    let each = |(name, model): (&String, &Value)| {
        (Some(name.clone()), Usage { cost_usd: cost(model), ..tokens(model, CAMEL) })
    };
    Spent { models: models.iter().map(each).collect() }
}

/// Input, cache read, cache write, output.
type Names = [&'static str; 4];
const CAMEL: Names = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
const SNAKE: Names =
    ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

/// As the endpoint tells it.
pub fn of_request(counts: &Value) -> Usage {
    tokens(counts, SNAKE)
}

/// Thinking is part of the output, and not told apart.
fn tokens(counts: &Value, names: Names) -> Usage {
    let [input, cache_read, cache_write, output] = names.map(|name| counts[name].as_u64());
    Usage { input, cache_read, cache_write, output, ..Usage::default() }
}

/// Of a model that it has no price for the program invents one.
fn cost(model: &Value) -> Option<f64> {
    model["costUSD"].as_f64().filter(|_| model["costBasis"] != "unknown")
}

fn cost_since(result: &Value, counted: Option<f64>) -> Option<f64> {
    let models = result["modelUsage"].as_object();
    if models.is_some_and(|models| models.values().any(|model| model["costBasis"] == "unknown")) {
        return None;
    }
    let total = total_cost(result)?;
    // A conversation whose last process was killed counts from where it was saved.
    Some(counted.filter(|counted| *counted <= total).map_or(total, |counted| total - counted))
}

pub fn total_cost(result: &Value) -> Option<f64> {
    result["total_cost_usd"].as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spent(result: &Value, counted: Option<f64>) -> Usage {
        super::spent(result, counted).usage(&PriceTable::built_in())
    }

    fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64, cost_usd: Option<f64>) -> Usage {
        let [input, cache_read, cache_write, output] = [input, cache_read, cache_write, output].map(Some);
        Usage { input, cache_read, cache_write, output, cost_usd, ..Usage::default() }
    }

    // covers: R18
    #[test]
    fn all_models_of_this_invocation_count_and_nothing_else() {
        let model = |cost: f64, basis: &str| {
            json!({"inputTokens": 10, "outputTokens": 3, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 2,
                "costUSD": cost, "costBasis": basis})
        };
        let result = |basis: &str| {
            json!({
                "total_cost_usd": 9.5,
                "usage": {"input_tokens": 10, "output_tokens": 3},
                "model_usage_since_last_result": {"a": model(0.5, "list"), "b": model(0.25, basis)},
            })
        };
        assert_eq!(spent(&result("list"), Some(8.75)), usage(20, 10, 4, 6, Some(0.75)));
        // Of a model without a price, what the dearest of its provider costs: 10 x 15 + 3 x 75 + 5 x 1.5 + 2 x 18.75.
        let unknown = spent(&result("unknown"), None);
        assert_eq!((unknown.cost_usd, unknown.cost_estimated), (Some(0.50042), true));
        assert_eq!(unknown.unpriced["b"], "claude-opus-4-1");
        let nothing = json!({"model_usage_since_last_result": {}, "total_cost_usd": 1.0});
        assert_eq!(spent(&nothing, None), usage(0, 0, 0, 0, Some(0.0)));
    }

    // covers: R18
    #[test]
    fn without_it_costs_are_counted_from_where_the_conversation_stood() {
        let result = json!({
            "total_cost_usd": 1.5,
            "usage": {"input_tokens": 7, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 2,
                "output_tokens": 3},
        });
        assert_eq!(spent(&result, Some(1.0)), usage(7, 1, 2, 3, Some(0.5)));
        assert_eq!(spent(&result, None), usage(7, 1, 2, 3, Some(1.5)));
        assert_eq!(spent(&result, Some(2.0)), usage(7, 1, 2, 3, Some(1.5)));
        assert_eq!(spent(&json!({}), None), usage(0, 0, 0, 0, Some(0.0)));
    }
}
