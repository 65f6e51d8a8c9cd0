//! How a turn ended: only the agent's own `end_turn` is a success, and only if a model has spoken. A turn that ends
//! at a denied question, without another word, has failed.

use agent_client_protocol::v1::schema::{PromptResponse, StopReason};
use sage_core::policy::FailureClass;
use serde_json::Value;

use super::failure;
use super::hear::Heard;
use crate::json_text;
use crate::outcome::{Miss, excerpt};

pub fn answer(response: &PromptResponse, heard: &Heard, wants_json: bool) -> Result<Value, Miss> {
    match response.stop_reason {
        StopReason::EndTurn => ended(response, heard, wants_json),
        StopReason::MaxTokens => Err(failed("it stopped at its limit of tokens")),
        StopReason::MaxTurnRequests => Err(failed("it stopped at its limit of requests to the model")),
        StopReason::Refusal => Err(failed("it refused to go on")),
        StopReason::Cancelled => Err(match heard.denied() {
            Some(denied) => failed(&format!("it gave up because {denied}")),
            None => Miss::failed(FailureClass::Lost, "its turn was cancelled, and not by sage"),
        }),
        _ => Err(failed("it stopped for a reason that sage does not know")),
    }
}

fn failed(why: &str) -> Miss {
    Miss::of_answer(FailureClass::Failed, why)
}

fn ended(response: &PromptResponse, heard: &Heard, wants_json: bool) -> Result<Value, Miss> {
    let last = heard.messages.last();
    let text = last.text.trim();
    // Seen with codex-acp: errors of the model are told in a message, and the turn ends as if nothing was wrong.
    if heard.messages.ends_with_own_words() || (!text.is_empty() && no_model_answered(response)) {
        return Err(failure::said(text));
    }
    // Seen with opencode and qwen: the turn just ends.
    if let Some(denied) = heard.silent_since_denial() {
        return Err(failed(&format!("it stopped without an answer because {denied}")));
    }
    if last.cut {
        return Err(Miss::unfit("the answer is too long"));
    }
    if text.is_empty() && !heard.tools.used {
        return Err(Miss::of_answer(FailureClass::Lost, "it ended its turn without a word"));
    }
    if !wants_json {
        return Ok(Value::String(text.to_string()));
    }
    json_text::find(text).ok_or_else(|| Miss::unfit(format!("the answer is not JSON: {}", excerpt(text))))
}

/// The agent lists the models that have answered, and there are none.
fn no_model_answered(response: &PromptResponse) -> bool {
    let quota = response.meta.as_ref().and_then(|meta| meta.get("quota"));
    let models = quota.and_then(|quota| quota.get("model_usage")).and_then(Value::as_array);
    response.usage.is_none() && models.is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(chunks: &[(Option<&str>, &str)]) -> Heard {
        let mut heard = Heard::default();
        chunks.iter().for_each(|(id, text)| drop(heard.messages.push(*id, text)));
        heard
    }

    // covers: S4, R7
    #[test]
    fn a_turn_that_ends_at_a_denial_has_failed() {
        let end = response(r#"{"stopReason":"end_turn"}"#);
        for before in ["", "let me look"] {
            let mut heard = heard(&[(None, before)]);
            heard.tools.used = true;
            heard.deny("bash", "not today");
            heard.say(None, " \n");
            let Err(Miss::Failed { class, message, .. }) = answer(&end, &heard, false) else { panic!() };
            let expected = "it stopped without an answer because `bash` was not allowed: not today";
            assert_eq!((class, message.as_str()), (FailureClass::Failed, expected));
            heard.messages.pause();
            heard.say(None, "I could not look.");
            assert_eq!(answer(&end, &heard, false), Ok("I could not look.".into()));
        }
    }

    fn response(text: &str) -> PromptResponse {
        serde_json::from_str(text).unwrap()
    }

    // covers: R7
    #[test]
    fn an_error_in_words_is_no_answer() {
        let end = r#"{"stopReason":"end_turn","usage":{"totalTokens":1,"inputTokens":1,"outputTokens":0}}"#;
        let empty = r#"{"stopReason":"end_turn","usage":null,"_meta":{"quota":{"model_usage":[]}}}"#;
        let class = |response: &PromptResponse, heard: &Heard| match answer(response, heard, false) {
            Err(Miss::Failed { class, .. }) => Some(class),
            Err(Miss::Stopped) => panic!(),
            Ok(_) => None,
        };
        let busy = "exceeded retry limit, last status: 429 Too Many Requests";
        assert_eq!(class(&response(empty), &heard(&[(None, busy)])), Some(FailureClass::RateLimit));
        assert_eq!(
            class(&response(end), &heard(&[(Some("a"), "look"), (None, busy)])),
            Some(FailureClass::RateLimit)
        );
        assert_eq!(class(&response(end), &heard(&[(None, "fine")])), None);
        assert_eq!(class(&response(end), &heard(&[])), Some(FailureClass::Lost));
    }
}
