//! Where the rest of a filtered result is: what people and agents read beside it.

use sage_core::wire::size_text;
use serde_json::Value;

/// `5 of 60 findings; all: sage result <feature> a/b --full`, or nothing where nothing was taken away.
pub fn pointer(feature: &str, path: &str, result: &Value, full: &Value) -> Option<String> {
    if result == full {
        return None;
    }
    let left = counted(result, full).unwrap_or_else(|| sizes(result, full));
    Some(format!("{left}; all: sage result {} {} --full", argument(feature), argument(path)))
}

fn counted(result: &Value, full: &Value) -> Option<String> {
    let (kept, all, what) = match (result, full) {
        (Value::Array(kept), Value::Array(all)) => (kept, all, "entries"),
        _ => (result.get("findings")?.as_array()?, full.get("findings")?.as_array()?, "findings"),
    };
    (kept.len() < all.len()).then(|| format!("{} of {} {what}", kept.len(), all.len()))
}

fn sizes(result: &Value, full: &Value) -> String {
    let size = |value: &Value| size_text(value.to_string().len() as u64);
    format!("{} of {}", size(result), size(full))
}

/// For a shell: an item's path has brackets.
fn argument(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R10
    #[test]
    fn it_says_how_much_is_left_and_where_the_rest_is() {
        let told = |result: Value, full: Value| pointer("pay", "a/b", &result, &full);
        assert_eq!(told(json!([1]), json!([1])), None);
        assert_eq!(
            told(json!({"findings": [1]}), json!({"findings": [1, 2, 3]})).unwrap(),
            "1 of 3 findings; all: sage result pay a/b --full"
        );
        assert!(told(json!([1]), json!([1, 2])).unwrap().starts_with("1 of 2 entries; "));
        let full = json!({"document": "x".repeat(2000)});
        assert!(told(json!("x"), full).unwrap().starts_with("3 bytes of 2.0 KB; all: "));
        assert!(pointer("pay", "a/b[3]", &json!(1), &json!(2)).unwrap().contains("pay 'a/b[3]' --full"));
    }
}
