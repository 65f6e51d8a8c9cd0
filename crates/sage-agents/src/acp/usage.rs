//! What a turn used, in classes that do not overlap.
//!
//! Agents agree on the names and not on what they mean: for one the cached tokens are part of the input, for
//! another they are not. The total that they report tells which.

use agent_client_protocol::v1::schema;
use sage_core::port::Usage;
use serde::Deserialize;
use serde_json::Value;

/// Money and context, as the agent tells them while it works.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What the program had counted before it was asked anything.
    before_usd: f64,
    cost_usd: Option<f64>,
    pub context_tokens: Option<u64>,
    /// The model that the session has, where the agent tells.
    pub model: Option<String>,
    /// What the responses of this turn used, of an agent that tells it with each of them.
    responses: Usage,
    /// The agent counts only its last response in what a turn used.
    pub last_only: bool,
}

impl Told {
    pub fn update(&mut self, update: &schema::UsageUpdate, asked: bool) {
        self.context_tokens = Some(update.used);
        let dollars = update.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("usd"));
        let amount = dollars.map(|cost| cost.amount).filter(|amount| amount.is_finite());
        // Nothing is what opencode tells of a model that it knows no price of.
        match amount.filter(|amount| *amount > 0.0) {
            Some(amount) if asked => self.cost_usd = Some(amount),
            Some(amount) => self.before_usd = amount,
            None => {}
        }
    }

    /// Qwen Code tells what a response used with a piece of its text. All of the turn so far, if this is such a piece.
    pub fn piece(&mut self, chunk: &schema::ContentChunk) -> Option<Usage> {
        let usage = schema::Usage::deserialize(chunk.meta.as_ref()?.get("usage")?).ok()?;
        self.responses.add(&classes(&usage));
        Some(Usage { model: self.model.clone(), ..self.responses.clone() })
    }

    /// What comes now is of the next answer.
    pub fn begin_again(&mut self) {
        self.responses = Usage::default();
    }

    pub fn cost_usd(&self) -> Option<f64> {
        self.cost_usd.map(|cost| (cost - self.before_usd).max(0.0))
    }
}

/// Of the whole turn; `tools` says whether one was used, after which the model was asked again.
pub fn of_turn(response: Option<&schema::PromptResponse>, told: &Told, tools: bool) -> Usage {
    let counted = response.and_then(|response| {
        response.usage.as_ref().map(classes).or_else(|| quota(response.meta.as_ref()?.get("quota")?))
    });
    let mut counted = counted.unwrap_or_default();
    if told.responses.total() > counted.total() {
        counted = told.responses.clone();
    }
    let model = counted.model.clone().or_else(|| told.model.clone());
    let partial = told.last_only && tools && !counted.is_empty();
    Usage { cost_usd: told.cost_usd(), model, partial, ..counted }
}

fn classes(usage: &schema::Usage) -> Usage {
    let (read, write) = (usage.cached_read_tokens, usage.cached_write_tokens);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let thought = usage.thought_tokens.unwrap_or(0);
    let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let (input, output, total) = (usage.input_tokens, usage.output_tokens, usage.total_tokens);
    let inside = cached > 0
        && input >= cached
        && [sum(&[input, output]), sum(&[input, output, thought])].contains(&total);
    let input = if inside { input - cached } else { input };
    let apart = sum(&[input, cached, output, thought]) == total && thought > 0;
    let output = if apart { output } else { output.saturating_sub(thought) };
    Usage {
        input: Some(input),
        cache_read: read,
        cache_write: write,
        output: Some(output),
        reasoning: usage.thought_tokens,
        ..Usage::default()
    }
}

/// Gemini counts in the answer's `_meta`.
fn quota(quota: &Value) -> Option<Usage> {
    let count = quota.get("token_count")?;
    let number = |name: &str| count.get(name).and_then(Value::as_u64);
    let (input, output) = (number("input_tokens"), number("output_tokens"));
    let model = quota.pointer("/model_usage/0/model").and_then(Value::as_str).map(str::to_string);
    (input.is_some() || output.is_some()).then(|| Usage { input, output, model, ..Usage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Usage {
        classes(&serde_json::from_str(text).unwrap())
    }

    // covers: R18
    #[test]
    fn no_token_is_in_two_classes() {
        let claude = counted(
            r#"{"inputTokens":10,"outputTokens":5,"cachedReadTokens":100,"cachedWriteTokens":7,"totalTokens":122}"#,
        );
        assert_eq!(
            (claude.input, claude.output, claude.reasoning, claude.total()),
            (Some(10), Some(5), None, 122)
        );
        let codex = counted(
            r#"{"inputTokens":10,"cachedReadTokens":100,"cachedWriteTokens":0,"outputTokens":15,"thoughtTokens":4,
                "totalTokens":125}"#,
        );
        assert_eq!((codex.output, codex.reasoning, codex.total()), (Some(11), Some(4), 125));
        let inside =
            counted(r#"{"inputTokens":110,"cachedReadTokens":100,"outputTokens":5,"totalTokens":115}"#);
        assert_eq!((inside.input, inside.cache_read, inside.total()), (Some(10), Some(100), 115));
        let apart = counted(r#"{"inputTokens":10,"outputTokens":5,"thoughtTokens":20,"totalTokens":35}"#);
        assert_eq!((apart.output, apart.reasoning, apart.total()), (Some(5), Some(20), 35));
        let wild = counted(
            r#"{"inputTokens":1,"outputTokens":2,"thoughtTokens":9,"totalTokens":18446744073709551615}"#,
        );
        assert_eq!((wild.input, wild.output), (Some(1), Some(0)));
    }

    // covers: R18
    #[test]
    fn responses_that_tell_their_usage_add_up() {
        let piece = |text: &str| -> schema::ContentChunk { serde_json::from_str(text).unwrap() };
        let mut told = Told { model: Some("m".into()), ..Told::default() };
        assert_eq!(told.piece(&piece(r#"{"content":{"type":"text","text":"hi"}}"#)), None);
        let used = r#"{"content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":50,
            "thoughtTokens":20,"cachedReadTokens":30,"totalTokens":150}}}"#;
        told.piece(&piece(used));
        let sum = told.piece(&piece(used)).unwrap();
        let expected = (Some(140), Some(60), Some(60), Some(40), Some("m"));
        assert_eq!((sum.input, sum.cache_read, sum.output, sum.reasoning, sum.model.as_deref()), expected);
        let silent: schema::PromptResponse = serde_json::from_str(r#"{"stopReason":"end_turn"}"#).unwrap();
        assert_eq!(of_turn(Some(&silent), &told, true), sum);
    }

    // covers: R18
    #[test]
    fn the_usage_of_the_last_response_is_not_that_of_a_turn_with_tools() {
        let answer =
            r#"{"stopReason":"end_turn","usage":{"totalTokens":3,"inputTokens":2,"outputTokens":1}}"#;
        let answer: schema::PromptResponse = serde_json::from_str(answer).unwrap();
        let partial =
            |last_only, tools| of_turn(Some(&answer), &Told { last_only, ..Told::default() }, tools).partial;
        assert!(partial(true, true) && !partial(true, false) && !partial(false, true));
    }

    // covers: R18
    #[test]
    fn money_is_what_the_prompt_cost_and_only_dollars_are_dollars() {
        let update = |amount: f64, currency: &str| {
            schema::UsageUpdate::new(7, 100).cost(schema::Cost::new(amount, currency))
        };
        let mut told = Told::default();
        told.update(&update(2.0, "USD"), false);
        assert_eq!((told.cost_usd(), told.context_tokens), (None, Some(7)));
        told.update(&update(9.0, "credits"), true);
        assert_eq!(told.cost_usd(), None);
        told.update(&update(2.5, "USD"), true);
        assert_eq!(told.cost_usd(), Some(0.5));
        let mut told = Told::default();
        told.update(&update(0.0, "USD"), true);
        assert_eq!(told.cost_usd(), None, "no price is known, which is not the same as free");
    }
}
