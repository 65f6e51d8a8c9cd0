//! Values of `-c name=value`, which codex reads as TOML.

use serde_json::Value;

/// A TOML string. JSON's form is one, too, but for DEL.
pub fn text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

pub fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(text).collect();
    format!("[{}]", items.join(","))
}

/// An inline table; the values are TOML already.
pub fn table<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<String> =
        fields.into_iter().map(|(name, value)| format!("{}={value}", text(name))).collect();
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_its_quotes() {
        assert_eq!(text("a\"b\\\n\u{7f}é\u{1}"), r#""a\"b\\\n\u007fé\u0001""#);
        assert_eq!(list(["a", "b c"]), r#"["a","b c"]"#);
        assert_eq!(table([("x.y", text("1")), ("l", list([]))]), r#"{"x.y"="1","l"=[]}"#);
    }
}
