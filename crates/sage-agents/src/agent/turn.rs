//! How a turn ended, before the session and the engine have judged it.

use sage_core::policy::Cause;
use sage_core::port::{StepOutcome, Usage};
use sage_core::secret::Redactor;
use serde_json::{Map, Value};

use crate::outcome::Miss;

#[derive(Clone, Debug)]
pub struct Turn {
    /// The answer that the agent's terminal event gave, or why there is none.
    pub answer: Result<Value, Miss>,
    /// Of this turn alone. Classes that nobody reported stay `None`.
    pub usage: Usage,
    /// The agent's own counters at the end, where they count over the whole conversation.
    pub counters: Option<Usage>,
    /// Tokens that the conversation carries into its next turn.
    pub context_tokens: Option<u64>,
    /// The agent does not know the conversation that it was to go on with; nothing was spent.
    pub unknown_conversation: bool,
    /// The conversation itself is bad, e.g. too long: trying again in it cannot help.
    pub spoiled: bool,
}

impl Turn {
    pub fn new(answer: Result<Value, Miss>, usage: Usage) -> Turn {
        Turn {
            answer,
            usage,
            counters: None,
            context_tokens: None,
            unknown_conversation: false,
            spoiled: false,
        }
    }

    pub fn missed(miss: Miss) -> Turn {
        Turn::new(Err(miss), Usage::default())
    }

    /// The agent could not work as it is set up.
    pub fn did_not_start(&self) -> bool {
        matches!(self.answer, Err(Miss::Failed { cause: Some(Cause::Setup), .. }))
    }

    pub fn redact(&mut self, redactor: &Redactor) {
        match &mut self.answer {
            Ok(answer) => redactor.value(answer),
            Err(Miss::Failed { message, .. }) => redactor.string(message),
            Err(Miss::Stopped) => {}
        }
    }

    /// `text` is what the agent has said so far: partial work of a turn without an answer.
    pub fn into_outcome(self, text: &str) -> StepOutcome {
        match self.answer {
            Ok(result) => StepOutcome::Succeeded { result, usage: self.usage },
            Err(miss) => {
                let said = Map::from_iter([("text".to_string(), Value::from(text))]);
                let partial = (!text.is_empty()).then_some(Value::Object(said));
                miss.into_outcome(partial, self.usage)
            }
        }
    }
}
