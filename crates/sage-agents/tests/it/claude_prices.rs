//! The price table against Claude Code's own: what the real program says that its models cost.

use sage_core::port::{StepOutcome, Usage};
use sage_core::price::{Of, PriceTable};
use serde_json::{Value, json};

use crate::claude_desk::Desk;

/// Every model in the catalogue of Claude Code 2.1.325, its aliases, and other spellings.
const MODELS: [&str; 34] = [
    "claude-3-5-haiku-20241022",
    "claude-3-5-sonnet-20241022",
    "claude-3-7-sonnet-20250219",
    "claude-haiku-4-5-20251001",
    "claude-haiku-5-5",
    "claude-sonnet-4-20250514",
    "claude-sonnet-4-5-20250929",
    "claude-sonnet-4-6",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-sonnet-5-5[1m]",
    "claude-opus-4-20250514",
    "claude-opus-4-1-20250805",
    "claude-opus-4-5-20251101",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-fable-5",
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "us.anthropic.claude-haiku-5-5",
    "sonnet",
    "opus",
    "haiku",
    "fable",
    "best",
    "sonnet[1m]",
    "opus[1m]",
    "",
];

fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    let [input, cache_read, cache_write, output] = [input, cache_read, cache_write, output].map(Some);
    Usage { input, cache_read, cache_write, output, ..Usage::default() }
}

fn spend(usage: &Usage) -> Value {
    json!({"input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write, "output_tokens": usage.output})
}

/// What Claude Code says and what the table says, of a short and a long prompt together, in dollars.
async fn both(model: &str, [short, long]: [&Usage; 2]) -> Option<(f64, f64)> {
    let script = json!([
        {"tool": {"name": "Bash", "input": {"command": "true"}}, "usage": spend(short)},
        {"text": "done", "usage": spend(long)},
    ]);
    let mut desk = Desk::new(script)?.param("tools", json!(["Bash"]));
    desk.bench.call.model = (!model.is_empty()).then(|| model.to_string());
    let outcome = desk.run().await;
    desk.assert_usage(&outcome);
    let StepOutcome::Succeeded { usage, .. } = &outcome.0 else { panic!("{model}: {outcome:?}") };
    assert!(!usage.cost_estimated, "{model}: its own figure");
    let told = usage.cost_usd.unwrap_or_else(|| panic!("{model}: {usage:?}"));
    // What was seen while it worked was priced by the table.
    let seen = desk.bench.usages().pop().unwrap();
    assert_eq!((seen.total(), seen.cost_estimated), (usage.total(), true), "{model}");
    assert!(seen.unpriced.is_empty(), "{model}: {seen:?}");
    let answered = seen.model.clone().unwrap();
    assert_eq!(desk.llm.prompts()[0]["model"], answered.as_str(), "{model}: it tells who answers");
    let prices = PriceTable::built_in();
    // Names of old models may be another one by now.
    if !model.is_empty() && !model.contains("claude-") {
        assert_eq!(prices.price(model), prices.price(&answered), "{model} is {answered}");
    }
    let price = prices.price(&answered).unwrap_or_else(|| panic!("{answered} has no price"));
    let cost = |usage: &Usage| price.cost(usage, Of::Request { cache_write_1h: 0 }).unwrap().usd();
    let ours = cost(short) + cost(long);
    assert!((seen.cost_usd.unwrap() - ours).abs() < 1e-9, "{model}: {seen:?}");
    Some((told, ours))
}

// covers: R18
#[tokio::test(flavor = "multi_thread")]
async fn the_table_agrees_with_claude_code_about_every_model() {
    let (short, long) = (usage(10_000, 3_000, 2_000, 700), usage(100_000, 30_000, 20_000, 7_000));
    let mut wrong = Vec::new();
    for model in MODELS {
        let Some((told, ours)) = both(model, [&short, &long]).await else { return };
        println!("{model:32} ${told:.6} ${ours:.6}");
        if (told - ours).abs() > 1e-9 {
            wrong.push(format!("{model}: Claude Code says ${told}, the table ${ours}"));
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
}
