//! Research as agents bring it back: some 180 KB of findings with long details, sources and raw excerpts, the same
//! every time. One of them holds a fact that the next step needs.

use serde_json::{Value, json};

use crate::dsl::Random;

pub const FACT: &str = "the processor refuses charges above 4,217 EUR without a second factor";

const FINDINGS: usize = 88;
const NEEDED: usize = 61;
const WORDS: [&str; 32] = [
    "payment",
    "provider",
    "customers",
    "latency",
    "retries",
    "invoice",
    "regional",
    "the",
    "of",
    "and",
    "with",
    "settlement",
    "review",
    "dispute",
    "ledger",
    "monthly",
    "reported",
    "between",
    "accounts",
    "migration",
    "fee",
    "compliance",
    "documented",
    "checkout",
    "sandbox",
    "webhook",
    "signature",
    "often",
    "rarely",
    "supports",
    "partial",
    "refunds",
];

pub fn report() -> Value {
    let mut random = Random::new(7);
    let findings: Vec<Value> = (0..FINDINGS).map(|number| finding(number, &mut random)).collect();
    json!({ "summary": sentences(3, &mut random), "findings": findings, "openQuestions": [], "method": "survey" })
}

fn finding(number: usize, random: &mut Random) -> Value {
    let needed = number == NEEDED;
    let relevance = if needed { 0.97 } else { random.below(96) as f64 / 100.0 };
    let mut detail = sentences(9, random);
    if needed {
        detail = format!("In the EU {FACT}. {detail}");
    }
    let source =
        |n: usize| format!("https://example.org/{}/{number}-{n}.html", WORDS[(number + n) % WORDS.len()]);
    json!({
        "title": words(6, random),
        "detail": detail,
        "relevance": relevance,
        "confidence": 0.8,
        "kind": "market",
        "evidence": [source(0), source(1), source(2)],
        "raw": sentences(9, random),
    })
}

fn sentences(count: usize, random: &mut Random) -> String {
    let all: Vec<String> = (0..count).map(|_| words(12, random)).collect();
    all.join(". ") + "."
}

fn words(count: usize, random: &mut Random) -> String {
    let all: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len() as u64) as usize]).collect();
    all.join(" ")
}
