//! Prices: computed by hand, and a table that makes sense.

use serde_json::{Value, json};

use super::*;

const fn usd(micro_usd: u64) -> Rate {
    Rate::from_micro_usd(micro_usd)
}

fn usage(classes: [Option<u64>; 5]) -> Usage {
    let [input, cache_read, cache_write, output, reasoning] = classes;
    Usage { input, cache_read, cache_write, output, reasoning, ..Usage::default() }
}

fn price(input: u64, output: u64) -> Price {
    Price::new(usd(input), usd(output))
}

// covers: R18
#[test]
fn costs_are_what_a_person_computes() {
    let table = PriceTable::built_in();
    let million = Some(1_000_000);
    let cases = [
        // 1,000 x $3 + 500 x $15 per million = $0.003 + $0.0075
        ("claude-sonnet-4-5-20250929", [Some(1_000), None, None, Some(500), None], Some(10_500)),
        // A million of each: 3 + 0.30 + 3.75 + 15 + 15
        ("anthropic/claude-sonnet-4-5", [million; 5], Some(37_050_000)),
        // 1 x $0.05 per million is 0.05 millionths: rounded down. 10 x is 0.5: rounded up.
        ("gpt-5-nano", [Some(1), None, None, None, None], Some(0)),
        ("gpt-5-nano", [Some(10), None, None, None, None], Some(1)),
        // 7 x 0.05 + 3 x 0.005 + 1 x 0.4 = 0.765: rounded once, not each.
        ("gpt-5-nano", [Some(7), Some(3), None, Some(1), None], Some(1)),
        // Cache writes of OpenAI's older models cost what input costs: 2 + 2; reasoning what output costs: 8.
        ("gpt-4.1-2025-04-14", [million, None, million, None, million], Some(12_000_000)),
        // 200,000 x $1.25 + 1,000,000 x $0.125 + 10,000 x $10 = 0.25 + 0.125 + 0.10
        ("gemini-2.5-pro", [Some(200_000), million, None, Some(10_000), None], Some(475_000)),
        ("gemini-2.5-pro", [Some(0), None, None, None, None], Some(0)),
        ("gemini-2.5-pro", [None; 5], None),
        ("somebody/else", [million; 5], None),
        ("claude-opus-4-1", [Some(u64::MAX); 5], Some(u64::MAX)),
    ];
    for (model, classes, expected) in cases {
        assert_eq!(table.cost_micro_usd(model, &usage(classes)), expected, "{model} {classes:?}");
    }
    let most = Price { cache_read: Some(usd(u64::MAX)), ..price(u64::MAX, u64::MAX) };
    assert_eq!(most.cost_micro_usd(&usage([Some(u64::MAX); 5])), Some(u64::MAX), "sums do not wrap");
}

// covers: R18
#[test]
fn models_are_found_by_the_longest_beginning() {
    let table = PriceTable::built_in();
    let same = [
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-opus-4.6", "claude-opus-4-6"),
        ("openrouter/anthropic/claude-3.5-haiku", "claude-3-5-haiku"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("Claude-Haiku-4-5", "claude-haiku-4-5"),
        (" gpt-5 ", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("openai/gpt-5.1-codex-max", "gpt-5.1-codex"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("o4-mini-2025-04-16", "o4-mini"),
        ("models/gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-2.5-flash-lite-preview-06-17", "gemini-2.5-flash-lite"),
        // What Claude Code 2.1.325 calls its models for short; `opusplan` may be one of two: the dearer one.
        ("sonnet", "claude-sonnet-5-5"),
        ("Opus", "claude-opus-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("fable[1m]", "claude-fable-5-2"),
        ("best", "claude-opus-5-5"),
        ("opusplan", "claude-opus-5-5"),
        ("o1-preview", "o1"),
        ("o1-mini-2024-09-12", "o1-mini"),
        ("o1-pro", "o1-pro"),
    ];
    for (model, entry) in same {
        assert_eq!(table.price(model), Some(&table.models[entry]), "{model}");
    }
    let unknown = [
        "",
        "claude",
        "claude-opus",
        "claude-opus-4-9",
        "claude-opus-4-10",
        "claude-opus-4.9",
        "gpt-5.9",
        "gpt-50",
        "gpt",
        "o3x",
        "opusx",
        "gemini-9-pro",
        "mistral-large",
        "/",
        "é",
    ];
    for model in unknown {
        assert_eq!(table.price(model), None, "{model}");
    }
}

// covers: R18
#[test]
fn a_long_prompt_costs_more_and_only_if_it_is_one() {
    let table = PriceTable::built_in();
    let price = table.price("claude-haiku-5-5").unwrap();
    let short = usage([Some(70_000), Some(20_000), Some(10_000), Some(1_000), None]);
    let long = usage([Some(70_001), Some(20_000), Some(10_000), Some(1_000), None]);
    let micro_usd = |usage: &Usage, of| price.cost(usage, of).unwrap().micro_usd();
    let request = Of::Request { cache_write_1h: 0 };
    // 70,000 x 0.1 + 20,000 x 0.01 + 10,000 x 0.125 + 1,000 x 0.5
    assert_eq!(micro_usd(&short, request), 8_950);
    assert_eq!(micro_usd(&long, request), 44_751, "five times as much, and one token");
    assert_eq!(micro_usd(&long, Of::Several), 8_950, "the sum of many prompts is no long prompt");
    // 4,000 of the 10,000 at 0.2 instead of 0.125.
    assert_eq!(micro_usd(&short, Of::Request { cache_write_1h: 4_000 }), 9_250);
    assert_eq!(micro_usd(&short, Of::Request { cache_write_1h: u64::MAX }), 9_700);
}

// covers: R18
#[test]
fn people_can_override_prices() {
    let table = PriceTable::built_in().with([
        ("gpt-5".to_owned(), price(1, 1)),
        ("gpt-5-mini-2025-08-07".to_owned(), price(2, 2)),
        ("OpenRouter/OpenAI/gpt-5".to_owned(), price(3, 3)),
        ("my-proxy/".to_owned(), price(4, 4)),
        ("gpt-5.9".to_owned(), price(5, 5)),
        ("llama".to_owned(), price(0, 0)),
    ]);
    let cases = [
        ("gpt-5", price(1, 1)),
        ("openai/gpt-5-2025-08-07", price(1, 1)),
        ("gpt-5-mini-2025-08-07", price(2, 2)),
        ("gpt-5-mini", PriceTable::built_in().models["gpt-5-mini"]),
        ("openrouter/openai/gpt-5", price(3, 3)),
        ("my-proxy/whatever-9", price(4, 4)),
        ("my-proxy/gpt-5", price(4, 4)),
        ("gpt-5.9", price(5, 5)),
        ("llama-70b", price(0, 0)),
    ];
    for (model, expected) in cases {
        assert_eq!(table.price(model), Some(&expected), "{model}");
    }
}

// covers: R18
#[test]
fn the_built_in_table_makes_sense() {
    let file: Value = serde_json::from_str(BUILT_IN).unwrap();
    assert_eq!(file["currency"], "USD");
    assert!(file["source"].as_str().unwrap().contains("override"));
    let table = PriceTable::built_in();
    let digits: Vec<&str> = table.as_of().split('-').collect();
    assert!(matches!(digits[..], [y, m, d] if (y.len(), m.len(), d.len()) == (4, 2, 2)), "{}", table.as_of());
    assert_eq!(table.models.len(), file["perMillionTokens"].as_object().unwrap().len());
    assert!(table.models.len() > 50);
    for (model, price) in &table.models {
        assert_eq!(*model, model.to_lowercase());
        assert!(usd(0) < price.input && price.input <= price.output, "{model}");
        assert!(price.cache_read.is_none_or(|rate| usd(0) < rate && rate <= price.input), "{model}");
        assert!(price.cache_write.is_none_or(|rate| price.input <= rate && rate <= price.output), "{model}");
        assert!(price.output < usd(1_000_000_000), "{model}: looks like a unit mistake");
        if let Some(long) = price.long_prompt {
            assert!(
                long.above >= 100_000 && long.input > price.input && long.output > price.output,
                "{model}"
            );
            let both = |a: Option<Rate>, b: Option<Rate>| a.is_some() == b.is_some();
            assert!(both(long.cache_read, price.cache_read), "{model}");
            assert!(both(long.cache_write, price.cache_write), "{model}");
        }
        assert_eq!(table.price(model), Some(price), "{model} is found by its own name");
    }
    // Twice the same name would be one entry with the last price.
    let names = BUILT_IN.lines().filter(|line| line.contains("\"input\":")).count();
    assert_eq!(names, table.models.len());
    for model in table.aliases.values().chain(&table.retired) {
        assert!(table.models.contains_key(model), "{model}");
    }
}

// covers: R18
#[test]
fn prices_are_read_and_written_exactly() {
    let table = [
        (json!(3), 3_000_000),
        (json!(3.0), 3_000_000),
        (json!(0), 0),
        (json!(0.1), 100_000),
        (json!(0.3), 300_000),
        (json!(18.75), 18_750_000),
        (json!(0.000001), 1),
        (json!(0.123456), 123_456),
        (json!(999_999.999999), 999_999_999_999),
    ];
    for (number, micro_usd) in table {
        let rate: Rate = serde_json::from_value(number.clone()).unwrap();
        assert_eq!(rate.micro_usd(), micro_usd, "{number}");
        let again = serde_json::to_string(&rate).unwrap();
        assert_eq!(serde_json::from_str::<Rate>(&again).unwrap(), rate, "{again}");
    }
    let refused = [
        (json!(-1), "negative"),
        (json!(-0.5), "negative"),
        (json!(0.0000001), "at most 6 decimals"),
        (json!(1.2345678), "at most 6 decimals"),
        (json!(1e300), "too high"),
        (json!(u64::MAX), "too high"),
        (json!("3"), "a price in dollars"),
        (json!(null), "a price in dollars"),
    ];
    for (value, why) in refused {
        let error = serde_json::from_value::<Rate>(value.clone()).unwrap_err().to_string();
        assert!(error.contains(why), "{value}: {error}");
    }

    let text = r#"{"input":3,"output":15,"cacheRead":0.3}"#;
    let price: Price = serde_json::from_str(text).unwrap();
    assert_eq!(price, Price { cache_read: Some(usd(300_000)), ..super::tests::price(3_000_000, 15_000_000) });
    assert_eq!(serde_json::to_string(&price).unwrap(), text);
    let wrong = json!({"input": 3, "output": 15, "cache_read": 1});
    assert!(serde_json::from_value::<Price>(wrong).unwrap_err().to_string().contains("cacheRead"));
}
