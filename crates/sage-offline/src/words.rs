//! Words of prose and of code as terms that can be compared: `PaymentProcessor` and "processing payments" share two.

/// Too common to mean anything in a title or a document.
const STOP: &[&str] = &[
    "the", "and", "for", "with", "that", "this", "from", "are", "was", "were", "has", "have", "had", "not",
    "but", "can", "will", "should", "would", "could", "into", "onto", "its", "our", "your", "their", "then",
    "than", "when", "which", "who", "what", "how", "why", "all", "any", "each", "some", "more", "most",
    "other", "such", "only", "own", "same", "very", "just", "also", "add", "make", "use", "used", "using",
    "new", "let", "get", "set",
];

/// All terms of a text in order, repeats included.
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        for part in parts(word) {
            let part = part.to_lowercase();
            if part.chars().count() > 2 && !STOP.contains(&part.as_str()) {
                found.push(stem(&part));
            }
        }
    }
    found
}

/// What the languages read here say themselves, where that is a word that people use too.
const KEYWORDS: &[&str] = &[
    "abstract",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "else",
    "enum",
    "except",
    "export",
    "extends",
    "final",
    "finally",
    "func",
    "function",
    "impl",
    "implements",
    "import",
    "interface",
    "lambda",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "range",
    "return",
    "select",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "throw",
    "throws",
    "trait",
    "try",
    "type",
    "unsafe",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
];

/// The terms of source text: a bare keyword says nothing about what the code is for.
pub fn code_terms(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !KEYWORDS.contains(word)).flat_map(terms).collect()
}

/// `camelCase`, `PascalCase` and `HTTPServer` as their words.
fn parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut cuts = vec![0];
    for at in 1..letters.len() {
        let (before, here) = (letters[at - 1].1, letters[at].1);
        let next_small = letters.get(at + 1).is_some_and(|(_, c)| c.is_lowercase());
        let rises = before.is_lowercase() && here.is_uppercase();
        let ends_acronym = before.is_uppercase() && here.is_uppercase() && next_small;
        if rises || ends_acronym || before.is_alphabetic() != here.is_alphabetic() {
            cuts.push(letters[at].0);
        }
    }
    cuts.push(word.len());
    cuts.windows(2).map(|cut| &word[cut[0]..cut[1]]).collect()
}

/// A light stem: enough that the forms of one English word meet, short enough to be looked through.
fn stem(word: &str) -> String {
    let rules: &[(&str, &str, usize)] = &[
        ("ization", "ize", 3),
        ("ations", "ate", 3),
        ("ation", "ate", 3),
        ("ments", "ment", 3),
        ("ingly", "", 3),
        ("ings", "", 3),
        ("ing", "", 3),
        ("ied", "y", 2),
        ("ies", "y", 2),
        ("sses", "ss", 2),
        ("ors", "", 5),
        ("or", "", 5),
        ("ers", "", 4),
        ("er", "", 4),
        ("ed", "", 3),
        ("es", "", 3),
        ("s", "", 3),
    ];
    for (ending, instead, least) in rules {
        if let Some(start) = word.strip_suffix(ending).filter(|start| start.chars().count() >= *least) {
            if *ending == "s" && start.ends_with('s') {
                break;
            }
            let loses_an_e = ["ing", "ings", "ed", "es"].contains(ending) && is_short(start);
            return trimmed(&format!("{start}{}", if loses_an_e { "e" } else { instead }));
        }
    }
    trimmed(word)
}

/// `dat(es)`, `mod(es)`, `nam(ed)`: a short word that ends so would have doubled its last letter, had it no `e`.
fn is_short(start: &str) -> bool {
    let vowel = |c: &u8| b"aeiouy".contains(c);
    matches!(start.as_bytes(), [a, b, c] if !vowel(a) && vowel(b) && !vowel(c) && !b"wx".contains(c))
}

/// `cache`, `caches` and `caching` meet without the last `e`, but `mode` is no `mod`; so do `stop` and `stopp(ing)`.
fn trimmed(word: &str) -> String {
    let word = word.strip_suffix('e').filter(|rest| rest.chars().count() > 3).unwrap_or(word);
    let mut letters = word.chars().rev();
    match (letters.next(), letters.next()) {
        (Some(a), Some(b)) if a == b && !"lsz".contains(a) && word.chars().count() > 3 => {
            word[..word.len() - a.len_utf8()].to_string()
        }
        _ => word.to_string(),
    }
}

/// Which share of `wanted` is among `text`'s terms, 0 to 1.
pub fn share(wanted: &[String], text: &[String]) -> f64 {
    if wanted.is_empty() {
        return 0.0;
    }
    let found = wanted.iter().filter(|term| text.contains(term)).count();
    found as f64 / wanted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet_in_prose_and_code() {
        assert_eq!(terms("payment processing"), terms("PaymentProcessor"));
        assert_eq!(terms("caching"), terms("caches"));
        assert_eq!(terms("HTTPServer2 parse_orders"), ["http", "serv", "pars", "order"]);
        assert_eq!(terms("stopping the stops"), ["stop", "stop"]);
        assert_ne!(terms("authentication"), terms("then"));
        for (one, other) in [
            ("dates", "date"),
            ("currencies", "currency"),
            ("modes", "mode"),
            ("timing", "time"),
            ("orders", "order"),
            ("logging", "logs"),
            ("cases", "case"),
            ("editors", "editor"),
            ("types", "typed"),
            ("trees", "tree"),
            ("fixing", "fixes"),
        ] {
            assert_eq!(terms(one), terms(other));
        }
        assert_ne!(terms("mode"), terms("mod"));
    }

    #[test]
    fn keywords_are_no_words_of_code() {
        assert_eq!(
            code_terms("pub mod mode; match kind { Mode => struct_size }"),
            ["mode", "kind", "mode", "struct", "size"]
        );
    }

    #[test]
    fn a_share_counts_wanted_terms_only() {
        assert_eq!(share(&terms("payment processing"), &terms("process orders")), 0.5);
        assert_eq!(share(&[], &terms("x")), 0.0);
    }
}
