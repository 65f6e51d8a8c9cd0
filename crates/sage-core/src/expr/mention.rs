//! Which steps an expression names. Literal mentions only: `steps["phase/operation"]`.

use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Jq,
    Jinja,
}

/// A step path in an expression, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    pub path: &'a str,
    pub range: Range<usize>,
}

/// The step paths that a text mentions, sorted.
pub fn references(text: &str, language: Language) -> BTreeSet<&str> {
    mentions(text, language).into_iter().map(|mention| mention.path).collect()
}

/// In the order of the text. In Jinja only inside `{{ }}` and `{% %}`, for the rest is prose.
pub fn mentions(text: &str, language: Language) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    if !text.contains("steps") {
        return found;
    }
    match language {
        Language::Jq => scan(text, 0, &mut found),
        Language::Jinja => {
            for block in blocks(text) {
                scan(&text[block.clone()], block.start, &mut found);
            }
        }
    }
    found
}

/// The inputs that a text reads, each by its name; `None` where it reads all of them, or one whose name is computed.
pub fn inputs_of(text: &str, language: Language) -> Vec<Option<&str>> {
    let mut found = Vec::new();
    match language {
        Language::Jq => scan_inputs(text, &mut found),
        Language::Jinja => blocks(text).for_each(|block| scan_inputs(&text[block], &mut found)),
    }
    found
}

fn scan_inputs<'a>(text: &'a str, found: &mut Vec<Option<&'a str>>) {
    const WORD: &str = "inputs";
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in text.match_indices(WORD) {
        let (before, after) = (&text[..at], &text[at + WORD.len()..]);
        // `steps["a"].result.inputs` is something else, `.inputs` is not.
        let inner = before.strip_suffix('.').unwrap_or(before);
        let part_of_path =
            inner.len() < before.len() && inner.ends_with(|c: char| in_word(c) || "])\"'".contains(c));
        if part_of_path || before.ends_with(|c: char| in_word(c) || c == '$') || after.starts_with(in_word) {
            continue;
        }
        found.push(named_input(after.trim_start()));
    }
}

/// `.name`, `["name"]`, `."name"`.
fn named_input(after: &str) -> Option<&str> {
    let quoted = |text: &'_ str| text.starts_with(['"', '\'']);
    let inner = match (after.strip_prefix('.'), after.strip_prefix('[')) {
        (Some(rest), _) if !quoted(rest) => {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let called = rest[end..].starts_with('(');
            return Some(&rest[..end]).filter(|name| !name.is_empty() && !called);
        }
        (Some(rest), _) | (None, Some(rest)) => rest.trim_start(),
        (None, None) => return None,
    };
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let length = inner[1..].find(quote)?;
    Some(&inner[1..1 + length])
}

/// The insides of `{{ }}` and `{% %}`.
pub(super) fn blocks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let open = from + text[from..].find('{')?;
            let close = match text.as_bytes().get(open + 1) {
                Some(b'{') => "}}",
                Some(b'%') => "%}",
                _ => {
                    from = open + 1;
                    continue;
                }
            };
            let start = open + 2;
            let end = text[start..].find(close).map_or(text.len(), |at| start + at);
            from = end;
            return Some(start..end);
        }
    })
}

fn scan<'a>(text: &'a str, base: usize, found: &mut Vec<Mention<'a>>) {
    for (at, word) in text.match_indices("steps") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &text[at + word.len()..];
        // jq also allows `.steps."a/b"`.
        let inner = rest.trim_start();
        let Some(inner) =
            inner.strip_prefix('[').or_else(|| inner.strip_prefix('.').filter(|r| r.starts_with('"')))
        else {
            continue;
        };
        let inner = inner.trim_start();
        let Some(quote) = inner.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            continue;
        };
        if let Some(length) = inner[1..].find(quote) {
            let start = text.len() - inner.len() + 1;
            let path = &text[start..start + length];
            found.push(Mention { path, range: base + start..base + start + length });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_found_by_name_or_as_a_whole() {
        let jq = r#".inputs.a | inputs["b"] | inputs . "x" | .inputs."c" | myinputs.no | steps["x"].result.inputs.no"#;
        assert_eq!(inputs_of(jq, Language::Jq), [Some("a"), Some("b"), None, Some("c")]);
        let jinja = "no inputs.x here {{ inputs.a | upper }} {{ inputs['b'] }} {% for k in inputs %}{{ inputs.get(k) }}";
        assert_eq!(inputs_of(jinja, Language::Jinja), [Some("a"), Some("b"), None, None]);
        assert_eq!(inputs_of("inputs[.x] | {inputs} | $inputs", Language::Jq), [None, None]);
    }

    #[test]
    fn literal_mentions_are_found_in_both_languages() {
        let jq = r#".steps["a/b"].result | steps['c/d'] | steps . "x" | .steps."e/f" | mysteps["no/no"] | steps[.x]"#;
        assert_eq!(references(jq, Language::Jq).into_iter().collect::<Vec<_>>(), ["a/b", "c/d", "e/f"]);
        let jinja = r#"see steps["no/no"] and {{ steps["a/b"].result }} {% if steps[ 'c/d' ].state %}x{% endif %} {x} {{ steps["#;
        let found = mentions(jinja, Language::Jinja);
        assert_eq!(found.iter().map(|m| m.path).collect::<Vec<_>>(), ["a/b", "c/d"]);
        assert!(found.iter().all(|m| &jinja[m.range.clone()] == m.path));
        assert!(mentions("", Language::Jinja).is_empty());
        assert!(mentions("{", Language::Jinja).is_empty());
        assert!(mentions("steps[\"\u{e9}", Language::Jq).is_empty());
    }
}
