//! Steps that wait instead of working: for a time, or for a person.

use sage_core::event::Ask;
use sage_core::template::Kind;
use serde_json::{Map, Value};

use crate::results::INLINE_BYTES;

/// Kinds that wait instead of working.
#[derive(Debug)]
pub enum Pending {
    Sleep { ms: u64 },
    Approval { ask: Ask, deadline_ms: Option<u64> },
}

impl Pending {
    /// What a step of this kind waits for, if it does.
    pub fn of(kind: Kind, params: &Map<String, Value>) -> Result<Option<Pending>, String> {
        match kind {
            Kind::Sleep => Ok(Some(Pending::Sleep { ms: sleep_ms(params)? })),
            Kind::Approval => approval(params).map(Some),
            _ => Ok(None),
        }
    }
}

fn sleep_ms(params: &Map<String, Value>) -> Result<u64, String> {
    let given = params.get("ms").or_else(|| params.get("for")).unwrap_or(&Value::Null);
    sage_core::duration::from_json(given).map_err(|e| e.to_string())
}

fn approval(params: &Map<String, Value>) -> Result<Pending, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_string);
    let listed = params
        .get("choices")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_string).collect::<Vec<_>>());
    let choices = listed.unwrap_or_else(|| vec!["approve".into(), "reject".into()]);
    let ask = Ask { message: text("message").unwrap_or_default(), choices, default: text("default") };
    let bytes = ask.message.len() + ask.choices.iter().map(String::len).sum::<usize>();
    if bytes > INLINE_BYTES {
        return Err(format!(
            "`message` and `choices` have {bytes} bytes; at most {INLINE_BYTES} can be asked"
        ));
    }
    let deadline_ms =
        params.get("deadline").map(sage_core::duration::from_json).transpose().map_err(|e| e.to_string())?;
    Ok(Pending::Approval { ask, deadline_ms })
}
