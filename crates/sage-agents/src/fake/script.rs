//! The fake agent's script: a list of turns. Attempt n plays turn n; the last one repeats.
//!
//! Turns with `match` are for prompts that contain its text, and for those they are the whole script: one file can
//! play all agents of a workflow.

use std::collections::BTreeMap;

use sage_core::port::{QuotaSignal, Usage};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Script {
    turns: Vec<Turn>,
    /// As they were written.
    written: Vec<Value>,
}

/// What one attempt does, in this order: limits, server, delay, beats, ask, hear, write, run, responses, say,
/// usage, then fault or result.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Turn {
    /// Only for prompts that contain this.
    #[serde(rename = "match")]
    pub matches: Option<String>,
    pub say: Option<String>,
    /// `null` is a result, too; without one, what it says last is the result.
    #[serde(deserialize_with = "given")]
    pub result: Option<Value>,
    pub delay_ms: u64,
    /// Of the last response, in addition to those of `responses`.
    #[serde(deserialize_with = "strict")]
    pub usage: Option<Usage>,
    /// Responses of the model before the last one, each with its own usage.
    pub responses: Vec<Response>,
    /// What the target says about its limits with this answer.
    #[serde(deserialize_with = "strict")]
    pub limits: Option<QuotaSignal>,
    /// A target that all agents share; a turn that it refuses ends there.
    pub server: Option<Server>,
    /// So many dots, one each `beat_ms`: progress without a result.
    pub beats: u32,
    pub beat_ms: u64,
    /// Files below the working directory.
    pub write: BTreeMap<String, String>,
    pub run: Option<String>,
    pub ask: Option<Value>,
    /// Waits for so many messages of a person and says what it heard.
    pub hear: u32,
    /// Claims for a synthesis; they become a field of the result.
    pub claims: Option<Value>,
    pub fault: Option<Fault>,
    /// Of `hang`: goes on to its result after so many reminders (`true` is one); 0 is never.
    #[serde(deserialize_with = "nudges")]
    pub wake_on_nudge: u32,
    pub retry_after_ms: Option<u64>,
    /// RFC 3339.
    pub reset_at: Option<String>,
}

/// In this order: delay, say, usage.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Response {
    pub say: Option<String>,
    #[serde(deserialize_with = "strict")]
    pub usage: Option<Usage>,
    pub delay_ms: u64,
}

/// One scripted endpoint behind all agents that name the same log (server.rs).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    /// A file below the working directory.
    pub log: String,
    /// So many calls, of all agents together, are refused before one is served.
    pub refuse: usize,
    #[serde(default)]
    pub fault: Refused,
    pub retry_after_ms: Option<u64>,
    /// Like `resetAt`, but from the time of the call on.
    pub reset_after_ms: Option<u64>,
    /// Also refuses who comes before the time that the first refusal named.
    #[serde(default)]
    pub while_closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    #[default]
    RateLimit,
    Quota,
    Overloaded,
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
        let wrong = |error: serde_json::Error| format!("the fake agent's script: {error}");
        let turns: Vec<Turn> = serde_json::from_str(text).map_err(wrong)?;
        if turns.is_empty() {
            return Err("the fake agent's script has no turn".into());
        }
        turns.iter().try_for_each(Turn::check)?;
        Ok(Script { turns, written: serde_json::from_str(text).map_err(wrong)? })
    }

    /// The turns for a prompt: those that match it, else those without a condition.
    pub fn for_prompt(self, prompt: &str) -> Result<Script, String> {
        let matches = |turn: &Turn| turn.matches.as_ref().is_some_and(|text| prompt.contains(text.as_str()));
        let any = self.turns.iter().any(matches);
        let wanted = |turn: &Turn| if any { matches(turn) } else { turn.matches.is_none() };
        let (turns, written): (Vec<Turn>, Vec<Value>) =
            self.turns.into_iter().zip(self.written).filter(|(turn, _)| wanted(turn)).unzip();
        if turns.is_empty() {
            return Err(
                "no turn of the fake agent's script is for this prompt: none of `match` is in it".into()
            );
        }
        Ok(Script { turns, written })
    }

    /// As JSON.
    pub fn text(&self) -> String {
        Value::from(self.written.clone()).to_string()
    }

    pub fn turn(&self, attempt: u32) -> &Turn {
        let index = (attempt.max(1) as usize - 1).min(self.turns.len() - 1);
        &self.turns[index]
    }
}

impl Turn {
    fn check(&self) -> Result<(), String> {
        if let Some(time) = &self.reset_at {
            humantime::parse_rfc3339(time).map_err(|error| format!("`resetAt` `{time}`: {error}"))?;
        }
        if self.wake_on_nudge > 0 && self.fault != Some(Fault::Hang) {
            return Err("`wakeOnNudge` needs the fault `hang`".into());
        }
        let opens = |server: &Server| server.retry_after_ms.or(server.reset_after_ms).is_some();
        if self.server.as_ref().is_some_and(|server| server.while_closed && !opens(server)) {
            return Err("`whileClosed` needs `retryAfterMs` or `resetAfterMs`".into());
        }
        Ok(())
    }

    /// The turn's result, with its claims; `None` for a turn that says nothing at all.
    pub fn answer(&self) -> Option<Value> {
        let responses = self.responses.iter().rev().filter_map(|response| response.say.as_ref());
        let said = self.say.iter().chain(responses).next();
        let result = self.result.clone().or_else(|| said.cloned().map(Value::String));
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

/// The port's types take any field, so that they can grow; a script with a typo is refused.
fn strict<'de, D: Deserializer<'de>, T: DeserializeOwned + Serialize>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let given = Value::deserialize(deserializer)?;
    let read: Option<T> = T::deserialize(&given).map(Some).or_else(|error| match given {
        Value::Null => Ok(None),
        _ => Err(D::Error::custom(error)),
    })?;
    let understood = serde_json::to_value(&read).map_err(D::Error::custom)?;
    match unknown(&given, &understood) {
        Some(name) => Err(D::Error::custom(format!("unknown field `{name}`"))),
        None => Ok(read),
    }
}

/// The first field that was given and has left no trace.
fn unknown<'a>(given: &'a Value, understood: &Value) -> Option<&'a str> {
    let fields = given.as_object()?.iter().filter(|(_, value)| !value.is_null());
    fields.into_iter().find_map(|(name, value)| match understood.get(name) {
        Some(understood) => unknown(value, understood),
        None => Some(name),
    })
}

fn nudges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let count = match &value {
        Value::Bool(once) => Some(u32::from(*once)),
        other => other.as_u64().and_then(|count| u32::try_from(count).ok()),
    };
    count.ok_or_else(|| D::Error::custom(format!("`wakeOnNudge` is true or a number, not {value}")))
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
        let script = Script::parse(r#"[{"responses":[{"say":"a"},{"say":"b"},{}],"usage":null}]"#).unwrap();
        assert_eq!(script.turn(1).answer(), Some(json!("b")));
    }

    // covers: R8
    #[test]
    fn turns_with_a_match_are_the_whole_script_of_the_prompts_they_match() {
        let text = r#"[{"match":"review","say":"a"},{"say":"b"},{"match":"review","say":"c"},{"say":"d"}]"#;
        let answers = |prompt: &str| {
            let script = Script::parse(text).unwrap().for_prompt(prompt).unwrap();
            let again = Script::parse(&script.text()).unwrap();
            [1, 2, 3].map(|attempt| again.turn(attempt).say.clone().unwrap()).concat()
        };
        assert_eq!(
            (answers("please review it"), answers("anything")),
            ("acc".to_string(), "bdd".to_string())
        );
        let only = Script::parse(r#"[{"match":"x","say":"a"}]"#).unwrap();
        assert!(only.for_prompt("y").unwrap_err().contains("`match`"));
    }

    #[test]
    fn mistakes_in_a_script_are_named() {
        for (script, hint) in [
            ("[]", "no turn"),
            ("{}", "sequence"),
            (r#"[{"sya":"x"}]"#, "sya"),
            (r#"[{"fault":"explode"}]"#, "explode"),
            (r#"[{"fault":"quota","resetAt":"tomorrow"}]"#, "tomorrow"),
            (r#"[{"usage":{"inptu":1}}]"#, "inptu"),
            (r#"[{"usage":{"input":-1}}]"#, "-1"),
            (r#"[{"responses":[{"syas":"x"}]}]"#, "syas"),
            (r#"[{"responses":[{"usage":{"ouput":1}}]}]"#, "ouput"),
            (r#"[{"limits":{"requests":{"limit":1,"lfet":1}}}]"#, "lfet"),
            (r#"[{"limits":{"tokens":{"limit":1}}}]"#, "tokens"),
            (r#"[{"limits":{"requests":5}}]"#, "5"),
            (r#"[{"fault":"hang","wakeOnNudge":"yes"}]"#, "wakeOnNudge"),
            (r#"[{"wakeOnNudge":true}]"#, "hang"),
            (r#"[{"server":{"log":"a","refuse":1,"until":"x"}}]"#, "until"),
            (r#"[{"server":{"log":"a"}}]"#, "refuse"),
            (r#"[{"server":{"log":"a","refuse":1,"fault":"auth"}}]"#, "auth"),
            (r#"[{"server":{"log":"a","refuse":1,"whileClosed":true}}]"#, "whileClosed"),
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
