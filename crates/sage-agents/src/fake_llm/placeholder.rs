//! `{{last_user}}`, `{{last_tool_result}}`, `{{n}}` and `{{after:words}}` in the strings of a turn, filled in once: what
//! comes from the request is never searched again.

use serde_json::Value;

/// What a request puts into a turn.
#[derive(Clone, Debug, Default)]
pub struct Values {
    pub last_user: String,
    pub last_tool_result: String,
    /// Which request it is, from 1.
    pub n: u64,
    /// All of it, as JSON.
    pub request: String,
}

impl Values {
    fn get(&self, name: &str) -> Option<String> {
        if let Some(words) = name.strip_prefix("after:") {
            return self.after(words);
        }
        match name.trim() {
            "last_user" => Some(self.last_user.clone()),
            "last_tool_result" => Some(self.last_tool_result.clone()),
            "n" => Some(self.n.to_string()),
            _ => None,
        }
    }

    /// The word that follows these in the request: a name that only whoever asks knows.
    fn after(&self, words: &str) -> Option<String> {
        let rest = self.request.split_once(words)?.1.trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || "\"\\".contains(c)).unwrap_or(rest.len());
        Some(rest[..end].to_string())
    }
}

pub fn fill(value: &Value, values: &Values) -> Value {
    match value {
        Value::String(text) => fill_text(text, values).into(),
        Value::Array(items) => items.iter().map(|item| fill(item, values)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill(value, values))).collect()
        }
        other => other.clone(),
    }
}

/// Unknown names stay as they are: they may be meant for somebody else.
fn fill_text(text: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let found = after.split_once("}}").and_then(|(name, tail)| Some((values.get(name)?, tail)));
        if let Some((value, tail)) = found {
            filled.push_str(&value);
            rest = tail;
        } else {
            filled.push_str("{{");
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_filled_everywhere_and_once() {
        let request = r#"{"a": "write it to /tmp/x.md using\nb"}"#.to_string();
        let values = Values { last_user: "say {{n}}".into(), last_tool_result: "42".into(), n: 7, request };
        assert_eq!(fill(&json!("{{after:write it to}} {{after:no}}"), &values), "/tmp/x.md {{after:no}}");
        let turn = json!({"a": ["{{last_user}} {{n}}", 1], "b": {"c": "{{ last_tool_result }}{{x}}{{"}});
        assert_eq!(fill(&turn, &values), json!({"a": ["say {{n}} 7", 1], "b": {"c": "42{{x}}{{"}}));
    }
}
