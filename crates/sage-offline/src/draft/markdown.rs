//! Small pieces of Markdown that read well on GitHub and in a terminal.

/// `text` as code, whatever is in it.
pub fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// `a:1`, `b:2` and 3 more
pub fn places(places: &[String], most: usize) -> String {
    let shown: Vec<String> = places.iter().take(most).map(|place| code(place)).collect();
    let more = places.len().saturating_sub(most);
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `a`, `b` and `c`
pub fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A table; nothing without rows.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(heads.iter().map(|head| head.trim_end_matches(':').to_string()).collect());
    // A head that ends in a colon is a column of figures.
    let rule = |head: &&str| if head.ends_with(':') { "---:" } else { "---" }.to_string();
    text += &format!("|{}|\n", heads.iter().map(rule).collect::<Vec<_>>().join("|"));
    for row in rows {
        text += &line(row.iter().map(|text| cell(text)).collect());
    }
    text
}

/// `- a` and `- b`, or one sentence where there is nothing.
pub fn list(items: &[String], none: &str) -> String {
    if items.is_empty() {
        return format!("{none}\n");
    }
    items.iter().map(|item| format!("- {item}\n")).collect()
}

/// `## Heading` with its text, and nothing where there is no text.
pub fn section(heading: &str, text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!("\n## {heading}\n\n{text}\n") }
}

/// One line of prose, cut at a word.
pub fn short(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((at, _)) = text.char_indices().nth(most) else { return text };
    let cut = text[..at].rfind(' ').unwrap_or(at);
    format!("{}...", text[..cut].trim_end_matches([',', ';', ':', '.']))
}

/// A quotation in one line; its own quotation marks become single ones.
pub fn quoted(text: &str, most: usize) -> String {
    format!("\"{}\"", short(text, most).replace('"', "'"))
}

/// `1 test`, `2 tests`
pub fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// The first letter large.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_lists_hold_together() {
        let rows = [vec!["a|b".to_string(), "1".to_string()]];
        assert_eq!(table(&["what", "lines:"], &rows), "| what | lines |\n|---|---:|\n| a\\|b | 1 |\n");
        assert_eq!(list(&[], "None."), "None.\n");
        assert_eq!(places(&["a:1".into(), "b:2".into(), "c:3".into()], 2), "`a:1`, `b:2` and 1 more");
        assert_eq!(short("one two three", 9), "one two...");
        assert_eq!(code("a`b"), "`` a`b ``");
    }
}
