//! Words as terms that can be compared: whole words only, forms of one word meet, little words are left out.

use std::collections::BTreeSet;

/// They say nothing about what somebody works on.
const STOP: &[&str] = &[
    "a", "an", "the", "and", "or", "of", "for", "with", "without", "to", "in", "on", "at", "by", "from",
    "into", "is", "are", "be", "was", "it", "its", "this", "that", "these", "those", "as", "if", "then",
    "than", "when", "where", "how", "what", "which", "who", "why", "we", "you", "i", "our", "your", "my",
    "their", "all", "any", "each", "some", "can", "should", "will", "would", "must", "not", "no", "so", "do",
    "does", "use", "using", "used", "new", "via", "please", "s", "t", "also", "more", "other", "etc",
    "skill", "workflow",
];

/// What is done, not to what. They weigh less, and two that mean different deeds do not fit together.
const DEEDS: &[(Deed, &[&str])] = &[
    (
        Deed::Make,
        &[
            "add",
            "build",
            "create",
            "implement",
            "make",
            "introduce",
            "support",
            "develop",
            "write",
            "feature",
        ],
    ),
    (Deed::Fix, &["fix", "bug", "bugfix", "repair", "debug", "hotfix", "broken", "crash", "regression"]),
    (Deed::Remove, &["remove", "delete", "drop", "disable", "deprecate", "uninstall"]),
    (
        Deed::Change,
        &[
            "refactor", "improve", "optimize", "optimise", "rewrite", "rename", "migrate", "upgrade",
            "enhance",
        ],
    ),
    (
        Deed::Look,
        &[
            "audit",
            "review",
            "analyze",
            "analyse",
            "research",
            "investigate",
            "inspect",
            "profile",
            "explain",
        ],
    ),
    (Deed::Document, &["document", "describe", "readme", "changelog"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    Make,
    Fix,
    Remove,
    Change,
    Look,
    Document,
}

/// All terms of a text, each once.
pub fn terms(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        for part in parts(word) {
            let part = part.to_lowercase();
            if !STOP.contains(&part.as_str()) {
                found.insert(stem(&part));
            }
        }
    }
    found
}

/// The deed that a term names.
pub fn deed(term: &str) -> Option<Deed> {
    DEEDS.iter().find(|(_, words)| words.iter().any(|word| stem(word) == term)).map(|(deed, _)| *deed)
}

/// `camelCase` and `HTTPServer` as their words; digits stay with their letters (`s3`, `oauth2`).
fn parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut cuts = vec![0];
    for at in 1..letters.len() {
        let (before, here) = (letters[at - 1].1, letters[at].1);
        let next_small = letters.get(at + 1).is_some_and(|(_, c)| c.is_lowercase());
        let rises = before.is_lowercase() && here.is_uppercase();
        let ends_acronym = before.is_uppercase() && here.is_uppercase() && next_small;
        if rises || ends_acronym {
            cuts.push(letters[at].0);
        }
    }
    cuts.push(word.len());
    cuts.windows(2).map(|cut| &word[cut[0]..cut[1]]).collect()
}

/// Endings, what replaces them, and how many letters must be left.
const ENDINGS: &[(&str, &str, usize)] = &[
    ("ations", "ate", 3),
    ("ation", "ate", 3),
    ("ators", "ate", 3),
    ("ator", "ate", 3),
    ("ingly", "", 3),
    ("ings", "", 3),
    ("ing", "", 3),
    ("ied", "y", 2),
    ("ies", "y", 2),
    ("sses", "ss", 2),
    ("ors", "", 4),
    ("or", "", 4),
    ("ers", "", 4),
    ("er", "", 4),
    ("ed", "", 3),
    ("es", "", 4),
    ("s", "", 3),
];

/// A light stem: the usual forms of one English word become one term.
fn stem(word: &str) -> String {
    let letters = |text: &str| text.chars().count();
    let cut = ENDINGS.iter().find_map(|(ending, instead, least)| {
        let start = word.strip_suffix(ending).filter(|start| letters(start) >= *least)?;
        // `access` and `status` are not plurals.
        let plural = !(*ending == "s" && start.ends_with(['s', 'u', 'i']));
        plural.then(|| format!("{start}{instead}"))
    });
    let word = cut.unwrap_or_else(|| word.to_string());
    let word = word.strip_suffix("ment").filter(|start| letters(start) >= 4).unwrap_or(&word);
    // `cache` and `cach(ing)`, `stop` and `stopp(ing)`.
    let word = word.strip_suffix('e').filter(|start| letters(start) >= 3).unwrap_or(word);
    let mut back = word.chars().rev();
    match (back.next(), back.next()) {
        (Some(a), Some(b)) if a == b && !"lsz".contains(a) && a.is_alphabetic() && letters(word) > 3 => {
            word[..word.len() - a.len_utf8()].to_string()
        }
        _ => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R12
    #[test]
    fn forms_of_a_word_meet_and_parts_of_words_do_not() {
        for (a, b) in [
            ("payment processing", "Process payments"),
            ("PaymentProcessor", "payment_process"),
            ("caching", "caches"),
            ("stopping", "stops"),
            ("authentication", "authenticate"),
            ("deployment", "deploying"),
            ("libraries", "library"),
            ("HTTPServer", "http server"),
        ] {
            assert_eq!(terms(a), terms(b), "{a} | {b}");
        }
        for (a, b) in [("authentication", "then"), ("monkey", "key"), ("status", "stat"), ("s3", "3")] {
            assert!(terms(a).is_disjoint(&terms(b)), "{a} | {b}");
        }
        assert!(terms("the of and it").is_empty());
    }

    // covers: R12
    #[test]
    fn deeds_are_known_in_every_form() {
        assert_eq!(terms("fixing").iter().find_map(|term| deed(term)), Some(Deed::Fix));
        assert_eq!(terms("removed").iter().find_map(|term| deed(term)), Some(Deed::Remove));
        assert_eq!(deed("payment"), None);
    }
}
