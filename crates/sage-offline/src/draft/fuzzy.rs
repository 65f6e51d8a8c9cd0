//! Findings and lists out of JSON that only resembles what was asked for.

use serde_json::Value;

use crate::finding::{Claim, Finding};

/// A finding from an object with any of the usual names, or from a plain sentence.
pub fn finding(value: &Value) -> Option<Finding> {
    if let Some(text) = value.as_str().map(str::trim).filter(|text| !text.is_empty()) {
        return Some(Finding {
            title: text.to_string(),
            relevance: 0.5,
            confidence: 0.5,
            ..Finding::default()
        });
    }
    let title = first_text(value, &["title", "name", "finding", "summary", "text", "description"])?;
    let detail = first_text(value, &["detail", "details", "description", "body", "text"]).unwrap_or_default();
    let detail = if detail == title { String::new() } else { detail };
    Some(Finding {
        title,
        detail,
        relevance: degree(value.get("relevance").or_else(|| value.get("severity"))),
        evidence: places(value.get("evidence").or_else(|| value.get("locations"))),
        kind: first_text(value, &["kind", "category", "type"]).unwrap_or_default(),
        confidence: degree(value.get("confidence")),
    })
}

/// A claim needs all of its three parts to be compared.
pub fn claim(value: &Value) -> Option<Claim> {
    Some(Claim {
        subject: first_text(value, &["subject"])?,
        predicate: first_text(value, &["predicate"])?,
        value: value.get("value").filter(|value| !value.is_null())?.clone(),
        evidence: places(value.get("evidence")),
        confidence: degree(value.get("confidence")),
    })
}

/// A list of texts, or one; of objects, their first text.
pub fn texts(value: Option<&Value>) -> Vec<String> {
    let text = |item: &Value| {
        let text = item.as_str().map(str::to_string);
        let text =
            text.or_else(|| first_text(item, &["question", "text", "title", "criterion", "id", "path"]));
        text.map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
    };
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Evidence as `path:line`, also where it is given as an object.
pub fn places(value: Option<&Value>) -> Vec<String> {
    let place = |item: &Value| {
        let path = first_text(item, &["path", "file", "url", "source"])?;
        let line = item.get("line").and_then(Value::as_u64);
        Some(line.map_or(path.clone(), |line| format!("{path}:{line}")))
    };
    match value {
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_string).or_else(|| place(item)))
            .collect(),
        Some(Value::String(one)) if !one.trim().is_empty() => vec![one.trim().to_string()],
        Some(one @ Value::Object(_)) => place(one).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// 0 to 1 from a number, a percentage or a word; the middle where nothing is said.
fn degree(value: Option<&Value>) -> f64 {
    let number = |number: f64| if number > 1.0 { number / 100.0 } else { number };
    let degree = match value {
        Some(Value::Number(n)) => n.as_f64().map(number),
        Some(Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "critical" | "very high" => Some(1.0),
            "high" => Some(0.85),
            "medium" => Some(0.6),
            "low" => Some(0.3),
            other => other.trim_end_matches('%').parse().ok().map(number),
        },
        _ => None,
    };
    degree.filter(|degree: &f64| degree.is_finite()).unwrap_or(0.5).clamp(0.0, 1.0)
}

fn first_text(value: &Value, keys: &[&str]) -> Option<String> {
    let text =
        keys.iter().find_map(|key| value.get(*key)?.as_str().map(str::trim).filter(|text| !text.is_empty()));
    text.map(str::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: R6
    #[test]
    fn findings_of_other_agents_are_read_too() {
        let found = finding(&json!({"name": "Retries", "description": "none", "severity": "high",
            "locations": [{"file": "a.py", "line": 3}, "b.py:4"], "confidence": "80%"}))
        .unwrap();
        assert_eq!((found.title.as_str(), found.detail.as_str()), ("Retries", "none"));
        assert_eq!(found.evidence, ["a.py:3", "b.py:4"]);
        assert_eq!((found.relevance, found.confidence), (0.85, 0.8));
        assert_eq!(finding(&json!("use idempotency keys")).unwrap().title, "use idempotency keys");
        assert!(finding(&json!(7)).is_none());
        assert!(finding(&json!({"evidence": 3})).is_none());
    }

    #[test]
    fn claims_need_three_parts() {
        assert!(claim(&json!({"subject": "a", "predicate": "b"})).is_none());
        assert_eq!(claim(&json!({"subject": "a", "predicate": "b", "value": 1})).unwrap().confidence, 0.5);
    }
}
