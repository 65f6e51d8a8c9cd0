//! Text that gives orders to the agent that reads it, in the open or in a comment.
//!
//! A phrase is a list of words, each one of several, with at most `GAP` other words between two of them. Words
//! are those of the whole text, so that a line break hides nothing.

use super::{Found, lines};

/// "ignore all of the previous instructions"
const GAP: usize = 3;

const PHRASES: &[(&[&[&str]], &str)] = &[
    (
        &[
            &["ignore", "disregard", "forget", "override", "bypass", "skip"],
            &[
                "previous",
                "prior",
                "above",
                "earlier",
                "preceding",
                "foregoing",
                "former",
                "existing",
                "system",
            ],
            &[
                "instructions",
                "instruction",
                "prompts",
                "prompt",
                "rules",
                "directions",
                "messages",
                "guidelines",
                "context",
            ],
        ],
        "it tells the reader to ignore its instructions",
    ),
    (
        &[
            &["ignore", "disregard", "forget", "override"],
            &["your", "all", "any"],
            &["instructions", "rules", "guidelines", "training", "safety", "restrictions"],
        ],
        "it tells the reader to ignore its instructions",
    ),
    (
        &[&["forget"], &["everything"], &["above", "before", "told", "know"]],
        "it tells the reader to ignore its instructions",
    ),
    (
        &[
            &["don", "not", "never", "without"],
            &["tell", "telling", "inform", "informing", "mention", "mentioning", "alert", "notify", "asking"],
            &["user", "human", "operator", "developer"],
        ],
        "it wants something to be kept from the user",
    ),
    (
        &[
            &["reveal", "print", "show", "output", "repeat", "leak", "send"],
            &["system"],
            &["prompt", "message", "instructions"],
        ],
        "it asks for the system prompt",
    ),
    (
        &[&["you"], &["are"], &["now"], &["a", "an", "in", "the", "dan", "unrestricted", "free"]],
        "it gives the reader another role",
    ),
    (
        &[&["new", "updated", "real"], &["system"], &["prompt", "instructions", "message"]],
        "it poses as a system prompt",
    ),
    (
        &[&["enable", "enter", "activate"], &["developer", "god", "jailbreak", "dan"], &["mode"]],
        "it gives the reader another role",
    ),
];

/// Marks with which model formats tell who speaks.
const MARKS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "[inst]",
    "<<sys>>",
    "<|endoftext|>",
    "</system>",
    "<system>",
    "<system-reminder>",
];

/// Words that make an order of a comment that no reader of the page sees.
const IMPERATIVES: &[&str] = &[
    "ignore",
    "disregard",
    "must",
    "always",
    "never",
    "run",
    "execute",
    "send",
    "upload",
    "delete",
    "download",
    "fetch",
    "curl",
    "assistant",
    "agent",
    "model",
    "instruction",
    "instructions",
    "secretly",
    "password",
    "token",
];

pub fn look(text: &str, found: &mut Found) {
    let words = words(text);
    for at in 0..words.len() {
        for (phrase, why) in PHRASES {
            if begins(&words[at..], phrase) {
                found.injection(words[at].0, *why);
            }
        }
    }
    for (number, line) in lines(text) {
        let lower = line.to_lowercase();
        if MARKS.iter().any(|mark| lower.contains(mark)) {
            found.injection(number, "it has marks with which models tell who speaks");
        }
        let hides = lower.contains("display:none")
            || lower.contains("display: none")
            || lower.contains("font-size:0");
        if hides || lower.trim_start().starts_with("[//]: #") && gives_orders(&lower) {
            found.injection(number, "it has text that a reader of the page does not see");
        }
    }
    comments(text, found);
}

/// Lower-case words with the numbers of their lines.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (number, line) in lines(text) {
        let parts = line.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        words.extend(parts.map(|part| (number, part.to_lowercase())));
    }
    words
}

/// True if the words begin with the phrase.
fn begins(words: &[(usize, String)], phrase: &[&[&str]]) -> bool {
    let mut rest = words;
    for (place, choices) in phrase.iter().enumerate() {
        let gap = if place == 0 { 0 } else { GAP };
        let next = rest.iter().take(gap + 1).position(|(_, word)| choices.contains(&word.as_str()));
        let Some(next) = next else { return false };
        rest = &rest[next + 1..];
    }
    true
}

/// `<!-- ... -->`, also over several lines.
fn comments(text: &str, found: &mut Found) {
    let mut rest = text;
    let mut line = 1;
    while let Some((before, comment)) = rest.split_once("<!--") {
        line += before.matches('\n').count();
        let (inside, after) = comment.split_once("-->").unwrap_or((comment, ""));
        if gives_orders(&inside.to_lowercase()) {
            found.injection(line, "a comment that no reader of the page sees gives orders");
        }
        line += inside.matches('\n').count();
        rest = after;
    }
}

/// `prettier-ignore` is for a program, and one word.
fn gives_orders(lower: &str) -> bool {
    lower.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| IMPERATIVES.contains(&word))
}
