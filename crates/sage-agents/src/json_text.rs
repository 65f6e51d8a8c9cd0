//! JSON as models and people give it: plain, in a Markdown fence, or with words around it.

use serde_json::Value;

pub fn find(text: &str) -> Option<Value> {
    let text = text.trim();
    let parse = |text: &str| serde_json::from_str(text.trim()).ok();
    let structured = |text: &str| parse(text).filter(|value: &Value| value.is_object() || value.is_array());
    let fenced = || {
        let parts: Vec<&str> = text.split("```").collect();
        let blocks = parts.iter().skip(1).step_by(2).rev();
        blocks.filter_map(|block| block.split_once('\n')).find_map(|(_language, body)| parse(body))
    };
    let inside = || {
        let (from, to) = (text.find(['{', '['])?, text.rfind(['}', ']'])?);
        structured(text.get(from..=to)?)
    };
    parse(text).or_else(fenced).or_else(inside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_wherever_it_is_put() {
        for text in [
            "{\"a\":1}\n",
            "```json\n{\"a\":1}\n```",
            "Here:\n```\n{\"a\":1}\n```\nDone.",
            "It is {\"a\":1}.",
        ] {
            assert_eq!(find(text), Some(json!({"a": 1})), "{text}");
        }
        assert_eq!(find("\"plain\""), Some(json!("plain")));
        assert_eq!(find("none at all"), None);
        assert_eq!(find("see [1] and [2]"), None);
    }
}
