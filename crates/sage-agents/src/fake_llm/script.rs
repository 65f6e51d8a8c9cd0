//! A script: turns that are consumed in order over all requests; the last one repeats, or the end is an error.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::placeholder::{Values, fill};
use super::turn::{Exhausted, Turn};

/// Checked. A JSON list of turns, or `{"turns": [...], "exhausted": "repeat" | "error"}`.
#[derive(Clone, Debug)]
pub struct Script {
    /// In order. The last one stays.
    turns: VecDeque<Left>,
    /// Those with `match`: looked at first.
    matching: Vec<Left>,
    exhausted: Exhausted,
    /// All turns in order were played.
    over: bool,
}

/// A turn and how often it is still to be played; without end if nobody said so.
#[derive(Clone, Debug)]
struct Left {
    turn: Value,
    needle: Option<String>,
    times: u64,
}

impl Script {
    pub fn parse(text: &str) -> Result<Script, String> {
        let value = serde_json::from_str(text).map_err(|error| format!("the script is not JSON: {error}"))?;
        Script::read(&value)
    }

    pub fn read(value: &Value) -> Result<Script, String> {
        let (turns, exhausted) = parts(value)?;
        let mut script = Script { turns: VecDeque::new(), matching: Vec::new(), exhausted, over: false };
        for (index, value) in turns.iter().enumerate() {
            let turn = Turn::parse(value).map_err(|error| format!("turn {}, {error}", index + 1))?;
            script.exhausted = turn.exhausted.unwrap_or(script.exhausted);
            let times = turn.times.unwrap_or(if turn.matching.is_some() { u64::MAX } else { 1 });
            let left = Left { turn: value.clone(), needle: turn.matching, times };
            if left.needle.is_some() { script.matching.push(left) } else { script.turns.push_back(left) }
        }
        Ok(script)
    }

    /// The turn for a request, with its placeholders filled in.
    pub fn next(&mut self, values: &Values) -> Result<Turn, String> {
        let value = self.next_raw(&values.last_user);
        Turn::parse(&fill(&value, values))
    }

    fn next_raw(&mut self, last_user: &str) -> Value {
        let fits = |left: &&mut Left| {
            left.times > 0 && left.needle.as_ref().is_some_and(|needle| last_user.contains(needle))
        };
        if let Some(left) = self.matching.iter_mut().find(fits) {
            left.times = left.times.saturating_sub(1);
            return left.turn.clone();
        }
        if self.over && self.exhausted == Exhausted::Error {
            return json!({"status": 400, "error": "invalid_request_error", "message": "the script is exhausted"});
        }
        let last = self.turns.len() == 1;
        let Some(front) = self.turns.front_mut() else {
            return json!({"text": "ok"});
        };
        let turn = front.turn.clone();
        front.times = front.times.saturating_sub(1);
        match (front.times, last) {
            (0, true) => self.over = true,
            (0, false) => drop(self.turns.pop_front()),
            _ => {}
        }
        turn
    }
}

fn parts(value: &Value) -> Result<(&Vec<Value>, Exhausted), String> {
    let wrong = || "the script must be a JSON list of turns, or {\"turns\": [...]}".to_string();
    match value {
        Value::Array(turns) => Ok((turns, Exhausted::Repeat)),
        Value::Object(fields) => {
            if let Some(name) = fields.keys().find(|name| !["turns", "exhausted"].contains(&name.as_str())) {
                return Err(format!("the script, `{name}`: no such field; known are turns, exhausted"));
            }
            let turns = fields.get("turns").and_then(Value::as_array).ok_or_else(wrong)?;
            let exhausted = fields.get("exhausted").cloned().unwrap_or_else(|| "repeat".into());
            let exhausted = serde_json::from_value(exhausted)
                .map_err(|error| format!("the script, `exhausted`: {error}"))?;
            Ok((turns, exhausted))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &mut Script, last_user: &str, count: usize) -> Vec<String> {
        let values = Values { last_user: last_user.into(), n: 1, ..Values::default() };
        let said = |turn: Turn| turn.text.or(turn.error.message).unwrap_or_default();
        (0..count).map(|_| said(script.next(&values).unwrap())).collect()
    }

    #[test]
    fn turns_come_in_order_and_the_last_repeats() {
        let mut script = Script::parse(r#"[{"text": "a", "times": 2}, {"text": "b"}]"#).unwrap();
        assert_eq!(texts(&mut script, "", 5), ["a", "a", "b", "b", "b"]);
        assert_eq!(texts(&mut Script::parse("[]").unwrap(), "", 2), ["ok", "ok"]);
    }

    #[test]
    fn an_end_can_be_an_error() {
        let on_turn = r#"[{"text": "a"}, {"text": "b", "times": 2, "exhausted": "error"}]"#;
        let on_script = r#"{"turns": [{"text": "a"}, {"text": "b", "times": 2}], "exhausted": "error"}"#;
        for text in [on_turn, on_script] {
            let mut script = Script::parse(text).unwrap();
            assert_eq!(texts(&mut script, "", 4), ["a", "b", "b", "the script is exhausted"]);
        }
    }

    #[test]
    fn matching_turns_come_first_and_are_not_consumed() {
        let text = r#"[{"text": "1"}, {"match": "blue", "text": "sky"}, {"match": "red", "text": "once", "times": 1}, {"text": "2"}]"#;
        let mut script = Script::parse(text).unwrap();
        assert_eq!(texts(&mut script, "it is blue.", 3), ["sky", "sky", "sky"]);
        assert_eq!(texts(&mut script, "red", 3), ["once", "1", "2"]);
    }

    #[test]
    fn mistakes_are_told_with_turn_and_field() {
        let told = |text: &str| Script::parse(text).unwrap_err();
        assert!(told("[{]").starts_with("the script is not JSON: "));
        assert_eq!(told("7"), "the script must be a JSON list of turns, or {\"turns\": [...]}");
        assert_eq!(told(r#"[{}, 7]"#), "turn 2, expected an object, found 7");
        assert_eq!(told(r#"[{}, {"txt": "x"}]"#), "turn 2, `txt`: no such field; did you mean `text`?");
        assert!(told(r#"[{"delayMs": "x"}]"#).starts_with("turn 1, `delayMs`: invalid type: string"));
        assert!(told(r#"[{"tool": {"input": {}}}]"#).starts_with("turn 1, `tool`: missing field `name`"));
        assert!(told(r#"[{"usage": {"tokens": 1}}]"#).starts_with("turn 1, `usage`: unknown field `tokens`"));
        assert!(told(r#"[{"status": 200}]"#).starts_with("turn 1, `status`: 200 is not an error"));
        assert!(told(r#"[{"error": "x"}]"#).starts_with("turn 1, `error`: needs `status`"));
        assert!(told(r#"[{"times": 0}]"#).starts_with("turn 1, `times`: "));
        assert!(told(r#"[{"headers": {"a b": 1}}]"#).starts_with("turn 1, `headers`: `a b`: "));
        assert!(told(r#"[{"hang": "long"}]"#).starts_with("turn 1, `hang`: expected seconds or true"));
        assert!(told(r#"{"turns": [], "exhausted": "maybe"}"#).starts_with("the script, `exhausted`: "));
        assert!(told(r#"{"turn": []}"#).starts_with("the script, `turn`: no such field"));
    }

    #[test]
    fn both_spellings_are_understood() {
        for text in [
            r#"[{"delayMs": 3, "stopReason": "x", "customTool": {"name": "n", "input": "i"}, "midstreamError": "m"}]"#,
            r#"[{"delay_ms": 3, "stop_reason": "x", "custom_tool": {"name": "n", "input": "i"}, "midstream_error": "m"}]"#,
        ] {
            let values = Values { n: 1, ..Values::default() };
            let turn = Script::parse(text).unwrap().next(&values).unwrap();
            assert_eq!((turn.delay_ms, turn.stop_reason.as_deref()), (3, Some("x")));
            assert_eq!(
                (turn.custom_tool.unwrap().input.as_str(), turn.midstream_error.as_deref()),
                ("i", Some("m"))
            );
        }
    }
}
