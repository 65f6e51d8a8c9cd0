//! What a turn has used, from its terminal events.
//!
//! `model_usage_since_last_result` is this invocation's, complete and with subagents. `usage` lacks subagents
//! and, where a limit ended the turn, the last request; `total_cost_usd` counts over the whole conversation.
//! So the first is taken, and the others only where a version does not have it.

use sage_core::port::Usage;
use serde_json::Value;

/// `counted` is the conversation's cost before this event.
pub fn spent(result: &Value, counted: Option<f64>) -> Usage {
    let models = result["model_usage_since_last_result"].as_object();
    let Some(models) = models else {
        return Usage { cost_usd: cost_since(result, counted), ..tokens(&result["usage"], SNAKE) };
    };
    let mut spent = Usage {
        input: Some(0),
        cache_read: Some(0),
        cache_write: Some(0),
        output: Some(0),
        ..Usage::default()
    };
    models.values().for_each(|model| spent.add(&tokens(model, CAMEL)));
    // The sum of nothing is -0.0.
    spent.cost_usd = models.values().map(cost).sum::<Option<f64>>().map(|cost| cost + 0.0);
    spent
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
        assert_eq!(spent(&result("unknown"), None), usage(20, 10, 4, 6, None));
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
        assert_eq!(spent(&json!({}), None), Usage::default());
    }
}
