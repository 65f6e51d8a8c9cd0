//! The fake agent's script: a list of turns. Attempt n plays turn n; the last one repeats.

use std::collections::BTreeMap;

use sage_core::port::Usage;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Script(Vec<Turn>);

/// What one attempt does, in this order: delay, ask, write, run, say, usage, then fault or result.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Turn {
    pub say: Option<String>,
    /// `null` is a result, too; without one, what it says is the result.
    #[serde(deserialize_with = "given")]
    pub result: Option<Value>,
    pub delay_ms: u64,
    pub usage: Option<Usage>,
    /// Files below the working directory.
    pub write: BTreeMap<String, String>,
    pub run: Option<String>,
    pub ask: Option<Value>,
    /// Claims for a synthesis; they become a field of the result.
    pub claims: Option<Value>,
    pub fault: Option<Fault>,
    pub retry_after_ms: Option<u64>,
    pub reset_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    Hang,
    Crash,
    Garbage,
    Truncated,
    SilentExit,
    IgnoreTerm,
    Flood,
    RateLimit,
    Quota,
    Overloaded,
    Auth,
    DoubleResult,
}

/// Names of all faults, as a script spells them.
pub const FAULTS: [&str; 12] = [
    "hang",
    "crash",
    "garbage",
    "truncated",
    "silent-exit",
    "ignore-term",
    "flood",
    "rate-limit",
    "quota",
    "overloaded",
    "auth",
    "double-result",
];

impl Script {
    pub fn parse(text: &str) -> Result<Script, String> {
        let turns: Vec<Turn> =
            serde_json::from_str(text).map_err(|error| format!("the fake agent's script: {error}"))?;
        if turns.is_empty() {
            return Err("the fake agent's script has no turn".into());
        }
        for time in turns.iter().filter_map(|turn| turn.reset_at.as_ref()) {
            humantime::parse_rfc3339(time).map_err(|error| format!("`resetAt` `{time}`: {error}"))?;
        }
        Ok(Script(turns))
    }

    pub fn turn(&self, attempt: u32) -> &Turn {
        let index = (attempt.max(1) as usize - 1).min(self.0.len() - 1);
        &self.0[index]
    }
}

impl Turn {
    /// The turn's result, with its claims; `None` for a turn that says nothing at all.
    pub fn answer(&self) -> Option<Value> {
        let result = self.result.clone().or_else(|| self.say.clone().map(Value::String));
        let Some(claims) = &self.claims else { return result };
        let mut object = match result {
            Some(Value::Object(object)) => object,
            Some(other) => serde_json::Map::from_iter([("text".to_string(), other)]),
            None => serde_json::Map::new(),
        };
        object.insert("claims".into(), claims.clone());
        Some(Value::Object(object))
    }
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attempts_walk_through_the_turns_and_the_last_repeats() {
        let script = Script::parse(r#"[{"say":"a"},{"result":null},{"say":"c","claims":[1]}]"#).unwrap();
        let answers: Vec<Option<Value>> = [0, 1, 2, 3, 99].map(|n| script.turn(n).answer()).into();
        let last = Some(json!({"text": "c", "claims": [1]}));
        let expected = [Some(json!("a")), Some(json!("a")), Some(Value::Null), last.clone(), last];
        assert_eq!(answers, expected);
        assert_eq!(Turn::default().answer(), None);
    }

    #[test]
    fn mistakes_in_a_script_are_named() {
        for (script, hint) in [
            ("[]", "no turn"),
            ("{}", "sequence"),
            (r#"[{"sya":"x"}]"#, "sya"),
            (r#"[{"fault":"explode"}]"#, "explode"),
            (r#"[{"fault":"quota","resetAt":"tomorrow"}]"#, "tomorrow"),
        ] {
            let error = Script::parse(script).unwrap_err();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn every_fault_has_its_name() {
        for name in FAULTS {
            assert!(Script::parse(&json!([{ "fault": name }]).to_string()).is_ok(), "{name}");
        }
    }
}
