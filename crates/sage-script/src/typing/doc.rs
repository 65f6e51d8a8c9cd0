//! Words of third parties in comments: they can neither end the comment nor hide or flood anything.

use sage_core::diagnostic::printable;
use serde_json::Value;

/// Of a tool; some servers write handbooks into their descriptions.
pub const MAX_TOOL_CHARS: usize = 2_000;
/// Of a field.
pub const MAX_FIELD_CHARS: usize = 300;

/// One line, without what a terminal would obey, cut where it is too long.
pub fn line(text: &str, most: usize) -> String {
    // Twice as much as can be needed, so that a book is not read as a whole.
    let head: String = text.chars().take(most.saturating_mul(4)).collect();
    let words: Vec<&str> = head.split_whitespace().collect();
    cut(&printable(&words.join(" ")), most)
}

/// The first sentence, for lists.
pub fn sentence(text: &str, most: usize) -> String {
    let whole = line(text, 4 * most);
    let end = whole.find(". ").map_or(whole.len(), |at| at + 1);
    cut(&whole[..end], most).trim_end_matches('.').to_string()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => format!("{}…", text.chars().take(most.saturating_sub(1)).collect::<String>().trim_end()),
        None => text.to_string(),
    }
}

/// A comment of one or more lines; nothing if there is nothing to say.
pub fn comment(text: &str, most: usize, indent: usize) -> String {
    let head: String = text.chars().take(most.saturating_mul(4)).collect();
    let lines: Vec<String> =
        cut(head.trim(), most).lines().map(|line| printable(line.trim_end()).replace("*/", "*\\/")).collect();
    let pad = " ".repeat(indent);
    match lines.as_slice() {
        [] => String::new(),
        [only] => format!("{pad}/** {only} */\n"),
        several => {
            let body: String = several.iter().map(|line| format!("{pad} * {line}\n")).collect();
            format!("{pad}/**\n{body}{pad} */\n")
        }
    }
}

/// What a schema says beside its type: description, default, format, limits.
pub fn of_field(schema: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        parts.push(line(text, MAX_FIELD_CHARS));
    }
    for name in [
        "default",
        "format",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "pattern",
    ] {
        if let Some(value) = schema.get(name).filter(|value| !value.is_null()) {
            parts.push(format!("@{name} {}", line(&value.to_string(), 60)));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R21
    #[test]
    fn nobody_leaves_a_comment() {
        let text = comment("a */ evil(); /* \u{202e}b\nsecond", 100, 2);
        assert_eq!(text, "  /**\n   * a *\\/ evil(); /* \u{fffd}b\n   * second\n   */\n");
        assert_eq!(comment("**//*/", 100, 0), "/** **\\//*\\/ */\n");
        assert_eq!(comment("  ", 100, 0), "");
    }

    #[test]
    fn lists_show_the_first_sentence() {
        assert_eq!(sentence("Finds issues. Then more.", 80), "Finds issues");
        assert_eq!(sentence("e.g. this\n\n  one", 80), "e.g");
        let long = sentence(&"word ".repeat(100), 80);
        assert!(long.chars().count() <= 80 && long.ends_with('…'), "{long}");
    }
}
