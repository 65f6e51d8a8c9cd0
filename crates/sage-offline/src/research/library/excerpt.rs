//! The part of a passage that is worth showing: from the first sentence that speaks of the title, whole sentences.

use crate::research::rank::Query;

/// At most about `most` bytes of a text.
pub(crate) fn excerpt(text: &str, most: usize, query: &Query) -> String {
    if text.len() <= most {
        return text.to_string();
    }
    let sentences = sentences(text);
    let speaks = sentences.iter().position(|sentence| query.share(sentence) > 0.0).unwrap_or(0);
    // A hit within what is shown anyway needs no jump.
    let before: usize = sentences[..speaks].iter().map(|sentence| sentence.len()).sum();
    let start = if before < most / 2 { 0 } else { speaks };
    let mut shown = if start > 0 { "... ".to_string() } else { String::new() };
    for (at, sentence) in sentences.iter().enumerate().skip(start) {
        if shown.len() + sentence.len() > most {
            if at == start || shown.len() < most / 2 {
                shown.push_str(&cut(sentence, most - shown.len()));
            }
            break;
        }
        shown.push_str(sentence);
    }
    shown.trim_end().to_string()
}

/// Whole words of at most `most` bytes, with `...` where something is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_string();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let words = text[..end].rsplit_once(' ').map_or(&text[..end], |(words, _)| words);
    format!("{words} ...")
}

/// Sentences with the space after them.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '!', '?']) {
        let after = &text[at + 1..];
        let next = after.trim_start();
        let ends = after.starts_with(' ') && !next.starts_with(char::is_lowercase);
        let short =
            ["e.g", "i.e", "etc", "vs", "cf", "resp"].iter().any(|word| text[start..at].ends_with(word));
        if ends && !short {
            let end = at + 1 + (after.len() - next.len());
            found.push(&text[start..end]);
            start = end;
        }
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R6
    #[test]
    fn whole_sentences_from_where_it_speaks_of_the_title() {
        let text = "One is here. Two is e.g. there. Money is paid at the end of it all. Four.";
        assert_eq!(
            sentences(text),
            ["One is here. ", "Two is e.g. there. ", "Money is paid at the end of it all. ", "Four."]
        );
        let query = Query::new(&["money"]);
        assert_eq!(excerpt(text, 42, &query), "... Money is paid at the end of it all.");
        assert_eq!(excerpt(text, 500, &query), text);
        assert_eq!(excerpt(text, 30, &Query::default()), "One is here. Two is e.g. ...");
        assert_eq!(cut("aa bb\u{e9}cc", 6), "aa ...");
    }
}
