//! Counting tokens with a real tokenizer (cl100k, the quicker one to load), offline.
//!
//! No vendor's count is exactly this one; for what a filter saves and for agents that tell nothing it is close
//! enough, and far better than dividing bytes. Loading takes some 80 ms and 30 MB: it happens once, on the thread
//! of whoever counts first, so never on the loop, and only where something is counted.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// Some texts make the tokenizer slow or give up; pieces of this size bound both.
const PIECE_BYTES: usize = 64 * 1024;
/// Of longer texts the beginning is counted and the rest is taken to be like it.
const COUNTED_BYTES: usize = 8 * 1024 * 1024;
/// For what the tokenizer cannot take.
const BYTES_PER_TOKEN: u64 = 4;

/// Loads the vocabulary, so that whoever counts next does not wait for it.
pub fn warm() {
    tiktoken_rs::cl100k_base_singleton();
}

pub fn count(text: &str) -> u64 {
    let head = &text[..boundary(text, COUNTED_BYTES)];
    let counted = in_pieces(head);
    if head.len() == text.len() {
        return counted;
    }
    (counted as u128 * text.len() as u128 / head.len() as u128) as u64
}

/// As a prompt holds it: text as it is, anything else as compact JSON.
pub fn of_json(value: &Value) -> u64 {
    count(&text_of(value))
}

/// How a value looks in a prompt.
pub fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn in_pieces(text: &str) -> u64 {
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cut(rest));
        tokens += of_piece(piece);
        rest = after;
    }
    tokens
}

/// At a line's end or a space where there is one: a token seldom goes over it.
fn cut(text: &str) -> usize {
    let most = boundary(text, PIECE_BYTES);
    if most == text.len() {
        return most;
    }
    let head = &text[..most];
    let at = head.rfind('\n').or_else(|| head.rfind(' ')).filter(|&at| at > most / 2);
    at.unwrap_or(most)
}

fn of_piece(piece: &str) -> u64 {
    // Its expressions have a limit of their own, and it does not survive reaching it.
    let counted =
        catch_unwind(AssertUnwindSafe(|| tiktoken_rs::cl100k_base_singleton().count_ordinary(piece)));
    counted.map_or(piece.len() as u64 / BYTES_PER_TOKEN, |tokens| tokens as u64)
}

/// The largest cut of a text that is not longer and not inside of a character.
pub fn boundary(text: &str, most: usize) -> usize {
    let most = most.min(text.len());
    (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R19
    #[test]
    fn known_texts_have_their_known_counts() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count("tiktoken is great!"), 6);
        assert_eq!(of_json(&json!("hello world")), 2, "no quotes around text");
        assert_eq!(of_json(&json!({"a": 1})), count("{\"a\":1}"));
    }

    /// Texts that tokenizers are slow with or give up on. Bounded by the test's own limit.
    // covers: R19
    #[test]
    fn odd_texts_are_counted_in_bounded_time() {
        let prose = "One sentence follows another. ".repeat(20_000);
        let (whole, pieces) = (count(&prose), prose.len() as u64);
        assert!((pieces / 8..pieces / 3).contains(&whole), "{whole} tokens of {pieces} bytes");
        for odd in [" ".repeat(300_000), "a".repeat(300_000), "\n".repeat(300_000), "日本語".repeat(60_000)]
        {
            assert!(count(&odd) > 0);
        }
        let long = "word ".repeat(COUNTED_BYTES / 4);
        let share = count(&long) as f64 / (long.len() as f64 / 5.0);
        assert!((0.9..1.1).contains(&share), "{share}");
    }
}
