//! Words that mean the same become the same: case, punctuation, articles, plurals, hyphens, negation.
//!
//! ```text
//! "is not thread-safe"  ->  threadsafe, negated        "isn't threadSafe"  ->  threadsafe, negated
//! "thread-unsafe"       ->  threadsafe, negated        "the Caches"        ->  cache
//! ```
//! Only whole words count: "note" has no "not" in it. What is left is joined without spaces, so that
//! `thread safe`, `thread-safe`, `threadSafe` and `threadsafe` are one.

/// A predicate or a value without its negation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    pub key: String,
    pub negated: bool,
    /// The words that were left, for people: `uses cache`.
    pub shown: String,
}

const ARTICLES: [&str; 3] = ["a", "an", "the"];
const NEGATIONS: [&str; 6] = ["not", "no", "never", "non", "without", "cannot"];
/// They only carry a negation or a tense.
const AUXILIARIES: [&str; 3] = ["do", "does", "did"];
const COPULAS: [&str; 6] = ["is", "are", "was", "were", "be", "been"];
/// Words that deny another one.
const OPPOSITES: [(&str, &str); 26] = [
    ("absent", "present"),
    ("disabled", "enabled"),
    ("inactive", "active"),
    ("incompatible", "compatible"),
    ("incomplete", "complete"),
    ("inconsistent", "consistent"),
    ("incorrect", "correct"),
    ("insecure", "secure"),
    ("invalid", "valid"),
    ("lack", "has"),
    ("lacking", "has"),
    ("lacks", "has"),
    ("unauthenticated", "authenticated"),
    ("unauthorized", "authorized"),
    ("unavailable", "available"),
    ("unchecked", "checked"),
    ("undocumented", "documented"),
    ("unencrypted", "encrypted"),
    ("unnecessary", "necessary"),
    ("unreachable", "reachable"),
    ("unsafe", "safe"),
    ("unstable", "stable"),
    ("unsupported", "supported"),
    ("untested", "tested"),
    ("unused", "used"),
    ("unvalidated", "validated"),
];
/// They end in `s`, and without it they are another word.
const NO_PLURALS: [&str; 11] =
    ["https", "ftps", "ldaps", "smtps", "imaps", "news", "windows", "goods", "means", "always", "does"];
/// Signs that tell two words apart: `C++`, `C#`, `<5`, `5%`.
const SIGNS: &str = "+#<>=≤≥%$€£";
/// Signs inside of a word: `src/auth.rs:12`, `1.2.3`, `isn't`.
const JOINTS: &str = "./:@'";

/// What a claim is about. A negation in it is part of the name: "non-blocking mode" is a thing of its own.
pub fn name(text: &str) -> String {
    join(without_articles(words(text)).iter().map(|word| singular(word)))
}

/// What is said, with its negation taken out and counted.
pub fn phrase(text: &str) -> Phrase {
    let mut negated = false;
    let mut left: Vec<String> = Vec::new();
    for word in without_articles(words(text)) {
        let (word, denies) = positive(&word);
        negated ^= denies;
        if let Some(word) = word.filter(|word| !AUXILIARIES.contains(&word.as_str())) {
            left.push(word);
        }
    }
    let shown = left.join(" ");
    if left.iter().any(|word| !is_copula(word)) {
        left.retain(|word| !is_copula(word));
    } else {
        left.truncate(1);
        left.iter_mut().for_each(|word| *word = "is".to_owned());
    }
    Phrase { key: join(left.iter().map(|word| singular(word))), negated, shown }
}

fn is_copula(word: &str) -> bool {
    COPULAS.contains(&word)
}

/// The word without its negation, and whether it had one.
fn positive(word: &str) -> (Option<String>, bool) {
    match word {
        "cannot" | "can't" => (Some("can".to_owned()), true),
        "won't" => (Some("will".to_owned()), true),
        _ if NEGATIONS.contains(&word) => (None, true),
        _ => {
            if let Some(bare) = word.strip_suffix("n't") {
                return (Some(bare.to_owned()), true);
            }
            let opposite = OPPOSITES.iter().find(|(denied, _)| *denied == word);
            (Some(opposite.map_or(word, |(_, meant)| meant).to_owned()), opposite.is_some())
        }
    }
}

/// Lower-case words in order. `camelCase` is two words, `GitHub` and `github` are joined to the same later.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut rest = text.trim().trim_start_matches("./").chars().map(plain).peekable();
    while let Some(c) = rest.next() {
        let is_word = |c: char| c.is_alphanumeric() || SIGNS.contains(c);
        let joint = JOINTS.contains(c) && is_word(before) && rest.peek().is_some_and(|next| is_word(*next));
        let camel = before.is_lowercase() && c.is_uppercase();
        if camel || !(is_word(c) || joint) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if is_word(c) || joint {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn plain(c: char) -> char {
    match c {
        '’' | '‘' => '\'',
        other => other,
    }
}

/// "Plan A" keeps its last word.
fn without_articles(mut words: Vec<String>) -> Vec<String> {
    let last = words.len().saturating_sub(1);
    let mut at = 0;
    words.retain(|word| {
        at += 1;
        at > last || !ARTICLES.contains(&word.as_str())
    });
    words
}

fn singular(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_ascii_lowercase());
    if !plain || word.len() < 4 || NO_PLURALS.contains(&word) {
        return if word == "ids" { "id".to_owned() } else { word.to_owned() };
    }
    if word == "apis" {
        return "api".to_owned();
    }
    let ends = |ending: &str| word.strip_suffix(ending);
    if let Some(stem) = ends("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    if word != "caches" && ["sses", "xes", "ches", "shes"].iter().any(|ending| word.ends_with(ending)) {
        return ends("es").unwrap_or(word).to_owned();
    }
    let kept = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    ends("s").filter(|_| !kept).unwrap_or(word).to_owned()
}

/// Without spaces, but two numbers stay two.
fn join(words: impl Iterator<Item = String>) -> String {
    let mut joined = String::new();
    for word in words {
        let digits =
            joined.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit());
        if digits {
            joined.push(' ');
        }
        joined.push_str(&word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S5
    #[test]
    fn words_that_mean_the_same_are_the_same() {
        for (one, other) in [
            ("the Login Pages", "login-page"),
            ("threadSafe", "thread safe"),
            ("thread_safe", "Thread-Safe."),
            ("e-mail", "email"),
            ("caches", "cache"),
            ("boxes of queries", "box of query"),
            ("./src/auth.rs", "src/auth.rs"),
            ("GitHub", "Github"),
            ("APIs", "api"),
        ] {
            assert_eq!(name(one), name(other), "{one}");
        }
        for (one, other) in [
            ("http", "https"),
            ("C", "C++"),
            ("C", "C#"),
            ("Plan A", "Plan"),
            ("version 1 2", "version 12"),
            ("mode", "mod"),
            ("<5", ">5"),
            ("blocking", "non-blocking"),
            ("1.2.3", "123"),
        ] {
            assert_ne!(name(one), name(other), "{one}");
        }
    }

    // covers: S5, LESSONS "Synthesis"
    #[test]
    fn negation_is_a_word_and_not_a_part_of_one() {
        for (text, key, negated) in [
            ("is thread safe", "threadsafe", false),
            ("is not thread safe", "threadsafe", true),
            ("isn't thread-safe", "threadsafe", true),
            ("isn’t thread-safe", "threadsafe", true),
            ("thread-unsafe", "threadsafe", true),
            ("is not unsafe", "safe", false),
            ("does not use cache", "usecache", true),
            ("uses caches", "usecache", false),
            ("cannot scale", "canscale", true),
            ("can't scale", "canscale", true),
            ("lacks", "has", true),
            ("is", "is", false),
            ("is not", "is", true),
            ("are", "is", false),
            ("no", "", true),
            ("note", "note", false),
            ("knot", "knot", false),
            ("nothing", "nothing", false),
            ("authentication", "authentication", false),
            ("another notation", "anothernotation", false),
        ] {
            let found = phrase(text);
            assert_eq!((found.key.as_str(), found.negated), (key, negated), "{text}");
        }
        assert_eq!(phrase("does not use cache").shown, "use cache");
    }
}
