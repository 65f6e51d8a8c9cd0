//! `SAGE_STATE_ENCRYPTION` and `SAGE_STATE_KEY`: asked for, and not available in this version. Whoever asks for
//! encrypted state must not get plain text, so commands that write state refuse to run.

use super::picked::pick;
use super::{Setting, tell};
use crate::cli::failure::Failure;

const SWITCH: &str = "SAGE_STATE_ENCRYPTION";
const KEY: &str = "SAGE_STATE_KEY";

/// The variable that asks for encryption, if one does.
pub(super) fn wanted(settings: &mut Vec<Setting>) -> Result<Option<&'static str>, Failure> {
    let switch = pick(settings, "stateEncryption", &[SWITCH], None, "false".into());
    let on = switch.switch()?;
    let key = std::env::var_os(KEY).is_some_and(|key| !key.is_empty());
    if key {
        tell(settings, "stateKey".into(), "(set)".into(), &format!("environment {KEY}"));
    }
    let by_key = key && !switch.is_given();
    Ok(if on { Some(SWITCH) } else { by_key.then_some(KEY) })
}

pub fn refusal(variable: &str) -> Failure {
    Failure::usage(format!(
        "`{variable}` asks for encrypted state, which this version of sage does not support: commands that write \
         state refuse to run"
    ))
    .hint(format!("unset {variable}"))
}
